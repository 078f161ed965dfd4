package timeline_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"farflash/experiment"
	"farflash/experiment/timeline/timelinetest"
	"farflash/experiment/trial"
	"farflash/experiment/trial/trialtest"
	"farflash/model/cosim"
	"farflash/model/nvmf"
	"farflash/numeric/units"
	"farflash/scenario"
	"farflash/sim"
)

// timelineOf runs a scenario with a timeline.
func timelineOf(t testing.TB, s *scenario.Scenario, o experiment.Options) (timelinetest.Picture, *experiment.Outcome,
	[]byte) {
	t.Helper()
	var b bytes.Buffer
	o.Seed, o.Timeline = 1, &b
	out, err := trial.Run(context.Background(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	return timelinetest.Read(t, b.Bytes()), out, b.Bytes()
}

// TestTimelineAlone verifies a single read in an idle system, whose times are known.
func TestTimelineAlone(t *testing.T) {
	s, err := trialtest.Parse(`initiators: 1
targets: [{count: 1, ssds: 1, ssd: {preset: mqsim-default, mapping: {ideal: true}}}]
fabric: {topology: {star: {hosts: 2}}, host_link: 25Gbps, delay: 1us}
workload: [{synthetic: {reads: {size: 4KiB, interarrival: 5us}, requests: 1}}]
`)
	if err != nil {
		t.Fatal(err)
	}
	var x cosim.Sample
	var stage [nvmf.Stages]sim.Time
	p, _, _ := timelineOf(t, s, experiment.Options{Sample: func(y cosim.Sample) error {
		x, stage = y, y.Trip.Stage
		return nil
	}})
	list := p.LanesBelow("initiators / initiator 0 (h0) / requests")
	if len(list) != 1 || list[0].Name != "read" || list[0].From != x.Arrival || list[0].Took != x.Finished-x.Arrival {
		t.Fatalf("the request is %+v", list)
	}
	list[0].Tiled(t)
	got := map[string]sim.Time{}
	for _, part := range list[0].Parts {
		got[part.Name] += part.Took
	}
	for k, want := range stage {
		if d := got[nvmf.Stage(k).String()]; d != want {
			t.Errorf("%v takes %v, its parts %v", nvmf.Stage(k), want, d)
		}
	}
	// The capsule: 64 bytes and 82 of headers at 25 Gbit/s, after half of the initiator's work, over two links.
	const wire = 146 * 320 * units.Picosecond
	sent := x.Arrival + s.NVMf.Initiator.Command/2
	for i, track := range []string{"initiators / initiator 0 (h0) / NIC", "switches / s0 / port 2 to h1"} {
		c := p.Spans[track][0]
		begin := sent + sim.Time(i)*(wire+units.Microsecond)
		if c.Name != "capsule" || c.From != begin || c.Took != wire || c.Notes["packets"] != int64(1) ||
			c.Notes["request"] != int64(0) {
			t.Errorf("%s begins with %+v, not a capsule at %v", track, c, begin)
		}
	}
	arrived := sent + 2*(wire+units.Microsecond)
	visit := p.LanesBelow("targets / target 0 (h1) / drive 0 / commands")
	if len(visit) != 1 || visit[0].From != arrived+s.NVMf.Target.Command/2 ||
		visit[0].Took != stage[nvmf.DriveWait]+stage[nvmf.Flash] {
		t.Errorf("the drive has %+v", visit)
	}
	// The array, and the page's transfer over the channel.
	var array []timelinetest.Span
	for path, list := range p.Spans {
		if strings.Contains(path, " / die ") {
			array = append(array, list...)
		}
	}
	timing := s.DriveOf(0).Timing
	if len(array) != 1 || array[0].Took != timing.Read[0]+timing.ReadyBusy || array[0].Name != "read" {
		t.Errorf("the dies have %+v", array)
	}
	// Arrows: all activity for the request, and no other, has its flow.
	n := 0
	for path, list := range p.Spans {
		for _, s := range list {
			switch {
			case slices.Equal(s.Flows, []uint64{1}):
				n++
			case s.Name != "ack":
				t.Errorf("%s: %+v is not joined to the request", path, s)
			}
		}
	}
	if n < 11 {
		t.Errorf("%d slices are joined", n)
	}
}

// TestTimelineDrive uses a drive without a network, whose programs are suspended.
func TestTimelineDrive(t *testing.T) {
	s, err := trialtest.Parse(`ssd: {preset: tlc-enterprise, geometry: {channels: 1, chips_per_channel: 1, blocks_per_plane: 64, pages_per_block: 64}, cache: {mode: off}}
workload:
  - synthetic: {reads: {size: 4KiB, interarrival: {mean: 100us, scv: 2}}, writes: {size: 32KiB, interarrival: {mean: 1ms, scv: 2}}, requests: 500}
`)
	if err != nil {
		t.Fatal(err)
	}
	p, out, _ := timelineOf(t, s, experiment.Options{})
	list := p.LanesBelow("host / requests")
	if len(list) != 500 {
		t.Errorf("%d requests of 500", len(list))
	}
	for i := range list {
		list[i].Tiled(t)
	}
	suspended, resumed := 0, 0
	for _, x := range p.Spans["drive / channel 0 / die 0"] {
		if x.Notes["suspended"] != nil {
			suspended++
		}
		if x.Notes["resumed"] != nil {
			resumed++
		}
	}
	if want := trialtest.Metric(t, out, "ssd.flash.suspensions"); want == 0 || float64(suspended) != want ||
		resumed == 0 || resumed > suspended {
		t.Errorf("%d slices were suspended and %d resumed, the drive counts %g", suspended, resumed, want)
	}
}

// TestTimelineVolume verifies that flash activity of a volume's members is linked to its request, local or remote, and
// rebuild activity to none.
func TestTimelineVolume(t *testing.T) {
	const local = `ssd: {preset: mqsim-default, geometry: {blocks_per_plane: 32, pages_per_block: 32}, over_provisioning: 25%, cache: {mode: off}}
host_raid: {drives: 4, level: 6, failed: [1], rebuild: 1GB/s}
workload: [{synthetic: {reads: {size: 64KiB}, writes: {size: 4KiB}, read_fraction: 50%, requests: 40}, closed: 2}]
`
	const behind = `initiators: 1
targets: [{count: 2, ssds: 2, ssd: {preset: mqsim-default, geometry: {blocks_per_plane: 32, pages_per_block: 32}, over_provisioning: 25%, cache: {mode: off}}}]
host_raid: {level: 6, failed: [1], rebuild: 1GB/s}
workload: [{synthetic: {reads: {size: 64KiB}, writes: {size: 4KiB}, read_fraction: 50%, requests: 40}, closed: 2}]
`
	for from, text := range map[string]string{"drives / drive ": local, "targets / target ": behind} {
		s, err := trialtest.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		p, _, _ := timelineOf(t, s, experiment.Options{})
		joined, apart := 0, 0
		for path, list := range p.Spans {
			if !strings.HasPrefix(path, from) || !strings.Contains(path, " / channel ") {
				continue
			}
			for _, x := range list {
				request, of := x.Notes["request"].(int64)
				switch {
				case of && request < 40 && slices.Equal(x.Flows, []uint64{uint64(request) + 1}):
					joined++
				case !of && len(x.Flows) == 0:
					apart++
				default:
					t.Fatalf("%s: %+v is joined to a request that there is not, or to another than it names", path, x)
				}
			}
		}
		if joined < 80 || apart < 20 {
			t.Errorf("%s: %d slices are joined to requests, %d to none", from, joined, apart)
		}
	}
}

// TestTimelineNetwork verifies that the results and the timelinetest.Picture of a network without drives do not depend
// on its parts.
func TestTimelineNetwork(t *testing.T) {
	const text = `
fabric: {topology: {clos: {pods: 2, leaves: 2, tors: 2, hosts_per_pod: 4, spines: 2}}, host_link: 10Gbps, up_link: 40Gbps}
flows: [{incast: {fan: 7, size: 100KB, target: 0, rounds: 2, every: 100us}}]
`
	var want []byte
	for _, parts := range []string{"1", "4"} {
		s, err := trialtest.Parse(text, "fabric.parts="+parts)
		if err != nil {
			t.Fatal(err)
		}
		p, _, b := timelineOf(t, s, experiment.Options{})
		flows := p.Below("hosts / ", "")
		flows = slices.DeleteFunc(flows, func(x timelinetest.Span) bool { return x.Name != "flow" })
		if len(flows) != 14 {
			t.Errorf("%d flows of 14", len(flows))
		}
		for i := range flows {
			flows[i].Tiled(t)
		}
		if want == nil {
			want = b
		} else if !bytes.Equal(b, want) {
			t.Errorf("another timeline in %s parts", parts)
		}
	}
}

// TestTimelineSameBytes verifies that a timeline does not change the result, and is reproducible.
func TestTimelineSameBytes(t *testing.T) {
	s, err := trialtest.Parse(trialtest.SmallSystem)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := trial.Run(context.Background(), s, experiment.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	want, err := plain.Result.Encode()
	if err != nil {
		t.Fatal(err)
	}
	var before []byte
	for range 2 {
		_, out, b := timelineOf(t, s, experiment.Options{})
		got, err := out.Result.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Error("a timeline changes the result")
		}
		if before != nil && !bytes.Equal(b, before) {
			t.Error("the timeline differs from one time to the next")
		}
		before = b
	}
}

// TestTimelineBounded verifies that a timeline ends at its limit, reports it, and is complete until then.
func TestTimelineBounded(t *testing.T) {
	s, err := trialtest.Parse(trialtest.SmallSystem)
	if err != nil {
		t.Fatal(err)
	}
	all, _, _ := timelineOf(t, s, experiment.Options{})
	const most = 3000
	p, out, _ := timelineOf(t, s, experiment.Options{TimelineSlices: most})
	n := 0
	for path, list := range p.Spans {
		if path == "end of the timeline" {
			continue
		}
		for _, x := range list {
			n += 1 + len(x.Parts)
			if i := slices.IndexFunc(all.Spans[path],
				func(y timelinetest.Span) bool { return y.From == x.From && y.Name == x.Name }); i < 0 {
				t.Errorf("%s: %s at %v is not in the whole timeline", path, x.Name, x.From)
			}
		}
	}
	for _, e := range p.Trace.Events {
		if e.Kind == 4 {
			n++
		}
	}
	// Data buffered at the end, one item per port and die, comes on top.
	if n < most || n > most+500 {
		t.Errorf("%d slices and values, not some %d", n, most)
	}
	end := p.Spans["end of the timeline"]
	if len(end) != 1 || len(out.Remarks) != 1 ||
		!strings.Contains(out.Remarks[0], fmt.Sprintf("timeline.pftrace ends at %v of simulated time", end[0].From)) {
		t.Errorf("remarks %q, an end %+v", out.Remarks, end)
	}
}

// TestTimelineDisks verifies that each disk of a target has its own track, since disks finish out of order.
func TestTimelineDisks(t *testing.T) {
	s, err := trialtest.Parse(
		"object_cluster: {gateways: 8, targets: 18, chunk: 64KiB, sizes: [{chunk: 16KiB, share: 50%}, {chunk: 64KiB, " +
			"share: 50%}], disk: {count: 2}}\nmeasure: {until: 3ms}\n")
	if err != nil {
		t.Fatal(err)
	}
	p, _, _ := timelineOf(t, s, experiment.Options{})
	for i := range 18 {
		for k := range 2 {
			if n := len(p.Spans[fmt.Sprintf("targets / target %d / disk %d", i, k)]); n < 5 {
				t.Errorf("disk %d of target %d has %d slices", k, i, n)
			}
		}
	}
}

// TestTimelineCluster verifies that a timeline shows each chunk with contiguous stages, the activity of targets' links
// and disks, and the outcome of bids; and that the result is the same without it.
func TestTimelineCluster(t *testing.T) {
	for _, protocol := range []string{"replicast-m", "replicast-h", "uch-ccp", "pull", "chain", "grants", "dctcp"} {
		s, err := trialtest.Parse(trialtest.SmallCluster, "object_cluster.protocol="+protocol,
			"object_cluster.gateways=4")
		if err != nil {
			t.Fatal(err)
		}
		p, out, _ := timelineOf(t, s, experiment.Options{})
		plain, err := trial.Run(context.Background(), s, experiment.Options{Seed: 1})
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
		puts := p.Below("gateways / ", "")
		n, writes := 0, p.Below("targets / ", " / disk")
		for i := range puts {
			if puts[i].Name == "put" {
				n++
				puts[i].Tiled(t)
			}
		}
		if want := trialtest.Metric(t, out, "cluster.put.count"); float64(n) != want || float64(len(writes)) < 3*want {
			t.Errorf("%s: %d puts and %d writes for %g chunks", protocol, n, len(writes), want)
		}
		rate := s.ObjectCluster.Disk.Rate
		if took := writes[0].Took; took != rate.TimeFor(128*units.KiB) {
			t.Errorf("%s: a write takes %v", protocol, took)
		}
		data, states := 0, map[string]int{}
		for path := range p.Spans {
			if strings.Contains(path, " / link / ") {
				data += len(p.Spans[path])
			}
			if strings.Contains(path, " / bids / ") {
				for _, x := range p.Spans[path] {
					states[x.Name]++
					if x.Name == "accepted" {
						x.Tiled(t)
					}
				}
			}
		}
		if data < 3*n {
			t.Errorf("%s: %d slices of data for %d chunks", protocol, data, n)
		}
		if bids := strings.HasPrefix(protocol, "replicast"); bids !=
			(states["accepted"] >= 3*n && states["canceled"] >= 3*n) {
			t.Errorf("%s: bids ended as %v for %d chunks", protocol, states, n)
		}
	}
}

// TestTimelineUpdates: gateways that only write receive data as well when they update a part of a chunk under a code.
func TestTimelineUpdates(t *testing.T) {
	s, err := trialtest.Parse(
		"object_cluster: {protocol: chain, code: {data: 2}, update: {share: 100%, size: 512B}}\nmeasure: {until: 3ms}\n")
	if err != nil {
		t.Fatal(err)
	}
	p, _, _ := timelineOf(t, s, experiment.Options{})
	old := 0
	for path, spans := range p.Spans {
		if strings.HasPrefix(path, "gateways / ") && strings.Contains(path, " / link / ") {
			old += len(spans)
		}
	}
	if old == 0 {
		t.Error("no gateway received the old parts of what it updates")
	}
}

// TestClusterWatch verifies that only an active ladder and a timeline below its limit have probes installed.
func TestClusterWatch(t *testing.T) {
	s, err := trialtest.Parse(trialtest.SmallCluster)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	out, err := trial.Run(context.Background(), s, experiment.Options{Seed: 1, Timeline: &b, TimelineSlices: 500})
	if err != nil || len(out.Remarks) != 1 ||
		!strings.Contains(out.Remarks[0], "slices; later events are not in it") {
		t.Fatalf("%v, %v", out.Remarks, err)
	}
	p := timelinetest.Read(t, b.Bytes())
	last := sim.Time(0)
	for _, list := range p.Spans {
		for _, x := range list {
			last = max(last, x.From)
		}
	}
	if last == 0 || last > 4*units.Millisecond {
		t.Errorf("a timeline of 500 slices goes on to %v", last)
	}
}

// TestTimelineSystem verifies tracks of a congested system with rate control against each other: the depth of a drive's
// queue against the commands in the drive, and requests against the commands and messages that serve them.
func TestTimelineSystem(t *testing.T) {
	s, err := trialtest.Parse(`initiators: 1
targets: [{count: 2, ssds: 2, ssd: ` + trialtest.TinyDrive + `}]
rate_control: {kind: aimd}
fabric: {host_link: 10Gbps, congestion_control: dcqcn}
workload:
  - name: one
    synthetic: {reads: {size: 64KiB, interarrival: {mean: 40us, scv: 2}}, writes: {size: 16KiB, interarrival: {mean: 80us, scv: 2}}, requests: 120}
  - name: two
    synthetic: {reads: {size: 4KiB, interarrival: 30us}, requests: 50}
`)
	if err != nil {
		t.Fatal(err)
	}
	p, _, _ := timelineOf(t, s, experiment.Options{})
	values := map[string][]float64{} // of counters
	paths := p.Trace.Paths()
	for _, e := range p.Trace.Events {
		if e.Kind == 4 {
			values[paths[e.Track]] = append(values[paths[e.Track]], e.Value)
		}
	}
	requests := map[int64]timelinetest.Span{}
	of := map[any]int{}
	for _, x := range p.LanesBelow("initiators / initiator 0 (h0) / requests") {
		x.Tiled(t)
		requests[x.Notes["request"].(int64)] = x
		of[x.Notes["workload"]]++
	}
	if len(requests) != 170 || of["one"] != 120 || of["two"] != 50 {
		t.Errorf("%d requests, of %v", len(requests), of)
	}
	moved := map[int64]int64{}
	var ratios []float64
	for drive := range 4 {
		at := fmt.Sprintf("targets / target %d (h%d) / drive %d / ", drive/2, drive/2+1, drive)
		type step struct {
			at sim.Time
			by int
		}
		var steps []step
		for _, x := range p.LanesBelow(at + "commands") {
			x.Tiled(t)
			n := x.Notes["request"].(int64)
			r, ok := requests[n]
			if !ok || x.Name != r.Name || x.From < r.From || x.From+x.Took > r.From+r.Took ||
				!slices.Equal(x.Flows, []uint64{uint64(n) + 1}) || x.Notes["initiator"] != int64(0) {
				t.Errorf("command %v in drive %d for %v", x, drive, r)
			}
			moved[n] += x.Notes["bytes"].(int64)
			steps = append(steps, step{x.From, 1}, step{x.From + x.Took, -1})
		}
		slices.SortFunc(steps, func(a, b step) int {
			return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.by, b.by)) // one that leaves makes room for the next
		})
		var want []float64
		depth := 0.0
		for _, x := range steps {
			depth += float64(x.by)
			want = append(want, depth)
		}
		if got := values[at+"commands in the drive"]; !slices.Equal(got, want) {
			t.Errorf("%sdepths %v, of the commands %v", at, got, want)
		}
		ratios = append(ratios, values[at+"weight ratio"]...)
	}
	if len(ratios) == 0 || slices.Min(ratios) < 1 {
		t.Errorf("weight ratios %v", ratios)
	}
	for n, r := range requests {
		if moved[n] != r.Notes["bytes"] {
			t.Errorf("%d bytes of request %d move, of %v", moved[n], n, r)
		}
	}
	for target := range 2 {
		at := fmt.Sprintf("targets / target %d (h%d) / ", target, target+1)
		q := values[at+"transmit queue"]
		if len(q) == 0 || slices.Min(q) != 0 || slices.Max(q) < 64<<10 {
			t.Errorf("%stransmit queue %v", at, q)
		}
		if d := values[at+"demanded of the rate controller"]; len(d) == 0 || slices.Min(d) < 1e6 || slices.Max(d) > 1.25e9 {
			t.Errorf("%sdemands %v B/s of a link of 10 Gb/s", at, d)
		}
	}
	// Every packet of a message serves the request that it names.
	for _, path := range []string{"initiators / initiator 0 (h0) / NIC", "targets / target 0 (h1) / NIC",
		"switches / s0 / port 1 to h0"} {
		for _, x := range p.Spans[path] {
			if n, ok := x.Notes["request"].(int64); ok {
				r := requests[n]
				if x.From < r.From || x.Name != "response" && x.Name != "ack" && x.From > r.From+r.Took {
					t.Errorf("%s: %s at %v for a request from %v to %v", path, x.Name, x.From, r.From, r.From+r.Took)
				}
				continue
			}
			if x.Name != "ack" && x.Name != "cnp" && x.Name != "pull" {
				t.Errorf("%s: %v serves nothing", path, x)
			}
		}
	}
}

