package timeline_test

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"farflash/block"
	"farflash/experiment/timeline"
	"farflash/experiment/timeline/timelinetest"
	"farflash/model/cluster"
	"farflash/model/cluster/reserve"
	"farflash/model/fabric"
	"farflash/model/fabric/topo"
	"farflash/numeric/units"
	"farflash/result/perfetto"
	"farflash/sim"
)

const us = units.Microsecond

// shown describes a slice in one line: its name, times in microseconds, annotations, arrows and parts.
func shown(s timelinetest.Span) string {
	text := fmt.Sprintf("%s %g-%g", s.Name, s.From.Microseconds(), (s.From + s.Took).Microseconds())
	for _, k := range slices.Sorted(maps.Keys(s.Notes)) {
		if k != perfetto.BeginAnnotation && k != perfetto.DurationAnnotation {
			text += fmt.Sprintf(" %s=%v", k, s.Notes[k])
		}
	}
	if len(s.Flows) > 0 {
		text += fmt.Sprintf(" joined %d", s.Flows)
	}
	for _, p := range s.Parts {
		text += fmt.Sprintf(" | %s %g-%g", p.Name, p.From.Microseconds(), (p.From + p.Took).Microseconds())
	}
	return text
}

// same compares all tracks of a timeline with the expected ones; groups show nothing.
func same(t *testing.T, b []byte, want map[string][]string) {
	t.Helper()
	p := timelinetest.Read(t, b)
	for path, list := range p.Spans {
		var got []string
		for _, s := range list {
			got = append(got, shown(s))
		}
		if w := want[path]; !slices.Equal(got, w) {
			t.Errorf("%s:\n\t%s, want\n\t%s", path, strings.Join(got, "\n\t"), strings.Join(w, "\n\t"))
		}
	}
	for path := range want {
		if _, ok := p.Spans[path]; !ok {
			t.Errorf("no track %s", path)
		}
	}
}

// showCluster returns a timeline of two gateways and two targets, and what leaves the cluster.
func showCluster(change func(*cluster.Config)) (*timeline.Timeline, *timeline.Cluster, *bytes.Buffer, *int) {
	cfg := cluster.DefaultConfig()
	cfg.Gateways, cfg.Targets, cfg.Disk.Count = 2, 2, 1
	if change != nil {
		change(&cfg)
	}
	b, left := &bytes.Buffer{}, new(int)
	line := timeline.New(b, 0, sim.New())
	return line, line.ShowCluster(&cfg, func() { *left++ }), b, left
}

