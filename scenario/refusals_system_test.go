package scenario

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"farflash/numeric/units"
)

// TestRefusedSystems verifies the limits on drives and network simulated in turns, zones behind a network, and volumes
// of a host, from both sides of each bound.
func TestRefusedSystems(t *testing.T) {
	const item = "{synthetic: {reads: {size: 4KiB, interarrival: 50us}, requests: 9}}"
	system := func(more string, items ...string) string {
		return more + "\ninitiators: 2\ntargets: [{count: 2, ssds: 2, ssd: mqsim-default}]\nworkload: [" +
			strings.Join(append(items, item)[:max(1, len(items))], ", ") + "]\n"
	}
	turns := func(it string) string {
		return system("protocol: flows\ncoupling: {mode: iterative, iterative: {" + it + "}}")
	}
	zoned := func(more, ssd, writes, zones string) string {
		return more + "\ninitiators: 1\ntargets: [{count: 2, ssds: 2, ssd: {preset: tlc-enterprise, mapping: {ideal: " +
			"true}, zones: {" + ssd + "}}}]\nworkload: [{synthetic: {writes: {size: 64KiB" + writes +
			"}, requests: 100}, closed: 4, zones: {append: true" + zones + "}}]\n"
	}
	held(t, []refusal{
		{turns(""), ""},
		{turns("threshold: 0%"), ""}, {turns("threshold: 99%"), ""},
		{turns("threshold: 100%"), "coupling.iterative.threshold: 100% is not possible; use 0% to less than 100%"},
		{turns("stable_range: 0%"), ""},
		{turns("stable_range: 100%"),
			"coupling.iterative.stable_range: 100% is not possible; use 0% to less than 100%"},
		{turns("stable_for: 1"), ""},
		{turns("stable_for: 0"), "coupling.iterative.stable_for: 0 is not possible; use 1 to 1000"},
		{turns("stable_for: 1000"), ""},
		{turns("stable_for: 1001"), "coupling.iterative.stable_for: 1001 is not possible"},
		{turns("iterations: 2"), ""},
		{turns("iterations: 1"), "coupling.iterative.iterations: 1 is not possible; use 2 to 1000"},
		{turns("iterations: 1000"), ""},
		{turns("iterations: 1001"), "coupling.iterative.iterations: 1001 is not possible"},
		{turns("count_from: 0"), ""}, {turns("count_from: 1"), ""},
		{turns("count_from: 2"), "coupling.iterative.count_from: 2 is not possible; use 0 or 1"},
		{turns("count_from: -1"), "coupling.iterative.count_from: -1 is not possible"},
		{turns("relaxation: 100%"), ""},
		{turns("relaxation: 0%"), "coupling.iterative.relaxation: 0% is not possible; use more than 0% up to 100%"},
		{turns("relaxation: 101%"), "coupling.iterative.relaxation: 101% is not possible"},
		{strings.Replace(turns(""), "protocol: flows\n", "", 1),
			"coupling.mode: protocol nvmeof is not possible: drives and network in turns have one flow for each request"},
		{strings.Replace(turns(""), "flows", "nvmeof", 1), "a.yaml:1:11: protocol: protocol nvmeof is not possible"},
		{system("protocol: flows\ncoupling: {mode: both}",
			"{synthetic: {reads: {size: 4KiB}, requests: 9}, closed: 1}"),
			"workload[0]: a closed loop issues a request when one completes, which drives and network in turns do " +
				"not see while they run"},
		{system("protocol: flows\ncoupling: {mode: both}", strings.Replace(item, "}}", "}, flush: 2}", 1)),
			"workload[0].flush: drives and network in turns support only reads and writes; leave flushes out, or use " +
				"coupling.mode: coupled"},
		{turns("") + "measure: {until: 1s}\n",
			"measure.until: drives and network in turns run to the end of the requests; use workload[i].until or limit"},
		{turns("") + "measure: {until: steady}\n",
			"measure.until: drives and network in turns run to the end of the requests"},
		{turns("") + "measure: {timeline: true}\n",
			"measure.timeline: drives and network in turns have separate clocks"},
		{system("protocol: flows\ncoupling: {mode: both}") + "measure: {timeline: true}\n", ""},
		{system("protocol: flows\ncoupling: {mode: both}", strings.Replace(item, "}}", "}, tenant: a}", 1),
			strings.Replace(item, "}}", "}, tenant: b}", 1)) + "measure: {alone: true}\n",
			"measure.alone: drives and network in turns have no figures by tenant"},
		{system("protocol: flows\ncoupling: {mode: both}\nfabric: {topology: {star: {hosts: 6}}, failures: [{a: h0, " +
			"b: s0, at: 1ms}]}"), "fabric.failures: links that fail need coupling.mode: coupled"},

		{system("protocol: flows\ncoupling: {mode: both}\nnvmf: {limits: {rw_ios: 1000}}"),
			"nvmf.limits: targets with limits need coupling.mode: coupled"},
		{system("nvmf: {buffers: {count: 1, size: 512B}}"), ""},
		{system("nvmf: {buffers: 4095}"), ""},
		{system("nvmf: {buffers: {count: -1}}"), "nvmf.buffers.count: -1 is not possible; use 1 to 16777216, or 0"},
		{system("nvmf: {buffers: {count: 1, size: 511B}}"), "nvmf.buffers.size: 511B is not possible; use 512B to 1GiB"},
		{system("protocol: flows\nnvmf: {buffers: 9}"), "nvmf.buffers.count: protocol flows has targets without memory; " +
			"use 0, or protocol: nvmeof"},
		{system("rate_control: src\nnvmf: {buffers: 9}"), "rate_control: a controller paces writes in the list in which " +
			"reads would wait for buffers; use nvmf.buffers.count: 0"},
		{system("nvmf: {receives: {shared: 1, rnr_timer: 10us}}"), ""},
		{system("nvmf: {receives: {shared: 65535}}"), ""},
		{system("nvmf: {receives: {shared: 65536}}"), "nvmf.receives.shared: 65536 is not possible; use 1 to 65535, or 0"},
		{system("nvmf: {receives: {shared: 1, rnr_timer: 50us}}"),
			"a.yaml:1:41: nvmf.receives.rnr_timer: 50us is none of InfiniBand's times, 10us to 655.36ms; use the nearest, 40us"},
		{system("protocol: nvme-tcp\nfabric: {transport: tcp}\nnvmf: {receives: {shared: 9}}"),
			"a.yaml:3:27: nvmf.receives.shared: protocol nvme-tcp has no receives: a target reads sockets, with a buffer for " +
				"each command of a queue pair; use 0, or protocol: nvmeof"},
		{system("protocol: flows\nnvmf: {receives: {shared: 9}}"), "nvmf.receives.shared: protocol flows has no receives"},
		{system("nvmf: {receives: {shared: 9}}\nfabric: {queue_pairs: {life: per-message}}"),
			"nvmf.receives.shared: a queue pair per message belongs to no core whose receives it could share; use 0, or " +
				"fabric.queue_pairs.life: persistent"},
		{system("nvmf: {receives: {shared: 9}}\nfabric: {recovery: {kind: selective-repeat}}"),
			"nvmf.receives.shared: selective-repeat keeps packets behind one that found no receive, and no specification " +
				"has its RNR NAKs; use 0, or fabric.recovery.kind: go-back-n"},
		{system("protocol: flows\nnvmf: {host: {keep_alive: 5s}}"),
			"nvmf.host.keep_alive: protocol flows has no controllers that could be lost; use 0s, or protocol: nvmeof"},
		{system("protocol: flows\nnvmf: {host: {rediscovery: 60s}}"),
			"nvmf.host.rediscovery: protocol flows has no controllers that could be lost; use 0s, or protocol: nvmeof"},
		{system("nvmf: {host: {rediscovery: 1ns}}"),
			"nvmf.host.rediscovery: 1ns is not possible; use 0s for none, or 1us to 24h"},
		{system("nvmf: {host: {keep_alive: 5s}}\nfabric: {topology: {star: {hosts: 6}}, queue_pairs: {life: " +
			"per-message}}"), "nvmf.host.keep_alive: a queue pair per message belongs to no controller that could be lost"},
		{system("nvmf: {host: {keep_alive: 5s, fast_io_fail: 1000s}}"),
			"nvmf.host.fast_io_fail: 1000s is later than ctrl_loss, 10min"},
		{system("nvmf: {keep_alive_timer: linux, host: {keep_alive: 5s}}"), ""},
		{system("nvmf: {keep_alive_timer: spdk}"), "nvmf.keep_alive_timer: spdk takes its time from initiators, which state " +
			"none; use host.keep_alive: 5s, or none"},
		{system("place: {initiator_nics: 2, target_nics: 2}"), ""},
		{system("place: {initiator_nics: 16}"), ""},
		{system("place: {initiator_nics: 17}"), "place.initiator_nics: 17 is not possible; use 1 to 16"},
		{system("place: {target_nics: 0}"), "place.target_nics: 0 is not possible; use 1 to 16"},
		{system("place: {target_nics: 2}\nfabric: {topology: {star: {hosts: 5}}}"), "fabric.topology: 5 hosts are too few " +
			"for 2 initiators and 2 targets, with 1 and 2 network cards each"},
		{system("place: {target_nics: 2, target_hosts: [0, 1]}\nfabric: {topology: {star: {hosts: 6}}}"),
			"place.target_hosts: 2 hosts for 2 targets, with 1 and 2 network cards each"},
		{system("place: {target_nics: 2, target_hosts: [0, 1, 4, 5]}\nfabric: {topology: {star: {hosts: 6}}}"), ""},
		{system("place: {target_nics: 2}\nnvmf: {multipath: {paths: 2}}"), ""},
		{system("place: {target_nics: 2}\nnvmf: {multipath: {paths: 3}}"), "nvmf.multipath.paths: 3 is not possible " +
			"with initiator_nics 1 times target_nics 2; use up to 2, or more place.target_nics"},
		{system("nvmf: {multipath: {paths: 17}}"), "nvmf.multipath.paths: 17 is not possible; use 1 to 16"},
		{system("place: {target_nics: 2}\nnvmf: {multipath: {policy: service-time, throughput: [4, 1]}}"), ""},
		{system("place: {target_nics: 2}\nnvmf: {multipath: {policy: service-time, throughput: [4]}}"),
			"nvmf.multipath.throughput: 1 values for 2 paths; use one for each"},
		{system("place: {target_nics: 2}\nnvmf: {multipath: {throughput: [4, 1]}}"), "nvmf.multipath.throughput: only " +
			"policy service-time uses it, and the policy is numa; leave it out"},
		{system("nvmf: {multipath: {policy: service-time, throughput: [101]}}"),
			"nvmf.multipath.throughput[0]: 101 is not possible; use 1 to 100"},
		{system("nvmf: {multipath: {ana: [{path: 0, at: 1ms, state: inaccessible}]}}\nmeasure: {until: 2ms}"), ""},
		{system("nvmf: {multipath: {ana: [{path: 0, at: 1ms, state: inaccessible}]}}"), "nvmf.multipath.ana[0].state: " +
			"target 0 has no path from then on, and commands to it wait for ever; make one accessible later, or end " +
			"the run at a time: measure.until"},
		{system("nvmf: {multipath: {ana: [{path: 0, at: 3ms, state: optimized}, " +
			"{path: 0, at: 1ms, state: inaccessible}]}}"), ""},
		{system("place: {target_nics: 2}\nnvmf: {multipath: {ana: [{path: 0, at: 1ms, state: inaccessible}]}}"), ""},
		{system("place: {target_nics: 2}\nnvmf: {multipath: {ana: [{path: 0, at: 1ms, state: inaccessible}, " +
			"{path: 1, at: 3ms, state: inaccessible, targets: [0]}]}}"), "ana[1].state: target 0 has no path"},
		{system("nvmf: {multipath: {ana: [{path: 1, at: 1ms}]}}"), "nvmf.multipath.ana[0].path: there is no path 1; use 0 " +
			"to 0"},
		{system("nvmf: {multipath: {ana: [{targets: [2], at: 1ms}]}}"),
			"nvmf.multipath.ana[0].targets[0]: there is no target 2; use 0 to 1"},
		{system("nvmf: {multipath: {ana: [{at: -1ms}]}}"), `nvmf.multipath.ana[0].at: "-1ms": a duration cannot be negative`},
		{system("place: {target_nics: 2}\nprotocol: flows"), "nvmf.multipath: protocol flows has no controllers"},
		{turns("") + "place: {target_nics: 2}\n", "nvmf.multipath: several paths, and paths whose state changes, need " +
			"coupling.mode: coupled"},
		{system("place: {target_nics: 2}\nfabric: {topology: {star: {hosts: 6}}, queue_pairs: {life: per-message}}"),
			"nvmf.multipath: a queue pair per message belongs to no path"},
		{system("place: {target_nics: 2}\nrate_control: pace"), "rate_control: a controller follows the rate of one link, " +
			"and targets have 2; use place.target_nics: 1"},
		{system("place: {initiator_nics: 2}\nrate_control: pace"), ""},
		{turns("") + "fabric: {topology: {star: {hosts: 6}}}\nflows: [{incast: {fan: 2, size: 1KB}}]\n",
			"flows: other traffic on a system's network needs coupling.mode: coupled"},

		{zoned("", "", "", ""), ""},
		{strings.Replace(zoned("coupling: {mode: both}\nprotocol: flows", "", ", interarrival: 50us", ""),
			", closed: 4", "", 1),
			"coupling.mode: both is not possible with ssd.zones: writes to a zone wait for others to complete, which " +
				"drives and network in turns do not see while they run; use coupled\na.yaml:2:11: protocol: flows is " +
				"not possible with ssd.zones"},
		{zoned("route: {target: {stripe: 1MiB}}", "", "", ""),
			"route.target.stripe: 1MiB is not possible: a zone is stored on one drive; use "},
		{zoned("host_raid: {level: 5}", "", "", ""), "it spreads addresses over drives, which "},
		{strings.Replace(zoned("", "", "", ""), "}]\nworkload",
			"}, {count: 1, ssds: 1, ssd: {preset: tlc-enterprise, mapping: {ideal: true}, over_provisioning: 35%, "+
				"zones: {}}}]\nworkload", 1),
			"its zones would span the drives of all targets; use one ssd for all, or leave out " +
				"ssd.zones"},
		{zoned("nvmf: {max_transfer: 64KiB}", "", "", ""), ""},
		{strings.Replace(zoned("nvmf: {max_transfer: 64KiB}", "", "", ""), "size: 64KiB", "size: 128KiB", 1),
			"workload[0].synthetic.writes.size: 128KiB is not possible: a write to a zone is one command, of at most " +
				"64KiB (nvmf.max_transfer); use less, or set its max"},
	})
}

