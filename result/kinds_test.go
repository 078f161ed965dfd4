package result_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"farflash/experiment/trial"
	"farflash/numeric/stats"
	"farflash/result"
)

// TestSetAgain verifies that setting a value again replaces it, that a dropped one is gone, and that a part without a
// name is named by its number.
func TestSetAgain(t *testing.T) {
	r := result.New(trial.Vocabulary(), "d", 1, "test")
	for v := range 2 {
		r.Set("read.iops", float64(v))
		r.Set("all.iops", float64(v))
		r.PutSeries(result.Series{Name: "snis.conv_c", T: []float64{0}, V: []float64{float64(v)}})
		var h stats.Histogram
		for range v + 1 {
			h.Record(1000)
		}
		r.SetHistogram("read.latency", &h)
		r.SetHistogram("write.latency", &h)
		r.SetMatrix("snis.error", []string{"mean"}, []string{"relative"}, [][]float64{{float64(v)}})
	}
	if m, ok := r.Metric("read.iops"); len(r.Metrics) != 2 || !ok || m.Value != 1 {
		t.Errorf("%+v", r.Metrics)
	}
	if len(r.Series) != 1 || r.Series[0].V[0] != 1 || len(r.Histograms) != 2 || r.Histograms[0].H.Count() != 2 ||
		len(r.Matrices) != 1 || r.Matrices[0].V[0][0] != 1 {
		t.Errorf("%+v, %+v, %+v", r.Series, r.Histograms, r.Matrices)
	}
	r.DropHistogram("read.latency")
	if len(r.Histograms) != 1 || r.Histograms[0].Name != "write.latency" {
		t.Errorf("%+v", r.Histograms)
	}
	r.Parts = []result.Parts{{Scope: "tenant", Names: []string{"web", ""}}}
	for i, want := range []string{"web", "tenant[1]", "tenant[2]"} {
		if got := r.PartName("tenant", i); got != want {
			t.Errorf("part %d is %s, not %s", i, got, want)
		}
	}
	for what, f := range map[string]func(){
		"a name that there is not": func() { r.Set("read.iopses", 1) },
		"2 times and 1 values": func() {
			r.PutSeries(result.Series{Name: "snis.conv_c", T: []float64{0, 1},
				V: []float64{1}})
		},
		"a row of 1 value, of 2 columns": func() {
			r.SetMatrix("snis.error", []string{"a"}, []string{"b", "c"},
				[][]float64{{1}})
		},
		"a label of 2 rows, and 1 row": func() {
			r.SetMatrix("snis.error", []string{"a", "b"}, []string{"b"},
				[][]float64{{1}})
		},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s is set", what)
				}
			}()
			f()
		}()
	}
}

// TestNamesOfFiles verifies that unfinished files are found in a folder whose name contains pattern characters, and
// that long names are truncated between characters.
func TestNamesOfFiles(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("names hold no signs of patterns there")
	}
	dir := filepath.Join(t.TempDir(), `a[1]*?\b`)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("ä", 60)
	f, err := os.CreateTemp(dir, result.Temporary(long))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if found, err := filepath.Glob(result.Unfinished(dir)); err != nil || len(found) != 1 || found[0] != f.Name() {
		t.Errorf("%v, %v", found, err)
	}
	if got := result.Temporary(long); !strings.HasPrefix(got, ".farflash-"+strings.Repeat("ä", 32)+"-") {
		t.Errorf("%s", got)
	}
	if got := result.Temporary(strings.Repeat("a", 64)); !strings.HasPrefix(got,
		".farflash-"+strings.Repeat("a", 64)+"-") {
		t.Errorf("%s", got)
	}
	name := filepath.Join(dir, "below", "x")
	for _, text := range []string{"one", "two"} {
		if err := result.WriteFile(name, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(name); err != nil || string(got) != text {
			t.Errorf("%q, %v", got, err)
		}
	}
	if left, err := os.ReadDir(filepath.Dir(name)); err != nil || len(left) != 1 {
		t.Errorf("%v is left, %v", left, err)
	}
	if err := result.WriteFile(filepath.Join(name, "y"), nil); err == nil {
		t.Error("a file is written below a file")
	}
}

// TestMistakesHaveTheirFile verifies that an error in a file's text begins with the file's name, line and column, and
// wraps the original error.
func TestMistakesHaveTheirFile(t *testing.T) {
	var v struct{ A int }
	if err := result.DecodeFile("a.json", []byte("{\"A\": 1}"), &v); err != nil || v.A != 1 {
		t.Errorf("%+v, %v", v, err)
	}
	err := result.DecodeFile("a.json", []byte("{\n \"A\": x}"), &v)
	var d *result.DecodeError
	if err == nil || !strings.HasPrefix(err.Error(), "a.json:2:7: ") || !errors.As(err, &d) || d.Line != 2 ||
		d.Column != 7 || !errors.Is(d, d.Err) {
		t.Errorf("%v", err)
	}
	for m, want := range map[result.Machine]string{
		{CPU: "Fast 9", CPUs: 4, OS: "linux", Arch: "amd64", Go: "go1.26"}: "Fast 9, 4 CPUs, linux/amd64, go1.26",
		{CPUs: 1, OS: "plan9", Arch: "arm", Go: "go1.26"}:                  "arm, 1 CPUs, plan9/arm, go1.26",
	} {
		if got := m.String(); got != want {
			t.Errorf("%s, not %s", got, want)
		}
	}
	c, err := result.ParseCondition(trial.Vocabulary().Metrics, "read.count>5")
	if err != nil {
		t.Fatal(err)
	}
	r := &result.Result{Metrics: []result.Metric{{Name: "read.count", Value: 9, Unit: "us"}}}
	if _, err := c.Value(r); err == nil ||
		err.Error() != `condition "read.count>5": read.count is in "us" in this result, "count" was expected` {
		t.Error(err)
	}
	if _, err := result.ParseCondition(trial.Vocabulary().Metrics, "read.count>5us"); err == nil ||
		!strings.Contains(err.Error(), `read.count is in plain numbers: `) {
		t.Error(err)
	}
}
