package objects_test

import (
	"errors"
	"testing"

	"farflash/internal/patience"
	"farflash/planner/objects"
	"farflash/scenario/shape"
)

// FuzzNeed reads needs from arbitrary bytes, with a change: an accepted need resolves to text that is accepted again,
// and errors have a position.
func FuzzNeed(f *testing.F) {
	f.Add(objects.Template, "rate=1")
	f.Add("rate: 1e18\nput_p99: 106d\n", "drives=[{rate: 1B/s, price: $0}]")
	f.Add("group_sizes: [-1]\n", "survive=9223372036854775807")
	f.Fuzz(func(t *testing.T, text, set string) {
		defer patience.Limit()()
		var changes []shape.Change
		if c, err := shape.ParseChange(set); err == nil {
			changes = append(changes, c)
		}
		need, err := objects.Load(shape.Source{File: "need.yaml", Text: []byte(text)}, changes)
		if err != nil {
			var wrong shape.Errors
			if !errors.As(err, &wrong) || len(wrong) == 0 {
				t.Errorf("%T has no place: %v", err, err)
			}
			return
		}
		if _, err := objects.Load(shape.Source{File: "again.yaml", Text: []byte(need.Text)}, nil); err != nil {
			t.Errorf("%q resolves to %q, which is refused: %v", text, need.Text, err)
		}
	})
}
