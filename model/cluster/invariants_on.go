//go:build invariants

package cluster

// checkEvery is a compromise: walking all nodes of a small cluster costs as much as some dozen events.
const (
	checkEvery = 64
	faults     = true
)
