//go:build !invariants

package ssd_test

// checked says that invariants are walked all the time, which takes time and memory.
const checked = false
