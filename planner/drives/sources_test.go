package drives_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"farflash/planner/drives"
)

// ownTable writes a table of drives: one with a measured write amplification, one that amplifies nothing, one without
// power figures, and a hard disk. It returns the table's file.
func ownTable(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "own.csv")
	if err := os.WriteFile(file, []byte(
		`model,capacity_gb,raw_gb,tbw_tb,read_iops,write_iops,active_w,idle_w,price,price_when,afr,random_waf,media
measured,1000,1200,3700,100000,25000,12,4,500,2024,0.5%,3.5,
plain,1000,1200,3700,100000,25000,12,4,500,,,1,
unstated,1000,1200,3700,100000,,,,500,,,,
disk,18000,,,170,550,9.4,5.3,300,,1%,,hdd
`), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestSources verifies the stated sources of a group's figures, for every way to state them.
func TestSources(t *testing.T) {
	own := ownTable(t)
	const mtbf, form = "2 million hours MTBF, as in data sheets",
		"closed form for random writes at the drive's spare space"
	for _, c := range []struct{ head, drive, name, want string }{
		{"", "measured", "endurance", "3700 TB, rated at a WAF of 3.50 | the catalogue"},
		{"", "plain", "endurance", "3700 TB, rated at a WAF of 1.00 | the catalogue"},
		{"", "plain, tbw: 9000", "endurance", "9000 TB, rated at a WAF of 1.00 | stated in the plan; the catalogue"},
		{"", "plain, tbw: 9000, rated_waf: 2", "endurance", "9000 TB, rated at a WAF of 2.00 | stated in the plan"},
		{"", "Intel DC P3700 2TB, price: 1", "endurance", "36500 TB, rated at a WAF of 5.59 | the catalogue; " + form},
		{"mode: paper\nobjective: paper\n", "plain", "endurance", "3700 TB written to flash | the catalogue"},
		{"mode: paper\nobjective: paper\n", "plain, tbw: 1", "endurance",
			"1.000 TB written to flash | stated in the plan"},
		{"", "measured", "price", "$500.0 | the catalogue, 2024"}, {"", "plain", "price", "$500.0 | the catalogue"},
		{"", "plain, price: 7", "price", "$7.000 | stated in the plan"},
		{"", "measured", "failures", "0.500 % a year | the catalogue"},
		{"", "plain", "failures", "0.438 % a year | " + mtbf},
		{"", "measured, afr: 2%", "failures", "2.00 % a year | stated in the plan"},
		{"", "plain", "power", "12.0 W active, 4.00 W idle | the catalogue"},
		{"", "plain, active_w: 9", "power", "9.00 W active, 4.00 W idle | the catalogue"},
		{"", "plain, active_w: 9, idle_w: 0", "power", "9.00 W active, 0 W idle | stated in the plan"},
		{"", "unstated, estimate: [active_w, idle_w]", "power", "25.0 W active, 7.50 W idle | an estimate"},
		{"", "plain", "active", "30% of the share of IOPS in use | assumed"},
		{"objective: paper\n", "plain", "active", "30% of the time | assumed"},
		{"objective: paper\n", "plain, duty: 70%", "active", "70% of the time | stated in the plan"},
		{"", "disk", "failures", "1.00 % a year | the catalogue"}, {"", "disk", "endurance", ""},
		{"", "disk", "write amplification", ""}, {"", "disk", "p99 under load", ""},
		{"", "plain", "write amplification", "1.00 for random to 1 for sequential writes, at 20.0 % spare space | " +
			"minTCO's equation 7 with the closed form for greedy collection"},
		{"", "plain, waf: 2.5", "write amplification", "2.500 | stated in the plan"},
		{"", "plain, waf: {table: m.csv}", "write amplification", "the table m.csv | stated in the plan"},
		{"", "plain, waf: {points: [{sequential: 0, waf: 5}, {sequential: 1, waf: 1}]}", "write amplification",
			"2 points | stated in the plan"},
		{"", "plain, waf: {trace: t.csv}", "write amplification",
			"simulated with the writes of t.csv, at 20.0 % spare space | the FTL simulator"},
		{"", "plain, spare: 20%, waf: {simulate: 99}", "write amplification", "simulated with 99 blocks and the " +
			"workloads' own writes, at 50.0 % spare space | the FTL simulator"},
		{"", "plain, waf: {random: 4}", "write amplification",
			"4.000 for random to 1.000 for sequential writes | stated in the plan"},
		{"", "plain, waf: {random: 4, sequential: 1.5}", "write amplification",
			"4.000 for random to 1.500 for sequential writes | stated in the plan"},
		{"", "plain", "p99 under load", "not needed | no workload has a p99"},
		{"", "plain, latency: tlc-enterprise", "p99 under load", "tlc-enterprise under the workloads' mix | simulated"},
		{"", "nothing", "price", ""},
		{"horizon: 0\n", "plain", "/horizon", "until worn out | stated in the plan"},
		{"", "plain", "/horizon", "5y | default: the usual warranty"},
		{"fill: {iops: 50%}\n", "plain", "/fill", "100% of the space, 50% of the IOPS | stated in the plan"},
		{"costs: {residual: 20%, residual_over: 3y}\n", "plain", "/residual value",
			"20%, 0 after 3y | stated in the plan"},
		{"", "plain", "/residual value", "0% | default, without a source"},
		{"objective: paper\n", "plain", "/residual value", ""}, {"", "plain", "/copying in moves", ""},
		{"review: 1y\n", "plain", "/copying in moves", "$0 per TB | default, without a source"},
		{"review: 1y\ncosts: {moving: $3}\n", "plain", "/copying in moves", "$3.000 per TB | stated in the plan"},
	} {
		p, err := drives.Load(source(c.head+"catalogue: "+own+"\ndrives: [{name: g, count: 1, model: "+c.drive+
			"}]\nworkloads: {list: [{name: w, write_gb_per_day: 1, working_set_gb: 1}]}\n"), nil)
		if err != nil {
			t.Errorf("%s: %v", c.drive, err)
			continue
		}
		of, name := "g", c.name
		if name[0] == '/' {
			of, name = "", name[1:]
		}
		got := ""
		for _, a := range p.Assumptions() {
			if a.Of == of && a.Name == name {
				got += a.Value + " | " + a.Source
			}
		}
		if got != c.want {
			t.Errorf("%s%s: %s: %q; %q is right", c.head, c.drive, c.name, got, c.want)
		}
	}
}

// TestRefusedPlans verifies that what only shows when a plan is made is an error with its place and its remedy.
func TestRefusedPlans(t *testing.T) {
	own := ownTable(t)
	const quiet, busy = "{name: w, working_set_gb: 1, peak_iops: 1}",
		"{name: w, write_gb_per_day: 1, working_set_gb: 1}"
	const paper = "objective: paper\n"
	for _, c := range []struct{ head, drives, jobs, want string }{
		{"", "{model: disk, count: 1, waf: 2}", busy,
			"drives[0].waf: disk is a hard disk and has no write amplification; leave out waf and rated_waf"},
		{"", "{model: plain, count: 1}, {model: disk, count: 1, rated_waf: 2}", busy,
			"drives[1]: disk is a hard disk and has no write amplification"},
		{"", "{model: disk, count: 1, spare: 10%}", busy,
			"drives[0].spare: disk is a hard disk and collects no garbage; leave out spare"},
		{"", "{model: disk, count: 1}", busy, ""}, {"", "{model: disk, count: 1, estimate: [tbw]}", busy,
			"drives[0].estimate: tbw: disk is a hard disk, and estimates are from flash drives only; state it"},
		{"", "{model: unstated, count: 1}", busy, "no active_w and idle_w of unstated; state it"},
		{"", "{model: unstated, count: 1, active_w: 0}", busy, "no idle_w of unstated; state it"},
		{"", "{model: unstated, count: 1, active_w: 0, idle_w: 0}", busy, ""},
		{"", "{model: plain, count: 1, latency: nowhere}", busy, "drives[0].latency: "},
		{"algorithm: mintco-offline\n", "{model: plain, count: 1}, {model: plain, count: 1}", busy,
			"drives: 2 groups; mintco-offline buys drives of one model; write one group"},
		{"algorithm: mintco-offline\n", "{model: plain, count: 1}", busy, ""},
		{"algorithm: min-rate\n", "{model: plain, count: 1}, {model: plain, up_to: 1}", busy,
			"drives[1].up_to: min-rate uses only existing drives; write count, or choose the algorithm optimal"},
		{paper + "horizon: 0\n", "{model: plain, count: 1}", busy, ""},
		{paper + "horizon: 0\n", "{model: plain, count: 1}", quiet, "set"},
		{paper + "horizon: 0\n", "{model: plain, count: 2}", busy, ""},
		{paper + "horizon: 0\nalgorithm: min-rate\n", "{model: plain, count: 1}", quiet, "horizon"},
		{paper + "horizon: 0\nalgorithm: mintco-offline\n", "{model: plain, count: 1}", quiet, "horizon"},
	} {
		p, err := drives.Load(source(c.head+"catalogue: "+own+"\ndrives: ["+c.drives+"]\nworkloads: {list: ["+c.jobs+
			"]}\n"), nil)
		if err == nil {
			_, err = p.Solve(context.Background(), drives.Options{})
		}
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s%s: %v; %q is right", c.head, c.drives, err, c.want)
		}
	}
	for text, want := range map[string]string{"catalogue: nowhere.csv\n": "nowhere.csv", "": "drives[0].model: "} {
		p, err := drives.Load(source(text+"drives: [{model: plain, count: 1}]\nworkloads: {list: ["+busy+"]}\n"), nil)
		if err == nil {
			_, err = p.Solve(context.Background(), drives.Options{})
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; %q is right", text, err, want)
		}
	}
}

// TestPaperRates verifies that by the paper's formulas a drive has one rate of I/Os, for the group's share of writes,
// and otherwise one for each workload's.
func TestPaperRates(t *testing.T) {
	own := ownTable(t)
	share := func(head, drive, job string) float64 {
		return solve(t, head+"objective: paper\ncatalogue: "+own+"\ndrives: [{count: 1, model: plain"+drive+
			"}]\nworkloads: {list: [{name: w, write_gb_per_day: 1, working_set_gb: 1, peak_iops: 1000"+job+"}]}\n",
			drives.Options{}).Drives[0].State.IOPSShare
	}
	for _, c := range []struct {
		head, drive, job string
		want             float64
	}{
		{"mode: paper\n", ", write_share: 0%", ", write_share: 100%", 0.01},
		{"mode: paper\n", ", write_share: 100%", "", 0.04}, {"", "", "", 0.01}, {"", "", ", write_share: 100%", 0.04},
	} {
		if got := share(c.head, c.drive, c.job); got < c.want*0.999 || got > c.want*1.001 {
			t.Errorf("%s%s%s: %v of the IOPS; %v is right", c.head, c.drive, c.job, got, c.want)
		}
	}
}
