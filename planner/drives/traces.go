package drives

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"farflash/tco"
	"farflash/workload/characterise"
	"farflash/workload/trace"
)

// FromTraces makes a workload of each trace in a folder: its daily writes and its sequential ratio among 32 streams (writes alone), its
// peak in 5 minutes, its share of writes, and its footprint as the working set. Files that begin with a dot are passed over. skipped says
// which files are no traces, and why; progress, unless it is nil, is told which file is next.
func FromTraces(dir string, progress func(done, all int, file string)) (jobs []tco.Workload, skipped []string, err error) {
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
		w.Name, _, _ = strings.Cut(name, ".")
		if names[w.Name] {
			w.Name = name
		}
		names[w.Name] = true
		jobs = append(jobs, w)
	}
	if len(jobs) == 0 {
		return nil, skipped, fmt.Errorf("%s holds no trace of which a workload can be made", dir)
	}
	return jobs, skipped, nil
}

func fromTrace(file string) (tco.Workload, error) {
	r, err := trace.Open(file, trace.Options{Seed: 1})
	if err != nil {
		return tco.Workload{}, err
	}
	defer r.Close()
	m, err := characterise.Run(r)
	if err != nil {
		return tco.Workload{}, err
	}
	all := m.Reads.Count + m.Writes.Count
	if all == 0 {
		return tco.Workload{}, errors.New("it has no reads and writes")
	}
	rate := float64(m.WriteRatePerDay) / 1e9
	if m.Writes.Count == 0 {
		rate = 0
	} else if math.IsNaN(rate) || math.IsInf(rate, 0) {
		return tco.Workload{}, errors.New("all its requests are of one time, so that they have no rate")
	}
	return tco.Workload{WriteRate: rate, Sequential: finite(m.Writes.SequentialRatio.ThirtyTwo), PeakIOPS: finite(m.PeakIOPS), WriteShare: float64(m.Writes.Count) / float64(all),
		WorkingSet: float64(m.Footprint) / 1e9}, nil
}

// finite is 0 for what a trace is too short to tell.
func finite(n characterise.Number) float64 {
	if v := float64(n); !math.IsNaN(v) && !math.IsInf(v, 0) {
		return v
	}
	return 0
}
