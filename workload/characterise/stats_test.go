package characterise_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"farflash/block"
	"farflash/internal/inputs"
	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/workload"
	"farflash/workload/characterise"
	"farflash/workload/trace"
)

// published maps the headings of STATS.txt to the files they measure.
var published = map[string]struct {
	file    string
	options trace.Options
	sorted  bool // the figures are for the recorded timestamps, sorted
}{
	"msr hm_0 sample":      {file: "msr/hm_0-sample-1000.csv"},
	"systor traces sample": {file: "systor17/systor17-traces-sample.csv.gz"},
	"tencent cbs sample": {file: "tencent-cbs/cloud_storage-sample.bz2",
		options: trace.Options{AsRecorded: true}, sorted: true},
	"cloudphysics head 20000": {file: "cloudphysics/cloudPhysicsIO-head20000.vscsi"},
	"mqsim tpcc":              {file: "mqsim/tpcc-small.trace"},
	"ycsb rocksdb (Q events)": {file: "ycsb-rocksdb-blkparse/evelii-sample.txt",
		options: trace.Options{Action: 'Q'}},
	"ycsb rocksdb (D events)": {file: "ycsb-rocksdb-blkparse/evelii-sample.txt",
		options: trace.Options{Action: 'D'}},
	"wiscsee blkparse (D events)": {file: "blkparse/wiscsee-blkparse-output.txt"},
}

