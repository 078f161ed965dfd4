package scenario

import (
	"errors"
	"strings"
	"testing"

	"farflash/scenario/shape"
)

const smallSystem = `initiators: 3
targets: [{count: 2, ssds: 2, ssd: tlc-enterprise}]
workload: [{synthetic: {reads: {size: 4KiB, interarrival: 5us}, requests: 100}}]
`

func TestSystemMistakes(t *testing.T) {
	for _, c := range []struct {
		name, old, new string
		want           string
	}{
		{"misspelt key", "initiators:", "initiator:",
			`a.yaml:1:1: unknown key "initiator" in the scenario; did you mean "initiators"?`},
		{"misspelt key of targets", "ssds: 2", "ssd_count: 2",
			`a.yaml:2:22: unknown key "ssd_count" in targets[0]; did you mean "ssd"?`},
		{"no initiators", "initiators: 3", "initiators: 0",
			"a.yaml:1:13: initiators: 0 is not possible; use 1 to 4096"},
		{"no targets", "count: 2", "count: 0", "a.yaml:2:19: targets[0].count: 0 is not possible; use 1 to 4096"},
		{"too many drives", "ssds: 2", "ssds: 300", "a.yaml:2:28: targets[0].ssds: 300 is not possible; use 1 to 256"},
		{"no drive", ", ssd: tlc-enterprise", "",
			`a.yaml:2:11: targets[0]: no ssd; add one, such as "ssd: tlc-enterprise"`},
		{"misspelt drive", "tlc-enterprise", "tlc-entreprise",
			`a.yaml:2:36: targets[0].ssd.preset: no preset "tlc-entreprise"; did you mean tlc-enterprise?`},
		{"misspelt protocol", "initiators", "protocol: nvmof\ninitiators",
			`a.yaml:1:11: protocol: "nvmof" is not possible; use nvmeof, flows or nvme-tcp (did you mean nvmeof?)`},
		{"TCP on RoCE", "initiators", "protocol: nvme-tcp\ninitiators",
			"a.yaml:1:11: protocol: nvme-tcp needs TCP, and fabric.transport is rocev2; use fabric.transport: " +
				"tcp, or protocol: nvmeof, which uses RDMA"},
		{"RDMA on TCP", "initiators", "fabric: {transport: tcp}\ninitiators",
			"a.yaml:1:1: protocol: nvmeof needs RDMA, and fabric.transport is tcp; use protocol: nvme-tcp"},
		{"a connection a message", "initiators",
			"protocol: nvme-tcp\nfabric: {transport: tcp, queue_pairs: {life: per-message}}\ninitiators",
			"a.yaml:2:46: fabric.queue_pairs.life: per-message opens a connection for each message, where nvme-tcp " +
				"keeps one; use persistent"},
		{"TCP of another simulator", "initiators",
			"protocol: nvme-tcp\nfabric: {transport: tcp, compat: hpcc, queue_pairs: {life: persistent}}\ninitiators",
			"a.yaml:2:21: fabric.transport: tcp is not simulated by hpcc; use rocev2, or compat: none"},
		{"units of data", "initiators", "nvmf: {tcp: {max_host_data: 1KiB}}\ninitiators",
			"a.yaml:1:29: nvmf.tcp.max_host_data: 1KiB is not possible; use 4KiB to 1GiB"},
		{"misspelt route", "initiators", "route: {target: stripes}\ninitiators",
			`a.yaml:1:17: route.target: "stripes" is not possible; use hash, stripe, volume or trace (did you mean stripe?)`},
		{"short stripe", "initiators", "route: {target: {stripe: 1KiB}}\ninitiators",
			"a.yaml:1:26: route.target.stripe: 1KiB is not possible; use a multiple of 512B from 4KiB on"},
		{"misspelt mode", "initiators", "coupling: {mode: couple}\ninitiators",
			`a.yaml:1:18: coupling.mode: "couple" is not possible; use coupled, iterative or both (did you mean coupled?)`},
		{"flushes in turns", "requests: 100}}]",
			"requests: 100}, flush: {every: 9}}]\nprotocol: flows\ncoupling: {mode: iterative}",
			"a.yaml:3:88: workload[0].flush: drives and network in turns support only reads and writes; leave flushes out, " +
				"or use coupling.mode: coupled"},
		{"capsules in turns", "initiators", "coupling: {mode: iterative}\ninitiators",
			"a.yaml:1:18: coupling.mode: protocol nvmeof is not possible: drives and network in turns have one flow " +
				"for each request; use protocol: flows, or coupling.mode: both"},
		{"closed loop in turns", "requests: 100}}", "requests: 100}, closed: 4}]\ncoupling: {mode: both}\n#",
			"a.yaml:3:12: workload[0]: a closed loop issues a request when one completes"},
		{"until in turns", "initiators", "measure: {until: 1ms}\ncoupling: {mode: both}\ninitiators",
			"a.yaml:1:18: measure.until: drives and network in turns run to the end of the requests; use " +
				"workload[i].until or limit"},
		{"weights", "initiators", "coupling: {iterative: {weights: [50%, 50%, 50%]}}\ninitiators",
			"a.yaml:1:33: coupling.iterative.weights: their sum is 1.5; it must be 1"},
		{"iterations", "initiators", "coupling: {iterative: {iterations: 1}}\ninitiators",
			"a.yaml:1:36: coupling.iterative.iterations: 1 is not possible; use 2 to 1000"},
		{"depth", "initiators", "nvmf: {queue_depth: 0}\ninitiators",
			"a.yaml:1:21: nvmf.queue_depth: 0 is not possible; use 1 to 65536"},
		{"cost without a unit", "initiators", "nvmf: {target: {command: 2}}\ninitiators",
			`a.yaml:1:26: nvmf.target.command: "2" has no unit; try 2us`},
		{"few hosts", "initiators", "fabric: {topology: {star: {hosts: 4}}}\ninitiators",
			"a.yaml:1:20: fabric.topology: 4 hosts are too few for 3 initiators and 2 targets"},
		{"host twice", "initiators", "place: {initiator_hosts: [0, 1, 1]}\ninitiators",
			"a.yaml:1:26: place.initiator_hosts: host 1 is already in use"},
		{"hosts of others", "initiators", "place: {target_hosts: [0]}\ninitiators",
			"a.yaml:1:23: place.target_hosts: 1 hosts for 2 targets"},
		{"no such host", "initiators", "place: {target_hosts: [0, 77]}\ninitiators",
			"a.yaml:1:23: place.target_hosts: no host 77; hosts are 0 to 4"},
		{"parts", "initiators", "fabric: {parts: 2}\ninitiators",
			"a.yaml:1:17: fabric.parts: a coupled system cannot be divided; use 1, or coupling.mode: iterative"},
		{"local queue", "requests: 100}}", "requests: 100}, queue: {depth: 8}}",
			"a.yaml:3:88: workload[0].queue is for a local drive; in a system, nvmf sets the queues"},
		{"system without targets", "targets: [{count: 2, ssds: 2, ssd: tlc-enterprise}]", "ssd: tlc-enterprise",
			`a.yaml:1:13: initiators needs targets; add some, such as "targets: [{count: 2, ssds: 4, ssd: tlc-enterprise}]"`},
		{"misspelt controller", "initiators", "rate_control: reserved\ninitiators",
			`a.yaml:1:15: rate_control.kind: "reserved" is not possible; use none, static, aimd, src, reserve or pace (did you mean reserve?)`},
		{"weight", "initiators", "rate_control: {kind: static, weight_ratio: 0}\ninitiators",
			"a.yaml:1:44: rate_control.weight_ratio: 0 is not possible; use 1 to 10000"},
		{"demands", "initiators",
			"rate_control: {kind: aimd, demands: [{at: 2ms, rate: 1Gbps}, {at: 1ms, rate: 1Gbps}]}\ninitiators",
			"a.yaml:1:67: rate_control.demands[1].at: 1ms is not possible; times must increase"},
		{"controller of flows", "initiators", "protocol: flows\nrate_control: aimd\ninitiators",
			"a.yaml:2:15: rate_control: protocol: flows has no transmit queue and no persistent " +
				"queue pairs to hold reads back for; use protocol: nvmeof"},
		{"controller in turns", "initiators", "coupling: {mode: both}\nrate_control: aimd\ninitiators",
			"a.yaml:2:15: rate_control: drives and network in turns do not see each other while they run; use " +
				"coupling.mode: coupled"},
		{"controller of passing queue pairs", "initiators",
			"fabric: {queue_pairs: {life: per-message}}\nrate_control: aimd\ninitiators",
			"a.yaml:2:15: rate_control: a queue pair per message has no lasting rate; use " +
				"fabric.queue_pairs.life: persistent"},
		{"no workload", "workload: [{synthetic: {reads: {size: 4KiB, interarrival: 5us}, requests: 100}}]", "",
			"a.yaml:1:1: no workload"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.Replace(smallSystem, c.old, c.new, 1)
			if text == smallSystem {
				t.Fatalf("no %q", c.old)
			}
			_, err := parse(text)
			var errs shape.Errors
			if !errors.As(err, &errs) {
				t.Fatalf("error %v is not located", err)
			}
			if got := strings.Split(err.Error(), "\n")[0]; !strings.HasPrefix(got, c.want) {
				t.Errorf("got\n%v\nwant\n%v", err, c.want)
			}
		})
	}
}
