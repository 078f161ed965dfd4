//go:build race

package waf

// raced reports whether the race detector is on, which slows tests about tenfold.
const raced = true
