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

// LeastSpan is for how long a trace must run for what it writes to be taken for what is written on any day: a whole
// day has its busy hours and its idle ones.
const LeastSpan units.Days = 1

// Traced is a workload with what its trace tells of it.
type Traced struct {
	tco.Workload
	// Span is from the trace's first request to its last.
	Span units.Days
	// Within is half of the 95 % confidence interval of the daily writes, as a share of them; NaN: it is too short to
	// tell.
	Within float64
}

// JobsOf are the workloads of traces.
func JobsOf(list []Traced) []tco.Workload {
	jobs := make([]tco.Workload, len(list))
	for i := range list {
		jobs[i] = list[i].Workload
	}
	return jobs
}

// FromTraces makes a workload of each trace in a folder: its daily writes and its sequential ratio among 32 streams
// (writes alone), its peak in 5 minutes, its share of writes, and its footprint as the working set. Files that begin
// with a dot are passed over. skipped says which files are no traces, and why; progress, unless it is nil, is told
// which file is next. A trace that is shorter than LeastSpan is an error, unless it is to be taken all the same.
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
		return nil, skipped, fmt.Errorf("%s has no trace that a workload can be made from", dir)
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
		return Traced{}, errors.New("all its requests have the same time, so there is no rate")
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

// finite is 0 for what a trace is too short to tell.
func finite(n characterise.Number) float64 {
	if v := float64(n); !math.IsNaN(v) && !math.IsInf(v, 0) {
		return v
	}
	return 0
}
