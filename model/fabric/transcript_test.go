package fabric

import (
	"fmt"
	"hash"
	"hash/fnv"
	"io"
	"strings"
	"testing"

	"farflash/model/fabric/cc"
	"farflash/model/fabric/setting"
	"farflash/model/fabric/topo"
	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/sim"

	"github.com/cockroachdb/datadriven"
)

// choose returns one of the alternatives at random.
func choose[T any](r *rng.Stream, from ...T) T { return from[r.IntN(int64(len(from)))] }

// chosenGraph returns a small network with every property drawn at random.
func chosenGraph(t *testing.T, r *rng.Stream) *topo.Graph {
	c := choose(r,
		topo.Config{Star: &topo.Star{Hosts: 5}}, topo.Config{Dumbbell: &topo.Dumbbell{Left: 3, Right: 2}},
		topo.Config{LeafSpine: &topo.LeafSpine{Leaves: 3, Spines: 2, HostsPerLeaf: 3}},
		topo.Config{Clos: &topo.Clos{Pods: 2, Leaves: 2, Tors: 2, HostsPerPod: 4, Spines: 2}},
		topo.Config{FatTree: &topo.FatTree{K: 4}})
	return build(t, c, choose(r, 10*units.Gbps, 25*units.Gbps),
		choose(r, 10*units.Gbps, 40*units.Gbps, 100*units.Gbps), choose(r, 0, units.Microsecond, 7123457))
}

// chosenConfig returns a configuration with every setting drawn at random.
func chosenConfig(r *rng.Stream) Config {
	c := DefaultConfig()
	c.Payload, c.Header = choose[units.Bytes](r, 512, 1000, 4096), choose[units.Bytes](r, 48, 82)
	c.CongestionControl.Algorithm = choose(r, cc.SchemeNone, cc.SchemeDCQCN, cc.SchemeDCTCP, cc.SchemeTimely,
		cc.SchemeHPCC, cc.SchemeHPCCPINT, cc.SchemeSwift)
	c.QueuePairs.PerPeer, c.QueuePairs.Life = choose(r, 1, 3), choose(r, Persistent, PerMessage)
	c.Acks.Every, c.Acks.Size = choose(r, 1, 2, 7), choose[units.Bytes](r, 20, 86)
	c.Acks.Class = choose(r, 0, 2, 5)
	c.Acks.HostClass = c.Acks.Class
	c.Acks.Duplicates = true
	c.CNP.Echo, c.CNP.Ticking = choose(r, true, false), choose(r, true, false)
	c.Recovery.Kind = choose(r, GoBackN, SelectiveRepeat)
	c.Recovery.Timeout = Timeout{Time: 400 * units.Microsecond}
	c.PFC.Enabled = choose(r, true, true, false)
	c.PFC.Threshold.Dynamic, c.PFC.Threshold.Size = choose(r, true, false), choose[units.Bytes](r, 9000, 30000)
	c.PFC.Alpha, c.PFC.AlphaByRate = units.Fraction(choose(r, 1./16, 1)), choose(r, true, false)
	c.PFC.Reserve, c.PFC.ResumeOffset = choose[units.Bytes](r, 0, 4096), choose[units.Bytes](r, 0, 3072)
	c.ECN.Enabled, c.ECN.Kmin = choose(r, true, false), choose[units.Bytes](r, 2000, 20000)
	c.ECN.Kmax = c.ECN.Kmin + choose[units.Bytes](r, 0, 20000)
	c.Scheduler, c.Weights = choose(r, setting.Scheduler(0), 1), choose(r, nil, []int{1, 1, 2, 3})
	if c.CongestionControl.Algorithm == cc.SchemeHPCC {
		c.Telemetry = Telemetry{Size: 42, AckSize: 28, Multiple: choose(r, 0, 1)}
	}
	if choose(r, true, false, false, false) {
		c.Rounding = WholeNanoseconds
	}
	c.Buffer = choose[units.Bytes](r, 600_000, 1_500_000, 4_000_000)
	if !c.PFC.Enabled {
		c.Buffer /= 20
	}
	if choose(r, true, false, false, false) {
		c = TCP(c)
		c.CongestionControl.TCP.Growth = choose(r, cc.GrowthCubic, cc.GrowthNewReno, cc.GrowthDCTCP)
		c.PFC.Enabled, c.Buffer = false, 100_000
	}
	return c
}

// noted digests non-zero counters only, so that a new counter leaves the digests of runs unchanged that never increment
// it.
type noted struct{ hash.Hash64 }

