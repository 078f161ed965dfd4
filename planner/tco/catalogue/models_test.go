package catalogue

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"farflash/internal/inputs"
	"farflash/internal/patience"
	"farflash/planner/tco"
	"farflash/planner/tco/sheet"
)

func TestCatalogue(t *testing.T) {
	list := Models()
	rated := 0
	for _, m := range list {
		if m.Source == "" {
			t.Errorf("%s has no source", m.Name)
		}
		if m.TBW > 0 {
			rated++
		}
		if a := m.Alpha(); !(a > 1 && a < 2) {
			t.Errorf("%s: physical over logical space is %v", m.Name, a)
		}
	}
	if len(list) < 25 || rated < 20 {
		t.Errorf("%d drives, %d with a rating", len(list), rated)
	}
	// The one drive whose sheet has both ratings: SEQ over RND is the write amplification of random writes.
	m, err := Find(list, "micron 9550 max 3.2tb")
	if err != nil {
		t.Fatal(err)
	}
	if ratio := m.Sequential / m.TBW; math.Abs(ratio/m.Amplification().At(0)-1) > 0.08 {
		t.Errorf("rated for %v times as many sequential writes; the model amplifies random ones %v times", ratio,
			m.Amplification().At(0))
	}
	if b := m.budget(tco.Corrected, m.Amplification()); math.Abs(b/(m.Sequential*1000)-1) > 0.08 {
		t.Errorf("the NAND takes %v GB; rated for %v GB of sequential writes", b, m.Sequential*1000)
	}
	if b := m.budget(tco.Paper, m.Amplification()); b != m.TBW*1000 {
		t.Errorf("in paper mode the budget is %v", b)
	}
	if _, err := Find(list, "Micron 9550 MAX 3.2 TB"); err == nil ||
		!strings.Contains(err.Error(), "did you mean \"Micron 9550 MAX 3.2TB\"") {
		t.Errorf("error %v", err)
	}
}

