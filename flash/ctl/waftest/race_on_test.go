//go:build race

package waftest

// raced says that the race detector slows everything down tenfold.
const raced = true
