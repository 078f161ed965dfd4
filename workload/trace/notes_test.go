package trace

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"farflash/block"
	"farflash/workload"
)

// TestNotes verifies what a Reader reports of a file once it has been read.
func TestNotes(t *testing.T) {
	const fio = "fio version 2 iolog\nf read 0 1\n"
	huge := strings.Repeat("z", headSize)
	for name, x := range map[string]struct {
		text string
		opts Options
		want []string
	}{
		"nothing to say": {"0,R,0,512,5\n", Options{Format: Alibaba}, nil},
		"detected": {"0,R,0,512,5\n0,R\n0,R,0,512,6\n", Options{SkipBad: 1}, []string{
			"detected format alibaba: 2 of the first 3 records read as device_id,opcode,offset,length,timestamp",
			"skipped 1 bad record: t:2: 2 columns instead of 5; a line of format alibaba reads " +
				"device_id,opcode,offset,length,timestamp"}},
		"three of the bad": {"0,R,0,512,5\na\nb\nc\nd\n", Options{Format: Alibaba, SkipBad: 4}, []string{
			"skipped 4 bad records; the first: " + strings.Join([]string{
				"t:2: 1 columns instead of 5; a line of format alibaba reads device_id,opcode,offset,length,timestamp",
				"t:3: 1 columns instead of 5; a line of format alibaba reads device_id,opcode,offset,length,timestamp",
				"t:4: 1 columns instead of 5; a line of format alibaba reads device_id,opcode,offset,length,timestamp"},
				"\n")}},
		"no end of line": {"0,R,0,512,5\n0,R,0,512,6", Options{Format: Alibaba},
			[]string{"the last line has no end; if the file was cut off, its last number may be cut too"}},
		"several operations": {"3 100 5000 16.5 1 4 5 0 2 9\n3 100 5000 16.5 1 4 5 0 1 9\n3 0 5 16.5 1 4 5 0 3 9\n",
			Options{Format: Tectonic},
			[]string{"2 records stand for several operations (op_count); each is read as one"}},
		"version 2": {fio, Options{Format: FioLog},
			[]string{"version 2 of fio's log has no times: arrivals advance by its wait lines only"}},
		"version 3": {"fio version 3 iolog\n1 f read 0 1\n", Options{Format: FioLog}, nil},
		"other commands": {vscsiBytes(1, [4]uint64{8, 512, 1, 0x28}, [4]uint64{8, 0, 2, 0}, [4]uint64{0, 0, 3, 0xff}),
			Options{Format: VSCSI}, []string{"left out 2 SCSI commands that neither read, write nor flush"}},
		"big-endian": {blktraceBytes(binary.BigEndian, blktraceEvents[1]), Options{Action: 'Q'},
			[]string{"detected format blktrace: it begins with blktrace's magic number (BigEndian)",
				"the trace was written on a big-endian machine"}},
		"by completion": {"2,0.5,R,0,0,512\n1,,R,0,0,512\n", Options{Format: Systor}, []string{
			"systor records requests when they complete: sorted by arrival within a window of 65536 records; " +
				"1 followed a later one"}},
		"seconds": {"2,8,8,1,20\n1,8,8,1,20\n", Options{Format: Tencent, Window: 9, Seed: 4}, []string{
			"tencent stamps whole seconds: sorted within a window of 9 records (1 followed a later one), then the " +
				"requests of a second are spread uniformly over it in order, by seed 4; times finer than a second are " +
				"synthetic"}},
		"long lines": {huge + "\n0,R,0,512,5\n" + huge[1:] + "\n" + huge + huge + "\n0,R,0,512,5\n" + huge,
			Options{Format: Alibaba, SkipBad: -1}, []string{
				"skipped 4 bad records; the first: t:1: the line is longer than 65536 bytes\n" +
					"t:3: 1 columns instead of 5; a line of format alibaba reads device_id,opcode,offset,length,timestamp\n" +
					"t:4: the line is longer than 65536 bytes"}},
	} {
		_, r, err := read(x.text, x.opts)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := r.Notes(); !slices.Equal(got, x.want) {
			t.Errorf("%s:\n\t%q, want\n\t%q", name, got, x.want)
		}
	}
}

