package ftl

import (
	"testing"
	"unsafe"
)

// TestCacheLine verifies that the fields of a pool that nearly every call reads fit in one cache line.
func TestCacheLine(t *testing.T) {
	if n := unsafe.Offsetof(pool{}.bits); n != 64 && !Watching && unsafe.Sizeof(uintptr(0)) == 8 {
		t.Errorf("it takes %d bytes", n)
	}
}
