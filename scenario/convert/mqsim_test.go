package convert_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"farflash/experiment"
	"farflash/experiment/trial/trialtest"
	"farflash/internal/golden"
	"farflash/numeric/units"
	"farflash/scenario"
	"farflash/scenario/convert"
)

var update = flag.Bool("update", false, "write the table of docs/validation/mqsim.md")

// mqsimWhat describes the cases.
var mqsimWhat = map[string]string{
	"A01": "4 KiB reads, one at a time, ideal map", "A02": "the same, map on demand",
	"A03": "4 KiB reads, 64 at a time, ideal map",
	"A04": "4 KiB cached writes, open loop", "A06": "4 KiB writes of 8 KiB pages, no cache, 16 at a time",
	"A07": "64 KiB reads, 16 at a time, map on demand",
	"A09": "two flows, urgent beside low, fetch size 16", "A10": "TPC-C trace on the distributed configuration",
	"A12": "800,000 random writes, greedy collection",
}

// casesOf returns the directory of another simulator's inputs next to the repository.
func casesOf(t testing.TB, peer string) string {
	t.Helper()
	dir := filepath.Join("..", "..", "..", "shared", "cases", peer)
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("../shared/cases/%s is not there", peer)
	}
	return dir
}

// mqsimOp holds MQSim's results for the reads or the writes of a flow, times in ns.
type mqsimOp struct{ N, Mean, P99 float64 }

// mqsimAnswer holds MQSim's results for a case.
type mqsimAnswer struct {
	IOPS     float64 `json:"iops_true"`
	Programs float64 `json:"page_programs"`
	Erases   float64 `json:"block_erases"`
	Moves    float64 `json:"gc_page_moves"`
	Flows    []struct {
		Read  *mqsimOp `json:"dev_read"`
		Write *mqsimOp `json:"dev_write"`
	}
	CMT struct{ CMT_Hits, Total_CMT_Queries float64 }
}

// of summarises an operation over the flows: its count, the mean in ns, the 99th percentile of the last flow, and the
// number of flows with that operation.
func (a *mqsimAnswer) of(op string) (n, mean, p99 float64, flows int) {
	sum := 0.0
	for _, f := range a.Flows {
		x := f.Read
		if op == "write" {
			x = f.Write
		}
		if x != nil && x.N > 0 {
			n, sum, p99 = n+x.N, sum+x.N*x.Mean, x.P99
			flows++
		}
	}
	return n, sum / max(n, 1), p99, flows
}

// mqsimAnswers reads MQSim's results for all cases.
func mqsimAnswers(t testing.TB, dir string) map[string]mqsimAnswer {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "expected.json"))
	if err != nil {
		t.Fatal(err)
	}
	var expected map[string]mqsimAnswer
	if err := json.Unmarshal(text, &expected); err != nil {
		t.Fatal(err)
	}
	return expected
}

