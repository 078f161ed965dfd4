package cli

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

// TestGrowth verifies that the heap limit of the next collection is at least the floor, and beyond that the live heap
// and a fifth.
func TestGrowth(t *testing.T) {
	for _, live := range []uint64{0, 1, 40 << 10, 1 << 20, 4<<20 + 1, 13 << 20, 26 << 20, heapFloor - 1, heapFloor,
		1 << 30, 1 << 40} {
		p := growth(live)
		goal := max(leastHeap*uint64(p)/100, live+live*uint64(p)/100)
		if want := max(live+live*heapGrowth/100, heapFloor); goal > want || goal < want-want/50 {
			t.Errorf("with %d bytes alive the goal is %d, want %d", live, goal, want)
		}
	}
}

// TestCollectLate verifies that a heap that grows from zero to the floor is not collected, and that a live heap beyond
// the floor grows by a fifth.
func TestCollectLate(t *testing.T) {
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	collectLate()
	runtime.GC()
	held := make([][]byte, 0, 512)
	for range 3 * heapFloor >> 20 {
		held = append(held, make([]byte, 1<<20))
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		runtime.GC()
		if p := debug.SetGCPercent(50); p == heapGrowth {
			break
		} else if debug.SetGCPercent(p); time.Now().After(deadline) {
			t.Fatalf("with %d MB alive the heap may grow by %d %%", len(held), p)
		}
	}
	runtime.KeepAlive(held)
}
