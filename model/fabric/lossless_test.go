package fabric

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"farflash/model/fabric/cc"
	"farflash/model/fabric/setting"
	"farflash/model/fabric/topo"
	"farflash/numeric/units"
	"farflash/sim"

	"pgregory.net/rapid"
)

var allSchemes = []cc.Scheme{cc.SchemeNone, cc.SchemeDCQCN, cc.SchemeDCTCP, cc.SchemeTimely, cc.SchemeHPCC,
	cc.SchemeHPCCPINT, cc.SchemeSwift, cc.SchemeNSCC}

func drawRate(t *rapid.T, name string) units.BitRate {
	if rapid.Bool().Draw(t, name+" is usual") {
		return rapid.SampledFrom([]units.BitRate{units.Gbps, 10 * units.Gbps, 25 * units.Gbps, 40 * units.Gbps,
			100 * units.Gbps, 400 * units.Gbps}).Draw(t, name)
	}
	return units.BitRate(rapid.IntRange(1, 400).Draw(t, name))*units.Gbps +
		units.BitRate(rapid.IntRange(0, 999999999).Draw(t, name+" odd"))
}

func drawDelay(t *rapid.T, name string) sim.Time {
	return rapid.SampledFrom([]sim.Time{0, 1, 999, 100 * units.Nanosecond, units.Microsecond, 7123457,
		50 * units.Microsecond}).Draw(t, name)
}

// drawGraph draws a shape, or an explicit list of links.
func drawGraph(t *rapid.T) *topo.Graph {
	var c topo.Config
	small := func(name string, least, most int) int { return rapid.IntRange(least, most).Draw(t, name) }
	switch rapid.IntRange(0, 6).Draw(t, "shape") {
	case 0:
		c.Star = &topo.Star{Hosts: small("hosts", 2, 12)}
	case 1:
		c.Dumbbell = &topo.Dumbbell{Left: small("left", 1, 5), Right: small("right", 1, 5)}
	case 2:
		c.LeafSpine = &topo.LeafSpine{Leaves: small("leaves", 2, 3), Spines: small("spines", 1, 3),
			HostsPerLeaf: small("hosts", 1, 4)}
	case 3:
		tors := small("tors", 1, 2)
		c.Clos = &topo.Clos{Pods: small("pods", 1, 2), Leaves: small("leaves", 1, 2), Tors: tors,
			HostsPerPod: tors * small("hosts", 2, 3), Spines: small("spines", 1, 2)}
	case 4:
		c.FatTree = &topo.FatTree{K: 4}
	case 5:
		c.Dragonfly = &topo.Dragonfly{Groups: small("groups", 2, 4), Routers: small("routers", 2, 3),
			HostsPerRouter: small("hosts", 1, 2), GlobalLinks: 2}
	default:
		c.Links = drawLinks(t)
	}
	g, err := topo.Build(c, drawRate(t, "host"), drawRate(t, "up"), drawDelay(t, "delay"))
	if err != nil {
		t.Skip(err)
	}
	if rapid.Bool().Draw(t, "mixed") {
		for i := range g.Links {
			g.Links[i].Rate = drawRate(t, "rate")
			g.Links[i].Delay = drawDelay(t, "delay")
		}
	}
	return g
}

// drawLinks draws a random tree of switches with additional links, and hosts with one or two.
func drawLinks(t *rapid.T) []topo.LinkSpec {
	switches := rapid.IntRange(1, 5).Draw(t, "switches")
	hosts := rapid.IntRange(2, 7).Draw(t, "hosts")
	sw := func(i int) string { return fmt.Sprintf("s%d", i) }
	var links []topo.LinkSpec
	for i := 1; i < switches; i++ {
		links = append(links, topo.LinkSpec{A: sw(i), B: sw(rapid.IntRange(0, i-1).Draw(t, "parent"))})
	}
	for range rapid.IntRange(0, switches-1).Draw(t, "more") {
		a, b := rapid.IntRange(0, switches-1).Draw(t, "a"), rapid.IntRange(0, switches-1).Draw(t, "b")
		if a != b {
			links = append(links, topo.LinkSpec{A: sw(a), B: sw(b)})
		}
	}
	for h := range hosts {
		for range rapid.SampledFrom([]int{1, 1, 1, 2}).Draw(t, "ports") {
			links = append(links,
				topo.LinkSpec{A: fmt.Sprintf("h%d", h), B: sw(rapid.IntRange(0, switches-1).Draw(t, "at"))})
		}
	}
	return links
}

