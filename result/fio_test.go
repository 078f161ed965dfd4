package result

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"farflash/numeric/stats"
	"farflash/numeric/units"
)

// fioWords defines the names that fio's format covers.
func fioWords() *Vocabulary {
	var l Lexicon
	for _, op := range []string{"read", "write", "trim", "flush", "all"} {
		l.Metric(op+".count", "count", "how many")
		l.Metric(op+".bytes", "B", "bytes")
		l.Metric(op+".iops", "1/s", "a second")
		l.Metric(op+".bandwidth", "B/s", "bytes a second")
		l.Latency(op, " of it", "of it")
	}
	l.Scope("workload", "item", func(string) bool { return true })
	l.Series("read.bandwidth", "B/s", "over time")
	l.Series("read.iops", "1/s", "over time")
	return NewVocabulary(l.Words)
}

// fioCase is a result of two items and the values it was built from.
type fioCase struct {
	r      *Result
	values [2]map[string][]units.Duration // by item and operation
}

func newFioCase() *fioCase {
	c := &fioCase{r: New(fioWords(), "d", 1, "v")}
	c.r.SimulatedS, c.r.WarmUp.UntilS = 1.25, 0.25
	c.r.Parts = []Parts{{"workload", []string{"first", "second"}}}
	g := rand.New(rand.NewPCG(5, 6))
	var sums = map[string]*stats.Histogram{"all": {}}
	set := func(prefix, op string, h *stats.Histogram) {
		n := float64(h.Count())
		c.r.SetLatencies(prefix+op, h)
		for name, v := range map[string]float64{"count": n, "bytes": n * 5000, "iops": n, "bandwidth": n * 5000} {
			c.r.Set(prefix+op+"."+name, v)
		}
	}
	for item := range 2 {
		c.values[item] = map[string][]units.Duration{}
		for k, op := range []string{"read", "write", "trim", "flush"} {
			h := &stats.Histogram{}
			for range 1000*(item+1) + 100*k {
				// up to several seconds
				d := units.Duration(float64(units.Nanosecond) * math.Exp([]float64{22, 22, 12, 17}[k]*g.Float64()))
				c.values[item][op] = append(c.values[item][op], d)
				h.Record(d)
			}
			if sums[op] == nil {
				sums[op] = &stats.Histogram{}
			}
			sums[op].Merge(h)
			sums["all"].Merge(h)
			set(fmt.Sprintf("workload[%d].", item), op, h)
		}
	}
	for op, h := range sums {
		set("", op, h)
	}
	c.r.SetSeries("read.bandwidth", 250*units.Millisecond, []float64{9e9, 2048, math.NaN(), 6144, 4096})
	c.r.SetSeries("read.iops", 250*units.Millisecond, []float64{9e9, 2, math.NaN(), 6, 4})
	return c
}

// of returns the values of a job: of one item, or of all if item is negative.
func (c *fioCase) of(item int, op string) []units.Duration {
	if item >= 0 {
		return c.values[item][op]
	}
	return slices.Concat(c.values[0][op], c.values[1][op])
}

type fioTimes struct {
	Min, Max, N  int64
	Mean, Stddev float64
	Percentile   map[string]int64
	Bins         map[string]int64
}

type fioOp struct {
	IOBytes   int64 `json:"io_bytes"`
	IOKBytes  int64 `json:"io_kbytes"`
	BWBytes   int64 `json:"bw_bytes"`
	BW        int64
	IOPS      float64
	Runtime   int64
	TotalIOs  int64    `json:"total_ios"`
	Short     int64    `json:"short_ios"`
	Dropped   int64    `json:"drop_ios"`
	Slat      fioTimes `json:"slat_ns"`
	Clat      fioTimes `json:"clat_ns"`
	Lat       fioTimes `json:"lat_ns"`
	BWMin     float64  `json:"bw_min"`
	BWMax     float64  `json:"bw_max"`
	BWAgg     float64  `json:"bw_agg"`
	BWMean    float64  `json:"bw_mean"`
	BWDev     float64  `json:"bw_dev"`
	BWSamples int64    `json:"bw_samples"`
	IOPSMin   float64  `json:"iops_min"`
	IOPSMax   float64  `json:"iops_max"`
	IOPSMean  float64  `json:"iops_mean"`
	IOPSDev   float64  `json:"iops_stddev"`
	Samples   int64    `json:"iops_samples"`
}

type fioDoc struct {
	Time   int64  `json:"timestamp"`
	TimeMS int64  `json:"timestamp_ms"`
	Date   string `json:"time"`
	Jobs   []struct {
		Name              string `json:"jobname"`
		Elapsed           int64
		JobRuntime        int64 `json:"job_runtime"`
		Read, Write, Trim fioOp
		Sync              struct {
			Total int64    `json:"total_ios"`
			Lat   fioTimes `json:"lat_ns"`
		}
		NS map[string]float64 `json:"latency_ns"`
		US map[string]float64 `json:"latency_us"`
		MS map[string]float64 `json:"latency_ms"`
	}
}

