package ssd

import (
	"testing"
	"unsafe"
)

// TestCacheLines verifies that the state each request touches fits in few cache lines.
func TestCacheLines(t *testing.T) {
	t.Parallel()
	const line = 64
	var l lane
	for _, x := range []struct {
		what      string
		is, lines uintptr
	}{
		{"what a lane's commands look at", unsafe.Offsetof(l.queues), 1},
		{"a plane", unsafe.Sizeof(planeAt{}), 1},
		{"a transaction", unsafe.Sizeof(transaction{}), 2},
		{"a request", unsafe.Sizeof(request{}), 3},
	} {
		if x.is != x.lines*line && unsafe.Sizeof(uintptr(0)) == 8 {
			t.Errorf("%s: %d bytes, not %d cache lines", x.what, x.is, x.lines)
		}
	}
	if unsafe.Sizeof(l)%line != 0 {
		t.Errorf("a lane has %d bytes, so the next one does not begin a cache line", unsafe.Sizeof(l))
	}
}