// TestSharedCatalogue compares every figure with the table from which it was taken.
func TestSharedCatalogue(t *testing.T) {
	text, err := os.ReadFile(inputs.Path(t, "data/catalogue/ssd_catalogue.csv"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	lines[0] = strings.NewReplacer("rated_dwpd", "dwpd", "rating_years", "years", "rr4k_iops", "read_iops",
		"rw4k_iops", "write_iops", "price_usd", "price", "source_spec", "source", "source_price,", "").Replace(lines[0])
	theirs := map[string]string{}
	for _, l := range lines[1:] {
		if name, rest, ok := strings.Cut(l, ","); ok {
			theirs[name] = rest
		}
	}
	checked := 0
	for _, m := range Models() {
		cells := strings.Split(theirs[m.Name], ",")
		if len(cells) < 10 {
			t.Errorf("%s is not there", m.Name)
			continue
		}
		for i, v := range []float64{1: m.Capacity, 4: m.TBW, 5: m.ReadIOPS, 6: m.WriteIOPS, 7: m.ActiveW, 8: m.IdleW,
			9: m.Price} {
			if i == 0 || cells[i] == "" || i == 2 || i == 3 {
				continue
			}
			checked++
			if sheet.Plain(v) != cells[i] {
				t.Errorf("%s: %v; the table has %s", m.Name, v, cells[i])
			}
		}
	}
	if checked < 100 {
		t.Errorf("only %d figures are compared", checked)
	}
}

// TestRatings verifies that the ratings within a row must agree.
func TestRatings(t *testing.T) {
	_, err := Read(strings.NewReader("model,capacity_gb,dwpd,years,tbw_tb\nIntel DC P3520 2TB,2000,3,5,2490\n"),
		"d.csv")
	if want := "d.csv: row 2, column dwpd: 3 drive writes a day over 5 years are 10950 TB, not the 2490 TB of " +
		"tbw_tb; 0.682 a day, or 1.14 years, would agree"; err == nil || err.Error() != want {
		t.Errorf("error %v; %s is right", err, want)
	}
	if _, err = Read(strings.NewReader("model,capacity_gb,raw_gb\nx,2000,1900\n"), "d.csv"); err == nil ||
		!strings.Contains(err.Error(), "column raw_gb") {
		t.Errorf("error %v", err)
	}
}

// TestModels covers a row with every column, the derived figures, and inconsistent rows.
func TestModels(t *testing.T) {
	head := strings.Join(columnNames(), ",") + "\n"
	list, err := Read(strings.NewReader(head+
		"x,1000,1200,2,5,3700,100000,25000,12,4,500,2024,0.5%,9000,3.5,flash,old,a sheet,none\n"+
		"y,1000,,1,5,,,25000,,,,,,,,,,,\n"+
		"z,1000,,,,,,,,,,,,,,,,,\n"), "d.csv")
	if err != nil {
		t.Fatal(err)
	}
	x, y, z := &list[0], &list[1], &list[2]
	if *x != (Model{Name: "x", Era: "old", Capacity: 1000, Raw: 1200, DWPD: 2, Years: 5, TBW: 3700, ReadIOPS: 100000,
		WriteIOPS: 25000, ActiveW: 12, IdleW: 4, Price: 500, PriceWhen: "2024",
		AFR: 0.005, Sequential: 9000, Source: "a sheet", Note: "none", RandomWAF: 3.5}) {
		t.Errorf("%+v", x)
	}
	// 1 per day of 1 TB for five years; 1000 GB need 1024 GiB, which are 1099.5 GB.
	if y.TBW != 1825 || math.Abs(y.Alpha()-1.099511627776) > 1e-12 || x.Alpha() != 1.2 || z.TBW != 0 {
		t.Errorf("%v TB, alpha %v and %v", y.TBW, y.Alpha(), x.Alpha())
	}
	if math.Abs(x.IOPS(0)-100000) > 1e-6 || math.Abs(x.IOPS(1)-25000) > 1e-6 || math.Abs(x.IOPS(0.5)-40000) > 1e-9 ||
		y.IOPS(0.3) != 25000 || (&Model{ReadIOPS: 7}).IOPS(0.3) != 7 {
		t.Errorf("%v, %v, %v", x.IOPS(0), x.IOPS(0.5), y.IOPS(0.3))
	}
	if x.FailureRate() != 0.005 || math.Abs(y.FailureRate()-8760/2e6) > 1e-15 {
		t.Errorf("%v and %v of them fail", x.FailureRate(), y.FailureRate())
	}
	if got := fmt.Sprint(z.Unknown()); got != "[price tbw read_iops write_iops active_w idle_w]" ||
		x.Unknown() != nil || fmt.Sprint(y.Unknown()) != "[price active_w idle_w]" {
		t.Errorf("missing are %s", got)
	}
	c := tco.DefaultCosts()
	c.Setup = 20
	d, err := x.Drive("d", tco.Corrected, c, 0.25, 0.5)
	if err != nil || d.Buy != 520 || math.Abs(d.Run-6.0/1000*24*1.54*0.1) > 1e-12 ||
		math.Abs(d.Budget-3700*1000*3.5) > 1e-6 || d.Capacity != 1000 || d.IOPS != 100000 || d.WriteCost != 4 ||
		d.Model != "x" || d.Name != "d" {
		t.Errorf("%+v, %v", d, err)
	}
	if _, err := z.Drive("d", tco.Corrected, c, 0.25, 0.5); err == nil {
		t.Error("a drive of which nothing is known was taken")
	}
	c.PUE = 0
	if _, err := x.Drive("d", tco.Corrected, c, 0.25, 0.5); err == nil {
		t.Error("costs that cannot be were taken")
	}
	short := "model,capacity_gb,raw_gb,dwpd,years,tbw_tb,random_waf,afr\n"
	for row, good := range map[string]bool{
		// 1825 and 5 % more or less
		"x,1000,,1,5,1916,,": true, "x,1000,,1,5,1917,,": false, "x,1000,,1,5,1734,,": true,
		"x,1000,,1,5,1733,,": false,
		"x,1000,1001,,,,,":   true, "x,1000,1000,,,,,": false, "x,0,,,,,,": false, "x,1e-9,,,,,,": true,
		"x,1000,,,100,,,": true, "x,1000,,,101,,,": false, "x,1000,,,,,1,": true, "x,1000,,,,,0.9,": false,
		"x,1000,,,,,,1": true, "x,1000,,,,,,1.1": false,
		",1000,,,,,,": false, "x,1000,,1,,9,,": true, "x,1000,,,5,9,,": true, "x,1000,,,,-1,,": false,
	} {
		if _, err := Read(strings.NewReader(short+row+"\n"), "d.csv"); (err == nil) != good {
			t.Errorf("%s: %v", row, err)
		}
	}
	if _, err := Read(strings.NewReader(short+"x,1000,,,,,,\nx,2000,,,,,,\n"), "d.csv"); err == nil ||
		!strings.Contains(err.Error(), "row 3, column model: \"x\" is already the name of row 2") {
		t.Errorf("%v", err)
	}
	if _, err := Read(strings.NewReader(short), "d.csv"); err == nil {
		t.Error("a table without drives was taken")
	}
}

// TestColumnsOfModels verifies that a missing column means 0, and that each column accepts its minimum and maximum.
func TestColumnsOfModels(t *testing.T) {
	list, err := Read(strings.NewReader("model,capacity_gb\nx,100\n"), "d.csv")
	if want := (Model{Name: "x", Capacity: 100}); err != nil || len(list) != 1 || list[0] != want {
		t.Errorf("%+v, %v", list, err)
	}
	for column, c := range map[string]struct{ good, bad []string }{
		"dwpd": {[]string{"0", "3"}, []string{"-0.1"}}, "years": {[]string{"0", "100"}, []string{"-1", "100.1"}},
		"tbw_tb":    {[]string{"0", "1e9"}, []string{"-1"}},
		"read_iops": {[]string{"0", "1"}, []string{"-1"}}, "write_iops": {[]string{"0", "1"}, []string{"-1"}},
		"active_w": {[]string{"0", ".5"}, []string{"-1"}},
		"idle_w":   {[]string{"0", ".5"}, []string{"-1"}}, "price": {[]string{"0", ".5"}, []string{"-1"}},
		"afr":               {[]string{"0", "1"}, []string{"-0.1", "1.1"}},
		"sequential_tbw_tb": {[]string{"0", ".5"}, []string{"-1"}},
		"random_waf":        {[]string{"1", "7"}, []string{"0.9"}},
		"raw_gb":            {[]string{"0", "101"}, []string{"-1", "100"}},
	} {
		for i, v := range append(slices.Clone(c.good), c.bad...) {
			_, err := Read(strings.NewReader("model,capacity_gb,"+column+"\nx,100,"+v+"\n"), "d.csv")
			if i < len(c.good) && err != nil {
				t.Errorf("%s of %s: %v", column, v, err)
			}
			if i >= len(c.good) && (err == nil || !strings.Contains(err.Error(), "column "+column)) {
				t.Errorf("%s of %s: error %v", column, v, err)
			}
		}
	}
}

// TestDisks: a hard disk has neither write amplification nor, without a rating, wear.
func TestDisks(t *testing.T) {
	head := "model,capacity_gb,media,tbw_tb,read_iops,write_iops,price,active_w,idle_w\n"
	list, err := Read(strings.NewReader(head+
		"a,18000,hdd,,170,550,300,9.4,5.3\nb,18000,hdd,2750,170,550,0,9.4,5.3\n"), "d.csv")
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{1e15, 2750e3} {
		d, err := list[i].Drive("d", tco.Corrected, tco.DefaultCosts(), 0.3, 0.5)
		if err != nil || d.WAF.At(0) != 1 || d.WAF.At(0.7) != 1 || d.Budget != want ||
			d.Load(&tco.Workload{PeakIOPS: 550, WriteShare: 1}) > d.IOPS*(1+1e-12) {
			t.Errorf("%+v, %v", d, err)
		}
	}
	for row, want := range map[string]string{"a,18000,tape,,170,550,300,9.4,5.3": "neither flash nor hdd",
		"b,18000,hdd,2750,170,550,,9.4,5.3": "price"} {
		list, err := Read(strings.NewReader(head+row+"\n"), "d.csv")
		if err == nil {
			_, err = list[0].Drive("d", tco.Corrected, tco.DefaultCosts(), 0.3, 0.5)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", row, err)
		}
	}
}

func FuzzReadModels(f *testing.F) {
	f.Add("model,capacity_gb,dwpd,years,tbw_tb,price\nx,2000,1,5,3650,100\n")
	f.Fuzz(func(t *testing.T, text string) {
		defer patience.Limit()()
		list, err := Read(strings.NewReader(text), "d.csv")
		if err != nil {
			return
		}
		for i := range list {
			if d, err := list[i].Drive("d", tco.Corrected, tco.DefaultCosts(), 0.3, 0.3); err == nil {
				if _, err := tco.NewPool(tco.DefaultConfig(), []tco.Drive{d}); err != nil &&
					!strings.Contains(err.Error(), "Inf") {
					t.Errorf("%q gave %v", text, err)
				}
			}
		}
	})
}
