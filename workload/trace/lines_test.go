package trace

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"farflash/block"
	"farflash/numeric/units"
	"farflash/workload"
)

// written writes records and returns the text and the notes.
func written(format Format, opts WriterOptions, records ...workload.Record) (string, []string, error) {
	var text bytes.Buffer
	w, err := NewWriter(&text, format, opts)
	if err != nil {
		return "", nil, err
	}
	for i := range records {
		if err := w.Write(&records[i]); err != nil {
			return "", nil, err
		}
	}
	err = w.Close()
	return text.String(), w.Notes(), err
}

// TestLines verifies each format's lines against its published layout, worked out by hand: a read and a write, 2.5 s
// and 7 ps apart, from 1500000000.75 s of the Unix epoch on.
func TestLines(t *testing.T) {
	records := []workload.Record{
		{Time: 500 * units.Millisecond, Response: 1234567 * units.Nanosecond, Offset: 4096, Size: 8192,
			Volume: 8<<20 | 1},
		{Time: 3*units.Second + 7, Response: none, Offset: 512, Size: 1024, Volume: 3, Op: block.Write},
	}
	names := func(id uint32) string { return map[uint32]string{3: "log disk", 8<<20 | 1: "web,2"}[id] }
	const rounded, dropped = "1 of 2 times were rounded down: %s stamps to %s", "1 of 2 response times were dropped: " +
		"%s has no column for them"
	loss := func(f Format, list ...string) []string {
		var out []string
		for _, text := range list {
			if strings.Count(text, "%s") == 2 {
				out = append(out, fmt.Sprintf(text, f, descriptions[f].stamps))
			} else {
				out = append(out, fmt.Sprintf(text, f))
			}
		}
		return out
	}
	const lost = "%s numbers its volumes, so their names are lost: 8388609 was web,2, 3 was log disk"
	const relative = "times count from the first record: %s keeps no absolute time (it began at 1500000000 s)"
	const zeros = " 00000000000000000000000000000000\n"
	for format, x := range map[Format]struct {
		text  string
		notes []string
	}{
		// 1500000001.25 s of Unix are 13144473601.25 s since 1601.
		MSR: {"131444736012500000,web,2,Read,4096,8192,12345\n131444736037500000,log disk,0,Write,512,1024,0\n",
			append(loss(MSR, rounded), "1 of 2 response times were rounded down to 100 ns",
				"1 of 2 records have no response time; it is written as 0")},
		Systor: {"Timestamp,Response,IOType,LUN,Offset,Size\n1500000001.250000000,0.001234567,R,8388609,4096,8192\n" +
			"1500000003.750000000007,,W,3,512,1024\n",
			append([]string{"1 of 2 records have no response time; the column is left empty"}, loss(Systor, lost)...)},
		Tencent: {"1500000001,8,16,0,8388609\n1500000003,1,2,1,3\n",
			append([]string{"2 of 2 times were rounded down: tencent stamps to 1 s"}, loss(Tencent, dropped, lost)...)},
		Alibaba: {"8388609,R,4096,8192,1500000001250000\n3,W,512,1024,1500000003750000\n",
			loss(Alibaba, rounded, dropped, lost)},
		SPC: {"8388609,8,8192,R,0.500000\n3,1,1024,W,3.000000000007\n", loss(SPC, dropped, lost, relative)},
		FIU: {"1500000001250000000 0 unknown 8 16 R 8 1" + zeros + "1500000003750000000 0 unknown 1 2 W 0 3" + zeros,
			append(loss(FIU, rounded, dropped, lost),
				"process and content checksum are unknown; they are written as unknown and zeros")},
		K5cloud: {"8388609,0.500000,R,4096,8192\n3,3.000000000007,W,512,1024\n", loss(K5cloud, dropped, lost, relative)},
		MQSim:   {"500000000 8388609 8 16 1\n3000000000 3 1 2 0\n", loss(MQSim, rounded, dropped, lost, relative)},
		DiskSim: {"500.000000 8388609 8 16 1\n3000.000000007 3 1 2 0\n", loss(DiskSim, dropped, lost, relative)},
		FioLog: {"fio version 3 iolog\n500000 web,2 add\n500000 web,2 open\n500000 web,2 read 4096 8192\n" +
			"3000000 log_disk add\n3000000 log_disk open\n3000000 log_disk write 512 1024\n",
			loss(FioLog, rounded, dropped, relative)},
	} {
		opts := WriterOptions{Start: 1500000000, StartRest: 750 * units.Millisecond, VolumeName: names}
		text, notes, err := written(format, opts, records...)
		if err != nil || text != x.text {
			t.Errorf("%s: %v\n%s, want\n%s", format, err, text, x.text)
		}
		if !slices.Equal(notes, x.notes) {
			t.Errorf("%s: notes\n%q, want\n%q", format, notes, x.notes)
		}
		// A whole second from the epoch on, without names, loses less.
		_, notes, err = written(format, WriterOptions{}, workload.Record{Size: 512, Response: none})
		var want []string
		switch format {
		case MSR:
			want = []string{"1 of 1 records have no response time; it is written as 0"}
		case Systor:
			want = []string{"1 of 1 records have no response time; the column is left empty"}
		case FIU:
			want = x.notes[3:]
		}
		if err != nil || !slices.Equal(notes, want) {
			t.Errorf("%s: %v, notes %q, want %q", format, err, notes, want)
		}
	}
	if len(Writable()) != 10 {
		t.Error("a writable format is not tested")
	}
}

