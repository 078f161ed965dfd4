// A client of the daemon (farflash flash serve) by the verbs of an unmodified kernel: remote HOST PORT EXPORT.
// It asks where the export is (docs/flash/protocol.md), and for several lengths and places writes with the STag's Sync flag, reads nothing, which is answered when
// the data are durable, reads the data back and compares them. Its exit code says whether all of it went well.
#include <arpa/inet.h>
#include <endian.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { most = 1 << 20, request_length = 16, reply_length = 32, sync_flag = 1 };

static struct rdma_cm_id *id;

static void fail(const char *what) {
	perror(what);
	exit(1);
}

// done waits for one completion of what was sent.
static void done(const char *what) {
	struct ibv_wc wc;
	if (rdma_get_send_comp(id, &wc) < 1)
		fail(what);
	if (wc.status != IBV_WC_SUCCESS) {
		printf("%s: %s\n", what, ibv_wc_status_str(wc.status));
		exit(1);
	}
}

static void post(enum ibv_wr_opcode op, void *at, uint32_t length, struct ibv_mr *mr, uint64_t address, uint32_t stag, const char *what) {
	struct ibv_sge sge = {.addr = (uintptr_t)at, .length = length, .lkey = mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = op, .send_flags = IBV_SEND_SIGNALED}, *bad;
	wr.wr.rdma.remote_addr = address;
	wr.wr.rdma.rkey = stag;
	if (ibv_post_send(id->qp, &wr, &bad) != 0)
		fail(what);
}

// ask sends a request and returns the reply.
static const unsigned char *ask(unsigned char *request, int length, struct ibv_mr *mr) {
	static unsigned char reply[reply_length];
	static struct ibv_mr *into;
	struct ibv_wc wc;
	if (into == NULL && (into = rdma_reg_msgs(id, reply, sizeof reply)) == NULL)
		fail("memory for the reply");
	if (rdma_post_recv(id, NULL, reply, sizeof reply, into) != 0)
		fail("a receive");
	post(IBV_WR_SEND, request, length, mr, 0, 0, "a request");
	done("a request");
	if (rdma_get_recv_comp(id, &wc) < 1 || wc.status != IBV_WC_SUCCESS)
		fail("the reply");
	if (wc.byte_len != reply_length || reply[0] != 1 || reply[1] != (request[1] | 0x80) || reply[2] != 0 || reply[3] != 0) {
		printf("the reply has %u bytes, and status %d\n", wc.byte_len, reply[2] << 8 | reply[3]);
		exit(1);
	}
	return reply;
}

int main(int argc, char **argv) {
	if (argc != 4)
		return 2;
	struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP}, *found;
	if (rdma_getaddrinfo(argv[1], argv[2], &hints, &found) != 0)
		fail(argv[1]);
	struct ibv_qp_init_attr qp = {.cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1}, .qp_type = IBV_QPT_RC};
	if (rdma_create_ep(&id, found, NULL, &qp) != 0)
		fail("an endpoint");
	struct rdma_conn_param how = {.initiator_depth = 4, .responder_resources = 4};
	if (rdma_connect(id, &how) != 0)
		fail("connecting");

	static unsigned char out[most], in[most], request[request_length + 255];
	struct ibv_mr *from = ibv_reg_mr(id->pd, out, sizeof out, 0), *to = ibv_reg_mr(id->pd, in, sizeof in, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	struct ibv_mr *ours = rdma_reg_msgs(id, request, sizeof request);
	if (from == NULL || to == NULL || ours == NULL)
		fail("memory");
	int name = strlen(argv[3]);
	request[0] = 1, request[1] = 1, request[2] = 3; // version, open, to read and to write
	request[12] = name >> 8, request[13] = name;
	memcpy(request + request_length, argv[3], name);
	const unsigned char *reply = ask(request, request_length + name, ours);
	uint32_t stag;
	uint64_t address, length;
	memcpy(&stag, reply + 8, 4), memcpy(&address, reply + 16, 8), memcpy(&length, reply + 24, 8);
	stag = be32toh(stag), address = be64toh(address), length = be64toh(length);
	printf("open: %llu bytes, rights %d\n", (unsigned long long)length, reply[12]);

	static const uint32_t lengths[] = {1, 8, 4096, 5000, 65536, 70001, most};
	for (unsigned i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		uint32_t n = lengths[i];
		uint64_t at = i * 4097;
		for (uint32_t k = 0; k < n; k++)
			out[k] = (at + k) * 31 + i;
		memset(in, 0, n);
		post(IBV_WR_RDMA_WRITE, out, n, from, address + at, stag | sync_flag, "a write");
		post(IBV_WR_RDMA_READ, in, 0, to, address, stag, "a read of nothing");
		done("a write");
		done("a read of nothing");
		post(IBV_WR_RDMA_READ, in, n, to, address + at, stag, "a read");
		done("a read");
		if (memcmp(out, in, n) != 0) {
			printf("%u bytes at %llu come back otherwise\n", n, (unsigned long long)at);
			return 1;
		}
		printf("%u bytes at %llu are durable, and come back\n", n, (unsigned long long)at);
	}
	memset(request, 0, request_length);
	request[0] = 1, request[1] = 3; // close
	stag = htobe32(stag);
	memcpy(request + 8, &stag, 4);
	ask(request, request_length, ours);
	rdma_disconnect(id);
	printf("closed\n");
	return 0;
}