// TestMQSimCases converts MQSim's inputs and compares the results, with the tolerances of ../shared/cases/check.
func TestMQSimCases(t *testing.T) {
	dir := casesOf(t, "mqsim")
	expected := mqsimAnswers(t, dir)
	tolerance := map[string][3]float64{ // of the mean, of IOPS, of the 99th percentile; 0: not compared
		"A01": {.001}, "A02": {.005, .005}, "A03": {.02, .02, .05}, "A04": {.001}, "A06": {.02, .02},
		"A07": {.02, .02}, "A09": {.03, .02}, "A10": {.05}, "A12": {},
	}
	lines := golden.Head("case", "what", "figure", ">Farflash", ">MQSim", ">off by")
	for _, name := range slices.Sorted(maps.Keys(expected)) {
		e := expected[name]
		t.Run(name, func(t *testing.T) {
			if testing.Short() && name[:3] == "A12" {
				t.Skip("800,000 requests")
			}
			c, err := convert.FromMQSim(filepath.Join(dir, name, "ssdconfig.xml"),
				filepath.Join(dir, name, "workload.xml"), 1, scenario.CompatMQSim)
			if err != nil {
				t.Fatal(err)
			}
			o := trialtest.Run(t, c.Text(), 1)
			first := []string{name[:3], mqsimWhat[name[:3]]}
			within := func(what string, want, tol float64) {
				t.Helper()
				got := trialtest.Metric(t, o, what)
				if cells := mqsimCells(what, got, want); cells != nil &&
					(name[:3] != "A12" || strings.HasPrefix(what, "ssd.")) {
					lines = append(lines, golden.Row(slices.Concat(first, cells)...))
					first = []string{"", ""}
				}
				if math.Abs(got-want) > math.Max(tol*want, 1e-3) {
					t.Errorf("%s is %v, MQSim's is %v, within %v", what, got, want, tol)
				}
			}
			tol := tolerance[name[:3]]
			for _, op := range []string{"read", "write"} {
				n, mean, p99, flows := e.of(op)
				if n == 0 {
					continue
				}
				within(op+".count", n, map[bool]float64{true: .0005}[name[:3] == "A12"])
				if tol[0] > 0 {
					within(op+".latency.mean", mean/1000, tol[0])
				}
				if tol[2] > 0 && flows == 1 {
					within(op+".latency.p99", p99/1000, tol[2])
				}
			}
			if tol[1] > 0 {
				within("all.iops", e.IOPS, tol[1])
			}
			switch name[:3] {
			case "A02":
				within("ssd.cmt.hit_ratio", e.CMT.CMT_Hits/e.CMT.Total_CMT_Queries, .005)
			case "A04":
				within("ssd.flash.programs", e.Programs, .01)
			case "A12":
				within("ssd.flash.programs", e.Programs, .02)
				within("ssd.flash.erases", e.Erases, .03)
				within("ssd.gc.pages_moved", e.Moves, .03)
			}
		})
	}
	if len(lines) > 15 && !testing.Short() { // short runs skip A12, and its row would be missing
		golden.Table(t, "../../docs/validation/mqsim.md", "mqsim-cases", "seed 1", lines, *update)
	}
}

// TestMQSimDescribed compares the cases' drives, without MQSim's deviations from its own description, with MQSim's
// results: the size of its deviation in each case, and the largest contribution.
func TestMQSimDescribed(t *testing.T) {
	if testing.Short() {
		t.Skip("slow")
	}
	dir := casesOf(t, "mqsim")
	expected := mqsimAnswers(t, dir)
	runs := map[string]*experiment.Outcome{}
	lines := golden.Head("case", "figure", ">compat: none", ">MQSim", ">off by", "mostly because of")
	last := ""
	for _, row := range []struct{ name, metric, because string }{
		{"A01", "read.latency.mean", "bus cycles, data-out set-up"},
		{"A02", "read.latency.mean", "the same, twice"},
		{"A03", "read.latency.mean", "dies of a chip work at the same time; commands go before data on a channel"},
		{"A03", "all.iops", ""},
		{"A04", "write.latency.mean", "the DRAM's rate"},
		{"A06", "write.latency.mean", "dies of a chip; less the reads of unwritten pages, which now read flash"},
		{"A07", "read.latency.mean", "the link is the bottleneck in both"},
		{"A09", "read.latency.mean", "dies of a chip; commands before data"},
		{"A10", "read.latency.mean", "the DRAM's rate: this configuration cannot keep up with the trace"},
		{"A10", "write.latency.mean", ""},
		{"A12", "ssd.flash.programs", "ten free blocks a plane are not withheld from the host"},
	} {
		i := slices.IndexFunc(slices.Sorted(maps.Keys(expected)), func(s string) bool { return s[:3] == row.name })
		if i < 0 {
			t.Fatalf("%s is not among the answers", row.name)
		}
		full := slices.Sorted(maps.Keys(expected))[i]
		answer := expected[full]
		if runs[full] == nil {
			c, err := convert.FromMQSim(filepath.Join(dir, full, "ssdconfig.xml"),
				filepath.Join(dir, full, "workload.xml"), 1, scenario.CompatNone)
			if err != nil {
				t.Fatal(err)
			}
			runs[full] = trialtest.Run(t, c.Text(), 1)
		}
		_, read, _, _ := answer.of("read")
		_, write, _, _ := answer.of("write")
		want := map[string]float64{"read.latency.mean": read / 1000, "write.latency.mean": write / 1000,
			"all.iops": answer.IOPS, "ssd.flash.programs": answer.Programs}[row.metric]
		name := row.name
		if name == last {
			name = ""
		}
		last = row.name
		cells := mqsimCells(row.metric, trialtest.Metric(t, runs[full], row.metric), want)
		lines = append(lines, golden.Row(slices.Concat([]string{name}, cells, []string{row.because})...))
	}
	golden.Table(t, "../../docs/validation/mqsim.md", "mqsim-described", "seed 1", lines, *update)
}

