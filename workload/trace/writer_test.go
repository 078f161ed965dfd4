package trace

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"farflash/block"
	"farflash/internal/inputs"
	"farflash/numeric/units"
	"farflash/workload"
)

// resolution is the unit to which a format rounds times and responses down.
var resolution = map[Format]units.Duration{
	MSR: 100 * units.Nanosecond, Systor: 1, Tencent: units.Second, Alibaba: units.Microsecond, SPC: 1,
	FIU:     units.Nanosecond,
	K5cloud: 1, MQSim: units.Nanosecond, DiskSim: 1, FioLog: units.Microsecond,
}

// TestRoundTrip writes random records in every format and reads them back.
func TestRoundTrip(t *testing.T) {
	for _, format := range Writable() {
		rapid.Check(t, func(t *rapid.T) {
			var records []workload.Record
			at := units.Duration(0)
			for range rapid.IntRange(1, 20).Draw(t, "n") {
				ops := []block.Op{block.Read, block.Write}
				if format == FioLog {
					ops = append(ops, block.Trim)
				}
				r := workload.Record{
					Time: at, Response: workload.NoResponse,
					Offset: 512 * rapid.Int64Range(0, 1<<40).Draw(t, "sector"),
					Size:   512 * rapid.Int64Range(1, 1<<16).Draw(t, "sectors"),
					Volume: rapid.Uint32Range(0, 9).Draw(t, "volume"),
					Op:     rapid.SampledFrom(ops).Draw(t, "op"),
				}
				if format == MSR || format == Systor {
					r.Response = units.Duration(rapid.Int64Range(0, 1e13).Draw(t, "response"))
				}
				records = append(records, r)
				at += units.Duration(rapid.Int64Range(0, 3e12).Draw(t, "gap"))
			}
			var text bytes.Buffer
			w, err := NewWriter(&text, format, WriterOptions{Start: 1500000000})
			if err != nil {
				t.Fatal(err)
			}
			for i := range records {
				if err := w.Write(&records[i]); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			r, err := NewReader(&text, "t", Options{Format: format, AsRecorded: format == Tencent})
			if err != nil {
				t.Fatal(err)
			}
			got, err := workload.Collect(r)
			if err != nil || len(got) != len(records) {
				t.Fatalf("%s: %d of %d records, %v", format, len(got), len(records), err)
			}
			step := resolution[format]
			for i, want := range records {
				want.Time = want.Time/step*step - records[0].Time/step*step
				if format == MSR {
					want.Response = want.Response / step * step
				}
				g := got[i]
				if name := r.VolumeName(g.Volume); format == MSR || format == FioLog {
					if !strings.HasSuffix(name, string(rune('0'+want.Volume))) {
						t.Fatalf("%s: volume %d reads as %s", format, want.Volume, name)
					}
					g.Volume = want.Volume
				}
				if g != want {
					t.Fatalf("%s: record %d is %+v, want %+v", format, i, g, want)
				}
			}
		})
	}
}

// TestConvertRealTraces converts every real trace to every writable format.
func TestConvertRealTraces(t *testing.T) {
	for _, file := range []string{"msr/hm_0-sample-1000.csv", "systor17/systor17-traces-sample.csv.gz",
		"fiu/one-line.blkparse",
		"spc/spec-example.spc", "fio-iolog/t0038.iolog", "ycsb-rocksdb-blkparse/evelii-sample.txt"} {
		for _, format := range Writable() {
			in, err := Open(inputs.Path(t, "data/"+file), Options{})
			if err != nil {
				t.Fatal(err)
			}
			start, rest := in.Start()
			var text bytes.Buffer
			w, err := NewWriter(&text, format,
				WriterOptions{Start: start, StartRest: rest, VolumeName: in.VolumeName, LeaveOut: true})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := copyAll(w, in); err != nil {
				t.Fatalf("%s as %s: %v", file, format, err)
			}
			in.Close()
			back, err := NewReader(&text, "t", Options{Format: format})
			if err != nil {
				t.Fatal(err)
			}
			got, err := workload.Collect(back)
			if err != nil || int64(len(got)) != w.Written() {
				t.Errorf("%s as %s: wrote %d, read %d, %v", file, format, w.Written(), len(got), err)
			}
		}
	}
}

func TestWriterLosesNothingSilently(t *testing.T) {
	write := func(format Format, opts WriterOptions, records ...workload.Record) (string, error) {
		w, err := NewWriter(io.Discard, format, opts)
		if err != nil {
			return "", err
		}
		for i := range records {
			if err := w.Write(&records[i]); err != nil {
				return "", err
			}
		}
		return strings.Join(w.Notes(), "\n"), w.Close()
	}
	name := func(uint32) string { return "hm,0" }
	rw := workload.Record{Time: 123, Response: 456, Size: 512}
	cases := []struct {
		format  Format
		opts    WriterOptions
		records []workload.Record
		want    string // in the notes or the error
		fails   bool
	}{
		{Tencent, WriterOptions{}, []workload.Record{rw}, "1 of 1 times were rounded down: tencent stamps to 1 s",
			false},
		{Tencent, WriterOptions{}, []workload.Record{rw}, "1 of 1 response times were dropped", false},
		{MSR, WriterOptions{}, []workload.Record{{Size: 512, Response: workload.NoResponse}}, "written as 0", false},
		{MSR, WriterOptions{}, []workload.Record{rw}, "response times were rounded down to 100 ns", false},
		{Systor, WriterOptions{}, []workload.Record{{Size: 512, Response: workload.NoResponse}}, "left empty", false},
		{Alibaba, WriterOptions{VolumeName: name}, []workload.Record{rw}, "names are lost: 0 was hm,0", false},
		{MQSim, WriterOptions{Start: 99}, []workload.Record{rw}, "keeps no absolute time", false},
		{FIU, WriterOptions{}, []workload.Record{rw}, "checksum are unknown", false},
		{MSR, WriterOptions{}, []workload.Record{{Op: block.Trim, Size: 512}}, "it has no trim", true},
		{MSR, WriterOptions{LeaveOut: true}, []workload.Record{{Op: block.Trim, Size: 512}},
			"1 of 1 records were left out", false},
		{MQSim, WriterOptions{}, []workload.Record{{Offset: 100, Size: 512}}, "not whole 512-byte sectors", true},
		{SPC, WriterOptions{}, []workload.Record{{Offset: 100, Size: 512}}, "not a multiple of 512", true},
		{MSR, WriterOptions{}, []workload.Record{{Time: 5, Size: 512}, {Time: 4, Size: 512}}, "in order of time", true},
		{VSCSI, WriterOptions{}, nil, "cannot be written; use one of msr", true},
		{Tencent, WriterOptions{Start: -99}, []workload.Record{rw}, "cannot be written", true},
	}
	for _, c := range cases {
		notes, err := write(c.format, c.opts, c.records...)
		text := notes
		if c.fails != (err != nil) {
			t.Errorf("%s: error %v", c.format, err)
			continue
		}
		if err != nil {
			text = err.Error()
		}
		if !strings.Contains(text, c.want) {
			t.Errorf("%s: %q has no %q", c.format, text, c.want)
		}
	}
}

func TestWriteDoesNotAllocate(t *testing.T) {
	for _, format := range Writable() {
		if format == FioLog {
			continue // names files; it is as slow as fmt
		}
		w, err := NewWriter(io.Discard, format, WriterOptions{})
		if err != nil {
			t.Fatal(err)
		}
		r := workload.Record{Size: 4096, Response: workload.NoResponse}
		if n := testing.AllocsPerRun(1000, func() {
			r.Time += units.Millisecond
			r.Offset += 4096
			if err := w.Write(&r); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations a record", format, n)
		}
	}
}

// copyAll writes all of src, closes the writer, and returns the number of records written.
func copyAll(w *Writer, src workload.Source) (int64, error) {
	var r workload.Record
	for {
		err := src.Next(&r)
		if err == io.EOF {
			return w.written, w.Close()
		}
		if err == nil {
			err = w.Write(&r)
		}
		if err != nil {
			return w.written, err
		}
	}
}
