package network_test

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"farflash/experiment"
	"farflash/experiment/trial"
	"farflash/experiment/trial/trialtest"
	"farflash/internal/golden"
	"farflash/internal/patience"
	"farflash/numeric/units"
	"farflash/scenario"
	"farflash/scenario/convert"
	"farflash/scenario/peer"
	"farflash/scenario/shape"
	"farflash/sim"
)

// ns3Cases holds the cases of HPCC's ns-3 and of ns3-rdma with their results, which are read from the tables of
// EXPECTED.md, including the tolerances.
const ns3Cases = "../../../shared/cases/ns3"

const ns3Page = "../../docs/validation/ns3.md"

var update = flag.Bool("update", false, "write the tables of docs/validation/ns3.md")

// ns3Case returns the directory of a case; if it is missing, the test is skipped by name.
func ns3Case(t testing.TB, name string) string {
	t.Helper()
	dir := filepath.Join(filepath.FromSlash(ns3Cases), filepath.FromSlash(name))
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("no case %s: the folder ../shared is not there, or keeps it apart", name)
	}
	return dir
}

// long enables the slowest cases, and the tables that depend on all of them.
var long = patience.LongNamed("TestNS3")

// atNight skips five of six cases unless FARFLASH_LONG is set, and those that take half a minute of processor time.
// Every gate runs each of them with the program, by ../shared/cases/check.
func atNight(t testing.TB, dir string) {
	t.Helper()
	name := filepath.Base(dir)
	h := fnv.New32a()
	h.Write([]byte(name))
	if !long && (h.Sum32()%6 != 0 || strings.HasPrefix(name, "src_20k") || filepath.Base(filepath.Dir(dir)) == "fat") {
		t.Skip("FARFLASH_LONG is not set")
	}
}

// expected reads the rows of a section's tables: column to cell.
func expected(t testing.TB, section string) []map[string]string {
	t.Helper()
	f, err := os.Open(filepath.Join(filepath.FromSlash(ns3Cases), "EXPECTED.md"))
	if err != nil {
		t.Skip("no ../shared/cases/ns3/EXPECTED.md: the folder ../shared is not there")
	}
	defer f.Close()
	var rows []map[string]string
	var head []string
	in := false
	for s := bufio.NewScanner(f); s.Scan(); {
		line := s.Text()
		switch {
		case strings.HasPrefix(line, "## "):
			title, _, _ := strings.Cut(line[3:], ".")
			in, head = strings.TrimSpace(title) == section, nil
		case !in || strings.HasPrefix(line, "|--"):
		case strings.HasPrefix(line, "|"):
			cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			if head == nil {
				head = cells
				continue
			}
			row := map[string]string{}
			for i, c := range cells {
				row[head[i]] = c
			}
			rows = append(rows, row)
		default:
			head = nil
		}
	}
	if len(rows) == 0 {
		t.Fatalf("EXPECTED.md has no table in section %s", section)
	}
	return rows
}

var firstNumber = regexp.MustCompile(`^[-+]?[0-9.]+`)

// figure returns the number at the start of a cell.
func figure(t testing.TB, row map[string]string, column string) float64 {
	t.Helper()
	x, err := strconv.ParseFloat(firstNumber.FindString(row[column]), 64)
	if err != nil {
		t.Fatalf("%q in column %q is not a number", row[column], column)
	}
	return x
}

// cells returns the numbers of a cell that has several.
func cells(t testing.TB, text, sep string) []float64 {
	t.Helper()
	var out []float64
	for _, s := range strings.Split(text, sep) {
		x, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, x)
	}
	return out
}

// gaps are the deviations of figures of a kind from the reference.
type gaps struct {
	section, what string
	n             int
	worst, sum    float64 // shares of the reference's
}

// gathered are the gaps of the sections that have run, for docs/validation/ns3.md; sections run cases in parallel.
var gathered struct {
	sync.Mutex
	list []gaps
}

// near is within, and also records the deviation for a section's table.
func near(t testing.TB, section, what string, got, want, share, absolute float64) {
	t.Helper()
	within(t, what, got, want, share, absolute)
	off := math.Abs(got/want - 1)
	gathered.Lock()
	defer gathered.Unlock()
	i := slices.IndexFunc(gathered.list, func(g gaps) bool { return g.section == section && g.what == what })
	if i < 0 {
		i = len(gathered.list)
		gathered.list = append(gathered.list, gaps{section: section, what: what})
	}
	g := &gathered.list[i]
	g.n++
	g.worst = max(g.worst, off)
	g.sum += off
}