// TestPublishedStatistics compares every figure of STATS.txt with ours.
func TestPublishedStatistics(t *testing.T) {
	file, err := os.Open(inputs.Path(t, "data/STATS.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	heading := regexp.MustCompile(`^## (.*): (\d+) requests, span ([\d.]+) s, order violations (\d+)`)
	var name string
	var got characterise.Result
	seen := 0
	scanner := bufio.NewScanner(file)
	for scanner.Scan() {
		line := scanner.Text()
		if m := heading.FindStringSubmatch(line); m != nil {
			name = m[1]
			p, ok := published[name]
			if !ok {
				t.Fatalf("STATS.txt measures %q, which the test does not know", name)
			}
			got = measure(t, inputs.Path(t, "data/"+p.file), p.options, p.sorted)
			same(t, name+" requests", float64(got.Requests), m[2])
			same(t, name+" span", got.Span, m[3])
			if !p.sorted {
				same(t, name+" order violations", float64(got.OutOfOrder), m[4])
			}
			seen++
			continue
		}
		switch {
		case strings.HasPrefix(line, "  R: "):
			compareSide(t, name+" R", got.Reads, line)
		case strings.HasPrefix(line, "  W: "):
			compareSide(t, name+" W", got.Writes, line)
		}
	}
	if seen != len(published) {
		t.Errorf("STATS.txt measures %d of the %d traces the test knows", seen, len(published))
	}
}

func compareSide(t *testing.T, name string, s characterise.Side, line string) {
	t.Helper()
	if strings.TrimSpace(line) == "W: 0" {
		same(t, name+" count", float64(s.Count), "0")
		return
	}
	m := regexp.MustCompile(
		`n (\d+) bytes (\d+) size mean (\S+) SCV (\S+) skew (\S+) rho1 (\S+); iat mean (\S+) us SCV (\S+) skew (\S+) rho1 (\S+);`).FindStringSubmatch(line)
	if m == nil {
		t.Fatalf("cannot read %q", line)
	}
	ours := []float64{
		float64(s.Count), float64(s.Bytes),
		float64(s.Size.Mean), float64(s.Size.SCV), float64(s.Size.Skewness), float64(s.Size.ACF1),
		float64(s.Interarrival.Mean), float64(s.Interarrival.SCV), float64(s.Interarrival.Skewness),
		float64(s.Interarrival.ACF1),
	}
	for i, label := range []string{"n", "bytes", "size mean", "size SCV", "size skewness", "size rho1", "iat mean",
		"iat SCV", "iat skewness", "iat rho1"} {
		same(t, name+" "+label, ours[i], m[i+1])
	}
}

// same compares a figure with a printed one, to the last printed digit.
func same(t *testing.T, name string, got float64, want string) {
	t.Helper()
	decimals := 0
	if i := strings.IndexByte(want, '.'); i >= 0 {
		decimals = len(want) - i - 1
	}
	if want == "nan" && math.IsNaN(got) {
		return
	}
	w, _ := strconv.ParseFloat(want, 64)
	if math.IsNaN(got) || math.Abs(got-w) > 0.501*math.Pow10(-decimals) {
		t.Errorf("%s = %.*f, want %s", name, decimals+2, got, want)
	}
}

func open(t *testing.T, path string, options trace.Options) *trace.Reader {
	t.Helper()
	r, err := trace.Open(path, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func measure(t *testing.T, path string, options trace.Options, sorted bool) characterise.Result {
	t.Helper()
	r := open(t, path, options)
	var src workload.Source = r
	if sorted {
		records, err := workload.Collect(r)
		if err != nil {
			t.Fatal(err)
		}
		slices.SortStableFunc(records, func(a, b workload.Record) int { return int((a.Time - b.Time) / units.Second) })
		src = workload.Slice(records)
	}
	res, err := characterise.Run(src)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// TestPublishedSequentialRatios compares the sequential shares of written bytes with the table at the end of STATS.txt.
// Tencent's is in file order.
func TestPublishedSequentialRatios(t *testing.T) {
	data, err := os.ReadFile(inputs.Path(t, "data/STATS.txt"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	cases := []struct {
		label, file string
		options     trace.Options
	}{
		{"msr", "msr/hm_0-sample-1000.csv", trace.Options{}},
		{"systor-traces(file order)", "systor17/systor17-traces-sample.csv.gz", trace.Options{AsRecorded: true}},
		{"systor-traces(time order)", "systor17/systor17-traces-sample.csv.gz", trace.Options{}},
		{"cbs(all volumes mixed)", "tencent-cbs/cloud_storage-sample.bz2", trace.Options{AsRecorded: true}},
		{"cloudphysics", "cloudphysics/cloudPhysicsIO-head20000.vscsi", trace.Options{}},
		{"tpcc", "mqsim/tpcc-small.trace", trace.Options{}},
	}
	for _, c := range cases {
		m := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(c.label) +
			` K=1 (\S+); K=8 (\S+); K=32 (\S+);`).FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("STATS.txt has no sequential ratios of %s", c.label)
		}
		got := measure(t, inputs.Path(t, "data/"+c.file), c.options, false).Writes.SequentialRatio
		same(t, c.label+" K=1", float64(got.One), m[1])
		same(t, c.label+" K=8", float64(got.Eight), m[2])
		same(t, c.label+" K=32", float64(got.ThirtyTwo), m[3])
	}
}

func TestJSONShape(t *testing.T) {
	m := characterise.New()
	for i := range int64(4) {
		m.Add(&workload.Record{Time: units.Duration(i) * units.Millisecond, Offset: i * 4096, Size: 4096,
			Op: block.Write, Response: workload.NoResponse})
	}
	res := m.Result()
	res.Format = "msr"
	text, err := json.Marshal(res)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"format":"msr","requests":4,"span_s":0.003,"out_of_order":0,` +
		`"reads":{"count":0,"bytes":0,"size":{"mean":null,"scv":null,"skewness":null,"acf1":null},"size_min":0,"size_max":0,"size_granule":0,"alignment":0,` +
		`"interarrival":{"mean":null,"scv":null,"skewness":null,"acf1":null},"sequential_ratio":{"1":null,"8":null,"32":null}},` +
		`"writes":{"count":4,"bytes":16384,"size":{"mean":4096,"scv":0,"skewness":null,"acf1":null},"size_min":4096,"size_max":4096,"size_granule":4096,"alignment":4096,` +
		`"interarrival":{"mean":1000,"scv":0,"skewness":null,"acf1":null},"sequential_ratio":{"1":1,"8":1,"32":1}},` +
		`"trims":0,"flushes":0,"volumes":1,"footprint":16384,"write_footprint":16384,"highest_byte":16384,` +
		`"write_rate_per_day":471859200000,"write_rate_within":null,"peak_iops_5min":1333.3333333333333,"skipped":0}`
	if string(text) != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
	var back characterise.Result
	if err := json.Unmarshal(text, &back); err != nil {
		t.Error(err)
	}
}

func Example() {
	m := characterise.New()
	for i := range int64(100) {
		m.Add(&workload.Record{Time: units.Duration(i) * 10 * units.Microsecond, Offset: i * 8192, Size: 8192,
			Op: block.Read, Response: workload.NoResponse})
	}
	res := m.Result()
	fmt.Println(res.Reads.Count, res.Reads.Interarrival.Mean, res.Reads.SequentialRatio.One, res.Footprint)
	// Output: 100 10 1 819200
}

func BenchmarkAdd(b *testing.B) {
	m := characterise.New()
	r := workload.Record{Size: 4096, Op: block.Read, Response: workload.NoResponse}
	b.ReportAllocs()
	for i := range b.N {
		r.Time += units.Microsecond
		// A stride that visits every 4 KiB block of 1 GiB once before it returns.
		r.Offset = int64(i) * 4096 * 12345 % (1 << 30)
		m.Add(&r)
	}
}

// TestMemoryOfTheFootprint touches 64 GiB in whole blocks and verifies the memory use that the package comment gives.
func TestMemoryOfTheFootprint(t *testing.T) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	m := characterise.New()
	const regions = 64 << 10
	for i := range int64(regions) {
		m.Add(&workload.Record{Time: units.Duration(i), Offset: i << 20, Size: 4096, Op: block.Read})
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if perMiB := float64(after.HeapAlloc-before.HeapAlloc) / regions; perMiB > 120 {
		t.Errorf("%.0f B for each MiB touched", perMiB)
	}
	if got := m.Result().Footprint; got != regions*4096 {
		t.Errorf("footprint %d", got)
	}
}

// TestFootprint compares the set with a plain map of sectors.
func TestFootprint(t *testing.T) {
	stream := rng.NewStream(1, "footprint")
	m := characterise.New()
	want := make(map[int64]bool)
	for i := range 3000 {
		r := workload.Record{Time: units.Duration(i), Volume: uint32(stream.IntN(2)), Offset: stream.IntN(1 << 23),
			Size: 1 + stream.IntN(20000), Op: block.Write}
		m.Add(&r)
		for s := r.Offset / 512; s*512 < r.End(); s++ {
			want[int64(r.Volume)<<40|s] = true
		}
		if got := m.Result().Footprint; i%100 == 0 && got != int64(len(want))*512 {
			t.Fatalf("after %d: %d, want %d", i+1, got, len(want)*512)
		}
	}
	if res := m.Result(); res.Footprint != int64(len(want))*512 || res.WriteFootprint != res.Footprint {
		t.Errorf("footprint %d, want %d", res.Footprint, len(want)*512)
	}
}
