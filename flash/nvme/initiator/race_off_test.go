//go:build !race

package initiator_test

// raced reports whether the race detector is on, which slows tests about tenfold.
const raced = false
