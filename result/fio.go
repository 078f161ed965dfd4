package result

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"farflash/numeric/stats"
	"farflash/numeric/units"
)

// fioPercentiles are the percentiles that fio prints by default.
var fioPercentiles = []float64{1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99, 99.5, 99.9, 99.95, 99.99}

// WriteFio writes a run as fio 3 does with --output-format=json+: a job for each workload or fio job, or one for the
// whole run. The latency is fio's completion latency; figures that a simulation does not have are omitted. Timestamps
// come from timing.json.
func WriteFio(w io.Writer, run *Run) error {
	// Percentiles are derived from the bins as fio does (the middle of the bin). The latency is fio's completion
	// latency; the submission latency is zero, because a simulated host submits in no time.
	r := run.Result
	e := &encoder{}
	e.raw("{\n")
	e.field(1, "fio version", "fio-3.33")
	e.field(1, "written by", "farflash "+r.Version)
	if run.Timing != nil {
		if t, err := time.Parse(time.RFC3339, run.Timing.Started); err == nil {
			e.key(1, "timestamp").raw(strconv.FormatInt(t.Unix(), 10)).raw(",\n")
			e.key(1, "timestamp_ms").raw(strconv.FormatInt(t.UnixMilli(), 10)).raw(",\n")
			e.field(1, "time", t.UTC().Format(time.ANSIC))
		}
	}
	e.raw("  \"jobs\": [\n")
	for i, j := range fioJobs(r) {
		if i > 0 {
			e.raw(",\n")
		}
		e.fioJob(r, j)
	}
	e.raw("\n  ]\n}\n")
	if e.err != nil {
		return e.err
	}
	_, err := w.Write(e.b.Bytes())
	return err
}

// fioJob is an entry of fio's list of jobs: its name and the prefix of its figures' names.
type fioJob struct{ name, prefix string }

// fioJobs returns the jobs of a run if they are known, otherwise one job for the whole run.
func fioJobs(r *Result) []fioJob {
	for _, scope := range []string{"job", "workload"} {
		for _, p := range r.Parts {
			if p.Scope != scope {
				continue
			}
			var out []fioJob
			for i, name := range p.Names {
				out = append(out, fioJob{name, fmt.Sprintf("%s[%d].", scope, i)})
			}
			return out
		}
	}
	if r.Name == "" {
		return []fioJob{{"farflash", ""}}
	}
	return []fioJob{{r.Name, ""}}
}

func (e *encoder) fioJob(r *Result, j fioJob) {
	measured := r.SimulatedS - r.WarmUp.UntilS
	e.raw("    {\n")
	e.field(3, "jobname", j.name)
	e.raw("      \"groupid\": 0,\n      \"error\": 0,\n      \"eta\": 0,\n")
	e.key(3, "elapsed").raw(strconv.FormatInt(int64(math.Ceil(r.SimulatedS)), 10)).raw(",\n")
	e.raw("      \"job options\": {\n").key(4, "name").text(j.name).raw("\n      },\n")
	for _, op := range []string{"read", "write", "trim"} {
		e.fioSide(r, j.prefix, op, measured)
	}
	e.key(3, "sync").raw("{\n")
	flushes, _ := r.Metric(j.prefix + "flush.count")
	e.key(4, "total_ios").number(flushes.Value, "flush.count").raw(",\n")
	e.fioLatency("lat_ns", r.Histogram(j.prefix+"flush.latency"), false)
	e.raw("\n      },\n")
	e.key(3, "job_runtime").raw(strconv.FormatInt(int64(math.Round(measured*1000)), 10)).raw(",\n")
	var all stats.Histogram // of the operations that fio counts, without flushes
	for _, op := range []string{"read", "write", "trim"} {
		if h := r.Histogram(j.prefix + op + ".latency"); h != nil {
			all.Merge(h)
		}
	}
	e.fioShares(&all)
	e.raw("\n    }")
}

func (e *encoder) fioSide(r *Result, prefix, op string, measured float64) {
	value := func(name string) float64 {
		m, _ := r.Metric(prefix + op + "." + name)
		return m.Value
	}
	whole := func(key string, v float64) {
		e.key(4, key).raw(strconv.FormatInt(int64(math.Round(v)), 10)).raw(",\n")
	}
	e.key(3, op).raw("{\n")
	whole("io_bytes", value("bytes"))
	whole("io_kbytes", math.Floor(value("bytes")/1024))
	whole("bw_bytes", value("bandwidth"))
	whole("bw", math.Floor(value("bandwidth")/1024))
	e.key(4, "iops").number(value("iops"), op+".iops").raw(",\n")
	runtime := 0.0
	if value("count") > 0 {
		runtime = measured * 1000
	}
	whole("runtime", runtime)
	whole("total_ios", value("count"))
	whole("short_ios", 0)
	whole("drop_ios", 0)
	e.fioLatency("slat_ns", nil, false)
	e.raw(",\n")
	h := r.Histogram(prefix + op + ".latency")
	e.fioLatency("clat_ns", h, true)
	e.raw(",\n")
	e.fioLatency("lat_ns", h, false)
	e.raw(",\n")
	share := 0.0 // of the bandwidth of all jobs
	if all, _ := r.Metric(op + ".bandwidth"); all.Value > 0 {
		share = 100 * value("bandwidth") / all.Value
	}
	e.fioSamples(r, prefix+op, share, "bandwidth", "bw", 1.0/1024,
		[]string{"bw_min", "bw_max", "bw_mean", "bw_dev", "bw_samples"})
	e.raw(",\n")
	e.fioSamples(r, prefix+op, share, "iops", "iops", 1,
		[]string{"iops_min", "iops_max", "iops_mean", "iops_stddev", "iops_samples"})
	e.raw("\n      },\n")
}

