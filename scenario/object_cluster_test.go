package scenario

import (
	"errors"
	"strings"
	"testing"

	"farflash/model/cluster"
	"farflash/numeric/units"
	"farflash/scenario/shape"
)

const smallCluster = `object_cluster: {gateways: 18, targets: 18}
measure: {until: 5ms}
`

func TestClusterMistakes(t *testing.T) {
	for _, c := range []struct{ name, old, new, want string }{
		{"misspelt section", "object_cluster", "object_clusters",
			`a.yaml:1:1: unknown key "object_clusters" in the scenario; did you mean "object_cluster"?`},
		{"misspelt key", "gateways", "gateway",
			`a.yaml:1:18: unknown key "gateway" in object_cluster; did you mean "gateways"?`},
		{"misspelt protocol", "gateways: 18", "protocol: replicast",
			`a.yaml:1:28: object_cluster.protocol: "replicast" is not possible; use uch-ccp, uch-ccp-inverse, replicast-m, replicast-h, pull, chain, grants, dctcp, uch-aimd, replicast-h-double`},
		{"few targets", "targets: 18", "targets: 2",
			"a.yaml:1:41: object_cluster.targets: 2 form one group; Replicast needs at least two, 18 targets"},
		{"odd groups", "targets: 18", "targets: 20",
			"a.yaml:1:17: object_cluster.group: 9 does not divide the 20 targets; the nearest number of targets that " +
				"it divides is 18"},
		{"no chunk", "gateways: 18", "chunk: 0B",
			"a.yaml:1:25: object_cluster.chunk: 0B is not possible; use 1B to 1GiB"},
		{"without an end", "until: 5ms", "warm_up: auto",
			"a.yaml:2:10: measure.until: gateways never stop putting chunks; give a time such as 10ms"},
		{"flows", "until: 5ms", "until: 5ms, flows: true", "a.yaml:2:30: measure.flows: an object cluster has none"},
		{"a bad pattern", "gateways: 18", "protocol: storm, traffic: {choices: 0}",
			"a.yaml:1:54: object_cluster.traffic.choices: 0 is not possible; use 1 to 64"},
		{"a pattern of nothing", "gateways: 18", "traffic: {choices: 2}",
			"a.yaml:1:27: object_cluster.traffic: gateways with replicast-m do not exchange events; leave it out, or " +
				"use a protocol such as storm"},
		{"tiers of nothing", "gateways: 18", "protocol: 1, tier: {cycle: 2}",
			"a.yaml:1:37: object_cluster.tier: gateways with storm do not fill tiers; leave it out, or use protocol: " +
				"tiering"},
		{"compat of events", "gateways: 18", "protocol: 1, compat: surge-d92018f",
			"a.yaml:1:39: object_cluster.compat: storm has no rules of SURGE to follow; leave it out"},
		{"reads of events", "gateways: 18", "protocol: storm, reads: 50%",
			"a.yaml:1:42: object_cluster.reads: storm has no reads; leave it out"},
		{"two gateways of tiers", "gateways: 18, targets: 18", "protocol: tiering, gateways: 2",
			"a.yaml:1:47: object_cluster.gateways: 2 are not possible: the tiers of one server have one initiator; " +
				"use 1"},
		{"no HDD behind the SSD", "gateways: 18, targets: 18", "protocol: tiering, targets: 1",
			"a.yaml:1:46: object_cluster.targets: 1 are too few for an SSD and the HDDs behind it; use at least 2"},
		{"half a per cent for headers of tiers", "gateways: 18, targets: 18",
			"protocol: tiering, link: {overhead: 1.5%}",
			"a.yaml:1:54: object_cluster.link.overhead: 1.5% is not possible; use whole per cent from 0% to 99%"},
		{"tiers without time to share", "gateways: 18, targets: 18", "protocol: tiering, tier: {cycle: 0}",
			"a.yaml:1:51: object_cluster.tier.cycle: 0 is not possible; use 1 to 1048576"},
		{"drives that last for ever", "gateways: 18", "durability: {afr: 100%}",
			"a.yaml:1:36: object_cluster.durability.afr: 100% is not possible; use a share such as 1.5%"},
		{"drives that keep nothing", "gateways: 18", "durability: {afr: 1%, capacity: 0B}",
			"a.yaml:1:50: object_cluster.durability.capacity: 0B is not possible; use a size such as 8TB"},
		{"nobody who makes pieces again", "gateways: 18, targets: 18", "targets: 18, group: 3, durability: {afr: 1%}",
			"a.yaml:1:53: object_cluster.durability: a group of 3 has no target to replace one of " +
				"the 3 that store a chunk; use larger groups"},
		{"groups of nothing", "gateways: 18", "group: 0, durability: {afr: 1%}",
			"a.yaml:1:25: object_cluster.group: 0 targets cannot store 3 replicas"},
		{"a trace of events", "gateways: 18, targets: 18}", "protocol: 1}\nworkload: [{trace: {file: a.csv}}]",
			"a.yaml:2:11: workload: storm has a load of its own and replays no trace; leave it out, or use a " +
				"protocol such as replicast-m"},
		{"a bad tier", "gateways: 18, targets: 18", "protocol: c, tier: {ssd: {capacity: 1MiB}}",
			"a.yaml:1:54: object_cluster.tier.ssd.capacity: 1MiB is too little for chunks of 1MiB; use at least 2MiB"},
		{"a build without it", "gateways: 18", "protocol: replicast-proxy, compat: surge-d92018f",
			"a.yaml:1:53: object_cluster.compat: surge-d92018f has no replicast-proxy; use surge-9872498"},
		{"choosy without a choice", "gateways: 18", "choosy: true",
			"a.yaml:1:26: object_cluster.choosy: replicast-m does not choose among consecutive windows; " +
				"leave it out, or use replicast-h"},
		{"with a drive", "measure", "ssd: tlc-enterprise\nmeasure",
			"a.yaml:2:6: ssd: targets of an object cluster use it only with " +
				"object_cluster.disk.model: ssd; set that, or leave ssd out"},
		{"without its drive", "gateways: 18", "disk: {model: ssd}",
			`a.yaml:1:32: object_cluster.disk.model: no section ssd that describes the drive; add one, such as ssd: tlc-enterprise`},
		{"two traces", "measure", "workload: [{trace: {file: a.csv}}, {trace: {file: b.csv}}]\nmeasure",
			"a.yaml:2:11: workload: an object cluster replays one trace; leave out all others, or set with " +
				"object_cluster.load how many chunks arrive"},
		{"a code for multicast", "gateways: 18", "code: {data: 4, parity: 2}",
			"a.yaml:1:24: object_cluster.code: replicast-m sends the same to all targets, and the pieces of a code " +
				"differ; use replicast-h or pull"},
		{"two loads", "gateways: 18", "load: {rate: 100, share: 50%}",
			"a.yaml:1:43: object_cluster.load.share: the load is given twice; leave out rate or share"},
		{"placement of groups", "gateways: 18", "placement: hrw",
			"a.yaml:1:29: object_cluster.placement: hrw has no effect: the group of a chunk bids for it; leave it " +
				"out, or use another protocol"},
		{"shares of disks", "gateways: 18", "disk: {kinds: [{share: 60%}, {share: 50%}]}",
			"a.yaml:1:32: object_cluster.disk.kinds: the shares add up to 110%; use at most 100%"},
		{"hedging alone", "gateways: 18", "reads: 50%, read: hedged, replicas: 1",
			`a.yaml:1:36: object_cluster.read: hedged needs another target to ask, and a chunk is read from all 1 that have it`},
		{"groups that nobody asks", "gateways: 18", "groups: 3",
			"a.yaml:1:26: object_cluster.groups: replicast-m asks one group; leave it out, or use pull"},
		{"a group without bids", "gateways: 18", "protocol: chain, group: 6",
			"a.yaml:1:42: object_cluster.group: chain has no groups that bid; leave it out, or use a protocol such " +
				"as pull"},
		{"groups without bids", "gateways: 18", "protocol: chain, groups: 3",
			"a.yaml:1:43: object_cluster.groups: chain asks no groups; leave it out, or use pull"},
		{"offers that nobody makes", "gateways: 18", "protocol: chain, ahead: 5us",
			"a.yaml:1:42: object_cluster.ahead: targets of chain send no offers; leave it out, or use pull"},
		{"grants that nobody gives", "gateways: 18", "protocol: chain, overcommit: 5",
			"a.yaml:1:47: object_cluster.overcommit: targets of chain grant nothing; leave it out, or use grants"},
		{"marks that nobody makes", "gateways: 18", "protocol: chain, link: {mark: 5KB}",
			"a.yaml:1:48: object_cluster.link.mark: chain marks no frames; leave it out, or use dctcp"},
		{"a failure after the end", "gateways: 18", "failures: [{target: 1, at: 5ms}]",
			"a.yaml:1:45: object_cluster.failures[0].at: target 1 fails at 5ms, and the run ends at 5ms; use an " +
				"earlier time, or a later measure.until"},
		{"a failure of nobody", "gateways: 18", "failures: [{target: 1}, {target: 18}]",
			"a.yaml:1:51: object_cluster.failures[1].target: no target 18; targets are 0 to 17"},
		{"repair of nothing", "gateways: 18", "repair: {streams: 1}",
			"a.yaml:1:36: object_cluster.repair.streams: no target fails; leave it out, or give failures"},
		{"hedging of nothing", "gateways: 18", "reads: 50%, hedge_after: 1ms",
			"a.yaml:1:43: object_cluster.hedge_after: no read is hedged; leave it out, or use read: hedged"},
		{"objects of nobody", "gateways: 18", "objects: 5",
			"a.yaml:1:27: object_cluster.objects: there are no reads; leave it out, or give reads"},
		{"a durability of nothing", "gateways: 18", "durability: {capacity: 1TB}",
			"a.yaml:1:41: object_cluster.durability.capacity: no estimate without durability.afr; " +
				"give it, or leave this out"},
		{"outstanding events", "gateways: 18", "protocol: storm, outstanding: 3",
			"a.yaml:1:48: object_cluster.outstanding: storm does not use it; leave it out"},
		{"SURGE that queues", "gateways: 18", "compat: surge-d92018f, control: {queued: true}",
			"a.yaml:1:59: object_cluster.control.queued: SURGE's control messages never queue; use " +
				"false, or compat: none"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.Replace(smallCluster, c.old, c.new, 1)
			_, err := parse(text)
			var errs shape.Errors
			if !errors.As(err, &errs) {
				t.Fatalf("error %v is not located", err)
			}
			found := false
			for _, line := range strings.Split(err.Error(), "\n") {
				found = found || strings.HasPrefix(line, c.want)
			}
			if !found {
				t.Errorf("got\n%v\nwant\n%v", err, c.want)
			}
		})
	}
}