// TestVolumesOfLines verifies the names of volumes in formats that have them, and how many lost ones are noted.
func TestVolumesOfLines(t *testing.T) {
	for name, want := range map[string][2]string{"web,1": {"web", "1"}, "a,b,12": {"a,b", "12"}, "7": {"volume", "7"},
		"sda": {"sda", "0"}, "web,x": {"web,x", "0"}, ",5": {",5", "0"}, "a,": {"a,", "0"}} {
		if host, disk := msrVolume(name); host != want[0] || disk != want[1] {
			t.Errorf("%s is disk %s of host %s", name, disk, host)
		}
	}
	var six []workload.Record
	for i := range uint32(14) {
		six = append(six, workload.Record{Size: 512, Response: none, Volume: i / 2 % 7})
	}
	name := func(id uint32) string {
		if id == 2 {
			return "2" // nothing is lost
		}
		return fmt.Sprintf("v%d", id)
	}
	_, notes, err := written(Alibaba, WriterOptions{VolumeName: name}, append(six, six...)...)
	const want = "alibaba numbers its volumes, so their names are lost: 0 was v0, 1 was v1, 3 was v3, 4 was v4, 5 was v5"
	if err != nil || !slices.Equal(notes, []string{want}) {
		t.Errorf("%q, %v", notes, err)
	}
	text, _, err := written(FioLog, WriterOptions{}, six[0], six[2], six[0])
	const lines = "fio version 3 iolog\n0 volume0 add\n0 volume0 open\n0 volume0 read 0 512\n0 volume1 add\n" +
		"0 volume1 open\n0 volume1 read 0 512\n0 volume0 read 0 512\n"
	if err != nil || text != lines {
		t.Errorf("%s, %v", text, err)
	}
	text, _, err = written(MSR, WriterOptions{}, six[2])
	if err != nil || text != "116444736000000000,volume,1,Read,0,512,0\n" { // the Unix epoch
		t.Errorf("%s, %v", text, err)
	}
}

// TestLinesRefused verifies the errors of records that cannot be written, and their numbers.
func TestLinesRefused(t *testing.T) {
	good := workload.Record{Size: 512, Response: none}
	year := int64(365 * 86400)
	for _, x := range []struct {
		format Format
		start  int64
		record workload.Record
		want   string
	}{
		{MSR, 0, workload.Record{Append: true, Size: 512, Op: block.Write},
			"record 2 is an append or a zone command, which no writable format supports"},
		{MSR, 0, workload.Record{Op: block.Reset}, "record 2 is an append or a zone command"},
		{MSR, 0, workload.Record{Size: -1}, "record 2 is for -1 bytes at 0; use 0 or more"},
		{MSR, 0, workload.Record{Offset: -512, Size: 512}, "record 2 is for 512 bytes at -512; use 0 or more"},
		{MSR, 0, workload.Record{Time: -1, Size: 512},
			"record 2 arrives at -1ps, before the previous record, at 0s; traces are written in order of time"},
		{Tencent, 0, workload.Record{Op: block.Flush},
			"record 2 cannot be written as tencent: it has no flush; write another format (fio has them all)"},
		{Tencent, 0, workload.Record{Offset: 512, Size: 100},
			"record 2 cannot be written as tencent: 100 bytes at byte 512 are not whole 512-byte sectors"},
		{SPC, 0, workload.Record{Offset: 100, Size: 512},
			"record 2 cannot be written as spc: offset 100 is not a multiple of 512, as the spc format needs"},
		{Systor, -year, good, "record 1 cannot be written as systor: time -31536000 s cannot be written in this format"},
		{Alibaba, -year, good, "record 1 cannot be written as alibaba: time -31536000 s cannot be written"},
		{FIU, 9223372036, good, "record 1 cannot be written as fiu: time 9223372036 s cannot be written"},
	} {
		_, _, err := written(x.format, WriterOptions{Start: x.start}, good, x.record)
		if err == nil || !strings.HasPrefix(err.Error(), x.want) {
			t.Errorf("%s: %v, want %s", x.format, err, x.want)
		}
	}
	for format, start := range map[Format]int64{FIU: 9223372035, Alibaba: 0, Systor: 0, MSR: -11644473600} {
		if _, _, err := written(format, WriterOptions{Start: start}, good); err != nil {
			t.Errorf("%s at %d s: %v", format, start, err)
		}
	}
	text, _, err := written(SPC, WriterOptions{LeaveOut: true}, workload.Record{Offset: 100, Size: 512}, good)
	if err != nil || text != "0,0,512,R,0.000000\n" {
		t.Errorf("%q, %v", text, err)
	}
	// Records that are left out count, and do not move the clock.
	trim := workload.Record{Time: 9, Op: block.Trim, Size: 512, Response: 9}
	for _, format := range Writable() {
		text, notes, err := written(format, WriterOptions{LeaveOut: true}, good, trim, good)
		want := fmt.Sprintf("1 of 3 records were left out: %s holds reads and writes of whole sectors only", format)
		if format == FioLog {
			if err == nil {
				t.Error("fio writes a trim, and then an earlier read")
			}
			continue
		}
		var more []string // of the records that are written only
		switch format {
		case MSR:
			more = []string{"2 of 3 records have no response time; it is written as 0"}
		case Systor:
			more = []string{"2 of 3 records have no response time; the column is left empty"}
		case FIU:
			more = []string{"process and content checksum are unknown; they are written as unknown and zeros"}
		}
		if err != nil || !slices.Equal(notes, append([]string{want}, more...)) || strings.Contains(text, "rim") {
			t.Errorf("%s: %v, %q", format, err, notes)
		}
	}
}