func drawConfig(t *rapid.T, channels int) Config {
	c := DefaultConfig()
	c.Payload = rapid.SampledFrom([]units.Bytes{1, 64, 512, 1000, 1024, 4096, 9000}).Draw(t, "payload")
	c.Header = rapid.SampledFrom([]units.Bytes{1, 48, 82, 300}).Draw(t, "header")
	c.CongestionControl.Algorithm = rapid.SampledFrom(allSchemes).Draw(t, "algorithm")
	c.QueuePairs.PerPeer = rapid.IntRange(1, 3).Draw(t, "per peer")
	c.QueuePairs.Life = rapid.SampledFrom([]setting.Life{Persistent, Persistent, PerMessage}).Draw(t, "life")
	c.Acks.Every = rapid.SampledFrom([]int{1, 1, 2, 7, 64}).Draw(t, "acks every")
	c.Acks.Size = rapid.SampledFrom([]units.Bytes{20, 86, 1000}).Draw(t, "ack")
	c.Acks.Class = rapid.IntRange(0, MaxClasses-channels).Draw(t, "acks class")
	if rapid.Bool().Draw(t, "acks apart") {
		c.Acks.Class = 0
	}
	c.Acks.HostClass = c.Acks.Class
	c.CNP.Echo = rapid.Bool().Draw(t, "echo")
	c.CNP.Ticking = rapid.Bool().Draw(t, "ticking")
	c.Recovery.Kind = setting.RecoveryKind(rapid.IntRange(0, 1).Draw(t, "recovery"))
	c.Recovery.Retries = 0 // all must arrive, however unlikely
	c.PFC.Threshold.Dynamic = rapid.Bool().Draw(t, "dynamic")
	c.PFC.Threshold.Size = units.Bytes(rapid.IntRange(1, 20000).Draw(t, "threshold"))
	c.PFC.Alpha = units.Fraction(rapid.SampledFrom([]float64{1. / 65536, 1. / 16, 1. / 8, 1, 64}).Draw(t, "alpha"))
	c.PFC.AlphaByRate = rapid.Bool().Draw(t, "alpha by rate")
	c.PFC.Reserve = units.Bytes(rapid.SampledFrom([]int{0, 100, 4096}).Draw(t, "reserve"))
	c.PFC.ResumeOffset = units.Bytes(rapid.SampledFrom([]int{0, 1, 3072, 20000}).Draw(t, "resume offset"))
	c.PFC.Frame = rapid.SampledFrom([]units.Bytes{1, 43, 84, 200}).Draw(t, "frame")
	c.ECN.Enabled = rapid.Bool().Draw(t, "ecn")
	c.ECN.Kmin = units.Bytes(rapid.IntRange(0, 20000).Draw(t, "kmin"))
	c.ECN.Kmax = c.ECN.Kmin + units.Bytes(rapid.IntRange(0, 20000).Draw(t, "kmax"))
	c.Scheduler = setting.Scheduler(rapid.IntRange(0, 1).Draw(t, "scheduler"))
	c.Weights = rapid.SampledFrom([][]int{nil, {1, 1, 2, 3}, {1, 1, 1000}}).Draw(t, "weights")
	if c.CongestionControl.Algorithm == cc.SchemeHPCC {
		c.Telemetry = Telemetry{Size: 42, AckSize: 28, Multiple: rapid.IntRange(0, 1).Draw(t, "multiple")}
	}
	if rapid.IntRange(0, 3).Draw(t, "ns") == 0 {
		c.Rounding = WholeNanoseconds
	}
	c.PFC.Quanta = rapid.SampledFrom([]int{0, c.leastQuanta(), c.leastQuanta() + 50, 65535}).Draw(t, "quanta")
	c.PFC.Quanta = min(c.PFC.Quanta, 65535)
	return c
}

// leastBuffer returns the smallest buffer with which New and Open accept the classes.
func leastBuffer(t *rapid.T, c Config, g *topo.Graph, classes []uint8) units.Bytes {
	c.Buffer = units.TiB
	n, err := New(c, g, sim.New(), nil, 1, "fabric")
	if err != nil {
		t.Skip(err) // times of zero whole nanoseconds, tested elsewhere
	}
	for _, class := range classes {
		n.use(class)
	}
	if err := n.setPools(); err != nil {
		t.Fatal(err)
	}
	least := units.Bytes(0)
	for i := range n.nodes {
		if g.Nodes[i].Kind == topo.Switch {
			least = max(least, c.Buffer-units.Bytes(n.nodes[i].pool))
		}
	}
	return least
}

// drawMessages posts random messages.
func drawMessages(t *rapid.T, r *rig, classes []uint8, packets int) {
	hosts := r.graph.Hosts()
	var nodes []int32
	for i := range r.graph.Nodes {
		if r.graph.Nodes[i].Kind == topo.Host {
			nodes = append(nodes, int32(i))
		}
	}
	incast := rapid.Bool().Draw(t, "incast")
	for range rapid.IntRange(1, 60).Draw(t, "messages") {
		a := rapid.IntRange(0, hosts-1).Draw(t, "src")
		b := rapid.IntRange(0, hosts-2).Draw(t, "dst")
		if incast {
			b = 0
		}
		if b >= a {
			b = (b + 1) % hosts
		}
		if a == b {
			continue
		}
		r.send(post{
			at:  sim.Time(rapid.IntRange(0, 40).Draw(t, "at")) * units.Microsecond,
			src: nodes[a], dst: nodes[b], class: rapid.SampledFrom(classes).Draw(t, "class"),
			size: units.Bytes(rapid.IntRange(1, packets*int(r.net.cfg.Payload)).Draw(t, "size")),
		})
	}
}