// TestNS3Cases runs all cases, section by section of EXPECTED.md, and compares the tables of docs/validation/ns3.md
// with the results.
func TestNS3Cases(t *testing.T) {
	gathered.list = nil
	for _, s := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"PFC", ns3PFC}, {"DCQCN", ns3DCQCN}, {"Steady", ns3Steady}, {"Rates", ns3Rates}, {"Collapse", ns3Collapse},
		{"Clos", ns3Clos}, {"RDMA", ns3RDMA}, {"Flows", ns3Flows}, {"Lossless", ns3Lossless},
	} {
		t.Run(s.name, s.run)
	}
	if testing.Short() || !long || len(gathered.list) == 0 {
		return
	}
	// Cases finish in any order, so their sum is rounded differently; three digits do not show it.
	slices.SortFunc(gathered.list, func(a, b gaps) int {
		return cmp.Or(strings.Compare(a.section, b.section), strings.Compare(a.what, b.what))
	})
	lines := golden.Head("cases", "figure", ">how many", ">off by on average", ">at most")
	for _, g := range gathered.list {
		lines = append(lines,
			golden.Row(g.section, g.what, fmt.Sprint(g.n), fmt.Sprintf("%.2f %%", 100*g.sum/float64(g.n)),
				fmt.Sprintf("%.2f %%", 100*g.worst)))
	}
	golden.Table(t, ns3Page, "ns3-sections", "the reference's seeds", lines, *update)
}

// within fails unless got is within a relative or an absolute tolerance of want.
func within(t testing.TB, what string, got, want, share, absolute float64) {
	t.Helper()
	if d := math.Abs(got - want); !(d <= max(share*math.Abs(want), absolute)) {
		t.Errorf("%s is %g, the reference has %g; %g %% or %g is allowed", what, got, want, 100*share, absolute)
	}
}

// caseOptions configures the run of a case.
type caseOptions struct {
	config string
	compat string
	seed   uint64
	set    []string
	flow   func(experiment.Flow) error
}

// runCase converts and runs a case.
func runCase(t testing.TB, dir string, o caseOptions) *experiment.Outcome {
	t.Helper()
	config := o.config
	if config == "" {
		config = "config.txt"
	}
	c, err := convert.FromNS3(filepath.Join(dir, config), o.compat)
	if err != nil {
		t.Fatal(err)
	}
	var changes []shape.Change
	for _, x := range o.set {
		ch, err := shape.ParseChange(x)
		if err != nil {
			t.Fatal(err)
		}
		changes = append(changes, ch)
	}
	s, err := scenario.Parse(shape.Source{File: "case.yaml", Text: []byte(c.Text())}, changes)
	if err != nil {
		t.Fatal(err)
	}
	out, err := trial.Run(context.Background(), s,
		experiment.Options{Seed: max(o.seed, 1), Version: "test", Flow: o.flow})
	if err != nil {
		t.Fatal(err)
	}
	for _, ch := range out.Result.Checks {
		if !ch.OK {
			t.Errorf("%s: %s", ch.Name, ch.Detail)
		}
	}
	return out
}