// TestForCluster verifies that a scenario built from a configuration equals the one loaded from an equivalent file.
func TestForCluster(t *testing.T) {
	cfg := cluster.DefaultConfig()
	cfg.Gateways, cfg.Targets, cfg.Protocol = 18, 18, cluster.Pull
	s, err := ForCluster("small", cfg, 5*units.Millisecond, 0.2)
	if err != nil {
		t.Fatal(err)
	}
	want, err := parse(smallCluster, "name=small", "object_cluster.protocol=pull", "measure.warm_up=20%")
	if err != nil {
		t.Fatal(err)
	}
	a, _ := s.Digest()
	if b, _ := want.Digest(); a != b {
		t.Errorf("%s\nis not\n%s", s.Resolved(), want.Resolved())
	}
	cfg.Targets = 17
	if _, err := ForCluster("small", cfg, 5*units.Millisecond, 0.2); err == nil {
		t.Error("17 targets are no groups of 9")
	}
}

// TestProtocolsCompared verifies that keys a file sets for its own protocol do not apply to another one chosen on the
// command line, and that keys set on the command line do.
func TestProtocolsCompared(t *testing.T) {
	const text = "object_cluster: {gateways: 18, targets: 18, protocol: pull, group: 6, groups: 3, ahead: " +
		"5us}\nmeasure: {until: 5ms}\n"
	s, err := parse(text, "object_cluster.protocol=chain")
	if err != nil {
		t.Fatal(err)
	}
	want, err := parse("object_cluster: {gateways: 18, targets: 18, protocol: chain}\nmeasure: {until: 5ms}\n")
	if err != nil {
		t.Fatal(err)
	}
	a, _ := s.Digest()
	if b, _ := want.Digest(); a != b {
		t.Errorf("%s\nis not\n%s", s.Resolved(), want.Resolved())
	}
	if _, err := parse(s.Resolved()); err != nil {
		t.Error(err)
	}
	if s, err = parse(text, "object_cluster.protocol=replicast-m"); err != nil || s.ObjectCluster.Group != 6 ||
		s.ObjectCluster.Groups != 2 {
		t.Errorf("%v: %+v", err, s.ObjectCluster)
	}
	if _, err := parse(text, "object_cluster.protocol=chain", "object_cluster.groups=3"); err == nil ||
		!strings.Contains(err.Error(), "--set:2:1:23: object_cluster.groups: chain asks no groups") {
		t.Errorf("%v", err)
	}
}