// TestTimelineFlows verifies in a system with flows that each is shown with its own packets: numbers of messages that
// served requests are used again.
func TestTimelineFlows(t *testing.T) {
	s, err := trialtest.Parse(`initiators: 2
targets: [{count: 1, ssds: 1, ssd: ` + trialtest.TinyDrive + `}]
fabric: {topology: {star: {hosts: 4}}, host_link: 10Gbps}
flows: [{incast: {fan: 2, size: 20KB, rounds: 6, every: 100us}}]
workload: [{synthetic: {reads: {size: 8KiB, interarrival: 15us}, writes: {size: 8KiB, interarrival: 40us}, requests: 100}}]
`)
	if err != nil {
		t.Fatal(err)
	}
	p, _, _ := timelineOf(t, s, experiment.Options{})
	n := 0
	for path, list := range p.Spans {
		i := strings.Index(path, " / flows / ")
		if i < 0 {
			continue
		}
		for _, f := range list {
			f.Tiled(t)
			n++
			sent := int64(0)
			for _, x := range p.Below(path[:i], " / NIC") {
				if x.Notes["flow"] == f.Notes["flow"] && x.Name == "data" && x.From >= f.From && x.From < f.From+f.Took {
					sent += x.Notes["bytes"].(int64)
				}
			}
			if f.Notes["bytes"] != int64(20_000) || sent < 20_000 || sent > 25_000 {
				t.Errorf("%s: %v with %d bytes on the wire", path, f, sent)
			}
		}
	}
	if n != 12 {
		t.Errorf("%d flows", n)
	}
}
