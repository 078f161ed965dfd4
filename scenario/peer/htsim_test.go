package peer

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"farflash/internal/patience"
	"farflash/numeric/units"
)

const (
	htsimTopology = `# two tiers
Nodes 8
Tiers 2
Podsize 8

Tier 0
Downlink_speed_Gbps 100
Radix_Down 4
Radix_Up 2
Oversubscribed 2
Downlink_Latency_ns 1000

TIER 1
Downlink_speed_Gbps 200
Radix_Down 2
Downlink_Latency_ns 500
Switch_Latency_ns 0
`
	htsimMatrix = `Nodes 8
Connections 3
Triggers 2

0->4 id 1 start 5.5 size 1000 send_done_trigger 7
1->5 id 2 trigger 7 size 2000 prio 3
# the barrier
2->6 id 3 start 0 size 3000 recv_done_trigger 9
trigger id 7 oneshot
trigger id 9 barrier count 2
`
)

func TestHTSim(t *testing.T) {
	x, err := ReadHTSimTopology("a.topo", strings.NewReader(htsimTopology))
	if err != nil {
		t.Fatal(err)
	}
	if x.Hosts != 8 || x.PodSize != 8 || len(x.Tiers) != 2 || x.Tiers[0].Speed != 100*units.Gbps ||
		x.Tiers[0].Oversub != 2 || x.Tiers[1].Delay != 500*units.Nanosecond || x.Tiers[1].Down != 2 ||
		x.Tiers[1].Line != 13 {
		t.Errorf("%+v", x)
	}
	m, err := ReadHTSimMatrix("a.cm", strings.NewReader(htsimMatrix))
	if err != nil {
		t.Fatal(err)
	}
	if c := m.Connections; m.Hosts != 8 || len(c) != 3 || c[0].Start != 5 || c[0].SendDone != 7 ||
		c[1].Trigger != 7 || !c[1].Priority || c[2].RecvDone != 9 || c[2].Line != 8 ||
		len(m.Triggers) != 2 || m.Triggers[1].Kind != HTSimBarrier || m.Triggers[1].Count != 2 {
		t.Errorf("%+v", m)
	}
}

// TestHTSimErrors verifies that invalid input is rejected with its line.
func TestHTSimErrors(t *testing.T) {
	for _, x := range []struct{ from, to, want string }{
		{"Nodes 8\n", "Nodes x\n", `a.topo:2: Nodes: "x" is not possible`},
		{"Nodes 8\n", "Nodes 8\nNodes 8\n", "a.topo:3: Nodes: given twice"},
		{"Podsize 8", "", "a.topo:1: Podsize is missing"},
		{"Radix_Down 4", "Radix_Down 0", `a.topo:8: Radix_Down: "0" is not possible`},
		{"Radix_Up 2", "", "a.topo:6: radix_up is missing in tier 0"},
		{"TIER 1", "Tier 0", "a.topo:13: tier 0 is defined twice; first on line 6"},
		{"TIER 1", "Tier 2", "a.topo:1: tier 1 is missing"},
		{"Switch_Latency_ns 0", "Switch_Latency_us 0", `a.topo:17: unknown key "Switch_Latency_us"`},
		{"Tier 0", "Speed 0", `a.topo:6: unknown key "Speed"`},
	} {
		text := strings.Replace(htsimTopology, x.from, x.to, 1)
		if x.want == "a.topo:1: tier 1 is missing" {
			text = strings.Replace(text, "Tiers 2", "Tiers 3", 1)
		}
		if _, err := ReadHTSimTopology("a.topo", strings.NewReader(text)); err == nil ||
			!strings.HasPrefix(err.Error(), x.want) {
			t.Errorf("%s: %v", x.want, err)
		}
	}
	for _, x := range []struct{ from, to, want string }{
		{"Nodes 8", "Nodes 2", `a.cm:5: 0->4: "4" is not a host; there are 2, from 0`},
		{"Nodes 8\n", "", `a.cm:4: 0->4: "0" is not a host`},
		{"Connections 3", "Connections 4", "a.cm:1: the file declares 4 connections and has 3"},
		{"0->4", "4->4", "a.cm:5: 4->4: host 4 sends to itself"},
		{"size 1000", "", "a.cm:5: size is missing"},
		{"size 1000", "size -1", `a.cm:5: size: "-1" is not possible`},
		{"start 5.5", "", "a.cm:5: neither start nor trigger"},
		{"start 5.5", "start NaN", "a.cm:5: start: use a number of picoseconds"},
		{"start 5.5", "start 0 trigger 7", "a.cm:5: both start and trigger"},
		{"prio 3", "addon", "a.cm:6: addon: "},
		{"oneshot", "once", `a.cm:9: unknown word "once"`},
		{"count 2", "", "a.cm:10: a barrier needs a count"},
		{"trigger id 9 barrier", "failure switch_type TOR", "a.cm:10: failure: "},
		{"# the barrier", "hello", `a.cm:7: unknown word "hello"`},
		{"# the barrier", strings.Repeat("x", htsimLine+1), "a.cm:7: the line is longer than 65536 bytes"},
	} {
		if _, err := ReadHTSimMatrix("a.cm", strings.NewReader(strings.Replace(htsimMatrix, x.from, x.to, 1))); err ==
			nil || !strings.HasPrefix(err.Error(), x.want) {
			t.Errorf("%s: %v", x.want, err)
		}
	}
}

// FuzzHTSim verifies that no text makes the readers panic, and that every error has a position.
func FuzzHTSim(f *testing.F) {
	f.Add([]byte(htsimTopology))
	f.Add([]byte(htsimMatrix))
	f.Fuzz(func(t *testing.T, b []byte) {
		defer patience.Limit()()
		_, err := ReadHTSimTopology("a", bytes.NewReader(b))
		_, other := ReadHTSimMatrix("a", bytes.NewReader(b))
		for _, err := range []error{err, other} {
			if err != nil && !strings.HasPrefix(err.Error(), "a:") {
				t.Error(errors.Unwrap(err), err)
			}
		}
	})
}
