package cluster

import "testing"

// TestRoom verifies that a piece is allocated once, that a piece that does not fit is refused, that abandoned pieces
// are freed when space is needed, and that a whole piece stays until it leaves.
func TestRoom(t *testing.T) {
	var r room
	gone := map[uint64]bool{}
	takes := func(id uint64) bool {
		return r.takes(id, int32(id), 10, 25,
			func(chunk int32, id uint64) bool { return chunk == int32(id) && !gone[id] })
	}
	for _, x := range []struct {
		what string
		do   func() bool
		want bool
		used int
	}{
		{"the first", func() bool { return takes(1) }, true, 10},
		{"again", func() bool { return takes(1) }, true, 10},
		{"a second", func() bool { return takes(2) }, true, 20},
		{"a third", func() bool { return takes(3) }, false, 20},
		{"one that has not come does not leave", func() bool { r.leaves(1); return takes(3) }, false, 20},
		{"one that is given up", func() bool { gone[2] = true; return takes(3) }, true, 20},
		{"one that is given up and has come stays", func() bool { r.complete(1); gone[1] = true; return takes(4) },
			false, 20},
		{"and leaves", func() bool { r.leaves(1); return takes(4) }, true, 20},
		{"nothing is left", func() bool { r.clear(); return r.used == 0 }, true, 0},
	} {
		if got := x.do(); got != x.want || int(r.used) != x.used {
			t.Errorf("%s: %v, %v taken", x.what, got, r.used)
		}
	}
}
