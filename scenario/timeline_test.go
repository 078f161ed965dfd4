package scenario

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"farflash/cosim"
	"farflash/fabric"
	"farflash/nvmf"
	"farflash/result/perfetto"
	"farflash/result/perfetto/perfettotest"
	"farflash/sim"
	"farflash/units"
)

// span is a slice with its exact times.
type span struct {
	perfettotest.Slice
	begin, took sim.Time
	parts       []span
}

// picture is a timeline that was read back: the slices of each track by its path.
type picture struct {
	spans map[string][]span
	trace perfettotest.Trace
}

// readTimeline reads a timeline, and holds that no slices of a track overlap and that parts lie in their slices, to the
// picosecond.
func readTimeline(t testing.TB, b []byte) picture {
	t.Helper()
	trace, found := perfettotest.Read(t, b)
	p := picture{spans: map[string][]span{}, trace: trace}
	for id, path := range trace.Paths() {
		var list []span
		for _, x := range found[id] {
			s := span{Slice: x}
			s.begin = sim.Time(x.Notes[perfetto.BeginAnnotation].(int64))
			if d, ok := x.Notes[perfetto.DurationAnnotation]; ok {
				s.took = sim.Time(d.(int64))
			}
			if x.Depth > 0 {
				last := &list[len(list)-1]
				last.parts = append(last.parts, s)
				continue
			}
			list = append(list, s)
		}
		at := sim.Time(0)
		for i, s := range list {
			if s.begin < at {
				t.Fatalf("%s: slice %d (%s) begins at %v, before %v, where the one before it ends", path, i, s.Name, s.begin, at)
			}
			at = s.begin + s.took
			if len(s.parts) > 0 && (s.parts[0].begin < s.begin || s.parts[len(s.parts)-1].begin+s.parts[len(s.parts)-1].took > at) {
				t.Fatalf("%s: parts of slice %d lie outside of it", path, i)
			}
		}
		p.spans[path] = list
	}
	return p
}

// tiled holds that a slice's parts follow each other without a gap from its begin to its end.
func (s *span) tiled(t testing.TB) {
	t.Helper()
	at := s.begin
	for _, x := range s.parts {
		if x.begin != at {
			t.Fatalf("%s at %v: part %s begins at %v and not at %v", s.Name, s.begin, x.Name, x.begin, at)
		}
		at += x.took
	}
	if at != s.begin+s.took {
		t.Fatalf("%s at %v: its parts end at %v and not at %v", s.Name, s.begin, at, s.begin+s.took)
	}
}

// below are the slices of all tracks whose path begins and ends so, in order of time.
func (p *picture) below(from, to string) []span {
	var out []span
	for path, list := range p.spans {
		if strings.HasPrefix(path, from) && strings.HasSuffix(path, to) {
			out = append(out, list...)
		}
	}
	slices.SortFunc(out, func(a, b span) int { return cmp.Compare(a.begin, b.begin) })
	return out
}

// lanesBelow are the slices of a group's lanes.
func (p *picture) lanesBelow(group string) []span {
	var out []span
	for path, list := range p.spans {
		if rest, ok := strings.CutPrefix(path, group+" / "); ok && !strings.Contains(rest, "/") {
			out = append(out, list...)
		}
	}
	slices.SortFunc(out, func(a, b span) int { return cmp.Compare(a.begin, b.begin) })
	return out
}

// sum is how long slices took.
func sum(list []span) (took sim.Time, bytes int64) {
	for _, s := range list {
		took += s.took
		if n, ok := s.Notes["bytes"]; ok {
			bytes += n.(int64)
		}
	}
	return took, bytes
}

// timelineOf runs a scenario with a timeline.
func timelineOf(t testing.TB, s *Scenario, o Options) (picture, *Outcome, []byte) {
	t.Helper()
	var b bytes.Buffer
	o.Seed, o.Timeline = 1, &b
	out, err := s.Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return readTimeline(t, b.Bytes()), out, b.Bytes()
}