// stops runs to the end and checks the laws at random moments before it.
func stops(t *rapid.T, r *rig) {
	for range rapid.IntRange(0, 10).Draw(t, "stops") {
		r.eng.Run(r.eng.Now() + sim.Time(rapid.Int64Range(0, int64(200*units.Microsecond)).Draw(t, "for")))
		r.check(t)
	}
	r.run(t, 30e6)
}

func lossless(t *rapid.T) {
	g := drawGraph(t)
	if g.Cycle(g.Route(nil)) != nil {
		t.Skip("pauses can lock up")
	}
	channels := max(g.Channels, 1)
	c := drawConfig(t, channels)
	classes := rapid.SliceOfNDistinct(rapid.Uint8Range(1, uint8(MaxClasses-channels)), 1, 3, rapid.ID[uint8]).Draw(t,
		"classes")
	// A timeout shorter than the round trip retransmits everything for ever, and a threshold of zero fills the return
	// path with frames.
	c.Recovery.Timeout, c.Recovery.ShortTimeout = Timeout{Time: 100 * units.Millisecond}, 100*units.Millisecond
	c.Buffer = leastBuffer(t, c, g, classes)
	if _, err := New(c, g, sim.New(), nil, 1, "fabric"); len(classes) == 1 && c.Acks.Class == 0 && err == nil {
		t.Fatalf("a buffer of %v is all headroom and reserve and is not refused", c.Buffer)
	}
	c.Buffer += units.Bytes(rapid.SampledFrom([]int{1, 100, 10000, 1000000}).Draw(t, "shared"))
	r := newRig(t, c, g, rapid.Uint64().Draw(t, "seed"))
	drops := 0
	r.net.OnDrop = func(d Drop) { drops++ }
	r.net.OnStuck = func(s Stuck) {
		if s.Cycle != nil {
			t.Fatalf("deadlock: %s", r.net.CycleName(s.Cycle))
		}
	}
	drawMessages(t, r, classes, 80)
	stops(t, r)
	if drops > 0 || r.net.Counters.DropCount() > 0 {
		t.Fatalf("%d packets lost: %v", r.net.Counters.DropCount(), r.net.Counters.Drops)
	}
	r.drained(t)
}

func TestLossless(t *testing.T) { rapid.Check(t, lossless) }

// lossy draws networks without PFC and with a small buffer, or with lossy links. The buffer holds a few packets rather
// than one: the model's hosts have no clock drift, so senders that retransmit from the same packet after the same time
// would meet again and again in a switch with space for one packet, and the same one would always lose.
func lossy(t *rapid.T) {
	g := drawGraph(t)
	channels := max(g.Channels, 1)
	c := drawConfig(t, channels)
	c.PFC.Enabled = rapid.Bool().Draw(t, "pfc") && g.Cycle(g.Route(nil)) == nil
	c.Acks.Duplicates = true
	c.Recovery.Timeout = Timeout{Auto: true}
	classes := []uint8{1, uint8(MaxClasses - channels)}
	c.Buffer = (c.Payload+c.Header+c.Telemetry.Size+c.Acks.Size+c.Telemetry.AckSize)*
		units.Bytes(rapid.IntRange(4, 20).Draw(t, "room")) + 1
	if c.PFC.Enabled {
		c.Buffer += leastBuffer(t, c, g, classes)
	}
	for i := range g.Links {
		g.Links[i].Loss = rapid.SampledFrom([]float64{0, 0, .001, .01, .05}).Draw(t, "loss")
	}
	r := newRig(t, c, g, rapid.Uint64().Draw(t, "seed"))
	drawMessages(t, r, classes, 40)
	stops(t, r)
	r.drained(t)
}

func TestLossy(t *testing.T) { rapid.Check(t, lossy) }

// TestLongSoak runs new networks for FARFLASH_SOAK seconds.
func TestLongSoak(t *testing.T) {
	seconds, _ := strconv.Atoi(os.Getenv("FARFLASH_SOAK"))
	if seconds == 0 {
		t.Skip("FARFLASH_SOAK is not set to a number of seconds")
	}
	for end := time.Now().Add(time.Duration(seconds) * time.Second); time.Now().Before(end) && !t.Failed(); {
		rapid.Check(t, lossless)
		rapid.Check(t, lossy)
	}
}
