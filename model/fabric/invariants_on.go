//go:build invariants

package fabric

// checkEvery is a compromise: a walk over all queues costs as much as some hundred events of a small network.
const (
	checkEvery = 64
	faults     = true
)