// TestTimelineAlone: one read in an idle system, whose times are known.
func TestTimelineAlone(t *testing.T) {
	s, err := parse(`initiators: 1
targets: [{count: 1, ssds: 1, ssd: {preset: mqsim-default, mapping: {ideal: true}}}]
fabric: {topology: {star: {hosts: 2}}, host_link: 25Gbps, delay: 1us}
workload: [{synthetic: {reads: {size: 4KiB, interarrival: 5us}, requests: 1}}]
`)
	if err != nil {
		t.Fatal(err)
	}
	var x cosim.Sample
	var stage [nvmf.Stages]sim.Time
	p, _, _ := timelineOf(t, s, Options{Sample: func(y cosim.Sample) error {
		x, stage = y, y.Trip.Stage
		return nil
	}})
	list := p.lanesBelow("initiators / initiator 0 (h0) / requests")
	if len(list) != 1 || list[0].Name != "read" || list[0].begin != x.Arrival || list[0].took != x.Finished-x.Arrival {
		t.Fatalf("the request is %+v", list)
	}
	list[0].tiled(t)
	got := map[string]sim.Time{}
	for _, part := range list[0].parts {
		got[part.Name] += part.took
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
		c := p.spans[track][0]
		begin := sent + sim.Time(i)*(wire+units.Microsecond)
		if c.Name != "capsule" || c.begin != begin || c.took != wire || c.Notes["packets"] != int64(1) || c.Notes["request"] != int64(0) {
			t.Errorf("%s begins with %+v, not a capsule at %v", track, c, begin)
		}
	}
	arrived := sent + 2*(wire+units.Microsecond)
	visit := p.lanesBelow("targets / target 0 (h1) / drive 0 / commands")
	if len(visit) != 1 || visit[0].begin != arrived+s.NVMf.Target.Command/2 || visit[0].took != stage[nvmf.DriveWait]+stage[nvmf.Flash] {
		t.Errorf("the drive has %+v", visit)
	}
	// The array, and the page's way over the channel.
	var array []span
	for path, list := range p.spans {
		if strings.Contains(path, " / die ") {
			array = append(array, list...)
		}
	}
	timing := s.drive(0).Timing
	if len(array) != 1 || array[0].took != timing.Read[0]+timing.ReadyBusy || array[0].Name != "read" {
		t.Errorf("the dies have %+v", array)
	}
	// Arrows: all that was done for the request, and nothing else, has its flow.
	n := 0
	for path, list := range p.spans {
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

// TestTimelineBusy: in a storm, what tracks show is what the models count.
func TestTimelineBusy(t *testing.T) {
	s, err := parse(`initiators: 6
targets: [{count: 2, ssds: 2, ssd: `+tinyDrive+`}]
route: {target: {stripe: 16KiB}}
nvmf: {queue_depth: 16, txq: 64KiB, drive_depth: 8}
fabric: {topology: {leaf_spine: {leaves: 2, spines: 2, hosts_per_leaf: 5}}, pfc: {threshold: 20KB}, congestion_control: none, host_link: 10Gbps, up_link: 10Gbps, payload: 4KiB, acks: {every: 16}}
flows: [{class: 3, incast: {fan: 6, size: 50KB, rounds: 5, every: 100us}}]
workload:
  - name: one
    synthetic:
      reads: {size: {mean: 48KiB, scv: 3}, interarrival: {mean: 15us, scv: 9}}
      writes: {size: {mean: 64KiB, scv: 2}, interarrival: {mean: 60us, scv: 9}}
      requests: 2000
  - name: two
    synthetic: {reads: {size: 4KiB, interarrival: {mean: 30us}}, requests: 100}
`, "targets[0].ssd.preconditioning.fill=steady")
	if err != nil {
		t.Fatal(err)
	}
	images, err := s.prepareDrives(1)
	if err != nil {
		t.Fatal(err)
	}
	y, err := s.buildSystem(1, s.Protocol, images)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	line := newTimeline(Options{Timeline: &b}, y.eng)
	line.showSystem(y)
	ended := 0
	y.host.OnSample = func(x *cosim.Sample) {
		line.remote(x, y.array.Trip())
		ended++
	}
	if err := y.host.Attach(y.dev, y.flows); err != nil {
		t.Fatal(err)
	}
	if err := y.traffic.Start(); err != nil {
		t.Fatal(err)
	}
	if err := y.host.Start(); err != nil {
		t.Fatal(err)
	}
	y.host.OnIdle = func(sim.Time) { y.eng.Stop() }
	y.eng.Run(sim.Forever)
	remarks, err := line.close()
	if err != nil || len(remarks) > 0 {
		t.Fatal(err, remarks)
	}
	p := readTimeline(t, b.Bytes())

	requests, flows := 0, 0
	for path, list := range p.spans {
		request, flow := strings.Contains(path, " / requests / "), strings.Contains(path, " / flows / ")
		for i := range list {
			if request || flow || strings.Contains(path, " / commands / ") {
				list[i].tiled(t)
			}
			if request {
				requests++
			}
			if flow {
				flows++
			}
		}
	}
	if requests != ended || ended != 2100 || flows != 30 {
		t.Errorf("%d requests and %d flows are shown, %d of 2100 requests ended", requests, flows, ended)
	}
	collected, commands := 0, 0
	for i, d := range y.drives {
		at := fmt.Sprintf("targets / target %d (%s) / drive %d / ", i/2, y.net.net.NodeName(y.sys.TargetNode(int32(i/2))), i)
		commands += len(p.lanesBelow(at + "commands"))
		x := d.Stats()
		for c, want := range x.ChannelBusy {
			if got, _ := sum(p.spans[fmt.Sprintf("%schannel %d", at, c)]); got != want {
				t.Errorf("%schannel %d is busy for %v, its slices for %v", at, c, want, got)
			}
			each := len(x.LaneBusy) / len(x.ChannelBusy)
			for k := range each {
				list := p.spans[fmt.Sprintf("%schannel %d / die %d", at, c, k)]
				if got, _ := sum(list); got != x.LaneBusy[c*each+k] {
					t.Errorf("%schannel %d / die %d is busy for %v, its slices for %v", at, c, k, x.LaneBusy[c*each+k], got)
				}
				for _, s := range list {
					if strings.HasPrefix(s.Name, "GC ") {
						collected++
					}
				}
			}
		}
	}
	if k := y.sys.Counters.Ended; collected == 0 || uint64(commands) != k {
		t.Errorf("%d slices of garbage collection; %d commands in drives of %d", collected, commands, k)
	}
	var paths []string
	for _, path := range p.trace.Paths() {
		paths = append(paths, path)
	}
	pauses := 0
	for pi := range int32(y.net.net.Ports()) {
		x := y.net.net.Port(pi)
		node := y.net.net.NodeName(x.Node)
		var list, paused []span
		for _, path := range paths {
			port := fmt.Sprintf("%s / port %d to %s", node, y.net.net.PortNumber(pi)+1, y.net.net.NodeName(x.Peer))
			if y.net.net.PortNumber(pi) == 0 && (strings.HasSuffix(path, "("+node+") / NIC") || strings.HasSuffix(path, " / "+node+" / NIC")) || strings.HasSuffix(path, port) {
				list, paused = p.spans[path], p.spans[path+" / paused, class 3"]
			}
		}
		pauses += len(paused)
		if _, bytes := sum(list); bytes != int64(x.Bytes) {
			t.Errorf("%s sent %d bytes, its slices %d", y.net.net.PortName(pi), x.Bytes, bytes)
		}
		if got, want := first(sum(list)), x.Rate.TimeFor(units.Bytes(x.Bytes)); got != want {
			t.Errorf("%s was busy for %v, its slices for %v", y.net.net.PortName(pi), want, got)
		}
		if got, _ := sum(paused); got != x.Paused {
			t.Errorf("%s was paused for %v, its slices for %v", y.net.net.PortName(pi), x.Paused, got)
		}
	}
	if pauses == 0 {
		t.Error("no pauses: this is no storm")
	}
}

func first(took sim.Time, _ int64) sim.Time { return took }

// TestTimelineDrive: a drive without a network, whose programs are suspended.
func TestTimelineDrive(t *testing.T) {
	s, err := parse(`ssd: {preset: tlc-enterprise, geometry: {channels: 1, chips_per_channel: 1, blocks_per_plane: 64, pages_per_block: 64}, cache: {mode: off}}
workload:
  - synthetic: {reads: {size: 4KiB, interarrival: {mean: 100us, scv: 2}}, writes: {size: 32KiB, interarrival: {mean: 1ms, scv: 2}}, requests: 500}
`)
	if err != nil {
		t.Fatal(err)
	}
	p, out, _ := timelineOf(t, s, Options{})
	list := p.lanesBelow("host / requests")
	if len(list) != 500 {
		t.Errorf("%d requests of 500", len(list))
	}
	for i := range list {
		list[i].tiled(t)
	}
	suspended, resumed := 0, 0
	for _, x := range p.spans["drive / channel 0 / die 0"] {
		if x.Notes["suspended"] != nil {
			suspended++
		}
		if x.Notes["resumed"] != nil {
			resumed++
		}
	}
	if want := metric(t, out, "ssd.flash.suspensions"); want == 0 || float64(suspended) != want || resumed == 0 || resumed > suspended {
		t.Errorf("%d slices were suspended and %d resumed, the drive counts %g", suspended, resumed, want)
	}
}

// TestTimelineNetwork: a network without drives, whose results and picture do not depend on its parts.
func TestTimelineNetwork(t *testing.T) {
	const text = `
fabric: {topology: {clos: {pods: 2, leaves: 2, tors: 2, hosts_per_pod: 4, spines: 2}}, host_link: 10Gbps, up_link: 40Gbps}
flows: [{incast: {fan: 7, size: 100KB, target: 0, rounds: 2, every: 100us}}]
`
	var want []byte
	for _, parts := range []string{"1", "4"} {
		s, err := parse(text, "fabric.parts="+parts)
		if err != nil {
			t.Fatal(err)
		}
		p, _, b := timelineOf(t, s, Options{})
		flows := p.below("hosts / ", "")
		flows = slices.DeleteFunc(flows, func(x span) bool { return x.Name != "flow" })
		if len(flows) != 14 {
			t.Errorf("%d flows of 14", len(flows))
		}
		for i := range flows {
			flows[i].tiled(t)
		}
		if want == nil {
			want = b
		} else if !bytes.Equal(b, want) {
			t.Errorf("another timeline in %s parts", parts)
		}
	}
}

// TestTimelineSameBytes: a timeline changes no result, and is the same each time.
func TestTimelineSameBytes(t *testing.T) {
	s, err := parse(smallSystem)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := s.Run(context.Background(), Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	want, err := plain.Result.Encode()
	if err != nil {
		t.Fatal(err)
	}
	var before []byte
	for range 2 {
		_, out, b := timelineOf(t, s, Options{})
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

// TestTimelineBounded: a timeline ends when it has enough, says so, and is whole until then.
func TestTimelineBounded(t *testing.T) {
	s, err := parse(smallSystem)
	if err != nil {
		t.Fatal(err)
	}
	all, _, _ := timelineOf(t, s, Options{})
	const most = 3000
	p, out, _ := timelineOf(t, s, Options{timelineSlices: most})
	n := 0
	for path, list := range p.spans {
		if path == "end of the timeline" {
			continue
		}
		for _, x := range list {
			n += 1 + len(x.parts)
			if i := slices.IndexFunc(all.spans[path], func(y span) bool { return y.begin == x.begin && y.Name == x.Name }); i < 0 {
				t.Errorf("%s: %s at %v is not in the whole timeline", path, x.Name, x.begin)
			}
		}
	}
	for _, e := range p.trace.Events {
		if e.Kind == 4 {
			n++
		}
	}
	// What is held back at the end, one for each port and die, comes on top.
	if n < most || n > most+500 {
		t.Errorf("%d slices and values, not some %d", n, most)
	}
	end := p.spans["end of the timeline"]
	if len(end) != 1 || len(out.Remarks) != 1 || !strings.Contains(out.Remarks[0], fmt.Sprintf("timeline.pftrace ends at %v of simulated time", end[0].begin)) {
		t.Errorf("remarks %q, an end %+v", out.Remarks, end)
	}
}

// TestTimelineOff: without a timeline nobody listens to the probes.
func TestTimelineOff(t *testing.T) {
	s, err := parse(smallSystem)
	if err != nil {
		t.Fatal(err)
	}
	images, err := s.prepareDrives(1)
	if err != nil {
		t.Fatal(err)
	}
	y, err := s.buildSystem(1, s.Protocol, images)
	if err != nil {
		t.Fatal(err)
	}
	listens := func() bool {
		return y.net.net.OnSend != nil || y.net.net.OnPause != nil || y.sys.OnMessage != nil || y.sys.OnVisit != nil || y.sys.OnLevel != nil ||
			y.drives[0].OnWork != nil || y.drives[0].OnSuspend != nil
	}
	newTimeline(Options{}, y.eng).showSystem(y)
	if listens() {
		t.Error("without a timeline somebody listens")
	}
	line := newTimeline(Options{Timeline: &bytes.Buffer{}, timelineSlices: 1}, y.eng)
	line.showSystem(y)
	if !listens() {
		t.Error("nobody listens for a timeline")
	}
	y.net.net.OnSend(fabric.Sending{End: 5, QP: -1, Message: -1, Carries: fabric.PauseFrame})
	y.net.net.OnSend(fabric.Sending{Begin: 6, End: 9, QP: -1, Message: -1, Carries: fabric.PauseFrame})
	if listens() {
		t.Error("a timeline that has enough still listens")
	}
}
