package scenario

import (
	"errors"
	"strings"
	"testing"

	"farflash/scenario/shape"
)

const smallFabric = `fabric:
  topology: {star: {hosts: 9}}
  host_link: 40Gbps
flows: [{incast: {fan: 8, size: 10KB}}]
`

// TestFabricMistakes verifies the messages and positions of errors in a network's sections.
func TestFabricMistakes(t *testing.T) {
	for _, c := range []struct {
		name, old, new string
		want           string // each line of the error must begin so, in order
	}{
		{"misspelt section", "flows:", "flow:",
			`a.yaml:4:1: unknown key "flow" in the scenario; did you mean "flows"?`},
		{"misspelt key", "host_link:", "hostlink:",
			`a.yaml:3:3: unknown key "hostlink" in fabric; did you mean "host_link"?`},
		{"misspelt shape", "star:", "start:",
			`a.yaml:2:14: unknown key "start" in fabric.topology; did you mean "star"?`},
		{"misspelt kind of flows", "incast:", "incats:",
			`a.yaml:4:10: unknown key "incats" in flows[0]; did you mean "incast"?`},
		{"misspelt key of flows", "fan:", "fans:",
			`a.yaml:4:19: unknown key "fans" in flows[0].incast; did you mean "fan"?`},
		{"rate without a unit", "40Gbps", "40",
			`a.yaml:3:14: fabric.host_link: "40" has no unit; try 40Gbps (units: bps, Kbps, Mbps, Gbps, Tbps)`},
		{"time for a rate", "40Gbps", "40us",
			`a.yaml:3:14: fabric.host_link: "40us": unknown unit "us" for a bit rate (units: bps, Kbps, Mbps, Gbps, Tbps)`},
		{"rate in bytes", "40Gbps", "5GB",
			`a.yaml:3:14: fabric.host_link: "5GB": unknown unit "GB" for a bit rate (units: bps, Kbps, Mbps, Gbps, Tbps)`},
		{"size for a time", "40Gbps", "40Gbps\n  delay: 1KB",
			`a.yaml:4:10: fabric.delay: "1KB": unknown unit "KB" for a duration (units: ps, ns, us, ms, s, min, h, d)`},
		{"rate of zero", "40Gbps", "0Gbps",
			"a.yaml:3:14: fabric.host_link: 0bps is not possible; use a rate such as 40Gbps"},
		{"rate of zero upwards", "40Gbps", "40Gbps\n  up_link: 0bps",
			"a.yaml:4:12: fabric.up_link: 0bps is not possible; use a rate such as 40Gbps"},
		{"negative delay", "40Gbps", "40Gbps\n  delay: -1us",
			`a.yaml:4:10: fabric.delay: "-1us": a duration cannot be negative`},
		{"disconnected hosts", "{star: {hosts: 9}}",
			"{links: [{a: h0, b: s0}, {a: h1, b: s0}, {a: h2, b: s1}, {a: h3, b: s1}, {a: h4, b: s1},{a: h5, b: " +
				"s1},{a: h6, b: s1},{a: h7, b: s1},{a: h8, b: s1}]}",
			"a.yaml:2:21: fabric.topology.links: h2 cannot reach h0: no path"},
		{"host without a link", "{star: {hosts: 9}}", "{links: [{a: h0, b: s0}, {a: h2, b: s0}]}",
			"a.yaml:2:21: fabric.topology.links: host h1 has no link, but a later one has; hosts are " +
				"numbered from h0 without gaps"},
		{"headroom above the buffer", "40Gbps", "40Gbps\n  buffer: 100KB",
			"a.yaml:4:11: fabric.buffer: 100KB is too small for s0, whose 9 ports take 135.864KB for headroom and " +
				"36KiB for reserves; use more than 172.728KB"},
		{"headroom far above the buffer", "40Gbps", "40Gbps\n  pfc: {headroom: 10MB}",
			"a.yaml:2:3: fabric.buffer: 16MiB is too small for s0, whose 9 ports take 90MB for headroom and 36KiB " +
				"for reserves; use more than 90.036864MB"},
		{"kmin above kmax", "40Gbps", "40Gbps\n  ecn: {kmin: 500KB, kmax: 400KB}",
			"a.yaml:4:15: fabric.ecn.kmin: 500KB is above kmax, 400KB; marking starts at kmin and is full at kmax"},
		{"a port's kmin above its kmax", "40Gbps",
			"40Gbps\n  ecn: {ports: [{rate: 40Gbps, kmin: 2KB, kmax: 1KB, pmax: 1%}]}",
			"a.yaml:4:38: fabric.ecn.ports[0].kmin: 2KB is above kmax, 1KB; marking starts at kmin and is full at kmax"},
		{"pmax above all", "40Gbps", "40Gbps\n  ecn: {pmax: 120%}",
			"a.yaml:4:15: fabric.ecn.pmax: 120% is not possible; use 0% to 100%"},
		{"misspelt congestion control", "40Gbps", "40Gbps\n  congestion_control: dcqn",
			`a.yaml:4:23: fabric.congestion_control.algorithm: "dcqn" is not possible; use none, dcqcn, dctcp, timely, hpcc, hpcc-pint, swift, tcp, nscc or ndp (did you mean dcqcn?)`},
		{"unknown congestion control", "40Gbps", "40Gbps\n  congestion_control: {algorithm: cubic}",
			`a.yaml:4:35: fabric.congestion_control.algorithm: "cubic" is not possible; use none, dcqcn, dctcp, timely, hpcc, hpcc-pint, swift, tcp, nscc or ndp`},
		{"gain of zero", "40Gbps", "40Gbps\n  congestion_control: {dcqcn: {gain: 0%}}",
			"a.yaml:4:38: fabric.congestion_control.dcqcn.gain: 0 is not possible; it must be above 0 and at most 1"},
		{"least rate of zero", "40Gbps", "40Gbps\n  congestion_control: {min_rate: 0bps}",
			"a.yaml:4:34: fabric.congestion_control.min_rate: 0bps is not possible; a queue pair must continue to send, " +
				"so use a rate such as 100Mbps"},
		{"misspelt compat", "40Gbps", "40Gbps\n  compat: hppc",
			`a.yaml:4:11: fabric.compat: "hppc" is not possible; use none, hpcc or ns3-rdma (did you mean hpcc?)`},
		{"fan above the hosts", "fan: 8", "fan: 9",
			"a.yaml:4:24: flows[0].incast.fan: 9 is not possible; of 9 hosts, at most 8 can send to one"},
		{"size of zero", "size: 10KB", "size: 0B",
			"a.yaml:4:33: flows[0].incast.size: 0 bytes are not possible; a flow has at least one"},
		{"size without a unit", "size: 10KB", "size: 10",
			`a.yaml:4:33: flows[0].incast.size: "10" has no unit; try 10KiB (units: B, KB, KiB, MB, MiB, GB, GiB, TB, TiB, PB, PiB, EB, EiB)`},
		{"no flows", "flows: [{incast: {fan: 8, size: 10KB}}]", "",
			`a.yaml:1:1: the network has no flows; add some, such as "flows: [{incast: {fan: 8, size: 1MB}}]"`},
		{"two kinds of flows", "{incast: {fan: 8, size: 10KB}}",
			"{incast: {fan: 8, size: 10KB}, permutation: {size: 1KB}}",
			"a.yaml:4:9: flows[0]: 2 of list, poisson, incast, all_to_all, permutation and collective are set; set one"},
		{"no kind of flows", "{incast: {fan: 8, size: 10KB}}", "{}",
			"a.yaml:4:9: flows[0]: 0 of list, poisson, incast, all_to_all, permutation and collective are set; set one"},
		{"two shapes", "{star: {hosts: 9}}", "{star: {hosts: 9}, dumbbell: {left: 2, right: 7}}",
			"a.yaml:2:42: fabric.topology.dumbbell: only one shape is possible, and star is given too"},
		{"no shape", "{star: {hosts: 9}}", "{}",
			"a.yaml:2:13: fabric.topology: no shape is given; use star, dumbbell, leaf_spine, clos, fat_tree, " +
				"dragonfly or links"},
		{"no such topology", "{star: {hosts: 9}}", "{file: nowhere.txt}",
			"a.yaml:2:20: fabric.topology.file: open nowhere.txt: no such file or directory"},
		{"no such flow file", "{incast: {fan: 8, size: 10KB}}", "nowhere.txt",
			"a.yaml:4:9: flows[0].file: open nowhere.txt: no such file or directory"},
		{"failure of no node", "40Gbps", "40Gbps\n  failures: [{a: h0, b: s7, at: 1us}]",
			`a.yaml:4:14: fabric.failures[0]: no node "s7"; did you mean h7?`},
		{"failure of no link", "40Gbps", "40Gbps\n  failures: [{a: h0, b: h1, at: 1us}]",
			"a.yaml:4:14: fabric.failures[0]: no link between h0 and h1"},
		{"failure that ends before it begins", "40Gbps", "40Gbps\n  failures: [{a: h0, b: s0, at: 3us, until: 2us}]",
			"a.yaml:4:14: fabric.failures[0]: the link is down from 3us until 2us; until must be " +
				"later, or 0 for ever"},
		{"flows of class 0", "{incast", "{class: 0, incast",
			"a.yaml:4:17: flows[0].class: 0 is not possible; use 1 to 7 (0 is for control traffic)"},
		{"flows of class 9", "{incast", "{class: 9, incast",
			"a.yaml:4:17: flows[0].class: 9 is not possible; use 1 to 7 (0 is for control traffic)"},
		{"requests of a network", "fabric:", "measure: {requests: true}\nfabric:",
			"a.yaml:1:21: measure.requests: a network alone has no requests; use flows: true for its flows"},
		{"steady network", "fabric:", "measure: {until: steady}\nfabric:",
			"a.yaml:1:18: measure.until: steady is for drives; give a time such as 10ms, or end"},
		{"drive and network", "fabric:", "ssd: mqsim-default\nfabric:",
			"a.yaml:1:1: a fabric section with a drive or a workload, and no targets; put the drives behind the " +
				"network, such as \"targets: [{count: 2, ssds: 4, ssd: tlc-enterprise}]\", or leave out ssd and " +
				"workload, or fabric"},
		{"network for a drive", "fabric:", "ssd: incast\nfabric:",
			"a.yaml:1:6: ssd.preset: the preset incast is a network without a drive"},
		{"payload of zero", "40Gbps", "40Gbps\n  payload: 0B",
			"a.yaml:4:12: fabric.payload: 0B is not possible; use 1B to 16KiB"},
		{"pause too long", "40Gbps", "40Gbps\n  pfc: {quanta: 70000}",
			"a.yaml:4:17: fabric.pfc.quanta: 70000 is not possible; use 0 (until resumed) to 65535"},
		{"class of ACKs", "40Gbps", "40Gbps\n  acks: {class: 8}",
			"a.yaml:4:17: fabric.acks.class: 8 is not possible; use 0 to 7"},
		{"load above all", "{incast: {fan: 8, size: 10KB}}",
			"{poisson: {load: 120%, sizes: websearch, duration: 1ms}}",
			"a.yaml:4:26: flows[0].poisson.load: 120% is not possible; it is a share of the hosts' links, above 0% " +
				"and at most 100%"},
		{"misspelt sizes", "{incast: {fan: 8, size: 10KB}}",
			"{poisson: {load: 20%, sizes: websaerch, duration: 1ms}}",
			`a.yaml:4:38: flows[0].poisson.sizes: unknown distribution "websaerch"; did you mean "websearch"?`},
		{"endless flows", "{incast: {fan: 8, size: 10KB}}", "{poisson: {load: 20%, sizes: websearch}}",
			"a.yaml:4:19: flows[0].poisson: it never ends; set duration or flows"},
		{"no such host", "{incast: {fan: 8, size: 10KB}}", "{list: [{src: 0, dst: 9, size: 1KB}]}",
			"a.yaml:4:31: flows[0].list[0].dst: no host 9; the network has 0 to 8"},
		{"odd fat-tree", "{star: {hosts: 9}}", "{fat_tree: {k: 3}}",
			"a.yaml:2:28: fabric.topology.fat_tree.k: 3 is not possible; use an even number from 2 to 62"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.Replace(smallFabric, c.old, c.new, 1)
			if text == smallFabric {
				t.Fatalf("no %q", c.old)
			}
			_, err := parse(text)
			if err == nil {
				t.Fatal("no error")
			}
			var errs shape.Errors
			var one *shape.Error
			if !errors.As(err, &errs) && !errors.As(err, &one) {
				t.Errorf("error %v is not located", err)
			}
			got := strings.Split(err.Error(), "\n")
			for i, want := range strings.Split(c.want, "\n") {
				if i >= len(got) || !strings.HasPrefix(got[i], want) {
					t.Fatalf("got\n%v\nwant\n%v", err, c.want)
				}
			}
		})
	}
}

// TestFlowsBesideNetwork verifies that errors in flows are reported together with those of the network.
func TestFlowsBesideNetwork(t *testing.T) {
	_, err := Parse(shape.Source{File: "a.yaml",
		Text: []byte("fabric: {topology: {star: {hosts: 4}}, host_link: 0Gbps}\nflows: [{poisson: {load: 150%, " +
			"sizes: websearch, duration: 100us}}]\n")}, nil)
	for _, want := range []string{"fabric.host_link: 0bps is not possible", "flows[0].poisson.load"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}