// TestClusterEvents shows events of a cluster that are made up, one after another.
func TestClusterEvents(t *testing.T) {
	line, c, b, left := showCluster(nil)
	p := c.Probes()
	say := func(kind string, chunk uint64, from, to int32, sent, received sim.Time) {
		p.OnReceive(&cluster.Passage{Kind: kind, Chunk: chunk, From: from, To: []int32{to}, Size: 300, Sent: sent,
			Received: received})
	}
	frame := func(chunk uint64, to int32, sent, received sim.Time) {
		p.OnReceive(&cluster.Passage{Kind: "data", Data: true, Chunk: chunk, To: []int32{to}, Size: 9000, Takes: 2 * us,
			Sent: sent, Received: received})
	}
	say("request", 5, 0, 2, 1*us, 2*us) // nodes: gateways 0 and 1, then targets 0 and 1
	say("bid", 5, 2, 0, 3*us, 4*us)
	say("bid", 5, 3, 1, 3*us, 5*us)

	// Three frames of chunk 5 at target 0, the last behind a pause, then chunk 6; chunk 5 at target 1 at the same time.
	frame(5, 2, 8*us, 12*us)
	frame(5, 3, 9*us, 13*us)
	frame(5, 2, 9*us, 14*us)
	frame(5, 2, 9*us, 20*us)
	frame(6, 2, 21*us, 24*us)
	frame(6, 2, 22*us, 26*us)
	frame(5, 2, 22*us, 28*us)
	frame(7, 1, 30*us, 34*us) // a read

	bid := func(chunk uint64, at sim.Time, state reserve.State, done bool, w reserve.Window) {
		p.OnBid(&cluster.BidChange{At: at, Target: 1, Gateway: 0, Chunk: chunk, State: state, Done: done, Window: w})
	}
	early, later := reserve.Window{Left: 10 * us, Right: 30 * us}, reserve.Window{Left: 31 * us, Right: 41 * us}
	bid(5, 2*us, reserve.Tentative, false, early)
	bid(6, 2*us, reserve.Tentative, false, early)
	bid(6, 5*us, reserve.Canceled, false, reserve.Window{})
	bid(6, 6*us, reserve.Canceled, false, reserve.Window{}) // it has ended
	bid(5, 6*us, reserve.Accepted, false, reserve.Window{Left: 12 * us, Right: 22 * us})
	bid(5, 20*us, reserve.Accepted, true, reserve.Window{})
	bid(7, 30*us, reserve.Tentative, false, later)
	bid(7, 33*us, reserve.Accepted, false, later) // in its window
	bid(7, 40*us, reserve.Accepted, true, reserve.Window{})
	bid(8, 50*us, reserve.Accepted, true, reserve.Window{}) // begun before the timeline
	bid(9, 51*us, reserve.Tentative, false, later)
	bid(9, 51*us, reserve.Rejected, false, later)

	work := func(disk int32, chunk uint64, at, from, to sim.Time, read, repair bool) {
		p.OnDisk(&cluster.Work{Target: disk, Disk: disk, Chunk: chunk, At: at, From: from, To: to, Read: read,
			Repair: repair})
	}
	work(0, 5, 20*us, 21*us, 30*us, false, false)
	work(0, 7, 30*us, 30*us, 34*us, true, false)
	work(1, 0, 0, 5*us, 6*us, true, true)
	work(1, 0, 5*us, 6*us, 7*us, false, true)

	done := func(chunk uint64, gateway int32, begun, ended sim.Time, read bool) {
		c.Done(&cluster.Done{Chunk: chunk, Gateway: gateway, Begun: begun, Done: ended, Size: 9000, Read: read})
	}
	done(5, 0, 1*us, 32*us, false)
	done(5, 0, 40*us, 41*us, false) // again, without data
	done(6, 1, 21*us, 25*us, false) // before the last frame arrives
	done(7, 1, 29*us, 40*us, true)
	done(4, 1, 50*us, 60*us, false) // no data seen
	if *left != 0 {
		t.Error("the timeline leaves before its end")
	}
	if remarks, err := line.Close(); err != nil || len(remarks) != 0 || *left != 1 {
		t.Errorf("%v, %v, left %d times", remarks, err, *left)
	}
	same(t, b.Bytes(), map[string][]string{
		"gateways / gateway 0 / control messages / 1": {"bid 3-4 bytes=300 chunk=5 from=target 0 joined [6]"},
		"gateways / gateway 1 / control messages / 1": {"bid 3-5 bytes=300 chunk=5 from=target 1 joined [6]"},
		"targets / target 0 / control messages / 1":   {"request 1-2 bytes=300 chunk=5 from=gateway 0 joined [6]"},
		"targets / target 0 / link / 1": {"data 10-20 chunk=5 frames=3 joined [6]",
			"data 22-26 chunk=6 frames=2 joined [7]", "data 26-28 chunk=5 frames=1 joined [6]"},
		"targets / target 1 / link / 1":   {"data 11-13 chunk=5 frames=1 joined [6]"},
		"gateways / gateway 1 / link / 1": {"data 32-34 chunk=7 frames=1 joined [8]"},
		"targets / target 1 / bids / 2": {
			"accepted 2-20 chunk=5 gateway=0 window begins, us=12 window ends, us=22 joined [6] | tentative 2-6 | " +
				"reserved 6-12 | window 12-20",
			"accepted 30-40 chunk=7 gateway=0 window begins, us=31 window ends, us=41 joined [8] | tentative 30-33 | " +
				"window 33-40",
			"rejected 51-51 chunk=9 gateway=0 window begins, us=31 window ends, us=41 joined [10]"},
		"targets / target 1 / bids / 1": {
			"canceled 2-5 chunk=6 gateway=0 window begins, us=10 window ends, us=30 joined [7]"},
		"targets / target 0 / disk": {"write 21-30 chunk=5 waited, us=1 joined [6]",
			"read 30-34 chunk=7 waited, us=0 joined [8]"},
		"targets / target 1 / disk": {"repair: read 5-6 chunk=0 waited, us=5 joined [1]",
			"repair: write 6-7 chunk=0 waited, us=1 joined [1]"},
		"gateways / gateway 0 / chunks / 1": {
			"put 1-32 bytes=9000 chunk=5 joined [6] | negotiation 1-8 | data 8-28 | disks 28-32",
			"put 40-41 bytes=9000 chunk=5 joined [6]"},
		"gateways / gateway 1 / chunks / 1": {
			"put 21-25 bytes=9000 chunk=6 joined [7] | data 21-25",
			"get 29-40 bytes=9000 chunk=7 joined [8] | request and disk 29-30 | data 30-34 | rest 34-40",
			"put 50-60 bytes=9000 chunk=4 joined [5]"},
	})
}