func (c *fioCase) written(t *testing.T, timing *Timing) (d fioDoc) {
	t.Helper()
	var b bytes.Buffer
	if err := WriteFio(&b, &Run{Result: c.r, Timing: timing}); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b.Bytes(), &d); err != nil {
		t.Fatalf("%v in\n%s", err, b.String())
	}
	return d
}

// TestFioByItsValues checks fio's format, for jobs and for a run as one job, against the recorded values: counts,
// rates, moments, percentiles, bins and shares.
func TestFioByItsValues(t *testing.T) {
	c := newFioCase()
	for _, parts := range [][]Parts{c.r.Parts, nil} {
		c.r.Parts = parts
		d := c.written(t, &Timing{Started: "2026-01-02T03:04:05Z"})
		if d.Time != 1767323045 || d.TimeMS != 1767323045000 || d.Date != "Fri Jan  2 03:04:05 2026" {
			t.Errorf("it is said to be of %d, %d, %s", d.Time, d.TimeMS, d.Date)
		}
		names := []string{"first", "second"}
		if parts == nil {
			names = []string{"farflash"}
		}
		if len(d.Jobs) != len(names) {
			t.Fatalf("%d jobs of %d", len(d.Jobs), len(names))
		}
		agg := 0.0
		for i, j := range d.Jobs {
			item := i
			if parts == nil {
				item = -1
			}
			if j.Name != names[i] || j.Elapsed != 2 || j.JobRuntime != 1000 {
				t.Errorf("job %d: %s, %d s, %d ms", i, j.Name, j.Elapsed, j.JobRuntime)
			}
			var all []units.Duration
			for op, got := range map[string]*fioOp{"read": &j.Read, "write": &j.Write, "trim": &j.Trim} {
				values := c.of(item, op)
				all = append(all, values...)
				n := int64(len(values))
				if got.TotalIOs != n || got.IOBytes != 5000*n || got.IOKBytes != 5000*n/1024 ||
					got.BWBytes != 5000*n || got.BW != 5000*n/1024 || got.IOPS != float64(n) || got.Runtime != 1000 ||
					got.Short != 0 || got.Dropped != 0 {
					t.Errorf("%s %s: %+v of %d", j.Name, op, got, n)
				}
				if got.Slat.N != 0 || got.Slat.Max != 0 || len(got.Lat.Bins) != 0 {
					t.Errorf("%s %s: submission took %+v, latency has bins %v", j.Name, op, got.Slat, got.Lat.Bins)
				}
				got.Lat.Percentile, got.Lat.Bins = got.Clat.Percentile, got.Clat.Bins
				for _, l := range []*fioTimes{&got.Clat, &got.Lat} {
					holdTimes(t, j.Name+" "+op, l, values)
				}
				if op == "read" {
					agg += got.BWAgg
				}
			}
			flushes := c.of(item, "flush")
			if j.Sync.Total != int64(len(flushes)) || j.Sync.Lat.N != int64(len(flushes)) ||
				j.Sync.Lat.Max != int64(slices.Max(flushes)/units.Nanosecond) {
				t.Errorf("%s: flushes %+v", j.Name, j.Sync)
			}
			holdShares(t, j.Name, [3]map[string]float64{j.NS, j.US, j.MS}, all)
		}
		if math.Abs(agg-100) > 1e-4 {
			t.Errorf("the jobs have %v %% of the bandwidth of reads", agg)
		}
		// Samples are the bins after the warm-up that have a value: 2, 6 and 4 KiB/s, whose standard deviation is the
		// root of 8/3. Items have none.
		want := fioOp{}
		if parts == nil {
			want = fioOp{BWMin: 2, BWMax: 6, BWMean: 4, BWDev: math.Sqrt(8.0 / 3), BWSamples: 3, IOPSMin: 2,
				IOPSMax: 6, IOPSMean: 4, IOPSDev: math.Sqrt(8.0 / 3), Samples: 3}
		}
		r := d.Jobs[0].Read
		for what, pair := range map[string][2]float64{"bw_min": {r.BWMin, want.BWMin},
			"bw_max": {r.BWMax, want.BWMax}, "bw_mean": {r.BWMean, want.BWMean}, "bw_dev": {r.BWDev, want.BWDev},
			"bw_samples": {float64(r.BWSamples), float64(want.BWSamples)},
			"iops_min":   {r.IOPSMin, want.IOPSMin}, "iops_max": {r.IOPSMax, want.IOPSMax},
			"iops_mean": {r.IOPSMean, want.IOPSMean}, "iops_stddev": {r.IOPSDev, want.IOPSDev},
			"iops_samples": {float64(r.Samples), float64(want.Samples)}} {
			if math.Abs(pair[0]-pair[1]) > 1e-5 {
				t.Errorf("%s is %v, not %v", what, pair[0], pair[1])
			}
		}
	}
	c.r.Parts, c.r.Name = nil, "named"
	if d := c.written(t, nil); d.Jobs[0].Name != "named" || d.Time != 0 || d.Date != "" {
		t.Errorf("without a time: %+v", d)
	}
	if d := (&fioCase{r: New(fioWords(), "d", 1, "v")}).written(t, nil); d.Jobs[0].Read.Runtime != 0 ||
		d.Jobs[0].Read.Clat.N != 0 || len(d.Jobs[0].Read.Clat.Percentile) != 0 || d.Jobs[0].MS[">=2000"] != 0 {
		t.Errorf("of nothing: %+v", d.Jobs[0])
	}
}

