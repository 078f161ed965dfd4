package trace

import (
	"io"
	"runtime"
	"strconv"
	"testing"

	"farflash/workload"
)

// endless generates an Alibaba trace line by line, so that it never exists as a whole.
type endless struct {
	left, line int
	rest       []byte
	buffer     []byte
}

func (e *endless) Read(p []byte) (int, error) {
	if len(e.rest) == 0 {
		if e.left == 0 {
			return 0, io.EOF
		}
		b := e.buffer[:0]
		for range min(e.left, 500) {
			b = append(strconv.AppendInt(append(b, "0,R,"...), int64(e.line%4096)*4096, 10), ",4096,"...)
			b = append(strconv.AppendInt(b, int64(e.line), 10), '\n')
			e.line++
			e.left--
		}
		e.buffer, e.rest = b, b
	}
	n := copy(p, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

// TestMemoryDoesNotGrowWithTheTrace streams 60 MB with a heap of a few MB.
func TestMemoryDoesNotGrowWithTheTrace(t *testing.T) {
	const lines = 2_000_000
	r, err := NewReader(&endless{left: lines}, "endless", Options{Window: 1000})
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var rec workload.Record
	n := 0
	for {
		if err = r.Next(&rec); err != nil {
			break
		}
		n++
	}
	runtime.ReadMemStats(&after)
	if err != io.EOF || n != lines {
		t.Fatalf("%d records, %v", n, err)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 1<<20 {
		t.Errorf("reading allocated %d bytes", grown)
	}
}