// TestClusterDisks verifies which track shows a target's disks: one, one of several, or those of a drive.
func TestClusterDisks(t *testing.T) {
	for _, x := range []struct {
		change func(*cluster.Config)
		disk   int32
		want   string
	}{
		{nil, 1, "targets / target 1 / disk"},
		{func(c *cluster.Config) { c.Disk.Count = 3 }, 4, "targets / target 1 / disk 1"},
		{func(c *cluster.Config) { c.Disk.Model = cluster.ModelSSD }, 1, "targets / target 1 / drive / 1"},
	} {
		line, c, b, _ := showCluster(x.change)
		c.Probes().OnDisk(&cluster.Work{Target: 1, Disk: x.disk, Chunk: 3, To: us})
		if _, err := line.Close(); err != nil {
			t.Fatal(err)
		}
		p := timelinetest.Read(t, b.Bytes())
		if list := p.Spans[x.want]; len(list) != 1 || list[0].Took != us {
			t.Errorf("%s shows %v", x.want, list)
		}
	}
}

// TestTimelineOfManyChunks verifies that a timeline ends with its 20,000th chunk.
func TestTimelineOfManyChunks(t *testing.T) {
	line, c, b, left := showCluster(nil)
	for i := range uint64(20000) {
		if *left != 0 {
			t.Fatalf("the timeline ends after %d chunks", i)
		}
		c.Done(&cluster.Done{Chunk: i, Begun: sim.Time(i) * us, Done: sim.Time(i+1) * us})
	}
	remarks, err := line.Close()
	const want = "timeline.pftrace ends at 0s of simulated time, where it has 20000 chunks; later events are not in it"
	if err != nil || !slices.Equal(remarks, []string{want}) || *left != 1 {
		t.Errorf("%v, %v, left %d times", remarks, err, *left)
	}
	if end := timelinetest.Read(t, b.Bytes()).Spans["end of the timeline"]; len(end) != 1 ||
		end[0].Name != "it has 20000 chunks" {
		t.Errorf("%v", end)
	}
}

// full is a writer that fails.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, fmt.Errorf("the disk is full") }

// TestTimelineFails verifies that a timeline that cannot be written is an error, and stops observing.
func TestTimelineFails(t *testing.T) {
	cfg := cluster.DefaultConfig()
	line := timeline.New(full{}, 0, sim.New())
	left := 0
	c := line.ShowCluster(&cfg, func() { left++ })
	for i := 0; i < 100_000 && left == 0; i++ {
		c.Done(&cluster.Done{Chunk: uint64(i), Begun: sim.Time(i) * us, Done: sim.Time(i+1) * us})
	}
	if left != 1 {
		t.Errorf("left %d times", left)
	}
	if _, err := line.Close(); err == nil || !strings.HasPrefix(err.Error(), "timeline.pftrace: ") ||
		!strings.Contains(err.Error(), "the disk is full") {
		t.Errorf("%v", err)
	}
	var none *timeline.Timeline
	if none.ShowCluster(&cfg, nil) != nil {
		t.Error("no timeline shows a cluster")
	}
	if remarks, err := none.Close(); err != nil || remarks != nil {
		t.Errorf("%v, %v", remarks, err)
	}
}