// mqsimCells returns a figure's cells in the table, nil if it has none: exact counts have none.
func mqsimCells(what string, got, want float64) []string {
	name, text := "", func(x float64) string { return grouped(fmt.Sprintf("%.0f", x)) }
	off := fmt.Sprintf("%+.3g %%", 100*(got/want-1))
	switch {
	case strings.HasSuffix(what, "latency.mean"):
		name = what[:strings.Index(what, ".")] + " mean, us"
		text = func(x float64) string { return grouped(fmt.Sprintf("%.3f", x)) }
	case what == "all.iops":
		name, text = "IOPS", func(x float64) string { return grouped(fmt.Sprintf("%.1f", x)) }
	case what == "ssd.cmt.hit_ratio":
		name, text = "CMT hits / look-ups", func(x float64) string { return fmt.Sprintf("%.5f", x) }
	case what == "ssd.flash.programs":
		name = "flash programs"
	case what == "ssd.flash.erases":
		name = "erases"
	case what == "ssd.gc.pages_moved":
		name = "pages moved"
	default:
		return nil
	}
	switch {
	case text(got) == text(want):
		off = "0"
	case got >= 10*want:
		off = fmt.Sprintf("x %.0f", got/want)
	}
	return []string{name, text(got), text(want), off}
}

// grouped formats a number with a comma at each thousand.
func grouped(s string) string {
	whole, rest, point := strings.Cut(s, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if point {
		return whole + "." + rest
	}
	return whole
}

// TestMQSimRefused verifies that settings without a counterpart are rejected by name and position, and that those with
// one only under --compat none convert there.
func TestMQSimRefused(t *testing.T) {
	dir := filepath.Join(casesOf(t, "mqsim"), "A09_two_flows_prio_qfs16")
	device, err := os.ReadFile(filepath.Join(dir, "ssdconfig.xml"))
	if err != nil {
		t.Fatal(err)
	}
	workload, err := os.ReadFile(filepath.Join(dir, "workload.xml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		tag, value string
		none       bool // --compat none accepts it
	}{
		{"HostInterface_Type", "SATA", false}, {"Caching_Mechanism", "SIMPLE", false},
		{"Address_Mapping", "HYBRID", false},
		{"Transaction_Scheduling_Policy", "FLIN", false}, {"GC_Block_Selection_Policy", "OLDEST", false},
		{"Memory_Type", "PCM", false},
		{"Flash_Comm_Protocol", "NVDDR3", false}, {"Use_Copyback_for_GC", "true", true},
		{"Plane_Allocation_Scheme", "CWDX", false},
		{"Data_Cache_Sharing_Mode", "NONE", false}, {"CMT_Sharing_Mode", "NONE", false},
		{"CMD_Suspension_Support", "READ", false},
		{"Flash_Technology", "QLC", false}, {"Priority_Class", "BULK", false},
		{"Device_Level_Data_Caching_Mode", "ON", false},
		{"Address_Distribution", "ZIPF", false}, {"Request_Size_Distribution", "PARETO", false},
		{"Synthetic_Generator_Type", "RATE", false},
	} {
		t.Run(c.tag, func(t *testing.T) {
			tmp := t.TempDir()
			put := func(name string, src []byte) string {
				p := filepath.Join(tmp, name)
				text := string(src)
				if i := strings.Index(text, "<"+c.tag+">"); i >= 0 {
					end := strings.Index(text, "</"+c.tag+">")
					text = text[:i] + "<" + c.tag + ">" + c.value + text[end:]
				}
				if err := os.WriteFile(p, []byte(text), 0o666); err != nil {
					t.Fatal(err)
				}
				return p
			}
			d, w := put("ssdconfig.xml", device), put("workload.xml", workload)
			_, err := convert.FromMQSim(d, w, 1, scenario.CompatMQSim)
			if err == nil || !strings.Contains(err.Error(), "<"+c.tag+">") || !strings.Contains(err.Error(), ".xml:") {
				t.Errorf("error %v", err)
			}
			_, err = convert.FromMQSim(d, w, 1, scenario.CompatNone)
			if (err == nil) != c.none {
				t.Errorf("--compat none: %v", err)
			}
		})
	}
}

// TestMQSimScenarios verifies the choice among several scenarios.
func TestMQSimScenarios(t *testing.T) {
	dir := filepath.Join(casesOf(t, "mqsim"), "A01_lat_read_ideal_qd1")
	w := filepath.Join(dir, "workload.xml")
	if _, err := convert.FromMQSim(filepath.Join(dir, "ssdconfig.xml"), w, 2, scenario.CompatMQSim); err == nil ||
		!strings.Contains(err.Error(), "no scenario 2; the file has 1 to 1") {
		t.Errorf("error %v", err)
	}
}

// TestMQSimReplays verifies that a number of replays overrides the percentage of the trace under compat: mqsim.
func TestMQSimReplays(t *testing.T) {
	dir := t.TempDir()
	device, err := os.ReadFile("testdata/mqsim/ssdconfig.xml")
	if err != nil {
		t.Fatal(err)
	}
	const flow = `<MQSim_IO_Scenarios><IO_Scenario><IO_Flow_Parameter_Set_Trace_Based>
<Priority_Class>HIGH</Priority_Class><Device_Level_Data_Caching_Mode>WRITE_CACHE</Device_Level_Data_Caching_Mode>
<Channel_IDs>0,1,2,3,4,5,6,7</Channel_IDs><Chip_IDs>0,1,2,3</Chip_IDs><Die_IDs>0,1</Die_IDs><Plane_IDs>0,1</Plane_IDs>
<Initial_Occupancy_Percentage>70</Initial_Occupancy_Percentage><File_Path>a.trace</File_Path>
<Percentage_To_Be_Executed>50</Percentage_To_Be_Executed><Relay_Count>%d</Relay_Count>
</IO_Flow_Parameter_Set_Trace_Based></IO_Scenario></MQSim_IO_Scenarios>`
	for name, text := range map[string]string{"ssdconfig.xml": string(device),
		"a.trace": "1000 0 0 8 1\n2000 0 8 8 0\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		replays int
		compat  scenario.Compat
		part    units.Fraction
	}{{1, scenario.CompatMQSim, .5}, {3, scenario.CompatMQSim, 1}, {3, scenario.CompatNone, .5}} {
		workload := filepath.Join(dir, "workload.xml")
		if err := os.WriteFile(workload, fmt.Appendf(nil, flow, c.replays), 0o600); err != nil {
			t.Fatal(err)
		}
		x, err := convert.FromMQSim(filepath.Join(dir, "ssdconfig.xml"), workload, 1, c.compat)
		if err != nil {
			t.Fatal(err)
		}
		if got := x.Scenario.Workload[0].Trace; got.Part != c.part || got.Loop != c.replays {
			t.Errorf("%d replays, compat %v: %v of the trace %d times; want %v", c.replays, c.compat, got.Part,
				got.Loop, c.part)
		}
		if said := strings.Contains(x.Text(), "has no effect in MQSim with"); said != (c.part == 1) {
			t.Errorf("%d replays, compat %v: said so: %v", c.replays, c.compat, said)
		}
	}
}

// TestMQSimRanges verifies that values outside the range of any drive are reported at their tags, all at once.
func TestMQSimRanges(t *testing.T) {
	dir := filepath.Join(casesOf(t, "mqsim"), "A09_two_flows_prio_qfs16")
	text, err := os.ReadFile(filepath.Join(dir, "ssdconfig.xml"))
	if err != nil {
		t.Fatal(err)
	}
	broken := filepath.Join(t.TempDir(), "ssdconfig.xml")
	out := string(text)
	for _, tag := range []string{"Queue_Fetch_Size", "Block_No_Per_Plane"} {
		i, end := strings.Index(out, "<"+tag+">"), strings.Index(out, "</"+tag+">")
		out = out[:i] + "<" + tag + ">0" + out[end:]
	}
	if err := os.WriteFile(broken, []byte(out), 0o666); err != nil {
		t.Fatal(err)
	}
	_, err = convert.FromMQSim(broken, filepath.Join(dir, "workload.xml"), 1, scenario.CompatMQSim)
	for _, want := range []string{"ssdconfig.xml:", ": <Queue_Fetch_Size>: 0 is not possible",
		": <Block_No_Per_Plane>: 0 is not possible"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}