func (e *encoder) fioLatency(key string, h *stats.Histogram, bins bool) {
	if h == nil {
		h = &stats.Histogram{}
	}
	ns := func(d units.Duration) string { return strconv.FormatInt(int64(d/units.Nanosecond), 10) }
	e.key(4, key).raw("{\n")
	e.key(5, "min").raw(ns(h.Min())).raw(",\n").key(5, "max").raw(ns(h.Max())).raw(",\n")
	e.key(5, "mean").raw(strconv.FormatFloat(h.Mean()/1000, 'f', 6, 64)).raw(",\n")
	e.key(5, "stddev").raw(strconv.FormatFloat(h.StdDev()/1000, 'f', 6, 64)).raw(",\n")
	e.key(5, "N").raw(strconv.FormatInt(h.Count(), 10))
	if bins && h.Count() > 0 {
		e.raw(",\n").key(5, "percentile").raw("{\n")
		list := h.Bins()
		for i, p := range fioPercentiles {
			if i > 0 {
				e.raw(",\n")
			}
			e.key(6, strconv.FormatFloat(p, 'f', 6, 64)).raw(strconv.FormatInt(fioPercentile(list, h.Count(), p), 10))
		}
		e.raw("\n          },\n").key(5, "bins").raw("{\n")
		for i, b := range list {
			if i > 0 {
				e.raw(",\n")
			}
			e.key(6, strconv.FormatInt(b.Middle(), 10)).raw(strconv.FormatInt(b.Count, 10))
		}
		e.raw("\n          }")
	}
	e.raw("\n        }")
}

// fioPercentile returns the middle of the first bin at which the cumulative count reaches p per cent of n values.
func fioPercentile(bins []stats.Bin, n int64, p float64) int64 {
	var sum int64
	for _, b := range bins {
		sum += b.Count
		if float64(sum) >= p/100*float64(n) {
			return b.Middle()
		}
	}
	return bins[len(bins)-1].Middle()
}

// fioSamples writes fio's statistics on the samples of a rate over time, from the bins of the series after the warm-up.
// Jobs have no series of their own.
func (e *encoder) fioSamples(r *Result, op string, share float64, series, unit string, scale float64, keys []string) {
	var m stats.Moments
	s, _ := r.SeriesOf(op + "." + series)
	for i, t := range s.T {
		if t >= r.WarmUp.UntilS && !math.IsNaN(s.V[i]) {
			m.Add(s.V[i] * scale)
		}
	}
	six := func(v float64) string { return strconv.FormatFloat(v, 'f', 6, 64) }
	e.key(4, keys[0]).raw(strconv.FormatInt(int64(m.Min()), 10)).raw(",\n")
	e.key(4, keys[1]).raw(strconv.FormatInt(int64(m.Max()), 10)).raw(",\n")
	if unit == "bw" {
		e.key(4, "bw_agg").raw(six(share)).raw(",\n")
	}
	e.key(4, keys[2]).raw(six(m.Mean())).raw(",\n")
	e.key(4, keys[3]).raw(six(m.StdDev())).raw(",\n")
	e.key(4, keys[4]).raw(strconv.FormatInt(m.N(), 10))
}

// fioShares writes the percentages of requests between fio's latency marks.
func (e *encoder) fioShares(h *stats.Histogram) {
	marks := []int64{2, 4, 10, 20, 50, 100, 250, 500, 750, 1000}
	below := 0.0
	for i, part := range []struct {
		key   string
		unit  units.Duration
		marks []int64
	}{
		{"latency_ns", units.Nanosecond, marks}, {"latency_us", units.Microsecond, marks},
		{"latency_ms", units.Millisecond, append(append([]int64{}, marks...), 2000)},
	} {
		if i > 0 {
			e.raw(",\n")
		}
		e.key(3, part.key).raw("{\n")
		for k, m := range part.marks {
			if k > 0 {
				e.raw(",\n")
			}
			share := h.CDF(units.Duration(m)*part.unit - 1)
			e.key(4, strconv.FormatInt(m, 10)).raw(strconv.FormatFloat(100*(share-below), 'f', 6, 64))
			below = share
		}
		if part.key == "latency_ms" {
			rest := 0.0
			if h.Count() > 0 {
				rest = 100 * (1 - below)
			}
			e.raw(",\n").key(4, ">=2000").raw(strconv.FormatFloat(rest, 'f', 6, 64))
		}
		e.raw("\n      }")
	}
}
