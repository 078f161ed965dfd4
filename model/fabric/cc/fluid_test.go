package cc

import (
	"math"
	"testing"

	"farflash/numeric/rng"
	"farflash/numeric/units"
)

var link40 = Bottleneck{Flows: 4, Capacity: 40 * units.Gbps, Packet: 1000, CNPInterval: 50 * us, KMin: 5 * units.KB,
	KMax: 200 * units.KB, PMax: 0.1}

// TestFixedPointBalances substitutes the solution into the three equations, using the standard library's functions.
func TestFixedPointBalances(t *testing.T) {
	noBytes, late, mellanox := DefaultDCQCN(), DefaultDCQCN(), MellanoxDCQCN(40*units.Gbps)
	noBytes.ByteCounter = 0
	late.StageFromZero = true
	for i, c := range []DCQCN{DefaultDCQCN(), noBytes, late, mellanox} {
		for _, n := range []int{1, 2, 10, 100, 1000} {
			b := link40
			b.Flows = n
			e, err := FixedPoint(c, b)
			if err != nil {
				t.Fatal(err)
			}
			bits := 8 * float64(b.Packet)
			r := float64(b.Capacity) / float64(n) / bits
			target := float64(e.Target) / bits
			tau := b.CNPInterval.Seconds()
			if !c.CutAtOnce {
				tau = c.RateDecreaseInterval.Seconds()
			}
			f := float64(c.FastRecovery)
			if c.StageFromZero {
				f++
			}
			pow := func(k float64) float64 { return math.Exp(k * math.Log1p(-e.P)) }
			perTime := e.P / math.Expm1(-c.RateIncreaseTimer.Seconds()*r*math.Log1p(-e.P))
			active := perTime * pow(f*c.RateIncreaseTimer.Seconds()*r)
			all := perTime
			if c.ByteCounter > 0 {
				size := float64(c.ByteCounter) / float64(b.Packet)
				perByte := e.P / math.Expm1(-size*math.Log1p(-e.P))
				all += perByte
				active += perByte * pow(f*size)
			}
			cnp := 1 - pow(tau*r)
			if want := 1 - pow(c.AlphaInterval.Seconds()*r); math.Abs(e.Alpha/want-1) > 1e-9 {
				t.Errorf("config %d, %d flows: alpha %v, want %v", i, n, e.Alpha, want)
			}
			// The target is rounded to whole bit/s, which affects the differences.
			down, up := (target-r)/tau*cnp, float64(c.RateAI)/bits*r*active
			if math.Abs(down-up) > 1e-6*up+cnp/tau/bits {
				t.Errorf("config %d, %d flows: the target falls by %v and rises by %v", i, n, down, up)
			}
			down, up = r*e.Alpha/(2*tau)*cnp, (target-r)/2*r*all
			if math.Abs(down-up) > 1e-6*up+r*all/bits {
				t.Errorf("config %d, %d flows: the rate falls by %v and rises by %v", i, n, down, up)
			}
		}
	}
}

// TestFixedPointLimits verifies limiting cases.
func TestFixedPointLimits(t *testing.T) {
	c := DefaultDCQCN()
	c.RateAI = 10 * units.Kbps // small p, so the closed form applies
	for _, n := range []int{1, 2, 4} {
		b := link40
		b.Flows = n
		e, err := FixedPoint(c, b)
		if err != nil {
			t.Fatal(err)
		}
		r := float64(b.Capacity) / float64(n) / 8000
		inner := 1/(float64(c.ByteCounter)/1000) + 1/(c.RateIncreaseTimer.Seconds()*r)
		want := math.Cbrt(float64(c.RateAI) / 8000 / (c.AlphaInterval.Seconds() * r * r) * inner * inner)
		if math.Abs(e.P/want-1) > 0.1 {
			t.Errorf("%d flows: p %v, for small p it is %v", n, e.P, want)
		}
	}
	last := Equilibrium{}
	for _, n := range []int{1, 2, 4, 8, 16, 64, 256} {
		b := link40
		b.Flows = n
		e, err := FixedPoint(DefaultDCQCN(), b)
		if err != nil {
			t.Fatal(err)
		}
		if e.P <= last.P || e.Queue < last.Queue || e.Rate != b.Capacity/units.BitRate(n) || e.Queue > b.KMax ||
			e.Target <= e.Rate {
			t.Errorf("%d flows: %+v after %+v", n, e, last)
		}
		last = e
	}
	if last.Queue != link40.KMax {
		t.Errorf("256 flows: queue %v; beyond PMax it stays at KMax", last.Queue)
	}
	bad := link40
	bad.KMin = 300 * units.KB
	if _, err := FixedPoint(c, bad); err == nil {
		t.Error("marking that begins after it ends is accepted")
	}
}

func TestExpm1AndLog1p(t *testing.T) {
	for _, x := range []float64{1e-18, 1e-9, -1e-9, 1e-3, -0.2, 0.25, 0.3, 2, -0.9} {
		if got, want := expm1(x), math.Expm1(x); math.Abs(got/want-1) > 1e-14 {
			t.Errorf("expm1(%v) = %v, want %v", x, got, want)
		}
		if got, want := log1p(x), math.Log1p(x); math.Abs(got/want-1) > 1e-14 {
			t.Errorf("log1p(%v) = %v, want %v", x, got, want)
		}
	}
	if decay(rng.Log(0), 100) != 0 {
		t.Error("alpha with a gain of 1 does not vanish")
	}
}
