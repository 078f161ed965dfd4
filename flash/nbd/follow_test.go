package nbd

import (
	"net"
	"slices"
	"testing"
)

// TestFollow verifies that tasks know their client, and how long their command waited for memory: the first task of the
// command that waited, and no other.
func TestFollow(t *testing.T) {
	s := transmission(Export{Volume: &tape{size: 1 << 30}}, true, Limits{Depth: 3, Memory: 2 * Window, Ahead: 1})
	now, peer := int64(100), &net.TCPAddr{Port: 7}
	s.Follow(peer, func() int64 { now++; return now })
	s.limits.Memory = Window
	read := AppendRequest(nil, 0, CmdRead, 1, 0, Window)
	flush := AppendRequest(nil, 0, CmdFlush, 2, 0, 0)
	in := slices.Concat(read, read, flush)
	in = in[s.Input(in):]
	first := s.Starts(nil)
	for range 3 { // it still waits
		if s.Input(in) != 0 {
			t.Fatal("a command that needs memory is taken")
		}
	}
	if len(first) != 1 || first[0].Peer != peer || first[0].Stalled != 0 || first[0].Resumed != 0 {
		t.Fatalf("%+v", first)
	}
	first[0].Pieces = append(first[0].Pieces, Piece{Zeros: Window})
	s.Finish(first[0])
	heard(s)
	s.Input(in)
	second := s.Starts(nil)
	if len(second) != 2 || second[0].Kind != Read || second[0].Stalled != 101 || second[0].Resumed != 102 ||
		second[1].Stalled != 0 || second[1].Peer != peer {
		t.Errorf("%+v", second)
	}
	// A command beyond the depth does not wait for memory.
	s = transmission(Export{Volume: &tape{size: 1 << 30}}, true, Limits{Depth: 1, Memory: 8 * Window, Ahead: 1})
	s.Follow(peer, func() int64 { t.Error("the time is asked"); return 1 })
	s.Input(slices.Concat(flush, flush))
	one := s.Starts(nil)
	s.Finish(one[0])
	heard(s)
	s.Input(flush)
	if two := s.Starts(nil); len(two) != 1 || two[0].Stalled != 0 {
		t.Errorf("%+v", two)
	}
}

// TestSentOnce verifies that the end of a task is reported once: when its answer is sent, at once if it has none of its
// own, and with false if the connection ends before.
func TestSentOnce(t *testing.T) {
	for _, cut := range []bool{false, true} {
		s := transmission(Export{Volume: &tape{size: 1 << 30}}, false, DefaultLimits())
		var told []string
		follow := func(tasks []*Task, name string) {
			for _, x := range tasks {
				x.Sent = func(sent bool) {
					told = append(told, name)
					if sent == cut {
						t.Errorf("%s: sent %t", name, sent)
					}
				}
			}
		}
		in := AppendRequest(nil, 0, CmdWrite, 1, 0, Window+512)
		s.Input(append(in, make([]byte, Window+512)...))
		parts := s.Starts(nil)
		if len(parts) != 2 {
			t.Fatalf("%d tasks", len(parts))
		}
		follow(parts[:1], "first part")
		follow(parts[1:], "last part")
		s.Input(AppendRequest(nil, 0, CmdRead, 2, 0, 512))
		read := s.Starts(nil)
		follow(read, "read")
		if cut {
			s.Fail(net.ErrClosed)
		}
		read[0].Pieces = append(read[0].Pieces, Piece{Zeros: 512})
		for _, x := range []*Task{parts[0], read[0], parts[1]} {
			s.Finish(x)
		}
		want := []string{"first part"}
		if cut {
			want = []string{"first part", "read", "last part"}
		}
		if !slices.Equal(told, want) {
			t.Errorf("cut %t: told of %q before anything is sent", cut, told)
		}
		heard(s)
		if want := []string{"first part", "read", "last part"}; !slices.Equal(told, want) {
			t.Errorf("cut %t: told of %q", cut, told)
		}
	}
}
