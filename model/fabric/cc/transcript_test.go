package cc

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"testing"

	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/sim"

	"github.com/cockroachdb/datadriven"
)

// transcript feeds an algorithm the signals of a network that is congested now and then, and records its rates and
// windows, with a digest of each step.
func transcript(c Config, seed uint64) string {
	r := rng.NewStream(seed, "feedback")
	a := must(New(c, seed))
	line := []units.BitRate{25 * units.Gbps, 100 * units.Gbps}[r.IntN(2)]
	s := Sender{Line: line, BaseRTT: sim.Time(r.IntN(20)+4) * us, Wake: sim.Forever, MTU: 1000, Hops: 3}
	s.BDP = units.Bytes(float64(line) / 8 * s.BaseRTT.Seconds())
	a.Start(1, &s)
	var hops [3]Hop
	for i := range hops {
		hops[i].Rate = line
	}
	var now, rtt sim.Time
	var acked, next uint64
	steps := fnv.New64a()
	var out strings.Builder
	react := func(x *Signal) {
		if x.Kind == Timer {
			s.Wake = sim.Forever
		}
		a.React(1, &s, x)
		fmt.Fprintln(steps, s.Rate, s.Window, s.Wake)
	}
	for step := 1; step <= 1200; step++ {
		congested := step/150%4 == 1
		now += sim.Time(r.IntN(int64(8 * us)))
		for s.Wake <= now {
			react(&Signal{Kind: Timer, Now: s.Wake})
		}
		switch next += 1000; r.IntN(40) {
		case 0:
			if congested {
				react(&Signal{Kind: CNP, Now: now})
			}
		case 1:
			if congested {
				react(&Signal{Kind: Loss, Now: now, Acked: acked, Next: next})
			}
		case 2:
			if step%3 == 0 {
				react(&Signal{Kind: Timeout, Now: now, Acked: acked, Next: next})
			}
		}
		react(&Signal{Kind: Sent, Now: now, Payload: 1000, Next: next})
		acked = max(acked, next-min(next, uint64(r.IntN(9000))))
		rtt = s.BaseRTT + sim.Time(r.IntN(5))*units.Microsecond
		if congested {
			// Some of them are at the thresholds.
			rtt = []sim.Time{rtt, 50 * us, 500 * us, rtt + sim.Time(r.IntN(int64(600*us))), 0}[r.IntN(5)]
		}
		for i := range hops {
			h := &hops[i]
			h.Time += sim.Time(r.IntN(int64(3 * us)))
			h.Bytes += uint64(r.IntN(3)) * 9000
			if h.Queue = 0; congested {
				h.Queue = units.Bytes(r.IntN(100_000))
			}
		}
		power := uint16(r.IntN(600))
		react(&Signal{Kind: Ack, Now: now, Acked: acked, Next: next, RTT: rtt, Marked: congested && r.IntN(3) > 0,
			Power: power, Hops: hops[:], Path: uint32(step / 500)})
		if step%400 == 0 {
			fmt.Fprintf(&out, "; %v, %v", s.Rate, s.Window)
		}
	}
	return fmt.Sprintf("%s; %016x", strings.TrimPrefix(out.String(), "; "), steps.Sum64())
}

// TestTranscripts compares each algorithm's response to drawn feedback with the recorded one, bit for bit. It detects
// unintended changes of results; review intended ones before recording them with -rewrite.
func TestTranscripts(t *testing.T) {
	datadriven.RunTest(t, "testdata/transcripts", func(t *testing.T, td *datadriven.TestData) string {
		var n int
		td.ScanArgs(t, "seeds", &n)
		all := schemesUnderTest()
		var names []string
		for name := range all {
			names = append(names, name)
		}
		slices.Sort(names)
		var b strings.Builder
		for _, name := range names {
			for seed := range n {
				fmt.Fprintf(&b, "%s %d: %s\n", name, seed, transcript(all[name], uint64(seed)))
			}
		}
		return b.String()
	})
}
