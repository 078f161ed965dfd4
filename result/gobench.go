package result

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// WriteGobench writes runs as Go benchmarks, for benchstat: a line for each metric and run, in seconds and bytes per
// second. The design is the label for benchstat -col design; "" writes none.
func WriteGobench(w io.Writer, design string, runs ...*Result) error {
	b := bufio.NewWriter(w)
	if design != "" {
		fmt.Fprintf(b, "design: %s\n", oneLine(design))
	}
	last := ""
	for _, r := range runs {
		// Not as "key: value": benchstat would put each into a table of its own and compare none.
		header := fmt.Sprintf("# farflash %s, scenario %s\n", oneLine(r.Version), oneLine(r.Name))
		if header != last {
			b.WriteString(header)
			last = header
		}
		fmt.Fprintf(b, "# seed %d\n", r.Seed)
		for _, m := range r.Metrics {
			value, unit := m.Value, m.Unit
			switch unit {
			case "us":
				value, unit = value*1e-6, "sec"
			case "s":
				unit = "sec"
			case "1/s":
				unit = "op/s"
			}
			fmt.Fprintf(b, "BenchmarkFarflash/%s 1 %s %s\n", m.Name, appendFloat(nil, value), unit)
		}
	}
	return b.Flush()
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
