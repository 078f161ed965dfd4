package trace

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"farflash/workload"
)

// TestParts joins the per-processor files of blktrace, under each name that selects them, and verifies that missing
// ones are named.
func TestParts(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	at := func(time, sector uint64) blktraceEvent {
		return blktraceEvent{time, sector, 4096, blktraceRead | blktraceQueue, ""}
	}
	done := func(time, sector uint64) blktraceEvent {
		return blktraceEvent{time, sector, 4096, blktraceRead | blktraceComplete, ""}
	}
	write("nvme0n1.blktrace.0", blktraceBytes(binary.LittleEndian, at(1000, 8), at(5000, 24), done(9000, 16)))
	write("nvme0n1.blktrace.2", "")
	write("nvme0n1.blktrace.10", blktraceBytes(binary.LittleEndian, at(2000, 16), done(7000, 8), at(8000, 32)))
	write("sda.blktrace.0", blktraceBytes(binary.LittleEndian, at(1000, 800)))
	for _, name := range []string{"nvme0n1.blktrace.0", "nvme0n1.blktrace.10", "nvme0n1.blktrace.*",
		"nvme0n1.blktrace", "nvme0n1"} {
		r, err := Open(filepath.Join(dir, name), Options{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var got []int64
		var rec workload.Record
		for err = r.Next(&rec); err == nil; err = r.Next(&rec) {
			got = append(got, int64(rec.Time/1000), rec.Offset/sector, int64(rec.Response/1000))
		}
		if !errors.Is(err, io.EOF) {
			t.Fatalf("%s: %v", name, err)
		}
		want := []int64{0, 8, 6000, 1000, 16, 7000, 4000, 24, 0, 7000, 32, 0}
		for i := range want {
			if i >= len(got) || got[i] != want[i] && want[i] != 0 {
				t.Fatalf("%s: %v instead of %v", name, got, want)
			}
		}
		notes := strings.Join(r.Notes(), "\n")
		for _, say := range []string{"joined 3 files of blktrace", "missing: nvme0n1.blktrace.1, nvme0n1.blktrace.3",
			"(the file begins with 4 Q, 0 D and 2 C events)"} {
			if !strings.Contains(notes, say) {
				t.Errorf("%s: notes have no %q:\n%s", name, say, notes)
			}
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	for name, want := range map[string]string{"*.blktrace.0": "are not parts of one trace",
		"x*": "no file matches", "[": "no file matches"} {
		if _, err := Parts(filepath.Join(dir, name)); err == nil ||
			!strings.Contains(err.Error(), want) && !strings.Contains(err.Error(), "syntax error") {
			t.Errorf("%s: %v", name, err)
		}
	}
	// The error of a bad record names its own file.
	write("sda.blktrace.1", blktraceBytes(binary.LittleEndian, at(1500, 8))+strings.Repeat("x", 60))
	r, err := Open(filepath.Join(dir, "sda"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := workload.Collect(r); err == nil ||
		!strings.Contains(err.Error(), "sda.blktrace.1: record at byte 48: magic number") {
		t.Errorf("%v", err)
	}
}

// TestDump reads the output of blkparse -d: the events of all processors and devices in one file, by time, with
// messages among them.
func TestDump(t *testing.T) {
	text := blktraceBytes(binary.LittleEndian, blktraceEvent{0, 0, 0, blktraceNotify, "process"},
		blktraceEvent{100, 8, 4096, blktraceRead | blktraceQueue, ""},
		blktraceEvent{150, 0, 0, 2 | blktraceNotify, "cfq message"},
		blktraceEvent{200, 16, 512, blktraceWrite | blktraceQueue, ""},
		blktraceEvent{300, 8, 4096, blktraceRead | blktraceComplete, ""})
	r, err := NewReader(strings.NewReader(text), "bp.bin", Options{})
	if err != nil {
		t.Fatal(err)
	}
	list, err := workload.Collect(r)
	if err != nil || len(list) != 2 || list[0].Response != us(0.2) || list[1].Time != us(0.1) || list[1].Size != 512 {
		t.Fatalf("%+v, %v", list, err)
	}
}
