//go:build !invariants

package fabric

// checkEvery 0 is never, and no packet is lost but by the model.
const (
	checkEvery = 0
	faults     = false
)
