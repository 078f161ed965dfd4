package scenario

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"farflash/sim"
	"farflash/units"
)

// TestTimelineCluster: a timeline shows each chunk with stages that follow each other, what targets' links and disks did, and how bids
// ended; and the result is the same without it.
func TestTimelineCluster(t *testing.T) {
	for _, protocol := range []string{"replicast-m", "replicast-h", "uch-ccp", "pull", "chain", "grants", "dctcp"} {
		s, err := parse(smallCluster, "object_cluster.protocol="+protocol, "object_cluster.gateways=4")
		if err != nil {
			t.Fatal(err)
		}
		p, out, _ := timelineOf(t, s, Options{})
		plain, err := s.Run(context.Background(), Options{Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		a, err := out.Result.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if b, err := plain.Result.Encode(); err != nil || !bytes.Equal(a, b) {
			t.Errorf("%s: a timeline changes the result (%v)", protocol, err)
		}
		puts := p.below("gateways / ", "")
		n, writes := 0, p.below("targets / ", " / disk")
		for i := range puts {
			if puts[i].Name == "put" {
				n++
				puts[i].tiled(t)
			}
		}
		if want := metric(t, out, "cluster.put.count"); float64(n) != want || float64(len(writes)) < 3*want {
			t.Errorf("%s: %d puts and %d writes for %g chunks", protocol, n, len(writes), want)
		}
		rate := s.ObjectCluster.Disk.Rate
		if took := writes[0].took; took != rate.TimeFor(128*units.KiB) {
			t.Errorf("%s: a write takes %v", protocol, took)
		}
		data, states := 0, map[string]int{}
		for path := range p.spans {
			if strings.Contains(path, " / link / ") {
				data += len(p.spans[path])
			}
			if strings.Contains(path, " / bids / ") {
				for _, x := range p.spans[path] {
					states[x.Name]++
					if x.Name == "accepted" {
						x.tiled(t)
					}
				}
			}
		}
		if data < 3*n {
			t.Errorf("%s: %d slices of data for %d chunks", protocol, data, n)
		}
		if bids := strings.HasPrefix(protocol, "replicast"); bids != (states["accepted"] >= 3*n && states["canceled"] >= 3*n) {
			t.Errorf("%s: bids ended as %v for %d chunks", protocol, states, n)
		}
	}
}

// TestLadder: a run's result has the protocol of some chunks, each with its messages in order and all its replicas.
func TestLadder(t *testing.T) {
	hops := map[string][]float64{} // the targets that data comes from; -1 is a gateway
	for _, protocol := range []string{"replicast-m", "replicast-h", "uch-ccp", "pull", "chain", "grants", "dctcp"} {
		out := run(t, smallCluster, 1, "object_cluster.protocol="+protocol, "measure.until=20ms", "measure.warm_up=25%")
		m, ok := out.Result.Matrix("cluster.protocol")
		if !ok {
			t.Fatalf("%s: there is none", protocol)
		}
		col := func(name string) int { return slices.Index(m.Cols, name) }
		count := map[string]int{}
		for i, kind := range m.Rows {
			v := m.V[i]
			if v[col("chunk")] != 1 {
				continue
			}
			count[kind]++
			if v[col("end")] < v[col("begin")] || v[col("begin")] < (out.Result.WarmUp.UntilS*1e6) {
				t.Errorf("%s: %s from %g to %g us, the warm-up ends at %g s", protocol, kind, v[col("begin")], v[col("end")], out.Result.WarmUp.UntilS)
			}
		}
		if count["< ack"] != 3 || count["data"] != 3 || count["disk"] != 3 || count["put"] != 1 {
			t.Errorf("%s: %v", protocol, count)
		}
		if protocol == "pull" && (count["> request"] == 0 || count["< offer"] != 3 || count["> take"] == 0 || count["> pull"]+count["< pull"]+count["= pull"] != 3) {
			t.Errorf("%v", count)
		}
		for i, kind := range m.Rows {
			if v := m.V[i]; kind == "data" && v[col("chunk")] == 1 {
				hops[protocol] = append(hops[protocol], v[col("from")])
			}
		}
		if chained := protocol == "pull" || protocol == "chain"; chained != (slices.Max(hops[protocol]) >= 0) || !slices.Contains(hops[protocol], -1) {
			t.Errorf("%s: data comes from %v", protocol, hops[protocol])
		}
		if protocol == "replicast-m" && (count["> request"] != 9 || count["< bid"] != 9 || count["> accept"] != 9 || count["accepted"] != 3 || count["canceled"] != 6 || count["tentative"] != 3) {
			t.Errorf("%v", count)
		}
	}
}

// TestLadderOfGets: the protocol of a chunk that is read goes from the request over the disk to the data at its gateway.
func TestLadderOfGets(t *testing.T) {
	for read, first := range map[string]string{"bids": "> read request", "least-loaded": "> read request", "random": "> read", "tied": "> read"} {
		out := run(t, smallCluster, 1, "object_cluster.protocol=pull", "object_cluster.reads=100%", "object_cluster.objects=500", "object_cluster.read="+read, "measure.until=20ms", "measure.warm_up=25%")
		m, ok := out.Result.Matrix("cluster.protocol")
		if !ok {
			t.Fatalf("%s: there is none", read)
		}
		col := func(name string) int { return slices.Index(m.Cols, name) }
		at := map[string]float64{} // when the first chunk's steps began
		for i, kind := range m.Rows {
			if v := m.V[i]; v[col("chunk")] == 1 {
				if _, ok := at[kind]; !ok {
					at[kind] = v[col("begin")]
				}
			}
		}
		order := []string{first, "> read", "disk reads", "got"}
		for k, kind := range order {
			if _, ok := at[kind]; !ok || k > 0 && at[kind] < at[order[k-1]] {
				t.Errorf("%s: %s at %v, all: %v", read, kind, at[kind], at)
			}
		}
		if _, ok := at["get"]; !ok || at["data"] > 0 || at["put"] > 0 {
			t.Errorf("%s: %v", read, at)
		}
	}
}

// TestClusterWatch: nobody listens but a ladder that is under way and a timeline that has room.
func TestClusterWatch(t *testing.T) {
	s, err := parse(smallCluster)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	out, err := s.Run(context.Background(), Options{Seed: 1, Timeline: &b, timelineSlices: 500})
	if err != nil || len(out.Remarks) != 1 || !strings.Contains(out.Remarks[0], "slices; what happens later is not in it") {
		t.Fatalf("%v, %v", out.Remarks, err)
	}
	p := readTimeline(t, b.Bytes())
	last := sim.Time(0)
	for _, list := range p.spans {
		for _, x := range list {
			last = max(last, x.begin)
		}
	}
	if last == 0 || last > 4*units.Millisecond {
		t.Errorf("a timeline of 500 slices goes on to %v", last)
	}
}
