package system

import (
	"bytes"
	"farflash/experiment"
	"fmt"
	"strings"
	"testing"

	"farflash/experiment/timeline"
	"farflash/experiment/timeline/timelinetest"
	"farflash/model/cosim"
	"farflash/model/fabric"
	"farflash/numeric/units"
	"farflash/scenario"
	"farflash/scenario/shape"
	"farflash/sim"
)

const smallSystem = `initiators: 3
targets: [{count: 2, ssds: 2, ssd: tlc-enterprise}]
workload: [{synthetic: {reads: {size: 4KiB, interarrival: 5us}, requests: 100}}]
`

// tinyDrive collects garbage continuously.
const tinyDrive = `{preset: mqsim-default, geometry: {channels: 2, chips_per_channel: 2, dies_per_chip: 1, planes_per_die: 1, blocks_per_plane: 32, pages_per_block: 32}, over_provisioning: 25%, cache: {capacity: 1MiB}, collection: {victim: greedy}}`

// parsed parses a text as a.yaml, with changes as for --set.
func parsed(text string, set ...string) (*scenario.Scenario, error) {
	var changes []shape.Change
	for _, s := range set {
		c, err := shape.ParseChange(s)
		if err != nil {
			return nil, err
		}
		changes = append(changes, c)
	}
	return scenario.Parse(shape.Source{File: "a.yaml", Text: []byte(text)}, changes)
}

// TestTimelineBusy verifies in a storm that tracks agree with the models' counters.
func TestTimelineBusy(t *testing.T) {
	s, err := parsed(`initiators: 6
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
      requests: 1000
  - name: two
    synthetic: {reads: {size: 4KiB, interarrival: {mean: 30us}}, requests: 100}
`, "targets[0].ssd.preconditioning.fill=steady")
	if err != nil {
		t.Fatal(err)
	}
	images, err := prepareDrives(s, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	y, err := build(s, &experiment.Options{Seed: 1}, s.Protocol, images, nil)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	line := timeline.New(&b, 0, y.eng)
	line.ShowSystem(y.shown())
	ended := 0
	y.host.OnSample = func(x *cosim.Sample) {
		line.Remote(x, y.array.Trip())
		ended++
	}
	if err := y.host.Attach(y.array, y.flows.List); err != nil {
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
	remarks, err := line.Close()
	if err != nil || len(remarks) > 0 {
		t.Fatal(err, remarks)
	}
	p := timelinetest.Read(t, b.Bytes())

	requests, flows := 0, 0
	for path, list := range p.Spans {
		request, flow := strings.Contains(path, " / requests / "), strings.Contains(path, " / flows / ")
		for i := range list {
			if request || flow || strings.Contains(path, " / commands / ") {
				list[i].Tiled(t)
			}
			if request {
				requests++
			}
			if flow {
				flows++
			}
		}
	}
	if requests != ended || ended != 1100 || flows != 30 {
		t.Errorf("%d requests and %d flows are shown, %d of 1100 requests ended", requests, flows, ended)
	}
	collected, commands := 0, 0
	for i, d := range y.drives {
		at := fmt.Sprintf("targets / target %d (%s) / drive %d / ", i/2,
			y.net.Net.NodeName(y.sys.TargetNode(int32(i/2))), i)
		commands += len(p.LanesBelow(at + "commands"))
		x := d.StatsAt(y.eng.Now() + units.Second) // slices are shown to their ends
		for c, want := range x.ChannelBusy {
			if got, _ := timelinetest.Sum(p.Spans[fmt.Sprintf("%schannel %d", at, c)]); got != want {
				t.Errorf("%schannel %d is busy for %v, its slices for %v", at, c, want, got)
			}
			each := len(x.LaneBusy) / len(x.ChannelBusy)
			for k := range each {
				list := p.Spans[fmt.Sprintf("%schannel %d / die %d", at, c, k)]
				if got, _ := timelinetest.Sum(list); got != x.LaneBusy[c*each+k] {
					t.Errorf("%schannel %d / die %d is busy for %v, its slices for %v", at, c, k,
						x.LaneBusy[c*each+k], got)
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
	for _, path := range p.Trace.Paths() {
		paths = append(paths, path)
	}
	pauses := 0
	for pi := range int32(y.net.Net.Ports()) {
		x := y.net.Net.Port(pi)
		node := y.net.Net.NodeName(x.Node)
		var list, paused []timelinetest.Span
		for _, path := range paths {
			port := fmt.Sprintf("%s / port %d to %s", node, y.net.Net.PortNumber(pi)+1, y.net.Net.NodeName(x.Peer))
			if y.net.Net.PortNumber(pi) == 0 &&
				(strings.HasSuffix(path, "("+node+") / NIC") || strings.HasSuffix(path, " / "+node+" / NIC")) ||
				strings.HasSuffix(path, port) {
				list, paused = p.Spans[path], p.Spans[path+" / paused, class 3"]
			}
		}
		pauses += len(paused)
		if _, bytes := timelinetest.Sum(list); bytes != int64(x.Bytes) {
			t.Errorf("%s sent %d bytes, its slices %d", y.net.Net.PortName(pi), x.Bytes, bytes)
		}
		if got, want := first(timelinetest.Sum(list)), x.Rate.TimeFor(units.Bytes(x.Bytes)); got != want {
			t.Errorf("%s was busy for %v, its slices for %v", y.net.Net.PortName(pi), want, got)
		}
		if got, _ := timelinetest.Sum(paused); got != x.Paused {
			t.Errorf("%s was paused for %v, its slices for %v", y.net.Net.PortName(pi), x.Paused, got)
		}
	}
	if pauses == 0 {
		t.Error("no pauses: this is not a storm")
	}
}

// TestTimelineOff verifies that without a timeline no probes are installed.
func TestTimelineOff(t *testing.T) {
	s, err := parsed(smallSystem)
	if err != nil {
		t.Fatal(err)
	}
	images, err := prepareDrives(s, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	y, err := build(s, &experiment.Options{Seed: 1}, s.Protocol, images, nil)
	if err != nil {
		t.Fatal(err)
	}
	listens := func() bool {
		return y.net.Net.OnSend != nil || y.net.Net.OnPause != nil || y.sys.OnMessage != nil ||
			y.sys.OnVisit != nil || y.sys.OnLevel != nil ||
			y.drives[0].OnWork != nil || y.drives[0].OnSuspend != nil
	}
	timeline.New(nil, 0, y.eng).ShowSystem(y.shown())
	if listens() {
		t.Error("without a timeline somebody listens")
	}
	line := timeline.New(&bytes.Buffer{}, 1, y.eng)
	line.ShowSystem(y.shown())
	if !listens() {
		t.Error("nobody listens for a timeline")
	}
	y.net.Net.OnSend(fabric.Sending{End: 5, QP: -1, Message: -1, Carries: fabric.PauseFrame})
	y.net.Net.OnSend(fabric.Sending{Begin: 6, End: 9, QP: -1, Message: -1, Carries: fabric.PauseFrame})
	if listens() {
		t.Error("a timeline that has enough still listens")
	}
}

func first(took sim.Time, _ int64) sim.Time { return took }
