package reproduce

import (
	"context"
	"math"
	"strings"
	"testing"

	"farflash/flash/bench"
)

// TestFlashnet runs each measured experiment as briefly as possible and verifies that its rows are the recorded ones,
// each with a criterion that figures can miss. The figures of these short runs are meaningless.
func TestFlashnet(t *testing.T) {
	if testing.Short() {
		t.Skip("slow")
	}
	ran := 0
	for _, e := range All() {
		if !strings.HasPrefix(e.ID, "flashnet-") {
			continue
		}
		ran++
		t.Run(e.ID, func(t *testing.T) {
			told := 0
			r, err := e.Run(context.Background(), Options{Seed: 1, brief: true, Progress: func(done, all int) {
				if told++; done > all {
					t.Errorf("%d of %d are done", done, all)
				}
			}})
			if err != nil {
				t.Fatal(err)
			}
			missesAreSeen(t, r)
			sound(t, r)
			if r.Measured != (e.ID != "flashnet-waf") || r.Note == "" || told == 0 && e.ID != "flashnet-table2" {
				t.Errorf("%+v, told %d times", r, told)
			}
			names := func(lines string) (out []string) {
				for line := range strings.Lines(lines) {
					if _, name, ok := strings.Cut(line, "\t"); ok {
						out = append(out, name)
					}
				}
				return out
			}
			want, got := names(section(heldText, e.ID)), names(verdictLines(r))
			if strings.Join(want, "") != strings.Join(got, "") {
				t.Errorf("verdicts.txt holds the rows\n%s\nand they are\n%s", strings.Join(want, ""), verdictLines(r))
			}
			if fell := r.Fell(); e.Measured && fell != nil {
				t.Errorf("%v", fell)
			}
		})
	}
	if ran != 8 {
		t.Errorf("%d experiments", ran)
	}
}

// TestFlashnetInterrupted verifies that a measurement can be interrupted.
func TestFlashnetInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, name := range []string{"fig8", "table2", "fig9", "waf"} {
		if _, err := runFlashnet[name](ctx, Options{Seed: 1, brief: true}); err == nil {
			t.Errorf("%s ends as if nothing had been", name)
		}
	}
}

// verdicts returns rows' verdicts by label and metric.
func verdicts(rows []Row) map[string]Verdict {
	out := map[string]Verdict{}
	for i := range rows {
		out[rows[i].Label+", "+rows[i].Metric] = rows[i].Verdict()
	}
	return out
}

// TestFlashnetVerdicts feeds the rows the paper's own figures, which meet the criteria that they can meet, and others,
// which do not.
func TestFlashnetVerdicts(t *testing.T) {
	paper := verdicts(fig8Rows([]float64{42.2e3, 1.22e6}, []float64{33.6e3, 880.9e3}, 42.2/33.6, "", ""))
	slow := verdicts(fig8Rows([]float64{20e3, 15e3}, []float64{33.6e3, 30e3}, 0.6, "", ""))
	for name, v := range paper {
		want := OK
		if strings.HasPrefix(name, "peak over") {
			want = NotStated
		}
		if v != want {
			t.Errorf("figure 8: %s: %v", name, v)
		}
		if got := slow[name]; got != NotReproduced && name != "one client, socket and file, IOPS" {
			t.Errorf("figure 8: %s is %v with a third of the rate and one that falls", name, got)
		}
	}
	share := func(network, storage, scheduling, requests, other float64) (x [bench.Parts]float64) {
		x[bench.Network], x[bench.Storage], x[bench.Scheduling], x[bench.Requests], x[bench.Other] = network, storage,
			scheduling, requests, other
		return x
	}
	socket, flash := share(0.193, 0.073, 0.158, 0.047, 0.061), share(0.206, 0.008, 0.084, 0.117, 0.054)
	same, turned := verdicts(table2Rows(socket, flash)), verdicts(table2Rows(flash, socket))
	for name, v := range same {
		if v == NotReproduced {
			t.Errorf("table 2: %s: %v", name, v)
		}
		if strings.Contains(name, "over socket") && turned[name] != NotReproduced {
			t.Errorf("table 2: %s is %v with the columns exchanged", name, turned[name])
		}
	}
	of := func(us float64) bench.Spread { return bench.Spread{Median: us} }
	cheap := []bench.Registered{{Size: 1 << 20, File: of(90e3), Pinned: of(1e3)},
		{Size: 16 << 30, File: of(90e3), Pinned: of(5e6)}}
	dear := []bench.Registered{{Size: 1 << 20, File: of(30), Pinned: of(40)},
		{Size: 16 << 30, File: of(95e3), Skipped: "no room"}}
	for name, v := range verdicts(fig9Rows(cheap)) {
		if v == NotReproduced {
			t.Errorf("figure 9: %s: %v", name, v)
		}
	}
	for name, v := range verdicts(fig9Rows(dear)) {
		if v != NotReproduced {
			t.Errorf("figure 9: %s is %v where registration grows with the size", name, v)
		}
	}
	for _, x := range []struct {
		found [3]float64
		want  Verdict
	}{{[3]float64{5.9, 1, 1}, OK}, {[3]float64{13.038, 2.631, 2.447}, OK}, {[3]float64{2, 1, 1}, NotReproduced},
		{[3]float64{20, 1, 1}, NotReproduced}} {
		if r := wafRows("95/20", 83, x.found); len(r) != 1 || r[0].Verdict() != x.want {
			t.Errorf("%v: %+v", x.found, r)
		}
	}
	if r := wafRows("uniform", 0, [3]float64{8, 8.5, 8}); len(r) != 1 || r[0].Verdict() != NotReproduced {
		t.Errorf("%+v", r)
	}
}

// TestRatio verifies the median over rounds of the ratio within each; there is none for a system that was not measured.
func TestRatio(t *testing.T) {
	rounds := func(rates ...float64) (out []bench.Measured) {
		for _, x := range rates {
			out = append(out, bench.Measured{Rate: x})
		}
		return out
	}
	r := &bench.Report{Outcomes: []bench.Outcome{{System: bench.Verbs, Rounds: rounds(10, 300, 4)},
		{System: bench.Socket, Rounds: rounds(5, 100, 4)}}}
	if got := ratio(r, bench.Verbs, bench.Socket, rate); got != 2 {
		t.Error(got)
	}
	if got := ratio(r, bench.Verbs, bench.Local, rate); !math.IsNaN(got) {
		t.Error(got)
	}
}