// idle ignores all calls.
type idle struct{}

func (idle) Delivered(int32)           {}
func (idle) Acked(int32)               {}
func (idle) Handle(sim.Event)          {}
func (idle) Complete(block.Completion) {}

// newStar returns a network of hosts h0, h1... around a switch s0. Port 0 of each host is its NIC.
func newStar(t *testing.T, hosts int) (*fabric.Network, *topo.Graph, *sim.Engine) {
	t.Helper()
	g, err := topo.Build(topo.Config{Star: &topo.Star{Hosts: hosts}}, 10*units.Gbps, 10*units.Gbps, us)
	if err != nil {
		t.Fatal(err)
	}
	eng := sim.New()
	n, err := fabric.New(fabric.DefaultConfig(), g, eng, idle{}, 1, "fabric")
	if err != nil {
		t.Fatal(err)
	}
	return n, g, eng
}

// TestNetworkEvents shows packets and pauses of a network that are made up, and flows that it carries.
func TestNetworkEvents(t *testing.T) {
	net, g, eng := newStar(t, 3)
	first := map[string]int32{} // a node's first port
	for pi := int32(net.Ports()) - 1; pi >= 0; pi-- {
		first[net.NodeName(net.Node(pi))] = pi
	}
	var b bytes.Buffer
	line := timeline.New(&b, 0, eng)
	var ended sim.Probe[int32]
	heard := 0
	net.OnPause = func(fabric.Pause) { heard++ } // who listens already still does, and afterwards
	line.ShowNetwork(net, g, &ended)
	send := func(port int32, begin, end sim.Time, change func(*fabric.Sending)) {
		s := fabric.Sending{Begin: begin, End: end, Port: port, QP: 4, Message: 9, Size: 1000, Class: 3}
		if change != nil {
			change(&s)
		}
		net.OnSend(s)
	}
	host, leaf := first["h0"], first["s0"]
	send(host, 1*us, 2*us, nil)
	send(leaf+1, 2*us, 3*us, nil) // another port does not interrupt
	send(host, 2*us, 3*us, nil)
	send(host, 4*us, 5*us, nil) // after a gap
	at := 5 * us
	for _, change := range []func(*fabric.Sending){ // each differs from the one before it
		func(s *fabric.Sending) { s.QP = 5 },
		func(s *fabric.Sending) { s.QP, s.Message = 5, 10 },
		func(s *fabric.Sending) { s.QP, s.Message, s.Class = 5, 10, 4 },
		func(s *fabric.Sending) { s.QP, s.Message, s.Class, s.Carries = 5, 10, 4, fabric.Answer },
		func(s *fabric.Sending) { s.QP, s.Message, s.Class, s.Carries = -1, -1, 0, fabric.PauseFrame },
		func(s *fabric.Sending) { s.QP, s.Message, s.Class, s.Carries = 0, 0, 0, fabric.Payload },
	} {
		send(host, at, at+us, change)
		at += us
	}
	pause := func(port int32, at sim.Time, class uint8, resume bool) {
		net.OnPause(fabric.Pause{At: at, Port: port, Class: class, Resume: resume})
	}
	pause(leaf, 1*us, 3, false)
	pause(leaf, 2*us, 0, false)
	pause(leaf, 4*us, 3, true)
	pause(leaf, 5*us, 3, true) // it is not paused
	pause(leaf, 6*us, 3, false)
	pause(leaf, 7*us, 3, true)
	pause(host, 7*us, 7, false) // to the end
	eng.Schedule(eng.NewComponent(), eng.AddHandler(idle{}), 20*us, 0, 0)
	eng.Run(20 * us)
	if remarks, err := line.Close(); err != nil || len(remarks) != 0 {
		t.Errorf("%v, %v", remarks, err)
	}
	const joined = 1<<40 + 1 // flows that are not requests
	same(t, b.Bytes(), map[string][]string{
		"hosts / h0 / NIC": {
			fmt.Sprintf("data 1-3 bytes=2000 class=3 flow=9 packets=2 queue pair=4 joined [%d]", joined+9),
			fmt.Sprintf("data 4-5 bytes=1000 class=3 flow=9 packets=1 queue pair=4 joined [%d]", joined+9),
			fmt.Sprintf("data 5-6 bytes=1000 class=3 flow=9 packets=1 queue pair=5 joined [%d]", joined+9),
			fmt.Sprintf("data 6-7 bytes=1000 class=3 flow=10 packets=1 queue pair=5 joined [%d]", joined+10),
			fmt.Sprintf("data 7-8 bytes=1000 class=4 flow=10 packets=1 queue pair=5 joined [%d]", joined+10),
			fmt.Sprintf("ack 8-9 bytes=1000 class=4 flow=10 packets=1 queue pair=5 joined [%d]", joined+10),
			"pause frame 9-10 bytes=1000 class=0 packets=1",
			fmt.Sprintf("data 10-11 bytes=1000 class=0 flow=0 packets=1 queue pair=0 joined [%d]", joined)},
		"hosts / h0 / NIC / paused, class 7": {"paused 7-20"},
		"switches / s0 / port 2 to h1": {
			fmt.Sprintf("data 2-3 bytes=1000 class=3 flow=9 packets=1 queue pair=4 joined [%d]", joined+9)},
		"switches / s0 / port 1 to h0 / paused, class 3": {"paused 1-4", "paused 6-7"},
		"switches / s0 / port 1 to h0 / paused, class 0": {"paused 2-20"},
	})
	if net.OnSend != nil || net.OnPause == nil || ended != nil {
		t.Error("the timeline still observes, or nobody else does")
	}
	if pause(leaf, 30*us, 3, false); heard != 8 {
		t.Errorf("another listener hears of %d pauses", heard)
	}
}

