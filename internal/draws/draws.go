// Package draws is for tests: it repeats a property-based check until its random draws have exercised what the
// property is about.
//
// Until does that. What it leaves out: drawing, which is rapid's.
package draws

import (
	"testing"

	"pgregory.net/rapid"
)

// most bounds the repetitions. An event of one draw in fifty is then missed less than once in a million times, even
// with 20 draws a check.
const most = 40

// Until runs rapid.Check, repeatedly, until seen reports that the draws have exercised the property, and fails the
// test if they never do. With RAPID_SEED every repetition draws the same.
func Until(t *testing.T, seen func() bool, property func(*rapid.T)) {
	t.Helper()
	for range most {
		rapid.Check(t, property)
		if t.Failed() || seen() {
			return
		}
	}
	t.Errorf("what this is about came up in none of %d times the draws of a check: nothing is shown", most)
}
