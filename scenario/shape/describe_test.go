package shape

import "testing"

// TestPredicate verifies that a key's description omits its name, unless that would change the meaning.
func TestPredicate(t *testing.T) {
	for _, c := range []struct{ subject, comment, want string }{
		{"Until", "Until is when the flow ends; 0 is never.", "When the flow ends; 0 is never."},
		{"Scale", "Scale multiplies times.", "Multiplies times."},
		{"Hosts", "Hosts are those that send.", "Those that send."},
		{"Gain", "Gain is g, the weight of the newest.", "g, the weight of the newest."},
		{"Choice", "Choice is hash (of addresses) or random.", "hash (of addresses) or random."},
		{"Operation", "Operation is all-reduce or all-gather.", "all-reduce or all-gather."},
		{"Level", "Level is a name.", "A name."},
		{"Addresses", "Addresses beyond the end are errors.", "Addresses beyond the end are errors."},
		{"A", "A and B bound it.", "A and B bound it."},
		{"Window", "Windows are many.", "Windows are many."},
		{"Window", "Window", "Window"},
		{"Window", "", ""},
	} {
		if got := predicate(c.subject, c.comment); got != c.want {
			t.Errorf("%s: %q gives %q, want %q", c.subject, c.comment, got, c.want)
		}
	}
}

// TestRepeats verifies that a type's comment is omitted where it adds nothing to its key's.
func TestRepeats(t *testing.T) {
	for _, c := range []struct {
		key, about string
		want       bool
	}{
		{"An erasure code: a chunk is cut into pieces.", "An erasure code.", true},
		{"Replays a recorded trace.", "A recorded trace that is replayed.", true},
		{"", "A recorded trace that is replayed.", false},
		{"A network.", "Two tiers of switches. A leaf and its hosts are a pod.", false},
		{"How large requests are.", `How large requests are: a lone quantity is a constant.`, false},
	} {
		if got := repeats(c.key, c.about); got != c.want {
			t.Errorf("%q beside %q: %v", c.about, c.key, got)
		}
	}
}