// completions reads a case's fct.txt, which may be compressed.
func completions(t testing.TB, dir string) []peer.NS3Completion {
	t.Helper()
	names, _ := filepath.Glob(filepath.Join(dir, "fct.txt*"))
	if len(names) != 1 {
		t.Fatalf("%s has %d fct.txt", dir, len(names))
	}
	f, err := os.Open(names[0])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := io.Reader(f)
	if strings.HasSuffix(names[0], ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	list, err := peer.ReadNS3Completions(names[0], r)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// ns3PFC is section A1: PFC alone, with end times to the nanosecond.
func ns3PFC(t *testing.T) {
	for _, row := range expected(t, "A1") {
		name := fmt.Sprintf("incast/pfconly_%sto1_%sG_1MB", row["N"], row["G"])
		var set []string
		if row["G"] == "10" {
			// The reference was modified by hand: 4096 B more headroom.
			name += "_hdrmfix"
			set = []string{"fabric.pfc.headroom=7846B"}
		}
		t.Run(name, func(t *testing.T) {
			o := runCase(t, ns3Case(t, name), caseOptions{set: set})
			near(t, "PFC alone, 1 MB N:1", "last FCT in us", trialtest.Metric(t, o, "flow.fct.max"),
				figure(t, row, "last FCT us"), 0, 0.002)
			near(t, "PFC alone, 1 MB N:1", "mean FCT in us", trialtest.Metric(t, o, "flow.fct.mean"),
				figure(t, row, "mean FCT us"), 0.005, 0)
			within(t, "pauses", trialtest.Metric(t, o, "fabric.pause.count"), figure(t, row, "PAUSE"), 0.06, 3)
			within(t, "drops", trialtest.Metric(t, o, "fabric.drops"), 0, 0, 0)
		})
	}
}

// ns3DCQCN is section A2: marking is random, so means over seeds are compared. The seeds are the reference's runs, and
// if no two hosts are synchronised the means agree to all printed digits.
func ns3DCQCN(t *testing.T) {
	if testing.Short() {
		t.Skip("several seeds of each row")
	}
	const seeds = 20
	for _, row := range expected(t, "A2") {
		name := fmt.Sprintf("incast/%s_%sto1_%sG_1MB", row["cc"], row["N"], row["G"])
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := ns3Case(t, name)
			atNight(t, dir)
			sum, squares := 0.0, 0.0
			for seed := range uint64(seeds) {
				x := trialtest.Metric(t, runCase(t, dir, caseOptions{seed: seed + 1}), "flow.fct.mean")
				sum += x
				squares += x * x
			}
			mean := sum / seeds
			ref := cells(t, row["mean FCT us (mean +- sd)"], "+-")
			if row["N"] == "2" {
				near(t, "DCQCN, 1 MB 2:1, 20 seeds each", "mean FCT in us", mean, ref[0], 0.001, 0)
				return
			}
			variance := max(0, squares/seeds-mean*mean) * seeds / (seeds - 1)
			near(t, "DCQCN, 1 MB 4:1 and wider, 20 seeds each", "mean FCT in us", mean, ref[0], 0.03,
				2*math.Sqrt(ref[1]*ref[1]/20+variance/seeds))
		})
	}
}

// ns3Lossless verifies that our network loses no packet in any case and completes every finite flow.
func ns3Lossless(t *testing.T) {
	if testing.Short() {
		t.Skip("every case")
	}
	for _, pattern := range []string{"incast/*_1MB", "clos/*", "fat/*"} {
		dirs, err := filepath.Glob(filepath.Join(ns3Case(t, "incast"), "..", pattern, "config.txt"))
		if err != nil || len(dirs) == 0 {
			t.Fatal("no cases:", err)
		}
		for _, config := range dirs {
			dir := filepath.Dir(config)
			t.Run(filepath.Base(dir), func(t *testing.T) {
				atNight(t, dir)
				t.Parallel()
				o := runCase(t, dir, caseOptions{compat: "none"})
				within(t, "drops", trialtest.Metric(t, o, "fabric.drops"), 0, 0, 0)
				within(t, "unfinished flows", trialtest.Metric(t, o, "flow.unfinished"), 0, 0, 0)
			})
		}
	}
}

