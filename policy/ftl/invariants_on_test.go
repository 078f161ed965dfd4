//go:build invariants

package ftl_test

// checked reports that invariants are checked continuously, which costs time and memory.
const checked = true