// TestByteOrderMark verifies that only the first line may begin with a byte order mark, for all formats and a table.
func TestByteOrderMark(t *testing.T) {
	const mark, line = "\xef\xbb\xbf", "1,R,0,512,5\n"
	if got, r, err := read(mark+line+line, Options{}); err != nil || len(got) != 2 || got[0].Volume != 1 ||
		r.Format() != Alibaba {
		t.Errorf("%v, %v", got, err)
	}
	if _, _, err := read(line+mark+line, Options{Format: Alibaba}); err == nil ||
		!strings.HasPrefix(err.Error(), `t:2: device_id is "\ufeff1"`) {
		t.Errorf("%v", err)
	}
	table := CSV{Columns: Columns{Time: "at", Op: "op", Offset: "o", Size: "n"}}
	if got, _, err := read(mark+"at,op,o,n\n1,r,0,512\n", Options{CSV: table}); err != nil || len(got) != 1 {
		t.Errorf("%v, %v", got, err)
	}
}

// TestBadEnds verifies that each way to end within a record of a binary file is one bad record, and that a good end is
// none.
func TestBadEnds(t *testing.T) {
	good := blktraceBytes(binary.LittleEndian, blktraceEvents[1], blktraceEvents[3])
	rubbish := strings.Repeat("x", blktraceHeader)
	later := blktraceBytes(binary.LittleEndian, blktraceEvents[4], blktraceEvents[5])
	other := []byte(good[:blktraceHeader])
	other[0] = 8 // another version
	for _, x := range []struct {
		text          string
		records, lost int64
	}{
		{good, 2, 0}, {good[:len(good)-1], 1, 1}, {good[:len(good)-2], 1, 1}, {good[:blktraceHeader+1], 1, 1},
		{good + rubbish, 2, 1}, {good + rubbish + "x", 2, 1}, {good + rubbish + "abc", 2, 1},
		{good + rubbish + "abcd", 2, 1}, {good + rubbish + later, 4, 1}, {good + rubbish + "xxx" + later, 4, 1},
		{good + string(other) + later, 4, 1},
	} {
		got, r, err := read(x.text, Options{Format: Blktrace, SkipBad: -1})
		if err != nil || int64(len(got)) != x.records || r.Skipped() != x.lost {
			t.Errorf("%d bytes: %d records, %v; want %d and %d bad", len(x.text), len(got), err, x.records, x.lost)
		}
	}
	if _, _, err := read(good+string(other), Options{Format: Blktrace}); err == nil ||
		err.Error() != "t: record at byte 97: version is 8; it must be 7" {
		t.Errorf("%v", err)
	}
	v := vscsiBytes(1, [4]uint64{8, 512, 1, 0x28}, [4]uint64{8, 512, 2, 0x2a})
	for n, lost := range map[int]int64{64: 0, 63: 1, 33: 1, 32: 0} {
		if got, r, err := read(v[:n], Options{SkipBad: 1}); err != nil || r.Skipped() != lost || len(got) != n/32 {
			t.Errorf("%d bytes of vscsi: %v, %v", n, got, err)
		}
	}
	// A compressed file that ends early is no bad record: the rest is lost, so it is an error.
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	z.Write([]byte(strings.Repeat(good, 3000))) // more than is read ahead, and not all alike after compression
	z.Close()
	for _, rest := range []string{"", rubbish} {
		text := packed.String()[:packed.Len()-9] + rest
		if got, _, err := read(text, Options{SkipBad: -1}); err == nil || !strings.Contains(err.Error(), "gzip data is") {
			t.Errorf("%d records, %v", len(got), err)
		}
	}
}