// TestFlowStages shows flows with their stages: one that waits for another on its queue pair, and what each needs.
func TestFlowStages(t *testing.T) {
	net, g, eng := newStar(t, 3)
	var b bytes.Buffer
	line := timeline.New(&b, 0, eng)
	var ended sim.Probe[int32]
	line.ShowNetwork(net, g, &ended)
	nodes := map[string]int32{}
	for i := range g.Nodes {
		nodes[net.NodeName(int32(i))] = int32(i)
	}
	qp, err := net.Open(nodes["h0"], nodes["h2"], 3)
	if err != nil {
		t.Fatal(err)
	}
	var flows []int32
	for range 2 {
		m, err := net.Post(qp, 100*units.KB)
		if err != nil {
			t.Fatal(err)
		}
		flows = append(flows, m)
	}
	eng.Run(units.Millisecond)
	for _, m := range flows {
		ended.Fire(m)
	}
	var want []string
	for i, m := range flows {
		x := net.Messages()[m]
		if i == 0 != (x.Begun == x.Posted) || x.Delivered <= x.Begun || x.Acked <= x.Delivered || x.Acked > eng.Now() {
			t.Fatalf("%+v", x)
		}
		text := fmt.Sprintf("flow %g-%g bytes=100000 flow=%d to=h2 joined [%d]", x.Posted.Microseconds(),
			x.Acked.Microseconds(), m, 1<<40+1+int64(m))
		if i == 1 {
			text += fmt.Sprintf(" | waiting %g-%g", x.Posted.Microseconds(), x.Begun.Microseconds())
		}
		want = append(want, text+fmt.Sprintf(" | transfer %g-%g | acknowledgement %g-%g", x.Begun.Microseconds(),
			x.Delivered.Microseconds(), x.Delivered.Microseconds(), x.Acked.Microseconds()))
	}
	for i := len(flows); i < 20_000; i++ {
		if ended == nil {
			t.Fatalf("the timeline ends after %d flows", i)
		}
		x := &net.Messages()[flows[1]] // once more, behind itself
		took := x.Acked - x.Posted
		x.Posted, x.Begun, x.Delivered, x.Acked = x.Acked, x.Begun+took, x.Delivered+took, x.Acked+took
		ended.Fire(flows[1])
	}
	remarks, err := line.Close()
	if err != nil || len(remarks) != 1 || !strings.Contains(remarks[0], "it has 20000 flows") || ended != nil {
		t.Errorf("%v, %v", remarks, err)
	}
	p := timelinetest.Read(t, b.Bytes())
	got := []string{shown(p.Spans["hosts / h0 / flows / 1"][0]), shown(p.Spans["hosts / h0 / flows / 2"][0])}
	if !slices.Equal(got, want) {
		t.Errorf("%s, want\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestTimelineOfSlices verifies that a timeline ends with the slice that reaches its limit, of which parts count.
func TestTimelineOfSlices(t *testing.T) {
	for most, want := range map[int]struct{ after, has int }{1: {1, 3}, 2: {1, 3}, 3: {1, 3}, 4: {2, 4}, 7: {2, 7},
		8: {3, 8}} {
		cfg := cluster.DefaultConfig()
		left := 0
		line := timeline.New(&bytes.Buffer{}, most, sim.New())
		c := line.ShowCluster(&cfg, func() { left++ })
		n := 0
		for ; n < 9 && left == 0; n++ { // each is a slice of two parts, and one for its data once the next one comes
			at := sim.Time(10*n) * us
			c.Probes().OnReceive(&cluster.Passage{Data: true, Chunk: uint64(n), To: []int32{0}, Takes: us,
				Sent: at + 2*us, Received: at + 4*us})
			c.Done(&cluster.Done{Chunk: uint64(n), Begun: at + 2*us, Done: at + 6*us})
		}
		remarks, err := line.Close()
		has := fmt.Sprintf("where it has %d slices", want.has)
		if n != want.after || err != nil || len(remarks) != 1 || !strings.Contains(remarks[0], has) {
			t.Errorf("of %d slices: it ends after %d chunks, want %+v; %v, %v", most, n, want, remarks, err)
		}
	}
}

// TestPortsOfHosts verifies the names of the ports of a host that has several.
func TestPortsOfHosts(t *testing.T) {
	g, err := topo.Build(topo.Config{Star: &topo.Star{Hosts: 2}, Planes: 2}, 10*units.Gbps, 10*units.Gbps, us)
	if err != nil {
		t.Fatal(err)
	}
	eng := sim.New()
	net, err := fabric.New(fabric.DefaultConfig(), g, eng, idle{}, 1, "fabric")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	line := timeline.New(&b, 0, eng)
	line.ShowNetwork(net, g, new(sim.Probe[int32]))
	var want []string
	for pi := range int32(net.Ports()) {
		net.OnSend(fabric.Sending{End: us, Port: pi, QP: -1, Message: -1})
		node := net.Node(pi)
		group, name := "switches", fmt.Sprintf("port %d to %s", net.PortNumber(pi)+1, net.NodeName(net.Port(pi).Peer))
		if g.Nodes[node].Kind == topo.Host {
			group, name = "hosts", "NIC "+name
		}
		want = append(want, group+" / "+net.NodeName(node)+" / "+name)
	}
	if _, err := line.Close(); err != nil {
		t.Fatal(err)
	}
	p := timelinetest.Read(t, b.Bytes())
	for _, path := range want {
		if len(p.Spans[path]) != 1 {
			t.Errorf("%s shows %v", path, p.Spans[path])
		}
	}
	if len(want) != 8 {
		t.Errorf("%d ports", len(want))
	}
}