// ns3Steady is section A3: long flows in steady state.
func ns3Steady(t *testing.T) {
	if testing.Short() {
		t.Skip("50 ms of each row")
	}
	for _, row := range expected(t, "A3") {
		name := fmt.Sprintf("incast/%s_%sto1_%sG_long50ms", row["cc"], row["N"], row["G"])
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := ns3Case(t, name)
			atNight(t, dir)
			if figure(t, row, "drops") > 0 {
				t.Skip("the reference lost packets; how go-back-N goes on was not compared (section A5 is)")
			}
			o := runCase(t, dir, caseOptions{set: []string{"measure.warm_up=25ms"}})
			share := 0.01
			if row["cc"] == "timely" || row["cc"] == "hp" {
				share = 0.05
			}
			total := trialtest.Metric(t, o, "fabric.goodput") / 1e9
			section := "long flows, PFC, DCQCN, DCTCP"
			if share > 0.01 {
				section = "long flows, TIMELY, HPCC"
			}
			near(t, section, "goodput of the last 25 ms in Gbit/s", total, figure(t, row, "goodput Gb/s"), share, 0)
			n, sum, squares := figure(t, row, "N"), 0.0, 0.0
			for _, x := range sent(t, o, "h0") {
				sum += x
				squares += x * x
			}
			if jain := sum * sum / (n * squares); row["cc"] == "hp" {
				// HPCC's flows keep the allocation of the first round trips for a long time, and that depends on the
				// order of two packets that arrive in the same nanosecond: one flow that starts 1 ns later moves the
				// index from 0.79 to 0.83 (4:1; the reference 0.85) and from 0.84 to 0.88 (8:1; 0.92).
				near(t, "long flows, HPCC", "Jain's index", jain, figure(t, row, "Jain"), 0, 0.1)
			} else {
				near(t, section, "Jain's index", jain, figure(t, row, "Jain"), 0, 0.02)
			}
			within(t, "drops", trialtest.Metric(t, o, "fabric.drops"), 0, 0, 0)
			if figure(t, row, "PAUSE") == 0 && trialtest.Metric(t, o, "fabric.pause.count") > 0 {
				t.Errorf("%g pauses; the reference has none", trialtest.Metric(t, o, "fabric.pause.count"))
			}
		})
	}
}

// sent returns the link shares at which all hosts except the receiver send, after the warm-up.
func sent(t testing.TB, o *experiment.Outcome, receiver string) []float64 {
	t.Helper()
	for _, m := range o.Result.Matrices {
		if m.Name != "fabric.link.totals" {
			continue
		}
		var out []float64
		for i, r := range m.Rows {
			if host, _, _ := strings.Cut(r, "->"); strings.HasPrefix(r, "h") && host != receiver {
				out = append(out, m.V[i][0])
			}
		}
		return out
	}
	t.Fatal("no fabric.link.totals")
	return nil
}

// ns3Rates is section A4: HPCC, TIMELY and DCTCP, which use no random numbers.
func ns3Rates(t *testing.T) {
	for _, row := range expected(t, "A4") {
		name := fmt.Sprintf("incast/%s_%sto1_%sG_1MB", row["cc"], row["N"], row["G"])
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := runCase(t, ns3Case(t, name), caseOptions{})
			near(t, map[string]string{"hp": "HPCC", "timely": "TIMELY", "dctcp": "DCTCP"}[row["cc"]]+", 1 MB N:1",
				"mean FCT in us", trialtest.Metric(t, o, "flow.fct.mean"), figure(t, row, "mean FCT us"), 0.03, 0)
		})
	}
}

// ns3Collapse is section A5: with the reference's headroom packets are lost at 10G, with our network's headroom none.
func ns3Collapse(t *testing.T) {
	row := expected(t, "A5")[0]
	built := regexp.MustCompile(`mean FCT ([0-9 /]+) us`).FindStringSubmatch(row["reference as built"])
	fans := regexp.MustCompile(`([0-9]+):1`).FindAllStringSubmatch(row["case"], -1)
	if len(built) != 2 || len(fans) != 3 {
		t.Fatalf("EXPECTED.md says %v", row)
	}
	lost := regexp.MustCompile(`drops ([0-9 /]+)$`).FindStringSubmatch(strings.TrimSpace(row["reference as built"]))
	if len(lost) != 2 {
		t.Fatalf("EXPECTED.md says %v", row)
	}
	lines := golden.Head("PFC alone, 10 Gbit/s", ">reference: packets lost", ">mean FCT, us",
		">`compat: hpcc`: packets lost", ">mean FCT, us", ">without compat: packets lost", ">mean FCT, us")
	for i, mean := range cells(t, built[1], "/") {
		name := fmt.Sprintf("incast/pfconly_%sto1_10G_1MB", fans[i][1])
		t.Run(name, func(t *testing.T) {
			dir := ns3Case(t, name)
			o := runCase(t, dir, caseOptions{})
			if trialtest.Metric(t, o, "fabric.drops") == 0 {
				t.Error("nothing is lost; the reference loses packets")
			}
			if got := trialtest.Metric(t, o, "flow.fct.mean"); got < mean/2 || got > 2*mean {
				t.Errorf("mean FCT is %g us, the reference has %g", got, mean)
			}
			drops, fct := trialtest.Metric(t, o, "fabric.drops"), trialtest.Metric(t, o, "flow.fct.mean")
			o = runCase(t, dir, caseOptions{compat: "none"})
			lines = append(lines,
				golden.Row(fans[i][1]+":1", fmt.Sprint(cells(t, lost[1], "/")[i]), fmt.Sprintf("%.0f", mean),
					fmt.Sprint(drops), fmt.Sprintf("%.0f", fct),
					fmt.Sprint(trialtest.Metric(t, o, "fabric.drops")),
					fmt.Sprintf("%.0f", trialtest.Metric(t, o, "flow.fct.mean"))))
			within(t, "drops of a network of ours", trialtest.Metric(t, o, "fabric.drops"), 0, 0, 0)
			within(t, "its unfinished flows", trialtest.Metric(t, o, "flow.unfinished"), 0, 0, 0)
		})
	}
	golden.Table(t, ns3Page, "ns3-collapse", "seed 1", lines, *update)
}

