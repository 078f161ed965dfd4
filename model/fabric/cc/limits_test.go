package cc

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"farflash/numeric/units"
	"farflash/sim"
)

// limit is the valid range of a key: the values at its ends, and those just beyond.
type limit struct {
	key       string
	set       func(c *Config, v float64)
	may, must []float64
}

// TestLimits checks the ends of each number's range from both sides: the last valid value is accepted, the first
// invalid one is rejected with its key.
func TestLimits(t *testing.T) {
	const us, most = float64(units.Microsecond), float64(top)
	least, longest := float64(units.Nanosecond), float64(1000*units.Second)
	shares, sharesNot := []float64{math.SmallestNonzeroFloat64, 1}, []float64{0, math.Nextafter(1, 2), -1, math.NaN()}
	spans, spansNot := []float64{least, longest}, []float64{least - 1, longest + 1e3, 0, -1}
	rates, ratesNot := []float64{0, most}, []float64{-1, most * 1.01}
	counts, countsNot := []float64{0, 1e6}, []float64{-1}
	kinds, kindsNot := []float64{0, float64(windows - 1)}, []float64{float64(windows)}
	next := func(x, to float64) float64 { return math.Nextafter(x, to) }
	for _, l := range []limit{
		{"min_rate", func(c *Config, v float64) { c.MinRate = units.BitRate(v) }, []float64{1, most},
			[]float64{0, -1, most * 1.01}},

		{"dcqcn.gain", func(c *Config, v float64) { c.DCQCN.Gain = units.Fraction(v) }, shares, sharesNot},
		{"dcqcn.alpha_initial", func(c *Config, v float64) { c.DCQCN.AlphaInitial = units.Fraction(v) }, shares,
			sharesNot},
		{"dcqcn.rate_on_first_cnp", func(c *Config, v float64) { c.DCQCN.RateOnFirstCNP = units.Fraction(v) }, shares,
			sharesNot},
		{"dcqcn.alpha_interval", func(c *Config, v float64) { c.DCQCN.AlphaInterval = sim.Time(v) }, spans, spansNot},
		{"dcqcn.rate_increase_timer", func(c *Config, v float64) { c.DCQCN.RateIncreaseTimer = sim.Time(v) }, spans,
			spansNot},
		{"dcqcn.rate_decrease_interval",
			func(c *Config, v float64) {
				c.DCQCN.CutAtOnce, c.DCQCN.RateDecreaseInterval = false,
					sim.Time(v)
			}, spans, spansNot},
		{"dcqcn.rate_decrease_interval",
			func(c *Config, v float64) {
				c.DCQCN.CutAtOnce, c.DCQCN.RateDecreaseInterval = true,
					sim.Time(v)
			}, []float64{0}, nil},
		{"dcqcn.rate_ai", func(c *Config, v float64) { c.DCQCN.RateAI = units.BitRate(v) }, rates, ratesNot},
		{"dcqcn.rate_hai", func(c *Config, v float64) { c.DCQCN.RateHAI = units.BitRate(v) }, rates, ratesNot},
		{"dcqcn.fast_recovery", func(c *Config, v float64) { c.DCQCN.FastRecovery = int(v) }, []float64{1, maxStages},
			[]float64{0, maxStages + 1}},
		{"dcqcn.byte_counter", func(c *Config, v float64) { c.DCQCN.ByteCounter = units.Bytes(v) }, []float64{0, 1},
			[]float64{-1}},
		{"dcqcn.clamp_target", func(c *Config, v float64) { c.DCQCN.ClampTarget = Clamp(v) },
			[]float64{0, float64(clamps - 1)}, []float64{float64(clamps)}},
		{"dcqcn.clamp_target",
			func(c *Config, v float64) {
				c.DCQCN.ClampTarget, c.DCQCN.ByteCounter = ClampAfterBytes,
					units.Bytes(v)
			}, []float64{1}, []float64{0}},
		{"dcqcn.window", func(c *Config, v float64) { c.DCQCN.Window = Window(v) }, kinds, kindsNot},

		{"dctcp.gain", func(c *Config, v float64) { c.DCTCP.Gain = units.Fraction(v) }, shares, sharesNot},
		{"dctcp.rate_ai", func(c *Config, v float64) { c.DCTCP.RateAI = units.BitRate(v) }, rates, ratesNot},

		{"timely.alpha", func(c *Config, v float64) { c.Timely.Alpha = units.Fraction(v) }, shares, sharesNot},
		{"timely.beta", func(c *Config, v float64) { c.Timely.Beta = units.Fraction(v) }, shares, sharesNot},
		{"timely.t_low", func(c *Config, v float64) { c.Timely.TLow = sim.Time(v) }, []float64{least, 500 * us},
			[]float64{least - 1}},
		{"timely.t_high", func(c *Config, v float64) { c.Timely.THigh = sim.Time(v) }, []float64{50 * us, longest},
			[]float64{50*us - 1, longest + 1e3}},
		{"timely.min_rtt", func(c *Config, v float64) { c.Timely.MinRTT = sim.Time(v) }, spans, spansNot},
		{"timely.rate_ai", func(c *Config, v float64) { c.Timely.RateAI = units.BitRate(v) }, rates, ratesNot},
		{"timely.rate_hai", func(c *Config, v float64) { c.Timely.RateHAI = units.BitRate(v) }, rates, ratesNot},
		{"timely.hyper_after", func(c *Config, v float64) { c.Timely.HyperAfter = int(v) }, counts, countsNot},
		{"timely.window", func(c *Config, v float64) { c.Timely.Window = Window(v) }, kinds, kindsNot},

		{"hpcc.target_utilisation", func(c *Config, v float64) { c.HPCC.TargetUtilisation = units.Fraction(v) },
			shares, sharesNot},
		{"hpcc.rate_ai", func(c *Config, v float64) { c.HPCC.RateAI = units.BitRate(v) }, rates, ratesNot},
		{"hpcc.max_stage", func(c *Config, v float64) { c.HPCC.MaxStage = int(v) }, counts, countsNot},

		{"pint.target_utilisation", func(c *Config, v float64) { c.PINT.TargetUtilisation = units.Fraction(v) },
			shares, sharesNot},
		{"pint.probability", func(c *Config, v float64) { c.PINT.Probability = units.Fraction(v) }, shares, sharesNot},
		{"pint.rate_ai", func(c *Config, v float64) { c.PINT.RateAI = units.BitRate(v) }, rates, ratesNot},
		{"pint.max_stage", func(c *Config, v float64) { c.PINT.MaxStage = int(v) }, counts, countsNot},
		{"pint.log_base", func(c *Config, v float64) { c.PINT.LogBase = v }, []float64{1.05},
			[]float64{1, 0, math.NaN(), math.Inf(1)}},

		{"swift.target_delay", func(c *Config, v float64) { c.Swift.TargetDelay = sim.Time(v) }, spans, spansNot},
		{"swift.target_per_hop", func(c *Config, v float64) { c.Swift.TargetPerHop = sim.Time(v) },
			[]float64{0, 1e12}, []float64{-1, 1e12 + 1}},
		{"swift.flow_scaling", func(c *Config, v float64) { c.Swift.FlowScaling = sim.Time(v) }, []float64{0, 1e12},
			[]float64{-1, 1e12 + 1}},
		{"swift.beta", func(c *Config, v float64) { c.Swift.Beta = units.Fraction(v) }, shares, sharesNot},
		{"swift.max_decrease", func(c *Config, v float64) { c.Swift.MaxDecrease = units.Fraction(v) },
			[]float64{math.SmallestNonzeroFloat64, next(1, 0)}, []float64{0, 1, 2, math.NaN()}},
		{"swift.scaling_min", func(c *Config, v float64) { c.Swift.ScalingMin = v },
			[]float64{math.SmallestNonzeroFloat64, next(100, 0)}, []float64{0, -1}},
		{"swift.scaling_max", func(c *Config, v float64) { c.Swift.ScalingMax = v },
			[]float64{next(0.1, 1), mostPackets}, []float64{0.1, next(mostPackets, 1e9), math.NaN()}},
		{"swift.increase", func(c *Config, v float64) { c.Swift.Increase = v },
			[]float64{math.SmallestNonzeroFloat64, mostPackets}, []float64{0, -1, next(mostPackets, 1e9)}},
		{"swift.min_window", func(c *Config, v float64) { c.Swift.MinWindow = v },
			[]float64{math.SmallestNonzeroFloat64, 10000}, []float64{0, -1}},
		{"swift.max_window", func(c *Config, v float64) { c.Swift.MaxWindow = v }, []float64{1, mostPackets},
			[]float64{next(1, 0), next(mostPackets, 1e9)}},
		{"swift.max_window", func(c *Config, v float64) { c.Swift.MinWindow, c.Swift.MaxWindow = 5, v }, []float64{5},
			[]float64{next(5, 0)}},
		{"swift.initial_window", func(c *Config, v float64) { c.Swift.InitialWindow = v }, []float64{0, mostPackets},
			[]float64{-1, next(mostPackets, 1e9)}},
		{"swift.reset_after", func(c *Config, v float64) { c.Swift.ResetAfter = int(v) }, []float64{1},
			[]float64{0, -1}},

		{"tcp.growth", func(c *Config, v float64) { c.TCP.Growth = Growth(v) }, []float64{0, float64(growths - 1)},
			[]float64{float64(growths)}},
		{"tcp.initial_window", func(c *Config, v float64) { c.TCP.InitialWindow = v }, []float64{1, mostPackets},
			[]float64{next(1, 0), next(mostPackets, 1e9), math.NaN()}},
		{"tcp.max_window", func(c *Config, v float64) { c.TCP.MaxWindow = units.Bytes(v) }, []float64{1024, 1 << 30},
			[]float64{1023, 1<<30 + 1}},
		{"tcp.beta", func(c *Config, v float64) { c.TCP.Beta = units.Fraction(v) },
			[]float64{math.SmallestNonzeroFloat64, next(1, 0)}, []float64{0, 1, 2}},
		{"tcp.scale", func(c *Config, v float64) { c.TCP.Scale = v },
			[]float64{math.SmallestNonzeroFloat64, mostPackets}, []float64{0, next(mostPackets, 1e9)}},
		{"tcp.gain", func(c *Config, v float64) { c.TCP.Gain = units.Fraction(v) }, shares, sharesNot},
	} {
		scheme, _, _ := strings.Cut(l.key, ".")
		for i, v := range append(append([]float64(nil), l.may...), l.must...) {
			c := DefaultConfig()
			switch scheme {
			case "min_rate":
			case "pint":
				c.Algorithm = SchemeHPCCPINT
			default:
				if err := c.Algorithm.UnmarshalText([]byte(scheme)); err != nil {
					t.Fatal(err)
				}
			}
			l.set(&c, v)
			switch err := c.Validate(); {
			case i < len(l.may) && err != nil:
				t.Errorf("%s of %v: %v", l.key, v, err)
			case i >= len(l.may) &&
				(err == nil || !strings.Contains(err.Error(), l.key[strings.LastIndex(l.key, ".")+1:])):
				t.Errorf("%s of %v: %v", l.key, v, err)
			}
		}
	}
}

