package cli

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// Models allocate most of their memory at the start, so a large live heap costs few collections. A small one is not
// worth collecting: a heap that grows from 1 MiB to 30 MiB in steps of a fifth is collected about 15 times, on all
// processors, which took a tenth of the time of a drive's run.
const (
	heapFloor  = 32 << 20 // bytes that the heap may reach before the first collection
	heapGrowth = 20       // growth of a larger heap before the next collection, in percent of the live bytes
	// leastHeap is the runtime's smallest heap goal in bytes at GOGC=100, however little is live; it scales with GOGC.
	leastHeap = 4 << 20
)

// collectLate sets the garbage collector's percentage now, and again after each collection by growth.
func collectLate() {
	debug.SetGCPercent(heapFloor / leastHeap * 100)
	// The finalizer re-arms itself, so it runs after each collection, unless the next one finishes before it has.
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

// growth returns the GOGC percentage for a heap with live bytes of live data.
func growth(live uint64) int {
	if live >= heapFloor {
		return heapGrowth
	}
	if live <= leastHeap/100 {
		return heapFloor / leastHeap * 100
	}
	return max(heapGrowth, min(int((heapFloor-live)*100/live), heapFloor/leastHeap*100))
}
