//go:build !invariants

package cluster

// A checkEvery of 0 disables the checks; without faults, only the model loses messages.
const (
	checkEvery = 0
	faults     = false
)
