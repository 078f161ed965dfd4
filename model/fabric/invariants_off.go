//go:build !invariants

package fabric

// checkEvery 0 disables the checks, and only the model loses packets.
const (
	checkEvery = 0
	faults     = false
)
