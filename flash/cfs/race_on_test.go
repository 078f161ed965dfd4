//go:build race

package cfs_test

// raced says that the race detector slows everything down tenfold.
const raced = true
