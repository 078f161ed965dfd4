package cli

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// Models allocate at their start and hardly afterwards, so a small growth limit saves memory on a large heap at little
// cost. On a small heap it does not pay: a heap that grows from one megabyte to thirty by fifths is collected some
// fifteen times, on all processors, which took a tenth of a drive's run.
const (
	heapFloor  = 32 << 20 // heap size below which no collection starts, in bytes
	heapGrowth = 20       // growth beyond it, in percent of the live heap
	// leastHeap is the heap size at which the runtime starts to collect at 100 percent, whatever the live heap; it
	// scales with the percentage.
	leastHeap = 4 << 20
)

// collectLate configures the garbage collector with these limits.
func collectLate() {
	debug.SetGCPercent(heapFloor / leastHeap * 100)
	// The finalizer runs after a collection and re-arms itself for the next one.
	set := heapFloor / leastHeap * 100
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	type collected struct{ _ *byte }
	var after func(*collected)
	after = func(c *collected) {
		metrics.Read(live)
		if p := growth(live[0].Value.Uint64()); p != set {
			set = p
			debug.SetGCPercent(p)
		}
		runtime.SetFinalizer(c, after)
	}
	runtime.SetFinalizer(new(collected), after)
}

// growth returns the percentage by which a heap with that live size may grow.
func growth(live uint64) int {
	if live >= heapFloor {
		return heapGrowth
	}
	if live <= leastHeap/100 {
		return heapFloor / leastHeap * 100
	}
	return max(heapGrowth, min(int((heapFloor-live)*100/live), heapFloor/leastHeap*100))
}
