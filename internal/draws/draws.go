// Package draws is for tests only: properties that are held of random draws and that show something only if what they are about has come up in some.
//
// Until checks such a property until it has. What it leaves out: the drawing, which is rapid's.
package draws

import (
	"testing"

	"pgregory.net/rapid"
)

// most is how many times the draws of one check are made at most. What comes up in one draw of fifty is then missed less than once in a million times
// even where a check has as few as twenty draws.
const most = 40

// Until checks a property, and again with other draws until seen says that enough of what it is about has come up. It fails the test if that never happens, and says what rapid was told to draw from if that was one
// seed, since the draws are the same each time then.
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
