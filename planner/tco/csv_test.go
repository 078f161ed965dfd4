package tco

import (
	"bytes"
	"math"
	"reflect"
	"strings"
	"testing"

	"farflash/internal/patience"
)

func TestTableErrors(t *testing.T) {
	head := "name,write_gb_per_day,sequential,peak_iops,write_share,working_set_gb\n"
	for _, c := range []struct{ text, want string }{
		{"", "w.csv: row 1: the table is empty; its first row names the columns"},
		{"name,rate\n", `w.csv: row 1, column rate: unknown column`},
		{"name,write_gb_per_dya\n",
			`column write_gb_per_dya: unknown column; did you mean "write_gb_per_day"?`},
		{"name\n", "w.csv: row 1, column peak_iops: the column is missing; add it"},
		{head, "w.csv: row 2: no workloads; write one per row"},
		{head + "a,1,0.5,1,0.5\n", "w.csv: row 2: 5 values for 6 columns; fill or cut the row"},
		{head + "a,x,0.5,1,0.5,1\n",
			`w.csv: row 2, column write_gb_per_day: "x" is not a number; write one such as 12.5`},
		{head + "a,1,31,1,0.5,1\n",
			"w.csv: row 2, column sequential: 31 is out of range; it must be 0 to 1 (or 0% to 100%)"},
		{head + "# a comment\na,1,,1,0.5,1\n", "w.csv: row 3, column sequential: missing value; write a number"},
		{head + "a,1,0.5,1,0.5,-1\n", "w.csv: row 2, column working_set_gb: -1 is out of range; it must be 0 or more"},
		{head + "a,1,0.5,1,0.5,1\na,1,0.5,1,0.5,1\n",
			`w.csv: row 3, column name: "a" is already the name of row 2; give each workload its own`},
		{head + "\"a,1\n", "w.csv: row"},
		{strings.TrimSpace(head) + ",end_day,arrival_day\na,1,0.5,1,0.5,1,5,7\n",
			"w.csv: row 2, column end_day: day 5 is not after the arrival on day 7"},
	} {
		_, err := ReadWorkloads(strings.NewReader(c.text), "w.csv")
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: error %v; %s is right", c.text, err, c.want)
		}
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
		defer patience.Limit()()
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