func (n noted) add(v any) {
	for _, field := range strings.Fields(fmt.Sprintf("%+v", v)) {
		if !strings.HasSuffix(field, ":0") {
			io.WriteString(n, field)
		}
	}
}

// transcript runs a network drawn from seed, under messages, reads, losses and failures, and prints its results.
func transcript(t *testing.T, seed uint64) string {
	r := rng.NewStream(seed, "network")
	g := chosenGraph(t, &r)
	cfg := chosenConfig(&r)
	cfg.Convergence = [...]sim.Time{0, 50 * units.Microsecond, 65 * units.Millisecond}[seed%3]
	lossy := choose(&r, true, false, false)
	for i := range g.Links {
		if lossy {
			g.Links[i].Loss = choose(&r, 0, .002)
		}
	}
	x := &rig{eng: sim.New(), graph: g}
	var err error
	if x.net, err = New(cfg, g, x.eng, x, seed, "fabric"); err != nil {
		return fmt.Sprintf("%d: %v\n", seed, err)
	}
	x.self, x.at = x.eng.NewComponent(), x.eng.AddHandler(x)
	n := x.net
	all := noted{fnv.New64a()}
	n.OnDrop = func(d Drop) { all.add(d) }
	for class := range uint8(3) {
		if err := n.Use(class); err != nil {
			return fmt.Sprintf("%d: %v\n", seed, err)
		}
	}
	var hosts []int32
	for i := range g.Nodes {
		if g.Nodes[i].Kind == topo.Host {
			hosts = append(hosts, int32(i))
		}
	}
	// A host asks another for data, in order, unless the protocol has no such answers.
	var back, answers QP = -1, -1
	if out, err := n.Open(hosts[0], hosts[1], 1); err == nil {
		if back, err = n.Open(hosts[1], hosts[0], 1); err == nil {
			if answers, err = n.Respond(out, back); err != nil {
				answers = -1
			}
		}
	}
	asked := map[int32]units.Bytes{}
	x.onDelivered = func(m int32) {
		if size, ok := asked[m]; ok {
			if _, err := n.Answer(answers, size, m); err != nil {
				t.Error(seed, err)
			}
		}
	}
	incast := choose(&r, true, false)
	for range 30 {
		a, b := r.IntN(int64(len(hosts))), r.IntN(int64(len(hosts)))
		if incast {
			b = 0
		}
		if a != b {
			x.send(post{at: sim.Time(r.IntN(int64(40 * units.Microsecond))), src: hosts[a], dst: hosts[b],
				class: choose[uint8](&r, 1, 2), size: units.Bytes(1 + r.IntN(60_000))})
		}
	}
	if answers >= 0 {
		for range 6 {
			if m, err := n.Ask(back, 16); err == nil {
				asked[m] = units.Bytes(1 + r.IntN(30_000))
			}
		}
	}
	if choose(&r, true, false, false) {
		link := int32(r.IntN(int64(len(g.Links))))
		if err := n.Fail(link, 20*units.Microsecond, 300*units.Microsecond); err != nil {
			t.Error(seed, err)
		}
	}
	x.eng.Run(30 * units.Second)
	if err := n.Check(); err != nil {
		t.Errorf("%d: %v", seed, err)
	}
	for _, m := range n.Messages() {
		all.add([]any{m.QP, m.Port, m.Size, m.Posted, m.Begun, m.Delivered, m.Acked})
	}
	for m := range n.Messages() {
		if n.Known(int32(m)) {
			all.add(n.Ideal(int32(m)))
		}
	}
	for i := range n.Ports() {
		all.add(n.Port(int32(i)))
	}
	k := &n.Counters
	all.add(*k)
	return fmt.Sprintf("%d: %d of %d messages by %v; sent %d, wasted %d, acks %d, nacks %d, marked %d, cnps %d, "+
		"again %d, timeouts %d, pauses %d, lost %d; %016x\n",
		seed, k.Completed, k.Posted, x.eng.Now(), k.Sent, k.Wasted, k.Acks, k.Nacks, k.Marked, k.CNPs, k.Retransmits,
		k.Timeouts, k.Pauses, k.DropCount(), all.Sum64())
}

// TestTranscripts compares drawn networks with their recorded results, to the picosecond of every message. It detects
// unintended changes of results; review intended ones line by line before recording them with -rewrite.
func TestTranscripts(t *testing.T) {
	datadriven.RunTest(t, "testdata/transcripts", func(t *testing.T, td *datadriven.TestData) string {
		var from, to int
		td.ScanArgs(t, "seeds", &from, &to)
		var b strings.Builder
		for seed := from; seed <= to; seed++ {
			b.WriteString(transcript(t, uint64(seed)))
		}
		return b.String()
	})
}
