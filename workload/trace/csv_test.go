package trace

import (
	"bytes"
	"slices"
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
	{"disk,ts,type,lba,len,lat\na,10.5,R,8,16,2\n\"b,\"\"1\"\"\",12,Write,0,1,\n",
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
		if notes := strings.Join(r.Notes(), "\n"); !strings.Contains(notes, "read as a table: time from column ") {
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
		{"1,r,0,1\n", Options{CSV: CSV{Columns: Columns{"0", "2", "3", "4", "", "", "", ""}}},
			"columns.time: no column 0; the first line has 4"},
		{"1,r,0,1\n", Options{CSV: CSV{Columns: Columns{"1", "2", "3", "4", "5", "", "", ""}}},
			"columns.volume: no column 5; the first line has 4"},
		{"1,r,0,1\n", Options{CSV: CSV{Columns: Columns{"1", "2", "size", "4", "", "", "", ""}}},
			`columns.offset: the first line has no column "size" (it has 1, r, 0, 1)`},
		{"1,r,0,1\n", Options{CSV: CSV{Columns{"1", "2", "3", "4", "", "", "", ""}, Unit{0, -1, 0}}},
			"unit.offset: -1B is not possible; use 1B for bytes, 512B for sectors"},
		{"1,r,0,1\n", Options{CSV: CSV{Columns{"1", "2", "3", "4", "", "", "", ""}, Unit{0, 0, units.GiB + 1}}},
			"unit.size: 1.073741825GB is not possible; use 1B for bytes, 512B for sectors"},
		{"1,r,0,1\n", Options{CSV: CSV{Columns{"1", "2", "3", "4", "", "", "", ""}, Unit{10 * units.Second, 0, 0}}},
			"unit.time: 10s is not a power of ten"},
		{"\"ts,op\n", Options{CSV: CSV{Columns: full}}, "t.csv: a quote is not closed on its line"},
		{"ts,op,lba,len\n1,r,0,9223372036854775807\n", Options{CSV: CSV{full, Unit{0, 0, 2}}}, "t.csv:2: size is"},
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

// TestTablesDescribed verifies the note on the columns and units in use, and where a header is recognised.
func TestTablesDescribed(t *testing.T) {
	numbers := Columns{Time: "3", Op: "2", Offset: "1", Size: "4"}
	for _, x := range []struct {
		text    string
		cfg     CSV
		records int
		note    string
	}{
		{"at;op;o;n;v\n1;w;2;8;x\n", CSV{Columns{Time: "AT", Op: "op", Offset: "o", Size: "n", Volume: "v"},
			Unit{units.Millisecond, 512, 1}}, 1, "read as a table: time from column 1 (at), op from column 2 (op), offset " +
			"from column 3 (o), size from column 4 (n), volume from column 5 (v); 1 is 1ms of time, 512B of an offset and " +
			"1B of a size"},
		{"0,r,1,512\n0,r,2,512\n", CSV{Columns: numbers}, 2, "read as a table: time from column 3, op from column 2, " +
			"offset from column 1, size from column 4; 1 is 1s of time, 1B of an offset and 1B of a size"},
		{"o,op,time,n\n0,r,1,512\n", CSV{Columns: numbers}, 1, "read as a table: time from column 3 (time), op from " +
			"column 2 (op), offset from column 1 (o), size from column 4 (n); 1 is 1s of time, 1B of an offset and 1B of a " +
			"size"},
		{"\n  \n# by hand\n0 r 1 512\n# more\n\n0 r 2 512 \n", CSV{numbers, Unit{10 * units.Picosecond, units.GiB, 4096}},
			2, "read as a table: time from column 3, op from column 2, offset from column 1, size from column 4; 1 is 10ps " +
				"of time, 1GiB of an offset and 4KiB of a size"},
		{",o,at,n\n1,r,0,512\n", CSV{Columns: Columns{Time: "1", Op: "o", Offset: "at", Size: "n"}}, 1, "read as a table: " +
			"time from column 1 (), op from column 2 (o), offset from column 3 (at), size from column 4 (n); 1 is 1s of " +
			"time, 1B of an offset and 1B of a size"},
	} {
		got, r, err := read(x.text, Options{CSV: x.cfg})
		if err != nil || len(got) != x.records || r.Notes()[0] != x.note {
			t.Errorf("%q: %v, %v", x.text, got, err)
			if r != nil {
				t.Errorf("%q\nwant\n%q", r.Notes(), x.note)
			}
		}
	}
}

// TestTableWords verifies each word for an operation, and which fields of an operation without data count.
func TestTableWords(t *testing.T) {
	cfg := CSV{Columns: Columns{Time: "1", Op: "2", Offset: "3", Size: "4", Reads: "0", Writes: "Get"}}
	for words, want := range map[string]workload.Record{
		"0 r R read Rd READS":                    {Offset: 1024, Size: 512, Op: block.Read},
		"Get w write WR writes":                  {Offset: 1024, Size: 512, Op: block.Write},
		"append APPEND":                          {Offset: 1024, Size: 512, Op: block.Write, Append: true},
		"t trim d discard unmap":                 {Offset: 1024, Size: 512, Op: block.Trim},
		"f flush sync":                           {Op: block.Flush},
		"reset":                                  {Offset: 1024, Op: block.Reset},
		"finish":                                 {Offset: 1024, Op: block.Finish},
		"open":                                   {Offset: 1024, Op: block.Open},
		"close":                                  {Offset: 1024, Op: block.Close},
		"get a zero x 1 re rs flushes op closer": {Size: -1},
	} {
		want.Response = none
		for _, word := range strings.Fields(words) {
			got, _, err := read("5,"+word+",1024,512\n", Options{CSV: cfg})
			if want.Size < 0 {
				if err == nil || !strings.HasPrefix(err.Error(), `t:1: op is "`+word+`"; it must be read, write, trim`) {
					t.Errorf("%s: %v, %v", word, got, err)
				}
				continue
			}
			if err != nil || len(got) != 1 || got[0] != want {
				t.Errorf("%s: %+v, %v; want %+v", word, got, err, want)
			}
		}
	}
	// A flush needs no range, a zone command no size; others need both.
	for line, want := range map[string]string{"1,f,,": "", "1,f,-,-": "", "1,reset,512,": "",
		"1,reset,,512": "t:1: offset is empty", "1,r,,512": "t:1: offset is empty", "1,w,0,": "t:1: size is empty"} {
		_, _, err := read(line+"\n", Options{CSV: cfg})
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
}

// TestQuotes splits lines as RFC 4180 says, with spaces around fields.
func TestQuotes(t *testing.T) {
	d := csvDecoder{separator: ','}
	for line, want := range map[string][]string{
		`a,b`: {"a", "b"}, `a,`: {"a", ""}, ``: {""}, `,`: {"", ""}, ` a , b `: {"a", "b"},
		`"a","b"`: {"a", "b"}, `"a,b",c`: {"a,b", "c"}, `"a""b"`: {`a"b`}, `""""`: {`"`}, `"",x`: {"", "x"},
		` "a" , "b" `: {"a", "b"}, `"a" ,`: {"a", ""}, `x"y,z`: {`x"y`, "z"}, `"a`: nil, `"a""`: nil, `"a"b`: nil, `"`: nil,
		`"a""b","c""",d`: {`a"b`, `c"`, "d"},
	} {
		got, err := d.split([]byte(line))
		var text []string
		for _, f := range got {
			text = append(text, string(f))
		}
		if !slices.Equal(text, want) || (err == nil) != (want != nil) {
			t.Errorf("%s is split into %q, %v; want %q", line, text, err, want)
		}
	}
	d.separator = ' '
	for line, want := range map[string]string{"a b": "a|b", " \ta\t b ": "a|b", "": "", " ": ""} {
		got, err := d.split([]byte(line))
		if text := string(bytes.Join(got, []byte("|"))); err != nil || text != want {
			t.Errorf("%q is split into %q, %v", line, text, err)
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
