//go:build race

package patience

// slow is how much more CPU time an input may take under the race detector.
const slow = 10
