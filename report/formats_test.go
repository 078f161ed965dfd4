package report

import (
	"math"
	"slices"
	"testing"

	"farflash/numeric/stats"
	"farflash/study"
)

// TestFormats verifies figures of studies on both sides of the values at which their form changes.
func TestFormats(t *testing.T) {
	for _, x := range []struct{ got, want string }{
		{signedPercent(0), "0.00"}, {signedPercent(-0.00004), "0.00"}, {signedPercent(0.00006), "+0.01"},
		{signedPercent(-0.0099), "-0.99"}, {signedPercent(0.01), "+1.00"}, {signedPercent(-0.5), "-50.0"},
		{probability(0.00009), "<0.0001"}, {probability(0.0001), "0.0001"}, {probability(1), "1.0000"},
		{ratio(999), "x999"}, {ratio(1000), "x1.00k"}, {ratio(0.5), "x0.500"},
		{sign(-1), "-"}, {sign(0), ""}, {sign(0.5), "+"},
		{moreText(&study.Effect{More: -1}), "over 1,000,000 more"}, {moreText(&study.Effect{}), ""},
		{moreText(&study.Effect{More: 1}), "1 more"}, {moreText(&study.Effect{More: 12345}), "12,345 more"},
		{ArmLetter(0), "A"}, {ArmLetter(25), "Z"}, {ArmLetter(26), "arm 27"},
		{seedsText(nil), "no seed"}, {seedsText([]uint64{7}), "seed 7"}, {seedsText([]uint64{7, 8}), "seeds 7 to 8"},
		{seedsText([]uint64{1, 2, 4}), "seeds 1 2 4"}, {seedsText(firstSeeds(5, 3)), "seeds 5 to 7"},
		{capital(""), ""}, {capital("écart"), "Écart"}, {capital("\xff"), "\xff"},
		{curveName("read", ".latency.p99", 1), "read"}, {curveName("read", ".latency.p99", 2), "read p99"},
		{spaced("1MiB"), "1 MiB"}, {spaced("1 MiB"), "1 MiB"}, {spaced("MiB"), "MiB"}, {spaced("12"), "12"},
		{sentence(""), ""}, {sentence("a"), "a."}, {sentence("a."), "a."}, {slowdown(math.NaN()), "-"},
		{warmUpNote(""), "Shaded: the warm-up, which only charts over time include."},
		{warmUpNote("the time that the scenario says"), "Shaded: the warm-up, which only charts over time include."},
		{warmUpNote("cut"), "Shaded: the warm-up, which only charts over time include. Its length: cut."},
	} {
		if x.got != x.want {
			t.Errorf("%q, want %q", x.got, x.want)
		}
	}
	if got := firstSeeds(5, 3); !slices.Equal(got, []uint64{5, 6, 7}) {
		t.Error(got)
	}
}

// TestEffectForms verifies that an effect is a percentage, a factor from ten times or a tenth on, or a difference.
func TestEffectForms(t *testing.T) {
	for _, x := range []struct {
		ratio            bool
		mean, half       float64 // of the logarithm, or of the difference
		effect, interval string
	}{
		{true, math.Log(1.5), math.Log(1.2), "+50.0 %", "+25.0 to +80.0 %"},
		{true, math.Log(8), math.Log(1.2), "+700 %", "+567 to +860 %"},
		{true, math.Log(8), math.Log(1.3), "x8.00", "x6.15 to x10.4"},
		{true, -math.Log(8), math.Log(1.2), "-87.5 %", "-89.6 to -85.0 %"},
		{true, -math.Log(8), math.Log(1.3), "x0.125", "x0.0962 to x0.163"},
		{true, math.Log(5000), 0, "x5.00k", "x5.00k to x5.00k"},
		{false, -2, 3, "-2.00 us", "-5.00 us to +1.00 us"},
	} {
		e := study.Effect{Unit: "us"}
		e.Ratio, e.Effect = x.ratio, stats.Interval{Mean: x.mean, Half: x.half}
		if effect, interval := effectText(&e); effect != x.effect || interval != x.interval {
			t.Errorf("%v +- %v: %s, %s, want %s, %s", x.mean, x.half, effect, interval, x.effect, x.interval)
		}
	}
}

// TestVerdictForms verifies the verdicts of tables.
func TestVerdictForms(t *testing.T) {
	for _, x := range []struct {
		e    study.Effect
		want string
	}{
		{study.Effect{Verdict: study.Identical, Within: true}, "identical"},
		{study.Effect{Verdict: study.NoEvidence, Within: true}, "differs by less than 5%"},
		{study.Effect{Verdict: study.NoEvidence}, "no evidence of a difference"},
		{study.Effect{Verdict: study.Better, Within: true}, "better, by less than 5%"},
		{study.Effect{Verdict: study.Better}, "better"},
		{study.Effect{Verdict: study.TooFew, More: 4}, "too few runs to tell: 4 more"},
		{study.Effect{Verdict: study.TooFew, More: -1}, "too few runs to tell: over 1,000,000 more"},
		{study.Effect{Verdict: study.TooFew}, "too few runs to tell"},
		{study.Effect{Verdict: study.Worse, Doubtful: true}, "worse, but Wilcoxon's test does not confirm it"},
	} {
		if got := verdictText(&x.e, 0.05); got != x.want {
			t.Errorf("%+v: %q, want %q", x.e, got, x.want)
		}
	}
}
