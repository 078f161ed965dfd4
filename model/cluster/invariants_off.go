//go:build !invariants

package cluster

// checkEvery 0 is never, and nothing is lost but by the model.
const (
	checkEvery = 0
	faults     = false
)
