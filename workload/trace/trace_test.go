package trace

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"

	"farflash/numeric/units"
	"farflash/workload"
	"farflash/workload/trace/record"
)

func read(text string, opts Options) ([]workload.Record, *Reader, error) {
	r, err := NewReader(strings.NewReader(text), "t", opts)
	if err != nil {
		return nil, nil, err
	}
	records, err := workload.Collect(r)
	return records, r, err
}

func TestFormats(t *testing.T) {
	seen := map[Format]bool{Tencent: true}
	for i, s := range samples {
		for _, format := range []Format{Auto, s.format} {
			name := fmt.Sprintf("%s %d as %s", s.format, i, format)
			got, r, err := read(s.text, Options{Format: format})
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if r.Format() != s.format {
				t.Errorf("%s: detected %s", name, r.Format())
			}
			if diff := cmp.Diff(s.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
			if start, _ := r.Start(); start != s.start {
				t.Errorf("%s: starts at %d s, want %d", name, start, s.start)
			}
			for j, want := range s.names {
				if got := r.VolumeName(got[j].Volume); got != want {
					t.Errorf("%s: record %d goes to volume %q, want %q", name, j, got, want)
				}
			}
		}
		seen[s.format] = true
	}
	for _, f := range Formats() {
		if !seen[f] && f != CSVTable { // its columns must be named: see TestTables
			t.Errorf("format %s has no sample", f)
		}
		if back, err := ParseFormat(f.String()); err != nil || back != f {
			t.Errorf("%s parses as %v, %v", f, back, err)
		}
	}
}

func TestWholeSecondsAreSpread(t *testing.T) {
	got, r, err := read(tencentText, Options{Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	again, _, _ := read(tencentText, Options{Seed: 3})
	other, _, _ := read(tencentText, Options{Seed: 4})
	if !slices.Equal(got, again) {
		t.Error("one seed gives two traces")
	}
	if slices.Equal(got, other) {
		t.Error("two seeds give one trace")
	}
	start, rest := r.Start()
	if start != 1538323199 {
		t.Errorf("starts at %d s", start)
	}
	wantVolumes, wantSecond := []uint32{10, 20, 20, 30}, []int64{0, 1, 1, 2}
	for i, g := range got {
		if second := int64(g.Time+rest) / psPerSecond; g.Volume != wantVolumes[i] || second != wantSecond[i] {
			t.Errorf("record %d: volume %d in second %d, want %d in %d", i, g.Volume, second, wantVolumes[i],
				wantSecond[i])
		}
		if i > 0 && g.Time < got[i-1].Time {
			t.Errorf("record %d runs backwards", i)
		}
	}
	if notes := strings.Join(r.Notes(), "\n"); !strings.Contains(notes, "spread uniformly") ||
		!strings.Contains(notes, "seed 3") {
		t.Errorf("no note of the spreading: %s", notes)
	}
	recorded, r, err := read(tencentText, Options{AsRecorded: true})
	if err != nil {
		t.Fatal(err)
	}
	if recorded[0].Time != 0 || recorded[1].Time != -units.Second || r.OutOfOrder() != 1 {
		t.Errorf("as recorded: %v, %v, %d out of order", recorded[0].Time, recorded[1].Time, r.OutOfOrder())
	}
}

func TestCompression(t *testing.T) {
	const text = "0,R,4096,4096,1577808000000046\n1,W,8192,8192,1577808000000426\n"
	want, _, err := read(text, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var gz, xzBuf, zs bytes.Buffer
	g := gzip.NewWriter(&gz)
	g.Write([]byte(text))
	g.Close()
	x, _ := xz.NewWriter(&xzBuf)
	x.Write([]byte(text))
	x.Close()
	z, _ := zstd.NewWriter(&zs)
	z.Write([]byte(text))
	z.Close()
	bz, err := base64.StdEncoding.DecodeString(
		"QlpoOTFBWSZTWbnPqP4AAAdaABgQAAR34BCAIABAVVPTSMT1MhTAAF2mIbty+oZg2UmkuLyr7L3vxtxSGmErPxdyRThQkLnPqP4=")
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]string{"gzip": gz.String(), "xz": xzBuf.String(), "zstd": zs.String(),
		"bzip2": string(bz)} {
		got, r, err := read(data, Options{})
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v", name, got, err)
			continue
		}
		r.Close()
		if got, _, err := read(data+"\x00\x00\x00\x00", Options{}); name == "xz" && (err != nil || len(got) != 2) {
			t.Errorf("%s with padding: %v, %v", name, got, err)
		}
		if _, _, err := read(data[:len(data)-12], Options{SkipBad: -1}); err == nil ||
			!strings.Contains(err.Error(), name) {
			t.Errorf("%s cut off: error %v", name, err)
		}
		damaged := []byte(data)
		damaged[len(damaged)/2] ^= 0x55
		if _, _, err := read(string(damaged), Options{SkipBad: -1}); err == nil ||
			!strings.Contains(err.Error(), name) {
			t.Errorf("%s damaged: error %v", name, err)
		}
	}
}

func TestErrorsSayWhereAndWhat(t *testing.T) {
	const msr = "128166372003061629,web,0,Read,4096,8192,1331\n"
	cases := []struct {
		format Format
		text   string
		want   string
	}{
		{MSR, msr + "128166372003061630,web,0,Read,4096,8192\n",
			"t:2: 6 columns instead of 7; a line of format msr reads Timestamp,Hostname"},
		{MSR, msr + "128166372003061630,web,0,Erase,4096,8192,1\n", `t:2: Type is "Erase"; it must be Read or Write`},
		{MSR, msr + "12816637200306163x,web,0,Read,4096,8192,1\n", `t:2: Timestamp is "12816637200306163x"`},
		{MSR, msr + "128166372003061630,web,0,Read,4096,0,1\n", "t:2: a read of 0 bytes"},
		{MSR, msr + "128166372003061630,web,0,Read,4097,512,1\n", "t:2: offset 4097 is not a multiple of 512"},
		{MSR, msr + "128166372003061630,web,0,Read,4096,513,1\n", "t:2: size 513 is not a multiple of 512"},
		{MSR, msr + "128166372003061630,web,0,Read,-4096,512,1\n", `t:2: Offset is "-4096"`},
		{MSR, msr + "128166372003061630,web,0,Read,9223372036854775296,512,1\n",
			"t:2: a read of 512 bytes at byte 9223372036854775296 extends past 64 PiB"},
		{MSR, msr + "128166372003061630,web,0,Read,99999999999999999999,512,1\n",
			`t:2: Offset is "99999999999999999999"`},
		{MSR, msr + "128166372003061630,web,0,Write,0,8589934592,1\n", "the maximum is 4 GiB"},
		{MSR, msr + "128166372003061628,web,0,Read,4096,512,1\n",
			"t:2: its time is 100ns before the previous record's; times must not run backwards in msr traces"},
		{MSR, msr + "1,web,0,Read,4096,512,1\n", "t:2: its time is more than 106 days before the previous record's"},
		{MSR, msr + "128166372003061630,web,0,Read,40",
			"t:2: 5 columns instead of 7; the file ends within this line; a line of format msr reads " +
				"Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime"},
		{MSR, msr + "228166372003061630,web,0,Read,4096,512,1\n",
			"t:2: its time is 10000000000 s from the first record's; the maximum is 106 days"},
		{MSR, "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n",
			"t: no requests; a record of format msr reads"},
		{Systor, "1.0,-1,R,0,0,512\n", `t:1: Response is "-1"`},
		{Systor, "nan,1,R,0,0,512\n", `t:1: Timestamp is "nan"`},
		{Systor, "1.0,1,R,4294967296,0,512\n", `t:1: LUN is "4294967296"`},
		{Tencent, "1538323200,16,8,2,20\n", `t:1: IOType is "2"; it must be 0 (read) or 1 (write)`},
		{Tencent, "1538323200,99999999999999999,8,1,20\n",
			`t:1: Offset is "99999999999999999"; it must be a whole number of 512-byte sectors`},
		{Tencent, "1538323200,8,99999999999999999,1,20\n", `t:1: Size is "99999999999999999"`},
		{Alibaba, "419,W,8792731648,16384\n", "t:1: 4 columns instead of 5"},
		{Alibaba, "419,W,8792731648,16384,-1\n", `t:1: timestamp is "-1"`},
		{SPC, "0,8,4096,X,0.5\n", `t:1: Opcode is "X"`},
		{SPC, "0,8\n", "t:1: 2 columns instead of 5 or more"},
		{FIU, "1 2 p 8 8 W 6 0\n", "t:1: 8 columns instead of 9"},
		{FIU, "1 2 p 8 8 W 99999 0 0\n", "is not a major and minor number"},
		{K5cloud, "1,0.5,R,100,512\n", "t:1: offset 100 is not a multiple of 512"},
		{Tectonic, "3 100 5000 16.5 9 p 4 5\n", `t:1: op_name is "9"`},
		{Tectonic, "3 100 5000 16.5 1 p 4 5\n3 100 5000 16.5 1 p 4 5 6\n",
			"t:2: 9 columns instead of 8 as in the lines above"},
		{Tectonic, "9999999999999 100 5000 16.5 1 p 4 5\n",
			"t:1: block_id 9999999999999 is outside the address space"},
		{Thesios, "f1,100\n", "t:1: no header"},
		{Thesios, "filename,file_offset\n", "t:1: the header has no column op_type"},
		{VSCSI, vscsiBytes(1, [4]uint64{8, 4096, 5e6, 0x28})[:30], "t: record at byte 0: no vscsi record"},
		{VSCSI, vscsiBytes(1, [4]uint64{8, 4096, 5e6, 0x28}, [4]uint64{8, 4096, 6e6, 0x28})[:40],
			"t: record at byte 32: the file ends within it, after 8 of 32 bytes"},
		{VSCSI, vscsiBytes(1, [4]uint64{8, 4096, 5e6, 0x28}, [4]uint64{8, 0, 6e6, 0x28}),
			"t: record at byte 32: a read of 0 bytes"},
		{VSCSI, vscsiBytes(1, [4]uint64{8, 4096, 5e6, 0x28}, [4]uint64{8, 512, 4e6, 0x28}),
			"t: record at byte 32: its time is 1s before"},
		{VSCSI, vscsiBytes(2, [4]uint64{1 << 60, 4096, 5e6, 0x28}),
			"t: record at byte 0: block 1152921504606846976 exceeds any drive"},
		{MQSim, "1000 0 8 16 2\n", `t:1: type is "2"; it must be 0 (write) or 1 (read)`},
		{MQSim, "1000,0,8,16,1\n", "t:1: 1 columns instead of 5"},
		{DiskSim, "x 0 8 16 1\n", `t:1: time is "x"`},
		{DiskSim, "1.0 0 8 16 g\n", `t:1: flags is "g"; it must be a hexadecimal number`},
		{Blkparse, "8,1 0 1 0.1 42 Q R 64 + x [p]\n", `t:1: sectors is "x"`},
		{Blkparse, "8,1 0 1 0.1 42 Q R 64 - 8 [p]\n", `it must be +`},
		{Blkparse, "8,1 0 1 0.1 42 Q R [p]\n", "t:1: 8 columns instead of at least 10"},
		{Blkparse, "8;1 0 1 0.1 42 Q R 64 + 8 [p]\n", `t:1: device is "8;1"; it must be major,minor`},
		{Blktrace, "abcd", "t: record at byte 0: no blktrace header"},
		{Blktrace, blktraceBytes(binary.LittleEndian, blktraceEvents...)[:52],
			"the file ends within its payload, after 4 of 7 bytes"},
		{Blktrace, blktraceBytes(binary.LittleEndian, blktraceEvents[1:3]...)[:90],
			"t: record at byte 48: the file ends within it, after 42 of 48 bytes"},
		{Blktrace, blktraceBytes(binary.LittleEndian, blktraceEvents[1]) + strings.Repeat("x", 60),
			"t: record at byte 48: magic number is 0x78787878; it must be 0x65617407"},
		{FioLog, "fio version 1 iolog\n", "version 1 are not supported"},
		{FioLog, "read 0 1\n", `t:1: the first line is "read 0 1"`},
		{FioLog, "fio version 3 iolog\n5 f write 0\n", "t:2: 3 columns instead of"},
		{FioLog, "fio version 3 iolog\n5 f erase 0 1\n", `t:2: action is "erase"`},
		{FioLog, "fio version 3 iolog\n5 f wait 1 0\n", "version 3 has no wait action"},
		{Recorded, "1.5,read,disk,0,512,,\n", `t:1: the first line is not "time,op,export,`},
		{Recorded, record.Header + "\n1.5,zero,disk,0,512,,\n", `t:2: op is "zero"`},
		{Recorded, record.Header + "\n1.5,read,disk,0\n", "t:2: 4 columns, and size is number 5"},
		{Recorded, record.Header + "\n1.5,read,disk,7,0,,\n", "t:2: a read of 0 bytes; sizes must be positive"},
		{Recorded, record.Header + "\n1.5,read,disk,72057594037927936,1,,\n", "t:2: "},
		{Alibaba, "0,R,0,512,5\n" + strings.Repeat("9", headSize+10) + "\n",
			"t:2: the line is longer than 65536 bytes"},
		{Auto, "", "t is empty"},
		{Auto, "x", "t: unknown trace format"},
		{Auto, "BZh", "t: unknown trace format"},
		{Auto, "BZh0", "t: unknown trace format"},
		{Auto, "BZh:", "t: unknown trace format"},
		{Auto, "BZh1", "t: the bzip2 data is cut off"},
		{Auto, "BZh9", "t: the bzip2 data is cut off"},
		{Auto, "hello\nworld\n", "t: unknown trace format; choose one with --format (msr, systor,"},
		{Auto, "0,R,0,512,5\n0,R\n0,R\n0,R\n", "the closest is alibaba, but t:2: 2 columns instead of 5"},
		{Auto, "abc\x00def\n", "t: binary data"},
		{Auto, "100 0 8 1 1\n200 0 9 1 0\n", "t: ambiguous: the fourth and the fifth"},
		{Auto, "100 0 8 1 17\n200 0 9 0 18\n",
			"t: ambiguous: columns are separated by spaces as in mqsim's traces, but the fourth"},
		{Auto, "100,0,8,17,1\n200,0,9,18,0\n", "--format mqsim or --format tencent"},
		{Auto, strings.Repeat("a", 257) + "ustar" + strings.Repeat("b", 300), "t is a tar archive"},
		{Auto, "\x1f\x8bxxxxxxxxxx", "t: the gzip data is damaged"},
	}
	for _, c := range cases {
		_, _, err := read(c.text, Options{Format: c.format})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %.60q: error\n\t%v, want one with\n\t%s", c.format, c.text, err, c.want)
		}
	}
	for _, opts := range []Options{{Window: -1}, {Action: 'x'}, {Format: MSR, Action: 'Q'}, {Format: 99}} {
		if _, _, err := read(msr, opts); err == nil {
			t.Errorf("options %+v must be refused", opts)
		}
	}
	_, _, err := read(msr+"x\n", Options{Format: MSR})
	var where *parseError
	if !errors.As(err, &where) || where.line != 2 || where.file != "t" {
		t.Errorf("error %#v does not tell file and line", err)
	}
}

func TestSkipBad(t *testing.T) {
	good := func(i int) string { return fmt.Sprintf("0,R,%d,512,%d\n", i*512, i) }
	text := good(1) + "junk\n" + good(2) + good(1) + good(3) + "0,R,0,0,4\n" + strings.Repeat("z", headSize*2) +
		"\n" + good(5)
	if _, _, err := read(text, Options{}); err == nil || !strings.Contains(err.Error(), "t:2:") {
		t.Errorf("no skipping: %v", err)
	}
	_, _, err := read(text, Options{SkipBad: 3})
	if err == nil || !strings.Contains(err.Error(), "t:7:") ||
		!strings.Contains(err.Error(), "3 bad records before it were skipped") {
		t.Errorf("too few: %v", err)
	}
	for _, n := range []int64{4, -1} {
		got, r, err := read(text, Options{SkipBad: n})
		if err != nil || len(got) != 4 || r.Skipped() != 4 {
			t.Fatalf("skip %d: %d records, %d skipped, %v", n, len(got), r.Skipped(), err)
		}
		if notes := strings.Join(r.Notes(), "\n"); !strings.Contains(notes, "skipped 4 bad records") ||
			!strings.Contains(notes, "t:2:") {
			t.Errorf("notes: %s", notes)
		}
	}
	if _, _, err := read("junk\n", Options{Format: Alibaba, SkipBad: 5}); err == nil ||
		!strings.Contains(err.Error(), "no valid records") {
		t.Errorf("all bad: %v", err)
	}
	// blktrace finds the next header after garbage.
	b := blktraceBytes(binary.LittleEndian, blktraceEvents[:2]...)
	got, r, err := read(b+strings.Repeat("rubbish ", 20)+blktraceBytes(binary.LittleEndian, blktraceEvents[3:]...),
		Options{SkipBad: 1})
	if err != nil || len(got) != 4 || r.Skipped() != 1 {
		t.Errorf("blktrace: %d records, %v", len(got), err)
	}
}

func TestWindow(t *testing.T) {
	var text strings.Builder
	const n = 1000
	for i := range n {
		// Each record is up to 7 positions from where its time belongs.
		fmt.Fprintf(&text, "0,R,0,512,%d\n", 100+(i^5))
	}
	if _, _, err := read(text.String(), Options{}); err == nil {
		t.Error("disorder must be an error without a window")
	}
	got, r, err := read(text.String(), Options{Window: 8})
	if err != nil || len(got) != n {
		t.Fatalf("%d records, %v", len(got), err)
	}
	for i := range got {
		if got[i].Time != us(float64(i)) {
			t.Fatalf("record %d arrives at %v", i, got[i].Time)
		}
	}
	if r.OutOfOrder() == 0 || !strings.Contains(strings.Join(r.Notes(), " "), "window of 8 records") {
		t.Errorf("%d out of order; notes %v", r.OutOfOrder(), r.Notes())
	}
	if _, _, err := read(text.String(), Options{Window: 2}); err == nil ||
		!strings.Contains(err.Error(), "the window of 2 records is too small") {
		t.Errorf("small window: %v", err)
	}
}

func TestVolumeFilter(t *testing.T) {
	text := samples[0].text
	got, r, err := read(text, Options{Volume: "web,1"})
	if err != nil || len(got) != 1 || got[0].Time != 0 || r.VolumeName(got[0].Volume) != "web,1" {
		t.Errorf("%v, %v", got, err)
	}
	_, _, err = read(text, Options{Volume: "usr,0"})
	if err == nil || !strings.Contains(err.Error(),
		`none of its 2 requests goes to volume "usr,0"; it has "web,0" "web,1"`) {
		t.Errorf("error %v", err)
	}
}

func TestActions(t *testing.T) {
	for _, s := range samples {
		if s.format != Blkparse && s.format != Blktrace {
			continue
		}
		for action, want := range map[byte]int{'Q': 4, 'D': 1, 'C': 1} {
			got, r, err := read(s.text, Options{Action: action})
			if err != nil || len(got) != want {
				t.Errorf("%s by %c: %d records, %v", s.format, action, len(got), err)
			}
			if action == 'D' && got[0].Response != us(79.5) {
				t.Errorf("%s by D: response %v", s.format, got[0].Response)
			}
			_ = r
		}
	}
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(filepath.Join(dir, "none.csv"), Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	if _, err := Open(dir, Options{}); err == nil || !strings.Contains(err.Error(), "is a directory") {
		t.Errorf("directory: %v", err)
	}
	path := filepath.Join(dir, "a.csv")
	if err := os.WriteFile(path, []byte(samples[0].text), 0o644); err != nil {
		t.Fatal(err)
	}
	r, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var rec workload.Record
	for err == nil {
		err = r.Next(&rec)
	}
	if err != io.EOF || r.Next(&rec) != io.EOF {
		t.Errorf("the end is %v, then %v", err, r.Next(&rec))
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// rows generates n lines of a format in steady state.
func rows(format Format, n int) string {
	var b strings.Builder
	for i := range n {
		switch format {
		case MSR:
			fmt.Fprintf(&b, "%d,web,%d,Read,%d,8192,1331\n", 128166372003061629+i, i%3, 4096*i)
		case Recorded:
			if i == 0 {
				b.WriteString(record.Header + "\n")
			}
			fmt.Fprintf(&b, "1456095145.%09d,read,disk,%d,4096,0.000806000,10.0.0.1:40000\n", i*1000, 4096*i)
		case Systor:
			fmt.Fprintf(&b, "1456095145.%09d,0.000806000,R,%d,%d,4096\n", i*1000, i%3, 4096*i)
		case Tencent:
			fmt.Fprintf(&b, "%d,%d,8,%d,10%d\n", 1538323200+i/500, 8*i, i%2, i%7)
		case Alibaba:
			fmt.Fprintf(&b, "%d,W,%d,16384,%d\n", i%5, 4096*i, 1577808144360767+i)
		case SPC:
			fmt.Fprintf(&b, "0,%d,4096,R,%d.%06d\n", 8*i, i/1e6, i%1e6)
		case K5cloud:
			fmt.Fprintf(&b, "7,%d.%06d,R,%d,4096\n", i/1e6, i%1e6, 4096*i)
		case MQSim:
			fmt.Fprintf(&b, "%d 0 %d 16 1\n", 1000*i, 8*i)
		case DiskSim:
			fmt.Fprintf(&b, "%d.%06d 0 %d 16 1\n", i, i%1e6, 8*i)
		case FIU:
			fmt.Fprintf(&b, "%d 4892 syslogd %d 8 W 6 0 531e779ee8ac0ad5b7b8a5b2d8b4d5a1\n", 89967404415337+i, 8*i)
		case Blkparse:
			fmt.Fprintf(&b, "  8,1    0        1     0.%09d  42  Q   R %d + 8 [fio]\n", 1000*i, 8*i)
			fmt.Fprintf(&b, "  8,1    0        1     0.%09d  42  C   R %d + 8 [0]\n", 1000*i+500, 8*i)
		}
	}
	return b.String()
}

var streamed = []Format{MSR, Systor, Recorded, Tencent, Alibaba, SPC, K5cloud, MQSim, DiskSim, FIU, Blkparse}

// windowed returns the window for a format that is sorted, and 0 for others.
func windowed(f Format, n int) int {
	if f == Systor || f == Recorded || f == Tencent {
		return n
	}
	return 0
}

// TestSteadyStateDoesNotAllocate reads in the middle of a trace. Tencent's spreading creates a random stream per
// second, which may cost a few allocations for its 500 records.
func TestSteadyStateDoesNotAllocate(t *testing.T) {
	const warm, runs = 3000, 1000
	for _, f := range streamed {
		r, err := NewReader(strings.NewReader(rows(f, warm+runs+2000)), "t",
			Options{Format: f, Window: windowed(f, 64)})
		if err != nil {
			t.Fatal(err)
		}
		var rec workload.Record
		for range warm {
			if err := r.Next(&rec); err != nil {
				t.Fatalf("%s: %v", f, err)
			}
		}
		perRun := testing.AllocsPerRun(runs, func() {
			if err := r.Next(&rec); err != nil {
				t.Fatalf("%s: %v", f, err)
			}
		})
		if perRun != 0 {
			t.Errorf("%s: %v allocations a record", f, perRun)
		}
	}
}

func BenchmarkRead(b *testing.B) {
	for _, f := range streamed {
		b.Run(f.String(), func(b *testing.B) {
			const n = 50000
			text := rows(f, n)
			b.SetBytes(int64(len(text) / n))
			b.ReportAllocs()
			var rec workload.Record
			var r *Reader
			for i := range b.N {
				if i%(n-1) == 0 {
					var err error
					if r, err = NewReader(strings.NewReader(text), "t",
						Options{Format: f, Window: windowed(f, 4096)}); err != nil {
						b.Fatal(err)
					}
				}
				if err := r.Next(&rec); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func Example() {
	const text = "128166372003061629,hm,0,Read,4096,8192,1331\n128166372003062629,hm,0,Write,512,1024,7\n"
	r, err := NewReader(strings.NewReader(text), "hm_0.csv", Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	var rec workload.Record
	for r.Next(&rec) == nil {
		fmt.Println(rec.Time, rec.Op, rec.Offset, rec.Size, r.VolumeName(rec.Volume))
	}
	fmt.Println(r.Format())
	// Output:
	// 0s read 4096 8192 hm,0
	// 100us write 512 1024 hm,0
	// msr
}

// TestWhatFollowsGzip verifies that another member, padding, truncation and foreign data after gzip data are
// distinguished.
func TestWhatFollowsGzip(t *testing.T) {
	pack := func(text string) string {
		var b bytes.Buffer
		g := gzip.NewWriter(&b)
		if _, err := io.WriteString(g, text); err != nil {
			t.Fatal(err)
		}
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	one, two := pack("1000 0 0 8 1\n"), pack("2000 0 8 8 1\n")
	for _, c := range []struct {
		name, data string
		n          int
		want       string
	}{
		{"nothing", one, 1, ""},
		{"another member", one + two, 2, ""},
		{"padding", one + two + strings.Repeat("\x00", 700), 2, ""},
		{"junk", one + "junk", 1, "t: invalid data follow the gzip data; remove them, or compress the trace again"},
		{"much junk", one + strings.Repeat("junk", 1000), 1, "t: invalid data follow the gzip data"},
		{"junk behind padding", one + "\x00\x00x", 1, "t: invalid data follow the gzip data"},
		{"half a member", one + two[:len(two)/2], 1, "t: the gzip data is cut off; the file is truncated"},
		{"a part of a header", one + two[:5], 1, "t: the gzip data is cut off; the file is truncated"},
	} {
		r, err := NewReader(strings.NewReader(c.data), "t", Options{Format: MQSim})
		n := 0
		for err == nil {
			var rec workload.Record
			if err = r.Next(&rec); err == nil {
				n++
			}
		}
		if err == io.EOF {
			err = nil
		}
		if c.want == "" && (err != nil || n != c.n) ||
			c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)) {
			t.Errorf("%s: %d records, %v; want %d, %q", c.name, n, err, c.n, c.want)
		}
	}
}
