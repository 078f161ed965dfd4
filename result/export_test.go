package result

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestFioShape(t *testing.T) {
	timing := StartTiming().Timing(1)
	var b bytes.Buffer
	if err := WriteFio(&b, &Run{Result: sample(), Timing: &timing}); err != nil {
		t.Fatal(err)
	}
	type latency struct {
		Min, Max, N int64
		Mean        float64
		Percentile  map[string]int64
		Bins        map[string]int64
	}
	type side struct {
		IOBytes  int64 `json:"io_bytes"`
		BWBytes  int64 `json:"bw_bytes"`
		IOPS     float64
		Runtime  int64
		TotalIOs int64   `json:"total_ios"`
		Clat     latency `json:"clat_ns"`
		Lat      latency `json:"lat_ns"`
		BWMax    int64   `json:"bw_max"`
		Samples  int64   `json:"bw_samples"`
	}
	var doc struct {
		Version string `json:"fio version"`
		Time    int64  `json:"timestamp"`
		Jobs    []struct {
			Name              string `json:"jobname"`
			Read, Write, Trim side
			US                map[string]float64 `json:"latency_us"`
			MS                map[string]float64 `json:"latency_ms"`
			NS                map[string]float64 `json:"latency_ns"`
		}
	}
	if err := json.Unmarshal(b.Bytes(), &doc); err != nil {
		t.Fatalf("%v in\n%s", err, b.String())
	}
	j := doc.Jobs[0]
	if j.Name != "sample" || j.Read.TotalIOs != 5000 || j.Read.IOBytes != 5000*4096 || j.Read.Runtime != 190 ||
		doc.Time == 0 {
		t.Errorf("%+v", j)
	}
	if j.Read.Clat.N != 5000 || j.Read.Clat.Min < 80000 || j.Read.Lat.Mean != j.Read.Clat.Mean ||
		len(j.Trim.Clat.Bins) != 0 {
		t.Errorf("latency %+v", j.Read.Clat)
	}
	// The warm-up of 10 ms is one bin, and one of the two others is empty.
	if j.Read.Samples != 1 || j.Write.Samples != 2 || j.Write.BWMax != 146484 {
		t.Errorf("samples %d, %d, largest %d", j.Read.Samples, j.Write.Samples, j.Write.BWMax)
	}
	var bins int64
	for _, c := range j.Write.Clat.Bins {
		bins += c
	}
	if bins != 5000 {
		t.Errorf("bins hold %d writes", bins)
	}
	total := 0.0
	for _, m := range []map[string]float64{j.NS, j.US, j.MS} {
		for _, v := range m {
			total += v
		}
	}
	if total < 99.999 || total > 100.001 {
		t.Errorf("latency shares add up to %v %%", total)
	}
}

// TestFioTool runs the converter that ships with fio on our export.
func TestFioTool(t *testing.T) {
	tool, err := exec.LookPath("fio_jsonplus_clat2csv")
	if err != nil {
		t.Skip("fio_jsonplus_clat2csv is not installed")
	}
	dir := t.TempDir()
	var b bytes.Buffer
	if err := WriteFio(&b, &Run{Result: sample()}); err != nil {
		t.Fatal(err)
	}
	in, out := filepath.Join(dir, "run.json"), filepath.Join(dir, "run.csv")
	if err := os.WriteFile(in, b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	if text, err := exec.Command(tool, in, out).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	text, err := exec.Command(tool, in, out, "--validate").CombinedOutput()
	if err != nil || !strings.Contains(string(text), "validated") {
		t.Fatalf("%v: %s", err, text)
	}
	csv, err := os.ReadFile(filepath.Join(dir, "run_job0.csv"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(csv)), "\n")
	if len(lines) < 100 || !strings.Contains(lines[len(lines)-1], "1.0") {
		t.Errorf("%d lines, the last is %s", len(lines), lines[len(lines)-1])
	}
}

func TestCSV(t *testing.T) {
	rows := map[string]int{"metrics": len(sample().Metrics), "series": 9, "matrices": 4,
		"histograms": len(sample().Histogram("read.latency").Bins()) +
			len(sample().Histogram("write.latency").Bins()) + len(sample().Histogram("all.latency").Bins())}
	for _, table := range CSVTables {
		var b bytes.Buffer
		if err := WriteCSV(&b, sample(), table); err != nil {
			t.Fatal(err)
		}
		all, err := csv.NewReader(&b).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		if len(all)-1 != rows[table] {
			t.Errorf("%s: %d rows, want %d", table, len(all)-1, rows[table])
		}
	}
	if err := WriteCSV(&bytes.Buffer{}, sample(), "nothing"); err == nil ||
		!strings.Contains(err.Error(), "metrics, series") {
		t.Errorf("error is %v", err)
	}
}

func TestGobench(t *testing.T) {
	var b bytes.Buffer
	timed := sample()
	timed.Set("fabric.pause.time", 0.25)
	if err := WriteGobench(&b, "", timed, timed); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	if n := strings.Count(text, "BenchmarkFarflash/ssd.waf 1 1.5 ratio\n"); n != 2 {
		t.Errorf("%d lines of ssd.waf in\n%s", n, text)
	}
	// Every metric is present with its value, in units that benchstat scales.
	for _, m := range timed.Metrics {
		value, unit := m.Value, m.Unit
		switch unit {
		case "us":
			value, unit = value/1e6, "sec"
		case "s":
			unit = "sec"
		case "1/s":
			unit = "op/s"
		}
		found := 0
		for line := range strings.Lines(text) {
			var name, of string
			var n int
			var v float64
			if k, err := fmt.Sscanf(line, "%s %d %g %s\n", &name, &n, &v, &of); err == nil && k == 4 &&
				name == "BenchmarkFarflash/"+m.Name {
				if found++; n != 1 || math.Abs(v-value) > 1e-12*math.Abs(value) || of != unit {
					t.Errorf("%s is %v %s, the metric %v %s", name, v, of, m.Value, m.Unit)
				}
			}
		}
		if found != 2 {
			t.Errorf("%s is there %d times", m.Name, found)
		}
	}
	b.Reset()
	if err := WriteGobench(&b, "two\nlines", sample()); err != nil ||
		!strings.HasPrefix(b.String(), "design: two lines\n# farflash 0.1.0, scenario sample\n# seed 7\n") {
		t.Errorf("%v in\n%s", err, b.String())
	}
	if !strings.Contains(text, "# seed 7\n") || strings.Contains(text, ": ") || !strings.Contains(text, " sec\n") ||
		strings.Contains(text, " us\n") {
		t.Error("no seed, or times in the wrong unit")
	}
}
