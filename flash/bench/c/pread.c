// The plain protocol of package bench, served by a thread a connection with pread and pwrite around the page cache: pread FILE BLOCK.
// It listens on loopback, writes its port to standard output, and ends when standard input does.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { header = 16, grain = 4096, ahead = 64 << 10 };

static int file;
static size_t block;

// What a client has sent, [start, end) of a buffer of ahead + block bytes.
struct feed {
	int s;
	char *in;
	size_t start, end;
};

// need has n bytes at the front, and takes them; NULL at the end.
static char *need(struct feed *f, size_t n) {
	while (f->end - f->start < n) {
		if (f->start > 0) {
			memmove(f->in, f->in + f->start, f->end - f->start);
			f->end -= f->start;
			f->start = 0;
		}
		ssize_t got = read(f->s, f->in + f->end, ahead + block - f->end);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return NULL;
		f->end += got;
	}
	char *p = f->in + f->start;
	f->start += n;
	return p;
}

static int put(int s, const char *b, size_t n) {
	while (n > 0) {
		ssize_t done = write(s, b, n);
		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return 0;
		b += done;
		n -= done;
	}
	return 1;
}

static void *serve(void *arg) {
	struct feed f = {.s = (int)(intptr_t)arg};
	char *buffer;
	f.in = malloc(ahead + block);
	if (f.in == NULL || posix_memalign((void **)&buffer, grain, grain + block) != 0)
		abort();
	char *bytes = buffer + grain, *reply = bytes - header; // so that one write sends both
	for (char *h; (h = need(&f, header)) != NULL;) {
		uint32_t what, slot, answer[4] = {0};
		uint64_t offset;
		memcpy(&what, h, 4);
		memcpy(&slot, h + 4, 4);
		memcpy(&offset, h + 8, 8);
		size_t n = header;
		ssize_t done;
		if (what == 1) {
			char *p = need(&f, block);
			if (p == NULL)
				break;
			memcpy(bytes, p, block);
			done = pwrite(file, bytes, block, offset);
			answer[2] = 1;
		} else {
			done = pread(file, bytes, block, offset);
			n += block;
		}
		answer[0] = slot;
		answer[1] = done == (ssize_t)block ? 0 : 5;
		memcpy(reply, answer, header);
		if (!put(f.s, reply, n))
			break;
	}
	close(f.s);
	free(f.in);
	free(buffer);
	return NULL;
}

static void *accepting(void *arg) {
	int l = (int)(intptr_t)arg, on = 1;
	for (;;) {
		int s = accept(l, NULL, NULL);
		if (s < 0) {
			perror("accept");
			usleep(1000);
			continue;
		}
		setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
		pthread_t t;
		if (pthread_create(&t, NULL, serve, (void *)(intptr_t)s) != 0)
			close(s);
		else
			pthread_detach(t);
	}
	return NULL;
}

int main(int argc, char **argv) {
	if (argc != 3)
		return 2;
	block = strtoul(argv[2], NULL, 10);
	file = open(argv[1], O_RDWR | O_DIRECT);
	if (file < 0 && errno == EINVAL)
		file = open(argv[1], O_RDWR);
	if (file < 0) {
		perror(argv[1]);
		return 1;
	}
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof a;
	int l = socket(AF_INET, SOCK_STREAM, 0);
	if (l < 0 || bind(l, (struct sockaddr *)&a, n) < 0 || listen(l, 4096) < 0 || getsockname(l, (struct sockaddr *)&a, &n) < 0) {
		perror("listen");
		return 1;
	}
	pthread_t t;
	if (pthread_create(&t, NULL, accepting, (void *)(intptr_t)l) != 0)
		return 1;
	printf("%d\n", ntohs(a.sin_port));
	fflush(stdout);
	char end[64];
	while (read(0, end, sizeof end) > 0)
		;
	return 0;
}