// TestDefaults compares the parameters with those printed in papers and set in programs.
func TestDefaults(t *testing.T) {
	const us = units.Microsecond
	for _, x := range []struct{ got, want any }{
		{DefaultTimely(), Timely{Alpha: 0.875, Beta: 0.8, TLow: 50 * us, THigh: 500 * us, MinRTT: 20 * us,
			RateAI: 10_000_000, RateHAI: 50_000_000, HyperAfter: 5}},
		{DefaultDCQCN(), DCQCN{Gain: 0.00390625, AlphaInitial: 1, AlphaInterval: 55 * us, CutAtOnce: true,
			RateDecreaseInterval: 4 * us, RateOnFirstCNP: 1,
			RateIncreaseTimer: 55 * us, ByteCounter: 10_000_000, FastRecovery: 5, RateAI: 40_000_000,
			RateHAI: 200_000_000}},
		// For hosts of 100 Gbit/s HPCC's run.py adds 20 and 200 Mbit/s, for 25 Gbit/s 5 and 50.
		{MellanoxDCQCN(100 * units.Gbps).RateAI, 20 * units.Mbps},
		{MellanoxDCQCN(100 * units.Gbps).RateHAI, 200 * units.Mbps},
		{MellanoxDCQCN(25 * units.Gbps).RateAI, 5 * units.Mbps},
		{MellanoxDCQCN(25 * units.Gbps).RateHAI, 50 * units.Mbps},
	} {
		if !reflect.DeepEqual(x.got, x.want) {
			t.Errorf("%+v, want %+v", x.got, x.want)
		}
	}
}