// ns3Clos is sections B and C: whole networks.
func ns3Clos(t *testing.T) {
	for _, row := range expected(t, "B / C") {
		name := row["case"]
		t.Run(name, func(t *testing.T) {
			dir := ns3Case(t, name)
			if testing.Short() && !strings.Contains(name, "F_t_h") {
				t.Skip("some seconds")
			}
			atNight(t, dir)
			t.Parallel()
			var set []string
			if strings.HasSuffix(name, "switchfixed") {
				set = []string{"fabric.acks.class=0"}
			}
			o := runCase(t, dir, caseOptions{set: set})
			if figure(t, row, "drops") > 0 {
				// Lost packets decide which flows remain at the end.
				if trialtest.Metric(t, o, "fabric.drops") == 0 {
					t.Error("nothing is lost; the reference loses packets")
				}
				within(t, "mean FCT in us", trialtest.Metric(t, o, "flow.fct.mean"),
					cells(t, row["FCT mean / p50 / p99 / max us"], "/")[0], 0.05, 0)
				return
			}
			fct := cells(t, row["FCT mean / p50 / p99 / max us"], "/")
			const section = "Clos and fat tree"
			near(t, section, "mean FCT in us", trialtest.Metric(t, o, "flow.fct.mean"), fct[0], 0.05, 0)
			near(t, section, "median FCT in us", trialtest.Metric(t, o, "flow.fct.p50"), fct[1], 0.10, 0)
			near(t, section, "99th percentile of the FCT in us", trialtest.Metric(t, o, "flow.fct.p99"), fct[2], 0.15,
				0)
			pauses := figure(t, row, "PAUSE")
			if pauses > 100 {
				near(t, section, "pauses, where there are more than 100",
					trialtest.Metric(t, o, "fabric.pause.count"), pauses, 0.10, 0)
			} else {
				within(t, "pauses", trialtest.Metric(t, o, "fabric.pause.count"), pauses, 0, 10)
			}
			within(t, "drops", trialtest.Metric(t, o, "fabric.drops"), 0, 0, 0)
			if trialtest.Metric(t, o, "fabric.pause.count") == pauses && pauses == 0 {
				near(t, section, "packet hops, where nothing is paused", trialtest.Metric(t, o, "fabric.packet_hops"),
					figure(t, row, "packet-hops"), 0, 0)
			}
		})
	}
}

