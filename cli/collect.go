package cli

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// Models allocate at their beginning and hardly afterwards, so of a large heap memory can be had for little time. Of
// a small one it is not worth having: a heap that grows from one megabyte to thirty by fifths is collected some
// fifteen times, on all processors, which took a tenth of a drive's run.
const (
	heapFloor  = 32 << 20 // bytes that the heap may hold before anything is collected
	heapGrowth = 20       // percent of what lives by which it may grow beyond that
	// leastHeap is what the runtime begins to collect at under 100 percent, whatever lives; it goes with the
	// percentage.
	leastHeap = 4 << 20
)

// collectLate has the collector of this program's memory keep to that.
func collectLate() {
	debug.SetGCPercent(heapFloor / leastHeap * 100)
	// A finalizer runs after each collection, if the one before has not been forgotten by then.
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

// growth is by how many percent a heap of which so many bytes live may grow.
func growth(live uint64) int {
	if live >= heapFloor {
		return heapGrowth
	}
	if live <= leastHeap/100 {
		return heapFloor / leastHeap * 100
	}
	return max(heapGrowth, min(int((heapFloor-live)*100/live), heapFloor/leastHeap*100))
}
