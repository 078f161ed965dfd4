//go:build race

package waf

// raced says that the race detector slows everything down tenfold.
const raced = true