// ns3Flows compares flow by flow, to the nanosecond. The order of two packets that arrive in the same nanosecond
// differs, with all its consequences, so only a few cases have most flows equal. With FARFLASH_LONG all cases are
// compared.
func ns3Flows(t *testing.T) {
	type key struct {
		src, dst int
		port     uint16
	}
	lines := golden.Head("case", ">flows", ">to the nanosecond", ">mean FCT off by")
	names := []string{
		"clos/snis_F_t_h_dcqcn", "clos/snis_F_t_h_pfconly", "clos/snis_pfconly_load30", "clos/snis_pfconly_load60",
		"clos/snis_dcqcn_load30", "clos/snis_dcqcn_load60",
		"clos/src_pfconly_load30", "clos/src_dcqcn_load30", "clos/src_dcqcn_load60", "clos/src_20k_load50_ackprio0",
		"fat/dcqcn_ws30_0.5ms", "fat/hp_ws30_0.5ms", "fat/hpccPint_ws30_0.5ms",
	}
	if !long {
		names = names[:1]
	}
	for _, name := range names {
		dir := ns3Case(t, name)
		want := map[key]peer.NS3Completion{}
		for _, c := range completions(t, dir) {
			want[key{c.Src, c.Dst, c.SrcPort}] = c
		}
		same, all := 0, 0
		ours, theirs := 0.0, 0.0
		runCase(t, dir, caseOptions{flow: func(f experiment.Flow) error {
			all++
			c, ok := want[key{int(f.Src), int(f.Dst), f.Port}]
			switch {
			case !ok:
				t.Errorf("the reference has no flow %+v", f)
			case f.FCT == sim.Forever:
			default:
				ours, theirs = ours+float64(f.FCT/units.Nanosecond), theirs+float64(c.FCT/units.Nanosecond)
				if c.FCT == f.FCT-f.FCT%units.Nanosecond {
					same++
				}
			}
			return nil
		}})
		if all != len(want) || name == names[0] && same < 3700 {
			t.Errorf("%s: %d of %d flows end to the nanosecond when the reference's %d do", name, same, all, len(want))
		}
		line := golden.Row("`"+name+"`", thousands(all), thousands(same), fmt.Sprintf("%+.2f %%", 100*(ours/theirs-1)))
		lines = append(lines, line)
		if held := golden.Lines(t, ns3Page, "ns3-flows"); !long && !slices.Contains(held, line) {
			t.Errorf("%s has no row %s", ns3Page, line)
		}
	}
	if long {
		golden.Table(t, ns3Page, "ns3-flows", "seed 1", lines, *update)
	}
}

// thousands formats a number with a thousands separator.
func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}

// ns3RDMA is section D: ns3-rdma's own sample. Its figures are ranges over seeds.
func ns3RDMA(t *testing.T) {
	dir := ns3Case(t, "ns3rdma_2to1_40G")
	text, err := os.ReadFile(filepath.Join(filepath.FromSlash(ns3Cases), "EXPECTED.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ = bytes.Cut(text, []byte("\n## D."))
	span := func(pattern string) (mean, low, high float64) {
		m := regexp.MustCompile(pattern).FindSubmatch(text)
		if m == nil {
			t.Fatalf("section D of EXPECTED.md has no %s", pattern)
		}
		x := cells(t, string(m[1])+","+string(m[2]), ",")
		return (x[0] + x[1]) / 2, x[0], x[1]
	}
	total, _, _ := span(`total ([0-9.]+)-([0-9.]+) Gb/s`)
	cnps, _, _ := span(`([0-9]+)-([0-9]+) CNPs`)
	marks, _, _ := span(`([0-9]+)-([0-9]+) CE packets`)
	_, low, high := span(`last 50 ms ([0-9.]+)-([0-9.]+) Gb/s`)
	for seed := uint64(1); seed <= 3; seed++ {
		o := runCase(t, dir, caseOptions{config: "mix/config_short.txt", seed: seed})
		near(t, "ns3-rdma's sample, 3 seeds", "CNPs, of the middle of its range",
			trialtest.Metric(t, o, "fabric.cnp.count"), cnps, 0.10, 0)
		near(t, "ns3-rdma's sample, 3 seeds", "marks, of the middle of its range",
			trialtest.Metric(t, o, "fabric.ecn.marks"), marks, 0.10, 0)
		within(t, "pauses", trialtest.Metric(t, o, "fabric.pause.count"), 0, 0, 0)
		o = runCase(t, dir, caseOptions{config: "mix/config_short.txt", seed: seed,
			set: []string{"measure.warm_up=50ms"}})
		near(t, "ns3-rdma's sample, 3 seeds", "goodput in Gbit/s, of the middle of its range",
			trialtest.Metric(t, o, "fabric.goodput")/1e9, total, 0.01, 0)
		// Three runs do not span the full range: allow a twentieth more on each side. Host 1 receives.
		for _, x := range sent(t, o, "h1") {
			if x *= 40 * 998.0 / 1020; x < low*0.95 || x > high*1.05 {
				t.Errorf("seed %d: a flow has %g Gbit/s of payload; %g to %g were seen", seed, x, low, high)
			}
		}
	}
}
