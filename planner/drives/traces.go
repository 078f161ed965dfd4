package drives

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"farflash/internal/term"
	"farflash/numeric/units"
	"farflash/planner/tco"
	"farflash/workload/characterise"
	"farflash/workload/trace"
)

// LeastSpan is the shortest trace whose writes are taken as representative of a day: a whole day includes both busy and
// idle hours.
const LeastSpan units.Days = 1

// Traced is a workload with statistics of its trace.
type Traced struct {
	tco.Workload
	// Span is the time from the trace's first request to its last.
	Span units.Days
	// Within is half the 95 % confidence interval of the daily writes, as a share of them; NaN if the trace is too
	// short.
	Within float64
}

// JobsOf returns the workloads of traces.
func JobsOf(list []Traced) []tco.Workload {
	jobs := make([]tco.Workload, len(list))
	for i := range list {
		jobs[i] = list[i].Workload
	}
	return jobs
}

// FromTraces derives a workload from each trace in a directory: its daily writes and its sequential ratio among 32
// streams (writes only), its peak in 5 minutes, its share of writes, and its footprint as the working set. Files whose
// names start with a dot are ignored. skipped lists the files that are not traces, with the reason; progress, if not
// nil, is called with the next file. A trace shorter than LeastSpan is an error unless short is set.
func FromTraces(dir string, short bool, progress func(done, all int, file string)) (list []Traced, skipped []string,
	err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, err
	}
	var files []string
	for _, e := range entries {
		if !e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			files = append(files, e.Name())
		}
	}
	names := map[string]bool{}
	for i, name := range files {
		if progress != nil {
			progress(i, len(files), name)
		}
		w, err := fromTrace(filepath.Join(dir, name))
		if err != nil {
			skipped = append(skipped, fmt.Sprintf("%s: %v", name, err))
			continue
		}
		if w.Span < LeastSpan && !short {
			return nil, skipped,
				fmt.Errorf("%s: the trace spans only %s, and daily writes need a day; record a longer trace, or use "+
					"this one with --force",
					filepath.Join(dir, name), term.Seconds(float64(w.Span)*units.Day.Seconds()))
		}
		w.Name, _, _ = strings.Cut(name, ".")
		if names[w.Name] {
			w.Name = name
		}
		names[w.Name] = true
		list = append(list, w)
	}
	if len(list) == 0 {
		return nil, skipped, fmt.Errorf("no trace in %s yields a workload", dir)
	}
	return list, skipped, nil
}

func fromTrace(file string) (Traced, error) {
	r, err := trace.Open(file, trace.Options{Seed: 1})
	if err != nil {
		return Traced{}, err
	}
	defer r.Close()
	m, err := characterise.Run(r)
	if err != nil {
		return Traced{}, err
	}
	all := m.Reads.Count + m.Writes.Count
	if all == 0 {
		return Traced{}, errors.New("it has no reads or writes")
	}
	rate := float64(m.WriteRatePerDay) / 1e9
	if m.Writes.Count == 0 {
		rate = 0
	} else if math.IsNaN(rate) || math.IsInf(rate, 0) {
		return Traced{}, errors.New("all its requests have the same time, so it has no rate")
	}
	whole, err := filepath.Abs(file)
	if err != nil {
		return Traced{}, err
	}
	return Traced{Workload: tco.Workload{WriteRate: rate, Sequential: finite(m.Writes.SequentialRatio.ThirtyTwo),
		PeakIOPS: finite(m.PeakIOPS), Trace: whole, WriteShare: float64(m.Writes.Count) / float64(all),
		IOSize:     max(0.5, float64(m.Reads.Bytes+m.Writes.Bytes)/float64(all)/1024),
		WorkingSet: float64(m.Footprint) / 1e9}, Span: units.Days(m.Span / units.Day.Seconds()),
		Within: float64(m.WriteRateWithin)}, nil
}

// finite replaces a statistic that the trace is too short for by 0.
func finite(n characterise.Number) float64 {
	if v := float64(n); !math.IsNaN(v) && !math.IsInf(v, 0) {
		return v
	}
	return 0
}
