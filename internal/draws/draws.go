// Package draws is for tests: it repeats a property-based check until the random draws have exercised the case that the
// property is about.
//
// Its one function is Until. It leaves out drawing, which rapid does.
package draws

import (
	"testing"

	"pgregory.net/rapid"
)

// most bounds the repetitions. With 20 draws per check, an event of probability one in fifty is then missed less than
// once in a million times.
const most = 40

// Until runs rapid.Check, repeatedly, until seen reports that the draws have exercised the property, and fails the test
// if they never do. With RAPID_SEED set, every repetition has the same draws.
func Until(t *testing.T, seen func() bool, property func(*rapid.T)) {
	t.Helper()
	for range most {
		rapid.Check(t, property)
		if t.Failed() || seen() {
			return
		}
	}
	t.Errorf("the draws of %d checks never exercised the property", most)
}
