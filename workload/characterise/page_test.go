package characterise_test

import (
	"flag"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"farflash/internal/golden"
	"farflash/internal/inputs"
	"farflash/workload/characterise"
	"farflash/workload/trace"
)

var update = flag.Bool("update", false, "write the tables of docs/validation/traces.md")

// TestPage verifies the tables of docs/validation/traces.md against the samples; TestPublishedStatistics verifies the
// same figures against another program's.
func TestPage(t *testing.T) {
	const page = "../../docs/validation/traces.md"
	moments := golden.Head("sample", "", ">count", ">mean size", ">SCV", ">skewness", ">lag-1", ">mean inter-arrival",
		">SCV", ">skewness", ">lag-1")
	shares := golden.Head("sample", ">K = 1", ">8", ">32")
	for _, s := range []struct{ name, key string }{
		{"MSR hm_0", "msr hm_0 sample"},
		{"Fujitsu VDI, SYSTOR'17", "systor traces sample"},
		{"CloudPhysics", "cloudphysics head 20000"},
		{"TPC-C, MQSim's excerpt", "mqsim tpcc"},
		{"YCSB on RocksDB (Q events)", "ycsb rocksdb (Q events)"},
		{"WiscSee (D events)", "wiscsee blkparse (D events)"},
	} {
		p := published[s.key]
		got := measure(t, inputs.Path(t, "data/"+p.file), p.options, false)
		name := s.name
		for _, side := range []struct {
			kind string
			x    characterise.Side
		}{{"reads", got.Reads}, {"writes", got.Writes}} {
			x := side.x
			if x.Count == 0 {
				continue
			}
			moments = append(moments, golden.Row(name, side.kind, grouped(float64(x.Count), 0),
				grouped(float64(x.Size.Mean), 1), grouped(float64(x.Size.SCV), 3),
				grouped(float64(x.Size.Skewness), 3), grouped(float64(x.Size.ACF1), 3),
				grouped(float64(x.Interarrival.Mean), 2), grouped(float64(x.Interarrival.SCV), 3),
				grouped(float64(x.Interarrival.Skewness), 3), grouped(float64(x.Interarrival.ACF1), 3)))
			name = ""
		}
		if got.Writes.Bytes > 0 && !strings.Contains(s.name, "events") {
			shares = append(shares, shareRow(s.name, got))
		}
	}
	asFiled := measure(t, inputs.Path(t, "data/"+published["systor traces sample"].file),
		trace.Options{AsRecorded: true}, false)
	shares = append(shares, shareRow("Fujitsu VDI, as it is filed", asFiled))
	golden.Table(t, page, "moments", "published samples", moments, *update)
	golden.Table(t, page, "sequential", "published samples", shares, *update)
	golden.Table(t, page, "filed", "published samples", append(golden.Head("Fujitsu VDI", ">requests"),
		golden.Row("all", grouped(float64(asFiled.Requests), 0)),
		golden.Row("behind a later one in the file", grouped(float64(asFiled.OutOfOrder), 0))), *update)
}

func shareRow(name string, r characterise.Result) string {
	s := r.Writes.SequentialRatio
	cell := func(x float64) string { return fmt.Sprintf("%.2f %%", 100*x) }
	return golden.Row(name, cell(float64(s.One)), cell(float64(s.Eight)), cell(float64(s.ThirtyTwo)))
}

// grouped formats a number with this many decimals and a comma at each thousand; "" if it is NaN.
func grouped(x float64, decimals int) string {
	if math.IsNaN(x) {
		return ""
	}
	text := strconv.FormatFloat(x, 'f', decimals, 64)
	whole, rest, _ := strings.Cut(text, ".")
	sign := strings.HasPrefix(whole, "-")
	whole = strings.TrimPrefix(whole, "-")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if sign {
		whole = "-" + whole
	}
	if rest != "" {
		whole += "." + rest
	}
	return whole
}
