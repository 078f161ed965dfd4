package result

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// WriteGobench writes runs in the format of Go's benchmarks, for benchstat: one line for each metric and run, named
// after the metric, so that with the replicates of one design in one file and those of another in a second, benchstat
// compares the designs metric by metric. Times are in seconds ("sec") and rates in bytes per second, which benchstat
// scales itself. The design is the column label for benchstat -col design; if it is empty, no design is written.
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
