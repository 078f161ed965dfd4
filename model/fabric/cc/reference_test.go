package cc

import (
	"testing"

	"farflash/numeric/units"
	"farflash/sim"
)

// TestReferenceRates verifies that HPCC, TIMELY, DCTCP and HPCC-PINT yield exactly the rates of HPCC's ns-3. The
// digests are of the output of its rdma-hw.cc (commit 9f4be2a), compiled in isolation with a queue pair and a telemetry
// header around it and fed with the same 20 runs of 400 acknowledgements, drawn by the generator below.
func TestReferenceRates(t *testing.T) {
	state := uint64(12345)
	draw := func(n uint64) uint64 {
		state = state*6364136223846793005 + 1442695040888963407
		return (state >> 33) % n
	}
	const least = 100 * units.Mbps
	hpcc := func(trial int, multi bool) Algorithm {
		return must(newHPCC(HPCC{TargetUtilisation: 0.95, MaxStage: trial % 3 * 2, RateAI: 40 * units.Mbps,
			FastReact: trial%4 != 3, MultiRate: multi, SampleFeedback: trial%3 == 1}, least))
	}
	timely := DefaultTimely()
	timely.RateAI, timely.RateHAI = 40*units.Mbps, 200*units.Mbps
	for _, c := range []struct {
		name string
		make func(trial int) Algorithm
		want uint64
	}{
		{"hpcc", func(trial int) Algorithm { return hpcc(trial, false) }, 0x44551f0ed07cabca},
		{"hpcc, a rate per hop", func(trial int) Algorithm { return hpcc(trial, true) }, 0x70aa8a96cc707a73},
		{"timely", func(int) Algorithm { return must(newTimely(timely, least)) }, 0x433c0115f2c714a4},
		{"dctcp", func(int) Algorithm {
			return must(newDCTCP(DCTCP{Gain: 1.0 / 16, RateAI: 615 * units.Mbps},
				least))
		}, 0xd27ad957c5e2d254},
		{"hpcc-pint", func(trial int) Algorithm {
			return must(newPINT(PINT{TargetUtilisation: 0.95, MaxStage: trial % 3 * 2, RateAI: 40 * units.Mbps,
				LogBase: 1.05, Probability: 1}, least, 1))
		}, 0xb1a959376ef6ac07},
	} {
		digest := uint64(14695981039346656037) // FNV-1a over the rates, one word each
		for trial := range 20 {
			a := c.make(trial)
			s := Sender{Line: 100 * units.Gbps, BaseRTT: sim.Time(8000+trial*13) * ns,
				BDP: units.Bytes(100000 + trial*777), MTU: 1000}
			a.Start(0, &s)
			var acked uint64
			next := uint64(20000)
			var clock, sent [3]uint64
			for range 400 {
				acked += 1000 * (1 + draw(3))
				next = max(next, acked+draw(60)*1000)
				x := ack(acked, next)
				x.Marked = draw(3) == 0
				for k, rate := range []units.BitRate{100 * units.Gbps, 400 * units.Gbps, 25 * units.Gbps} {
					clock[k] += 84 + draw(9000)
					sent[k] += 1048 * (1 + draw(100))
					queue := uint64(0)
					if draw(2) == 0 {
						queue = draw(200000)
					}
					x.Hops = append(x.Hops,
						Quantise(Hop{Time: sim.Time(clock[k])*ns + 123, Bytes: sent[k], Queue: units.Bytes(queue),
							Rate: rate}, 1))
				}
				if draw(4) != 0 {
					x.RTT = sim.Time(draw(80000)+5000) * ns
				} else {
					x.RTT = sim.Time(draw(900000)+5000) * ns
				}
				x.Power = uint16(100 + draw(80))
				a.React(0, &s, &x)
				digest = (digest ^ uint64(s.Rate)) * 1099511628211
			}
		}
		if digest != c.want {
			t.Errorf("%s: digest of the rates %#x, the reference's %#x", c.name, digest, c.want)
		}
	}
}
