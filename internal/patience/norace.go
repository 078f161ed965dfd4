//go:build !race

package patience

// slow is 1: inputs take the time that they take.
const slow = 1