// TestDemand verifies that Demand divides the window by the measured round trip, but at least that of an empty path;
// without a window a queue pair has its rate.
func TestDemand(t *testing.T) {
	for _, x := range []struct {
		s    Sender
		rtt  sim.Time
		want units.BitRate
	}{
		{Sender{Rate: 5 * units.Gbps, Line: 10 * units.Gbps}, units.Millisecond, 5 * units.Gbps},
		{Sender{Rate: 20 * units.Gbps, Line: 10 * units.Gbps}, units.Millisecond, 10 * units.Gbps},
		{Sender{Rate: 10 * units.Gbps, Line: 10 * units.Gbps, Window: 1000, BaseRTT: units.Microsecond},
			8 * units.Microsecond, units.Gbps},
		{Sender{Rate: 10 * units.Gbps, Line: 10 * units.Gbps, Window: 1000, BaseRTT: 16 * units.Microsecond},
			8 * units.Microsecond, 500 * units.Mbps},
		{Sender{Rate: 300 * units.Mbps, Line: 10 * units.Gbps, Window: 1000, BaseRTT: units.Microsecond},
			8 * units.Microsecond, 300 * units.Mbps},
		{Sender{Rate: 10 * units.Gbps, Line: 10 * units.Gbps, Window: 1000}, 0, 10 * units.Gbps},
	} {
		if got := x.s.Demand(x.rtt); got != x.want {
			t.Errorf("%+v over %v: %v, want %v", x.s, x.rtt, got, x.want)
		}
	}
}

// TestLimitsSet verifies the window that each kind sets for a rate, whatever the window was before.
func TestLimitsSet(t *testing.T) {
	for kind, want := range map[Window]units.Bytes{WindowNone: 0, WindowBDP: 8000, WindowScaled: 2000} {
		s := Sender{Line: 100 * units.Gbps, BDP: 8000, Window: 77}
		limits{units.Mbps, kind}.set(&s, 25*units.Gbps)
		if s.Window != want || s.Rate != 25*units.Gbps {
			t.Errorf("%v: a window of %v at %v, want %v", kind, s.Window, s.Rate, want)
		}
	}
}