// holdTimes checks a section of latencies against the values.
func holdTimes(t *testing.T, name string, got *fioTimes, values []units.Duration) {
	t.Helper()
	sorted := slices.Sorted(slices.Values(values))
	sum, squares := 0.0, 0.0
	bins := map[string]int64{}
	var middles []int64
	for _, d := range sorted {
		ns := float64(d) / float64(units.Nanosecond)
		sum += ns
		squares += ns * ns
		// fio's bins by definition: one nanosecond wide up to 128, then 64 an octave; each is named by its middle.
		low, width := int64(d/units.Nanosecond), int64(1)
		for low >= 128*width {
			width *= 2
		}
		low -= low % width
		if width > 1 {
			low += width / 2
		}
		bins[strconv.FormatInt(low, 10)]++
		middles = append(middles, low)
	}
	n := float64(len(sorted))
	mean := sum / n
	if got.N != int64(n) || got.Min != int64(sorted[0]/units.Nanosecond) ||
		got.Max != int64(sorted[len(sorted)-1]/units.Nanosecond) || math.Abs(got.Mean-mean) > 1e-6*mean ||
		math.Abs(got.Stddev-math.Sqrt(squares/n-mean*mean)) > 1e-6*mean {
		t.Errorf("%s: %d from %d to %d, mean %v, deviation %v", name, got.N, got.Min, got.Max, got.Mean, got.Stddev)
	}
	if len(bins) != len(got.Bins) {
		t.Errorf("%s: %d bins of %d", name, len(got.Bins), len(bins))
	}
	for k, c := range bins {
		if got.Bins[k] != c {
			t.Errorf("%s: bin %s holds %d of %d", name, k, got.Bins[k], c)
		}
	}
	if len(got.Percentile) != 17 {
		t.Errorf("%s: %d percentiles", name, len(got.Percentile))
	}
	for k, v := range got.Percentile {
		p, err := strconv.ParseFloat(k, 64)
		if err != nil {
			t.Fatal(err)
		}
		at := int(math.Ceil(p / 100 * n))
		if v != middles[at-1] && v != middles[max(at-2, 0)] { // p/100*n may be an integer and rounded up
			t.Errorf("%s: percentile %s is %d, the %d-th of %d values lies in the bin about %d", name, k, v, at,
				len(sorted), middles[at-1])
		}
	}
}

// holdShares checks the shares of latencies between fio's marks against the values.
func holdShares(t *testing.T, name string, got [3]map[string]float64, values []units.Duration) {
	t.Helper()
	total, last := 0.0, units.Duration(0)
	for i, unit := range []units.Duration{units.Nanosecond, units.Microsecond, units.Millisecond} {
		marks := []int64{2, 4, 10, 20, 50, 100, 250, 500, 750, 1000}
		if i == 2 {
			marks = append(marks, 2000)
		}
		for _, m := range marks {
			end := units.Duration(m) * unit
			inside, near := 0.0, 0.0
			for _, d := range values {
				if d >= last && d < end {
					inside++
				}
				if math.Abs(float64(d)/float64(end)-1) < 1.0/32 ||
					math.Abs(float64(d)/float64(max(last, 1))-1) < 1.0/32 {
					near++ // in a bin that the mark may cut
				}
			}
			n := float64(len(values))
			if share := got[i][strconv.FormatInt(m, 10)]; math.Abs(share-100*inside/n) > 100*near/n+1e-5 {
				t.Errorf("%s: %v %% are up to %v, by the values %v", name, share, end, 100*inside/n)
			} else {
				total += share
			}
			last = end
		}
	}
	rest := 0.0
	for _, d := range values {
		if d >= 2*units.Second {
			rest++
		}
	}
	if got := got[2][">=2000"]; math.Abs(got-100*rest/float64(len(values))) > 1 || rest == 0 {
		t.Errorf("%s: %v %% take two seconds or more, by the values %v of %d", name, got, rest, len(values))
	} else if math.Abs(total+got-100) > 1e-3 {
		t.Errorf("%s: the shares add up to %v", name, total+got)
	}
}
