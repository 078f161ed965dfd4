package repair

import (
	"testing"

	"farflash/numeric/units"
)

// takes returns all packets that a sender retransmits now.
func takes(r *Sender, top uint32) (out []uint32) {
	for r.Pending() {
		out = append(out, r.Take(top))
	}
	return out
}

func same(t *testing.T, what string, got []uint32, want ...uint32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d, want %d", what, got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("%s: %d, want %d", what, got, want)
		}
	}
}

// TestLostTwice loses packets 0, 2 and 5 of ten, and the retransmission of 2. IRN detects that by its timer, TCP by
// packet 10, which was sent later.
func TestLostTwice(t *testing.T) {
	for _, tcp := range []bool{false, true} {
		r := New(tcp, 0)
		if !r.Named(1, 0, 10) {
			t.Error("the first packet out of order shows no loss")
		}
		for _, psn := range []uint32{3, 4, 6, 7, 8, 9} {
			if r.Named(psn, 0, 10) {
				t.Errorf("%d shows a second loss", psn)
			}
		}
		if n := r.Pipe(0, 10); n != 0 {
			t.Errorf("%d packets are on their way, want none", n)
		}
		same(t, "what is repeated", takes(r, 10), 0, 2, 5)
		if n := r.Pipe(0, 10); n != 3 {
			t.Errorf("%d packets are on their way, want the three repetitions", n)
		}
		r.Acked(2) // 0 arrived, and 2 did not
		r.Named(5, 2, 11)
		same(t, "before what was sent later", takes(r, 11))
		r.Named(10, 2, 11)
		if tcp {
			same(t, "after that", takes(r, 11), 2)
		} else {
			same(t, "after that", takes(r, 11))
			r.Restart(2, 11)
			same(t, "after the timer", takes(r, 11), 2)
		}
		r.Acked(11)
		if r.Pending() || r.Recovering() {
			t.Error("the round has not ended")
		}
	}
}

// TestProbe verifies that TCP's last packet is retransmitted once, and then the packets that its arrival shows to be
// missing.
func TestProbe(t *testing.T) {
	r := New(true, 0)
	if _, ok := r.Probes(5); ok {
		t.Error("a probe before a round trip is known")
	}
	r.Measure(100 * units.Microsecond)
	if after, ok := r.Probes(5); !ok || after != 2200*units.Microsecond {
		t.Errorf("a probe after %v, %v", after, ok)
	}
	if _, ok := r.Probes(1); ok {
		t.Error("a probe with one packet under way")
	}
	r.Probe(5)
	if !r.Probing() {
		t.Error("no probe is due")
	}
	same(t, "the probe", takes(r, 5), 4)
	if _, ok := r.Probes(5); ok {
		t.Error("a second probe")
	}
	if !r.Named(4, 0, 5) {
		t.Error("the probe shows no loss")
	}
	same(t, "after the probe", takes(r, 5), 0, 1, 2, 3)
	r.Acked(5)
	r.Progress()
	if _, ok := r.Probes(2); !ok {
		t.Error("no probe after progress")
	}
	if _, ok := New(false, 0).Probes(5); ok {
		t.Error("IRN probes")
	}
}
