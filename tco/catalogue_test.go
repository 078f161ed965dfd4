package tco

import (
	"bytes"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"

	"farflash/internal/inputs"
)

func TestCatalogue(t *testing.T) {
	list := Catalogue()
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
	m, err := FindModel(list, "micron 9550 max 3.2tb")
	if err != nil {
		t.Fatal(err)
	}
	if ratio := m.Sequential / m.TBW; math.Abs(ratio/m.Amplification().At(0)-1) > 0.08 {
		t.Errorf("rated for %v times as many sequential writes; the model amplifies random ones %v times", ratio, m.Amplification().At(0))
	}
	if b := m.Budget(Corrected, m.Amplification()); math.Abs(b/(m.Sequential*1000)-1) > 0.08 {
		t.Errorf("the NAND takes %v GB; rated for %v GB of sequential writes", b, m.Sequential*1000)
	}
	if b := m.Budget(Paper, m.Amplification()); b != m.TBW*1000 {
		t.Errorf("in paper mode the budget is %v", b)
	}
	if _, err := FindModel(list, "Micron 9550 MAX 3.2 TB"); err == nil || !strings.Contains(err.Error(), "did you mean \"Micron 9550 MAX 3.2TB\"") {
		t.Errorf("error %v", err)
	}
}

// TestSharedCatalogue holds every figure against the table that they were taken from.
func TestSharedCatalogue(t *testing.T) {
	text, err := os.ReadFile(inputs.Path(t, "data/catalogue/ssd_catalogue.csv"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	lines[0] = strings.NewReplacer("rated_dwpd", "dwpd", "rating_years", "years", "rr4k_iops", "read_iops", "rw4k_iops", "write_iops", "price_usd", "price", "source_spec", "source", "source_price,", "").Replace(lines[0])
	theirs := map[string]string{}
	for _, l := range lines[1:] {
		if name, rest, ok := strings.Cut(l, ","); ok {
			theirs[name] = rest
		}
	}
	checked := 0
	for _, m := range Catalogue() {
		cells := strings.Split(theirs[m.Name], ",")
		if len(cells) < 10 {
			t.Errorf("%s is not there", m.Name)
			continue
		}
		for i, v := range []float64{1: m.Capacity, 4: m.TBW, 5: m.ReadIOPS, 6: m.WriteIOPS, 7: m.ActiveW, 8: m.IdleW, 9: m.Price} {
			if i == 0 || cells[i] == "" || i == 2 || i == 3 {
				continue
			}
			checked++
			if Plain(v) != cells[i] {
				t.Errorf("%s: %v; the table has %s", m.Name, v, cells[i])
			}
		}
	}
	if checked < 100 {
		t.Errorf("only %d figures are compared", checked)
	}
}

func TestTableErrors(t *testing.T) {
	head := "name,write_gb_per_day,sequential,peak_iops,write_share,working_set_gb\n"
	for _, c := range []struct{ text, want string }{
		{"", "w.csv: row 1: the table is empty; its first row names the columns"},
		{"name,rate\n", `w.csv: row 1, column rate: there is no such column`},
		{"name,write_gb_per_dya\n", `column write_gb_per_dya: there is no such column; did you mean "write_gb_per_day"?`},
		{"name\n", "w.csv: row 1, column peak_iops: the column is missing; add it"},
		{head, "w.csv: row 2: there are no workloads; write one a row"},
		{head + "a,1,0.5,1,0.5\n", "w.csv: row 2: there are 5 values under 6 columns; fill or cut the row"},
		{head + "a,x,0.5,1,0.5,1\n", `w.csv: row 2, column write_gb_per_day: "x" is not a number; write one such as 12.5`},
		{head + "a,1,31,1,0.5,1\n", "w.csv: row 2, column sequential: 31 is out of range; it must be 0 to 1 (or 0% to 100%)"},
		{head + "# a comment\na,1,,1,0.5,1\n", "w.csv: row 3, column sequential: there is no value; write a number"},
		{head + "a,1,0.5,1,0.5,-1\n", "w.csv: row 2, column working_set_gb: -1 is out of range; it must be 0 or more"},
		{head + "a,1,0.5,1,0.5,1\na,1,0.5,1,0.5,1\n", `w.csv: row 3, column name: "a" is the name of row 2 already; give each workload its own`},
		{head + "\"a,1\n", "w.csv: row"},
		{strings.TrimSpace(head) + ",end_day,arrival_day\na,1,0.5,1,0.5,1,5,7\n", "w.csv: row 2, column end_day: day 5 is not after the arrival on day 7"},
	} {
		_, err := ReadWorkloads(strings.NewReader(c.text), "w.csv")
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: error %v; %s is right", c.text, err, c.want)
		}
	}
	_, err := ReadModels(strings.NewReader("model,capacity_gb,dwpd,years,tbw_tb\nIntel DC P3520 2TB,2000,3,5,2490\n"), "d.csv")
	if want := "d.csv: row 2, column dwpd: 3 drive writes a day over 5 years are 10950 TB, not the 2490 TB of tbw_tb; 0.682 a day, or 1.14 years, would agree"; err == nil || err.Error() != want {
		t.Errorf("error %v; %s is right", err, want)
	}
	if _, err = ReadModels(strings.NewReader("model,capacity_gb,raw_gb\nx,2000,1900\n"), "d.csv"); err == nil || !strings.Contains(err.Error(), "column raw_gb") {
		t.Errorf("error %v", err)
	}
}

func TestWorkloadsRoundTrip(t *testing.T) {
	text := "name,write_gb_per_day,sequential,peak_iops,write_share,working_set_gb,count,p99_us,apart\nmds0,21.04,31.52%,207.02,88.11%,6.43,1,,\nweb,0.5,0.1,3,0.5,1e1,3,500,g\n"
	list, err := ReadWorkloads(strings.NewReader(text), "w.csv")
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 4 || list[3].Name != "web-3" || math.Abs(list[0].Sequential-0.3152) > 1e-12 {
		t.Fatalf("%+v", list)
	}
	var b bytes.Buffer
	if err := WriteWorkloads(&b, list); err != nil {
		t.Fatal(err)
	}
	again, err := ReadWorkloads(&b, "again.csv")
	if err != nil || !reflect.DeepEqual(list, again) {
		t.Errorf("%v: %+v", err, again)
	}
}

func FuzzReadWorkloads(f *testing.F) {
	f.Add("name,write_gb_per_day,sequential,peak_iops,write_share,working_set_gb\na,1,50%,1,.5,1\n")
	f.Fuzz(func(t *testing.T, text string) {
		list, err := ReadWorkloads(strings.NewReader(text), "w.csv")
		if err != nil {
			return
		}
		for i := range list {
			if err := list[i].check(); err != nil {
				t.Errorf("%q gave %v", text, err)
			}
		}
	})
}

func FuzzReadModels(f *testing.F) {
	f.Add("model,capacity_gb,dwpd,years,tbw_tb,price\nx,2000,1,5,3650,100\n")
	f.Fuzz(func(t *testing.T, text string) {
		list, err := ReadModels(strings.NewReader(text), "d.csv")
		if err != nil {
			return
		}
		for i := range list {
			if d, err := list[i].Drive("d", Corrected, DefaultCosts(), 0.3, 0.3); err == nil {
				if err := d.check(); err != nil && !strings.Contains(err.Error(), "Inf") {
					t.Errorf("%q gave %v", text, err)
				}
			}
		}
	})
}