// TestRefusedTraces verifies which keys can be combined with the trace that an object cluster replays, and which keys a
// flow of MQSim's can have.
func TestRefusedTraces(t *testing.T) {
	trace := filepath.Join(t.TempDir(), "a.csv")
	if err := os.WriteFile(trace, []byte("128166372003061629,hm,0,Read,0,4096,100\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cluster := func(more, item string) string {
		return "object_cluster: {gateways: 18, targets: 18" + more + "}\nworkload: [{trace: {file: " + trace +
			", format: msr}" + item + "}]\nmeasure: {until: 5ms}\n"
	}
	mqsim := func(m, more string) string {
		return "ssd: mqsim-default\nworkload: [{mqsim: {" + m + "}" + more + "}]\n"
	}
	held(t, []refusal{
		{cluster("", ""), ""},
		{cluster("", ", closed: 2"),
			"workload[0].closed: object_cluster.outstanding limits a gateway's chunks in flight; leave closed out"},
		{cluster(", load: {rate: 5}", ""),
			"object_cluster.load: the trace determines when chunks arrive; leave out one of the two"},
		{cluster(", reads: 50%", ""), "object_cluster.reads: the trace determines the reads; leave out one of the two"},
		{cluster(", sizes: [{chunk: 128KiB, share: 100%}]", ""),
			"object_cluster.sizes: the trace determines the writes, in chunks; leave it out"},
		{strings.Replace(cluster("", ""), "}]\nmeasure", "}, {mqsim: {}, closed: 1}]\nmeasure", 1),
			"workload: an object cluster replays one trace; leave out all others"},
		{cluster("", "") + "targets: [{count: 1, ssds: 1, ssd: mqsim-default}]\n",
			"targets: an object cluster has none; leave it out, or leave out object_cluster"},
		{cluster("", "") + "fabric: {topology: {star: {hosts: 36}}}\n",
			"fabric: an object cluster uses it only with object_cluster.core: packet; set that, or leave " +
				"fabric out"},
		{cluster("", "") + "ssd: mqsim-default\n",
			"ssd: targets of an object cluster use it only with object_cluster.disk.model: ssd"},
		{cluster(", disk: {model: ssd}", ""),
			"object_cluster.disk.model: no section ssd that describes the drive; add one, such as ssd: " +
				"tlc-enterprise"},
		{mqsim("", ", closed: 1"), ""}, {mqsim("bandwidth: 1MB/s", ""), ""},
		{mqsim("", ""), "workload[0].closed: an MQSim flow without a bandwidth is a closed loop; set the number of " +
			"requests outstanding, such as closed: 16"},
		{mqsim("bandwidth: 1MB/s", ", closed: 1"),
			"workload[0].mqsim.bandwidth: a closed loop ignores it; leave out either it or closed"},
		{mqsim("stop: 1ms", ", closed: 1"),
			"workload[0].mqsim.stop: a closed loop ends at until; leave stop out and set until"},
		{mqsim("bandwidth: 1MB/s, stop: 1ms", ""), ""},
		{mqsim("bandwidth: 1MB/s, stop: 1500ps", ""),
			"workload[0].mqsim.stop: 1.5ns is not a whole number of nanoseconds"},
		{mqsim("size: 513B", ", closed: 1"), "workload[0].mqsim.size: 513B is not a multiple of 512B"},
		{mqsim("align: 1B", ", closed: 1"), "workload[0].mqsim.align: 1B is not a multiple of 512B"},
	})
}

// TestClusterHosts verifies that gateways and targets are spread evenly over the hosts, interleaved by their shares
// offset by half a step, and that too few hosts are rejected.
func TestClusterHosts(t *testing.T) {
	hosts := func(n int) (out []int32) {
		for i := range n {
			out = append(out, int32(100+i))
		}
		return out
	}
	for _, c := range []struct {
		gateways, targets, hosts int
		want                     []int32
	}{
		{2, 3, 5, []int32{101, 103, 100, 102, 104}}, {1, 1, 2, []int32{100, 101}}, {1, 2, 3, []int32{101, 100, 102}},
		{3, 1, 4, []int32{100, 101, 103, 102}}, {1, 1, 8, []int32{100, 104}}, {2, 2, 4, []int32{100, 102, 101, 103}},
		{2, 2, 3, nil},
	} {
		s := &Scenario{ObjectCluster: new(ObjectCluster)}
		s.ObjectCluster.Gateways, s.ObjectCluster.Targets = c.gateways, c.targets
		got, err := s.ClusterHosts(hosts(c.hosts))
		if !slices.Equal(got, c.want) || (err != nil) != (c.want == nil) {
			t.Errorf("%d gateways and %d targets on %d hosts: %v, %v", c.gateways, c.targets, c.hosts, got, err)
		}
	}
}

// TestVolumesInWords verifies that the text of a host's volume names its level, its chunk size, and its copies and
// failed drives where these differ from the default.
func TestVolumesInWords(t *testing.T) {
	for text, want := range map[string]string{
		"{drives: 4, level: 5}": "RAID 5, chunks of 64KiB", "{drives: 4, level: 1}": "RAID 1, chunks of 64KiB",
		"{drives: 6, level: 1, copies: 3, chunk: 1MiB}": "RAID 1 of 3 copies, chunks of 1MiB",
		"{drives: 4, level: 6, failed: [0, 2]}":         "RAID 6, 2 failed, chunks of 64KiB",
	} {
		s, err := parse(small + "host_raid: " + text + "\n")
		if err != nil || s.HostRAID.String() != want || s.members() != s.HostRAID.Drives {
			t.Errorf("%s: %v, %v", text, s, err)
		}
	}
	if s, err := parse(small); err != nil || s.members() != 1 || s.AsMQSim() {
		t.Errorf("%v", err)
	}
	if s, err := parse(strings.Replace(small, "ssd: mqsim-default", "ssd: {preset: mqsim-default, compat: mqsim}",
		1)); err != nil || !s.AsMQSim() {
		t.Errorf("%v", err)
	}
	s, err := parse(strings.Replace(small, "closed: 4", "closed: 4\n    copies: {count: 3, stride: 1MiB}", 1))
	if err != nil {
		t.Fatal(err)
	}
	for number, want := range map[int]string{0: "workload[0]/initiator[2] 0B 8MiB",
		2: "workload[0]/initiator[2]/copy[2] 2MiB 6MiB"} {
		c := s.SyntheticConfig(0, 2, number, 7, 8*units.MiB)
		if got := fmt.Sprintf("%s %v %v", c.Name, c.Reads.Addresses.Start, c.Reads.Addresses.Space); got != want ||
			c.Seed != 7 || c.QueueDepth != 4 || c.Writes != nil {
			t.Errorf("copy %d: %s", number, got)
		}
	}
	if s.Workload[0].Count() != 3 || s.Workload[0].Synthetic.Reads.Addresses.Start != 0 {
		t.Error("a copy changes the item")
	}
	if d := (&Drive{}); d.Choices() != 1 {
		t.Errorf("%d choices of no blocks", d.Choices())
	}
	d := s.SSD
	d.Collection.Choices = 0
	if d.Geometry.BlocksPerPlane = 1024; d.Choices() != 10 {
		t.Errorf("of 1024 blocks %d are looked at", d.Choices())
	}
	if d.Collection.Choices = 3; d.Choices() != 3 {
		t.Errorf("%d choices, not 3", d.Choices())
	}
}
