package convert

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"farflash/experiment"
	"farflash/experiment/trial"
	"farflash/scenario"
	"farflash/scenario/shape"
)

// write creates files and returns their directory.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// simulateText runs a scenario and returns its figures.
func simulateText(t *testing.T, text string) map[string]float64 {
	t.Helper()
	s, err := scenario.Parse(shape.Source{File: "a.yaml", Text: []byte(text)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	out, err := trial.Run(context.Background(), s, experiment.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, m := range out.Result.Metrics {
		got[m.Name] = m.Value
	}
	return got
}

// tiers returns a three-tier topology file equivalent to a fat-tree of 16 hosts with these speeds between switches, in
// Gbit/s.
func tiers(next, top int) string {
	return fmt.Sprintf("Nodes 16\nTiers 3\nPodsize 4\nTier 0\nDownlink_speed_Gbps 100\nRadix_Down 2\nRadix_Up "+
		"2\nDownlink_Latency_ns 1000\nTier 1\nDownlink_speed_Gbps %d\nRadix_Down 2\nRadix_Up 2\nDownlink_Latency_ns "+
		"1000\nTier 2\nDownlink_speed_Gbps %d\nRadix_Down 4\nDownlink_Latency_ns 1000\n", next, top)
}

// TestHTSimAnswers compares a converted file with htsim_roce's output (model/fabric/testdata/htsim.txt has more and
// describes the method), for htsim's default network, its file, and an equivalent description. Which sender finishes
// last, whose return path may be two links longer, accounts for 0.6 %.
func TestHTSimAnswers(t *testing.T) {
	o := DefaultHTSim()
	o.MTU = 4096
	for senders, want := range map[int]float64{2: 169.425, 4: 332.497, 8: 660.652} {
		// htsim sends whole packets: 1 MB is 245 of them.
		var cm strings.Builder
		fmt.Fprintf(&cm, "Nodes 16\nConnections %d\n", senders)
		for i := range senders {
			fmt.Fprintf(&cm, "%d->0 start 0 size %d\n", i+1, 245*4096)
		}
		dir := write(t, map[string]string{"a.cm": cm.String(), "tree.topo": tiers(100, 100),
			"bundle.topo": strings.Replace(tiers(100, 100), "Tier 1\n", "Tier 1\nBundle 1\nSwitch_Latency_ns 0\n", 1)})
		for _, topology := range []string{"", "tree.topo", "bundle.topo"} {
			if o.Topology = ""; topology != "" {
				o.Topology = filepath.Join(dir, topology)
			}
			c, err := FromHTSim(filepath.Join(dir, "a.cm"), o)
			if err != nil {
				t.Fatal(err)
			}
			if c.Scenario.Fabric.Topology.FatTree == nil {
				t.Errorf("%s is not a fat-tree", topology)
			}
			got := simulateText(t, c.Text())
			if off := got["flow.fct.max"]/want - 1; math.Abs(off) > 0.01 {
				t.Errorf("%d senders, %q: the last has its ACK after %.3f us, htsim %v", senders, topology,
					got["flow.fct.max"], want)
			}
		}
	}
}

// TestHTSimShapes verifies that a topology without an equivalent shape is converted to its links, with htsim's count
// and rates.
func TestHTSimShapes(t *testing.T) {
	bundled := "Nodes 8\nTiers 3\nPodsize 4\nTier 0\nDownlink_speed_Gbps 200\nRadix_Down 2\nRadix_Up " +
		"2\nDownlink_Latency_ns 1000\nTier 1\nDownlink_speed_Gbps 200\nRadix_Down 2\nRadix_Up 4\nDownlink_Latency_ns " +
		"1000\nBundle 1\nTier 2\nDownlink_speed_Gbps 100\nRadix_Down 4\nDownlink_Latency_ns 2000\nBundle 2\n"
	leaves := "Nodes 32\nTiers 2\nPodsize 32\nTier 0\nDownlink_speed_Gbps 100\nRadix_Down 8\nRadix_Up " +
		"2\nDownlink_Latency_ns 1000\nOversubscribed 4\nTier 1\nDownlink_speed_Gbps 100\nRadix_Down " +
		"4\nDownlink_Latency_ns 1000\n"
	dir := write(t, map[string]string{"a.cm": "Nodes 8\n0->7 start 0 size 100000\n", "bundled.topo": bundled,
		"leaves.topo": leaves, "fast.topo": tiers(100, 400),
		"odd.topo":     strings.Replace(bundled, "Radix_Down 4", "Radix_Down 3", 1),
		"latency.topo": strings.Replace(leaves, "Tier 1\n", "Tier 1\nSwitch_Latency_ns 5\n", 1),
		"oversub.topo": strings.Replace(leaves, "Oversubscribed 4\n", "", 1)})
	from := func(topology string) (*Conversion, error) {
		o := DefaultHTSim()
		o.Topology = filepath.Join(dir, topology)
		return FromHTSim(filepath.Join(dir, "a.cm"), o)
	}
	c, err := from("bundled.topo")
	if err != nil {
		t.Fatal(err)
	}
	// 8 hosts; 4 ToRs with 2 links; 4 switches of 4 ports up, in pairs to 2 of the 4 cores.
	if got := len(c.Scenario.Fabric.Topology.Links); got != 8+8+16 {
		t.Errorf("%d links", got)
	}
	if got := simulateText(t, c.Text()); got["flow.count"] != 1 {
		t.Error("the flow does not end")
	}
	if c, err = from("leaves.topo"); err != nil || c.Scenario.Fabric.Topology.LeafSpine == nil ||
		c.Scenario.Fabric.Topology.LeafSpine.Spines != 2 {
		t.Error(err)
	}
	if c, err = from("fast.topo"); err != nil || len(c.Scenario.Fabric.Topology.Links) != 48 {
		t.Error(err)
	}
	for name, want := range map[string]string{"odd.topo": "odd.topo:15: Radix_Down 3 is not a multiple of Bundle 2",
		"latency.topo": "latency.topo:10: Switch_Latency_ns",
		"oversub.topo": "oversub.topo:4: Radix_Down 8 over Radix_Up 2 is not Oversubscribed 1"} {
		if _, err := from(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// TestHTSimTriggers verifies that connections start when the connections that activate their trigger have ended, and
// that triggers that depend on the run are rejected with their line.
func TestHTSimTriggers(t *testing.T) {
	const text = "Nodes 16\n0->1 id 1 start 0 size 90000 send_done_trigger 1\n1->2 id 2 trigger 1 size 90000 " +
		"recv_done_trigger 2\n3->4 id 3 start 0 size 90000 recv_done_trigger 2\n2->3 id 4 trigger 2 size " +
		"90000\ntrigger id 1 oneshot\ntrigger id 2 barrier count 2\n"
	dir := write(t, map[string]string{"a.cm": text})
	c, err := FromHTSim(filepath.Join(dir, "a.cm"), DefaultHTSim())
	if err != nil {
		t.Fatal(err)
	}
	list := c.Scenario.Flows[0].List
	if len(list) != 4 || len(list[3].After) != 2 || list[3].After[0] != "line3" || list[1].After[0] != "line2" ||
		list[1].Upon.String() != "acknowledged" || list[3].Upon.String() != "delivered" {
		t.Errorf("%+v", list)
	}
	if got := simulateText(t, c.Text()); got["flow.count"] != 4 || got["flow.unfinished"] != 0 {
		t.Error(got["flow.count"], got["flow.unfinished"])
	}
	for _, x := range []struct{ from, to, want string }{
		{"count 2", "count 3",
			"a.cm:7: trigger 2 starts its connections after 3 activations, but 2 connections activate it"},
		{"trigger id 1 oneshot", "", "a.cm:2: no trigger 1"},
		{"barrier count 2", "multishot", "a.cm:7: trigger 2 is a multishot"},
		{"size 90000 recv_done_trigger 2\n3", "size 90000 send_done_trigger 2\n3",
			"a.cm:7: trigger 2 is activated by senders and by receivers"},
		{"trigger id 1 oneshot", "trigger id 1 oneshot\ntrigger id 1 oneshot",
			"a.cm:7: trigger 1 is defined twice; first on line 6"},
		{"Nodes 16", "Nodes 17", "a.cm:1: Nodes: a fat-tree of three tiers has 2, 16, 54"},
	} {
		dir := write(t, map[string]string{"a.cm": strings.Replace(text, x.from, x.to, 1)})
		if _, err := FromHTSim(filepath.Join(dir, "a.cm"), DefaultHTSim()); err == nil ||
			!strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v", x.want, err)
		}
	}
}
