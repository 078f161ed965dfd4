package trace

import (
	"errors"
	"io"
	"strings"
	"testing"

	"farflash/block"
	"farflash/internal/patience"
	"farflash/workload"
)

// examine reads data with all kinds of options and verifies the invariants.
func examine(t *testing.T, data string, format Format) {
	for _, opts := range []Options{
		{Format: format},
		{Format: format, SkipBad: -1},
		{Format: format, SkipBad: -1, Window: 3},
		{Format: format, SkipBad: -1, AsRecorded: true},
	} {
		r, err := NewReader(strings.NewReader(data), "t", opts)
		if err != nil {
			continue
		}
		var rec, last workload.Record
		for n := range 10000 {
			if err = r.Next(&rec); err != nil {
				break
			}
			if !opts.AsRecorded && n > 0 && rec.Time < last.Time {
				t.Fatalf("%s %+v: record %d at %v follows one at %v", r.Format(), opts, n, rec.Time, last.Time)
			}
			if rec.Size < 0 || rec.Offset < 0 || rec.End() > maxAddress || rec.Size == 0 && rec.Op != block.Flush ||
				rec.Op >= block.Ops || rec.Response < workload.NoResponse {
				t.Fatalf("%s: impossible record %+v", r.Format(), rec)
			}
			last = rec
		}
		if err == nil {
			continue
		}
		var bad *parseError
		if opts.SkipBad < 0 && r.yielded > 0 && errors.As(err, &bad) && !strings.Contains(err.Error(), "106 days") {
			t.Fatalf("%s %+v: a bad record was not skipped: %v", r.Format(), opts, err)
		}
		if again := r.Next(&rec); again != err {
			t.Fatalf("%s: after %v comes %v", r.Format(), err, again)
		}
		if err == io.EOF && r.yielded == 0 {
			t.Fatalf("%s: an empty trace is not an error", r.Format())
		}
		r.Notes()
		r.Close()
	}
}

func FuzzText(f *testing.F) {
	f.Add(tencentText, uint8(Tencent))
	for _, s := range samples {
		if s.format != VSCSI && s.format != Blktrace {
			f.Add(s.text, uint8(s.format))
		}
	}
	f.Fuzz(func(t *testing.T, data string, format uint8) {
		defer patience.Limit()()
		f := MSR + Format(format)%(formatCount-1)
		if f != VSCSI && f != Blktrace {
			examine(t, data, f)
		}
	})
}

func FuzzVSCSI(f *testing.F) {
	for _, s := range samples {
		if s.format == VSCSI {
			f.Add([]byte(s.text))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		defer patience.Limit()()
		examine(t, string(data), VSCSI)
	})
}

func FuzzBlktrace(f *testing.F) {
	for _, s := range samples {
		if s.format == Blktrace {
			f.Add([]byte(s.text))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		defer patience.Limit()()
		examine(t, string(data), Blktrace)
	})
}

// FuzzDetect also reaches the decompressors.
func FuzzDetect(f *testing.F) {
	for _, s := range samples {
		f.Add([]byte(s.text))
	}
	f.Add([]byte("\x1f\x8b\x08\x00\x00\x00\x00\x00"))
	f.Add([]byte("BZh91AY&SY"))
	// An xz stream with empty contents, from the format's specification (1.2.0), and one whose dictionary is 4 GiB.
	f.Add([]byte("\xfd7zXZ\x00\x00\x04\xe6\xd6\xb4F\x00\x00\x00\x00\x1c\xdfD!\x1f\xb6\xf3}\x01\x00\x00\x00\x00\x04YZ"))
	f.Add([]byte("\xfd7zXZ\x00\x00\x04\xe6\xd6\xb4F\x02\x00!\x01\x28\x00\x00\x00\x00\x00\x00\x00"))
	f.Add([]byte{0x28, 0xb5, 0x2f, 0xfd, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		defer patience.Limit()()
		examine(t, string(data), Auto)
	})
}