// TestBinaryLimits verifies the limits of the fields of binary records from both sides.
func TestBinaryLimits(t *testing.T) {
	const sectors = 1 << 47 // 2^56 bytes, the greatest address
	queue := func(time, sector uint64, kind uint32) string {
		return blktraceBytes(binary.LittleEndian, blktraceEvent{time, sector, 4096, kind | blktraceQueue, ""})
	}
	slow := []byte(vscsiBytes(2, [4]uint64{8, 512, 1, 0x28}))
	response := func(us uint64) string {
		binary.LittleEndian.PutUint64(slow[32:], us)
		return string(slow)
	}
	for _, x := range []struct {
		text, want string
	}{
		{queue(1<<63-1, 0, blktraceRead), ""},
		{queue(1<<63, 0, blktraceRead), "time of 9223372036854775808 ns is out of range"},
		{queue(0, sectors-8, blktraceWrite), ""},
		{queue(0, sectors, blktraceWrite), "a write of 4096 bytes at byte 72057594037927936 extends past 64 PiB"},
		{queue(0, 1<<54-1, blktraceWrite), "a write of 4096 bytes at byte 9223372036854775296 extends past 64 PiB"},
		{queue(0, 1<<54, blktraceWrite), "sector 18014398509481984 exceeds any drive"},
		{vscsiBytes(1, [4]uint64{0, 512, 1<<63 - 1, 0x28}), ""},
		{vscsiBytes(1, [4]uint64{0, 512, 1 << 63, 0x28}), "time of 9223372036854775808 us is out of range"},
		{vscsiBytes(1, [4]uint64{1<<54 - 1, 512, 0, 0x28}),
			"a read of 512 bytes at byte 9223372036854775296 extends past 64 PiB"},
		{vscsiBytes(1, [4]uint64{1 << 54, 512, 0, 0x28}), "block 18014398509481984 exceeds any drive"},
		{response(9223372036854), ""},
		{response(9223372036855), "response time of 9223372036855 us is out of range"},
	} {
		_, _, err := read(x.text, Options{})
		if x.want == "" && err != nil || x.want != "" && (err == nil || !strings.HasSuffix(err.Error(), x.want)) {
			t.Errorf("%v, want %q", err, x.want)
		}
	}
	bad := vscsiBytes(2, [4]uint64{8, 512, 1, 0x28}, [4]uint64{8, 512, 1, 0x100})
	if _, _, err := read(bad, Options{Format: VSCSI}); err == nil ||
		err.Error() != "t: record at byte 40: command 0x0100 is not a SCSI operation code" {
		t.Errorf("%v", err)
	}
	bad = vscsiBytes(1, [4]uint64{8, 512, 1, 0x28}) + strings.Repeat("\x02", 32)
	if _, _, err := read(bad, Options{Format: VSCSI}); err == nil ||
		err.Error() != "t: record at byte 32: version field is 0x0202; it must be 0x01xx as in the first record" {
		t.Errorf("%v", err)
	}
	// Commands by their operation codes in SPC-4 and SBC-3.
	for code, want := range map[uint64]block.Op{0x08: block.Read, 0x28: block.Read, 0xa8: block.Read, 0x88: block.Read,
		0x0a: block.Write, 0x2a: block.Write, 0xaa: block.Write, 0x8a: block.Write, 0x2e: block.Write,
		0x8e: block.Write, 0x35: block.Flush, 0x91: block.Flush} {
		got, _, err := read(vscsiBytes(1, [4]uint64{16, 512, 1, code}), Options{Format: VSCSI})
		offset, size := int64(8192), int64(512)
		if want == block.Flush {
			offset, size = 0, 0 // the range of SYNCHRONIZE CACHE is no data
		}
		record := workload.Record{Response: none, Offset: offset, Size: size, Op: want}
		if err != nil || len(got) != 1 || got[0] != record {
			t.Errorf("command %#x: %v, %v", code, got, err)
		}
	}
}

// TestDetection verifies the choice among formats, the reason, and the errors that help to choose.
func TestDetection(t *testing.T) {
	record := vscsiBytes(1, [4]uint64{8, 512, 1, 0x28})
	junk := strings.Repeat("\x00", 32)
	for _, x := range []struct {
		text, want string
		format     Format
	}{
		{"Timestamp,Offset,Size,IOType,VolumeID\n100,0,8,1,1\n200,0,9,0,0\n",
			"t: ambiguous: the fourth and the fifth of five columns are both 0 or 1 in all of the first 2 lines: ", Auto},
		{"100 0 8 1 1\n200 0 9 2 1\n", "2 of the first 2 records read as time_ns", MQSim},
		{"100 0 8 1 1\n200 0 9 1 2\n",
			"t: ambiguous: columns are separated by spaces as in mqsim's traces, but the fourth is 0 or 1", Auto},
		{"100,0,8,1,1\n200,0,9,2,1\n",
			"t: ambiguous: columns are separated by commas as in tencent's traces, but the fifth is 0 or 1", Auto},
		{"100,0,8,1,2\n\n200,0,9,1,2\n", "2 of the first 2 records read as Timestamp,Offset", Tencent},
		{"100,0,8,1,1\n\n200,0,9,1,20\n", "2 of the first 2 records read as Timestamp,Offset", Tencent},
		{"100,0,8,1,10\n200,0,9,0,11\n", "2 of the first 2 records read as Timestamp,Offset", Tencent},
		{"100 0 8 10 1\n200 0 9 11 0\n", "2 of the first 2 records read as time_ns", MQSim},
		{"0,R,0,512,5\n0,R,0,512,6\n7,0.5,R,0,512\n",
			"2 of the first 3 records read as device_id,opcode,offset,length,timestamp", Alibaba},
		// One good line of three: the closest is named, with its first bad line.
		{"a\n7,0.25,R,1048576,4096\nb\n", "; the closest is k5cloud, but t:1: 1 columns instead of 5", Auto},
		{"0,R,0,512,5\n0,R,0,512,6\n7,0.25,R,1,4\n7,0.5,R,1,4\n", "t: ambiguous: it is valid in several formats; " +
			"choose one with --format alibaba or --format k5cloud", Auto},
		{"0,R,0,512,5\n7,0.25,R,1,4\nx\n", "; the closest is alibaba, but t:2: ", Auto}, // of two alike the first
		{"a,b\n", "t: unknown trace format; choose one with --format (" + strings.Join(names(), ", ") +
			"), or name the columns of a table with --columns", Auto},
		{"a\nb\x00\n", "t: binary data, but neither blktrace's magic number nor vscsi records; if it is one of the text " +
			"formats, line 2 is damaged", Auto},
		{strings.Repeat(record, 4), "its first 4 records have version 1 in their version field", VSCSI},
		{strings.Repeat(record, 1001), "its first 1000 records have version 1 in their version field", VSCSI},
		{strings.Repeat(record, 4) + junk, "its first 4 records have version 1 in their version field", VSCSI},
		{strings.Repeat(record, 3) + junk, "t: binary data", Auto},
		{"0.5 1 8 16 1\n", "1 of the first 1 records read as time_ms device", DiskSim},
	} {
		r, err := NewReader(strings.NewReader(x.text), "t", Options{})
		if x.format == Auto {
			if err == nil || !strings.Contains(err.Error(), x.want) {
				t.Errorf("%.60q: %v, want %q", x.text, err, x.want)
			}
			continue
		}
		if err != nil || r.Format() != x.format ||
			!strings.HasPrefix(r.Notes()[0], "detected format "+x.format.String()+": "+x.want) {
			t.Errorf("%.60q: %v, want %s, %s", x.text, err, x.format, x.want)
			if r != nil {
				t.Error(r.Notes())
			}
		}
	}
	// Only the first lines count.
	lines := strings.Repeat("0,R,0,512,5\n", detectLines)
	if _, r, err := read(lines+"junk\n", Options{SkipBad: 1}); err != nil ||
		!strings.Contains(r.Notes()[0], "1000 of the first 1000 records") {
		t.Errorf("%v", err)
	}
}

