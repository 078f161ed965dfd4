package trace

import (
	"strings"
	"testing"

	"farflash/block"
	"farflash/internal/patience"
	"farflash/numeric/units"
	"farflash/workload"
)

var named = Columns{Time: "ts", Op: "type", Offset: "lba", Size: "len", Volume: "disk", Response: "lat"}

// tables must all be read as the records of tableWant.
var tables = []struct {
	text string
	cfg  CSV
}{
	{"ts,disk,type,lba,len,lat\n10.5,a,R,8,16,2\n12,\"b,\"\"1\"\"\",Write,0,1,\n",
		CSV{named, Unit{units.Millisecond, 512, 512}}},
	{"# made by hand\nTS;Type;LBA;Len;Disk;Lat\n105;read;4096;8192;a;20\n120;w;0;512;b,\"1\";\n",
		CSV{named, Unit{100 * units.Microsecond, 1, 0}}},
	{"10500\t0\t8\t8192\ta\t2000\n12000\t1\t0\t512\tb,\"1\"\t\n",
		CSV{Columns{"1", "2", "3", "4", "5", "6", "0", "1"}, Unit{units.Microsecond, 512, 0}}},
	{"when  what where much disk  took\r\n0.0105 rd 4096 8192  a  0.002\r\n0.012 wr 0 512 b,\"1\" \r\n",
		CSV{Columns{Time: "1", Op: "2", Offset: "3", Size: "4", Volume: "5", Response: "6"}, Unit{}}},
}

var tableWant = []workload.Record{
	{Response: 2 * units.Millisecond, Offset: 4096, Size: 8192, Op: block.Read},
	{Time: 1500 * units.Microsecond, Response: none, Size: 512, Volume: 1, Op: block.Write},
}

func TestTables(t *testing.T) {
	for i, x := range tables {
		r, err := NewReader(strings.NewReader(x.text), "t.csv", Options{CSV: x.cfg})
		if err != nil {
			t.Errorf("%d: %v", i, err)
			continue
		}
		got, err := workload.Collect(r)
		if err != nil || len(got) != 2 || got[0] != tableWant[0] || got[1] != tableWant[1] ||
			r.VolumeName(1) != `b,"1"` || r.Format() != CSVTable {
			t.Errorf("%d: %+v, %v, volume %s", i, got, err, r.VolumeName(1))
		}
		if notes := strings.Join(r.Notes(), "\n"); !strings.Contains(notes, "time from column 1") {
			t.Errorf("%d: %s", i, notes)
		}
	}
}

func TestTablesRefused(t *testing.T) {
	full := Columns{Time: "ts", Op: "op", Offset: "lba", Size: "len"}
	for _, x := range []struct {
		text string
		opts Options
		want string
	}{
		{"ts,op,lba,len\n", Options{CSV: CSV{Columns: Columns{Time: "ts"}}}, "columns.op: no column; give its name"},
		{"ts,op,lba,length\n1,r,0,1\n", Options{CSV: CSV{Columns: full}},
			`columns.size: the first line has no column "len"; did you mean "length"?`},
		{"1,r,0,1\n", Options{CSV: CSV{Columns: Columns{"1", "2", "3", "9", "", "", "", ""}}},
			"columns.size: no column 9; the first line has 4"},
		{"ts,op,lba,len\n1,r,0,512\n2,x,0,512\n", Options{CSV: CSV{Columns: full}},
			`t.csv:3: op is "x"; it must be read, write`},
		{"ts,op,lba,len\n1,r,0\n", Options{CSV: CSV{Columns: full}}, "t.csv:2: 3 columns, and size is number 4"},
		{"ts,op,lba,len\n1,r,9223372036854775807,1\n", Options{CSV: CSV{full, Unit{0, 512, 0}}}, "t.csv:2: offset is"},
		{"ts,op,lba,len\n-1,r,0,512\n", Options{CSV: CSV{Columns: full}}, "t.csv:2: time is"},
		{"ts,op,lba,len\n2,r,0,512\n1,r,0,512\n", Options{CSV: CSV{Columns: full}},
			"t.csv:3: its time is 1s before the previous record's"},
		{"ts,op,lba,len\n\"2,r,0,512\n", Options{CSV: CSV{Columns: full}}, "a quote is not closed"},
		{"ts,op,lba,len\n", Options{CSV: CSV{full, Unit{Time: 7}}}, "unit.time: 7ps is not a power of ten of a second"},
		{"ts,op,lba,len\n", Options{Format: MSR, CSV: CSV{Columns: full}},
			"columns are for tables (format csv); msr has its own columns"},
		{"ts,op,lba,len\n", Options{Format: CSVTable}, "columns.time: no column; give its name"},
		{"ts,op,lba,len\n", Options{CSV: CSV{Columns: Columns{"1", "2", "3", "4", "", "", "0", "0"}}},
			"cannot mean a write and a read"},
	} {
		r, err := NewReader(strings.NewReader(x.text), "t.csv", x.opts)
		if err == nil {
			_, err = workload.Collect(r)
		}
		if err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%q: error %v, want one with %q", x.text, err, x.want)
		}
	}
}

func FuzzTable(f *testing.F) {
	for _, x := range tables {
		f.Add(x.text, x.cfg.Columns.Time, x.cfg.Columns.Op, x.cfg.Columns.Offset, x.cfg.Columns.Size,
			x.cfg.Columns.Volume, x.cfg.Columns.Response, int64(x.cfg.Unit.Time), int64(x.cfg.Unit.Offset))
	}
	f.Fuzz(func(t *testing.T, text, at, op, offset, size, volume, response string, unit, sector int64) {
		defer patience.Limit()()
		cfg := CSV{Columns{Time: at, Op: op, Offset: offset, Size: size, Volume: volume, Response: response},
			Unit{units.Duration(unit), units.Bytes(sector), units.Bytes(sector)}}
		for _, skip := range []int64{0, -1} {
			r, err := NewReader(strings.NewReader(text), "t", Options{CSV: cfg, SkipBad: skip})
			if err != nil {
				continue
			}
			var rec, last workload.Record
			for range 1000 {
				if r.Next(&rec) != nil {
					break
				}
				if rec.Time < last.Time || rec.Size < 0 || rec.Offset < 0 || rec.End() > maxAddress ||
					rec.Response < workload.NoResponse {
					t.Fatalf("impossible record %+v", rec)
				}
				last = rec
			}
			r.Notes()
		}
	})
}