// TestManyParts verifies the names of processors' files, and the note and the errors about them.
func TestManyParts(t *testing.T) {
	for path, want := range map[string]int{"a.blktrace.0": 0, "/x/a.blktrace.12": 12, "a.blktrace.3.gz": 3,
		"a.blktrace.3.zst": 3, "a.blktrace.3.xz": 3, "a.blktrace.3.bz2": 3, "a.blktrace.-1": -1, "a.blktrace.x": -1,
		"a.blktrace": -1, "a.blktrace.3.txt": -1, "a": -1} {
		device, n, ok := processor(path)
		if ok != (want >= 0) || n != max(want, 0) || ok && device != path[:strings.Index(path, ".blktrace")] {
			t.Errorf("%s is processor %d of %q, %v", path, n, device, ok)
		}
	}
	dir := t.TempDir()
	event := func(ns, sector uint64) string {
		return blktraceBytes(binary.LittleEndian, blktraceEvent{ns, sector, 512, blktraceRead | blktraceQueue, ""})
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("a.blktrace.9", event(10, 8)+event(20, 16)+event(40, 24))
	write("a.blktrace.11", event(20, 32)+event(30, 40))
	r, err := Open(filepath.Join(dir, "a"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	const missing = "missing: a.blktrace.0, a.blktrace.1, a.blktrace.2, a.blktrace.3, a.blktrace.4, a.blktrace.5, " +
		"a.blktrace.6, a.blktrace.7, others; blktrace writes a file for each processor, and the requests of the " +
		"missing ones are not in the trace"
	if !slices.Contains(r.Notes(), missing) {
		t.Errorf("%q", r.Notes())
	}
	// Equal times are ordered by file, and each record is located in its own.
	for _, want := range []struct {
		sector int64
		place  string
	}{{8, "9: record at byte 0"}, {16, "9: record at byte 48"}, {32, "11: record at byte 0"},
		{40, "11: record at byte 48"}, {24, "9: record at byte 96"}} {
		var rec workload.Record
		if err := r.Next(&rec); err != nil {
			t.Fatal(err)
		}
		if got := r.Locate(os.ErrInvalid).Error(); rec.Offset != 512*want.sector || rec.Volume != 8<<20|1 ||
			!strings.HasPrefix(got, filepath.Join(dir, "a.blktrace.")+want.place+": ") {
			t.Errorf("sector %d of volume %d: %s", rec.Offset/512, rec.Volume, got)
		}
	}
	if got := r.VolumeName(8<<20 | 1); got != "8,1" {
		t.Errorf("volume %s", got)
	}
	write("one.blktrace.1", event(10, 8))
	single, err := Open(filepath.Join(dir, "one"), Options{})
	if err != nil || !strings.HasPrefix(single.Notes()[2], "missing: one.blktrace.0; ") {
		t.Errorf("%v, %v", single, err)
	}
	single.Close()
	// A part that ends with rubbish does not end the others.
	write("r.blktrace.0", event(10, 8)+strings.Repeat("x", blktraceHeader)+"xy")
	write("r.blktrace.1", event(20, 16)+event(30, 24))
	torn, err := Open(filepath.Join(dir, "r"), Options{SkipBad: -1})
	if err != nil {
		t.Fatal(err)
	}
	if list, err := workload.Collect(torn); err != nil || len(list) != 3 || torn.Skipped() != 1 {
		t.Errorf("%v, %v, %d bad", list, err, torn.Skipped())
	}
	torn.Close()
	write("e.blktrace.0", "")
	write("e.blktrace.1", "")
	write("d.blktrace.0", event(0, 8))
	if err := os.Symlink("nowhere", filepath.Join(dir, "d.blktrace.1")); err != nil {
		t.Fatal(err)
	}
	write("f.blktrace.0", event(0, 8))
	write("f.blktrace.1", "text")
	for name, x := range map[string]struct {
		opts Options
		want string
	}{
		"e":   {Options{}, "e: all its 2 files are empty"},
		"f":   {Options{}, "f.blktrace.1: record at byte 0: no blktrace header; its magic number is 0x65617407"},
		"a":   {Options{Format: MSR}, "a: files of several processors are read as blktrace, not as msr; rename a file"},
		"a.":  {Options{}, "no such file"},
		"d":   {Options{}, "d.blktrace.1: no such file"},
		"z*":  {Options{}, "z*: no file matches"},
		"*.1": {Options{Window: -1}, "are not parts of one trace"},
		"?":   {Options{}, "?: no file matches"},
		"f.":  {Options{Window: -1}, "no such file"},
	} {
		if _, err := Open(filepath.Join(dir, name), x.opts); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v, want %q", name, err, x.want)
		}
	}
	if _, err := Open(filepath.Join(dir, "a"), Options{Window: -1}); err == nil ||
		err.Error() != "window of -1 records; it must be 0 (the format's own) or more" {
		t.Errorf("%v", err)
	}
	if list, err := Parts("-"); err != nil || !slices.Equal(list, []string{"-"}) {
		t.Errorf("%v, %v", list, err)
	}
	t.Chdir(dir)
	if list, err := Parts("a"); err != nil || !slices.Equal(list, []string{"a.blktrace.9", "a.blktrace.11"}) {
		t.Errorf("%v, %v", list, err)
	}
	if list, err := Parts("./one.blktrace.1"); err != nil || !slices.Equal(list, []string{"./one.blktrace.1"}) {
		t.Errorf("%v, %v", list, err)
	}
	if list, err := Parts("o*"); err != nil || !slices.Equal(list, []string{"one.blktrace.1"}) {
		t.Errorf("%v, %v", list, err)
	}
}

// TestReaderClosesItsFile verifies that the file is closed with the Reader, and where the reader cannot be made.
func TestReaderClosesItsFile(t *testing.T) {
	open := func() int {
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip("this system does not list open files")
		}
		return len(list)
	}
	path := filepath.Join(t.TempDir(), "t")
	for text, good := range map[string]bool{"0,R,0,512,5\n": true, "junk\n": false, "": false} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		before := open()
		r, err := Open(path, Options{})
		if (err == nil) != good {
			t.Fatal(err)
		}
		if good {
			if during := open(); during != before+1 {
				t.Errorf("%d files are open, %d before", during, before)
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
			if err := r.Close(); err != nil {
				t.Errorf("a second time: %v", err)
			}
		}
		if after := open(); after != before {
			t.Errorf("%q leaves %d files open", text, after-before)
		}
	}
	if _, err := Open(filepath.Dir(path), Options{}); err == nil {
		t.Error("a directory is opened")
	}
}

// TestLastLine verifies that what follows the last end of line is a line, however short.
func TestLastLine(t *testing.T) {
	for text, want := range map[string]string{"0,R,0,512,5\n": "", "0,R,0,512,5": "", "0,R,0,512,5\n\n": "",
		"0,R,0,512,5\nx": "t:2: 1 columns instead of 5; the file ends within this line", "0,R,0,512,5\r\n\r\n": ""} {
		got, _, err := read(text, Options{Format: Alibaba})
		if want == "" && (err != nil || len(got) != 1) ||
			want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}
