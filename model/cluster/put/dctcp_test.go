package put

import (
	"testing"

	"farflash/numeric/units"
)

// TestWindow verifies a window of DCTCP against RFC 8257: the fraction of marks is smoothed by 1/16 once per round, and
// a round with marks cuts the window by half of that fraction.
func TestWindow(t *testing.T) {
	const frame units.Bytes = 1000
	w := window{cwnd: 10_000, slow: true, alpha: alphaOne}
	send := func() { w.sent += frame }
	send()
	w.ack(frame, false, frame)
	if w.cwnd != 11_000 || !w.slow {
		t.Fatalf("slow start: %+v", w)
	}
	if w.alpha != alphaOne/16*15 {
		t.Fatalf("a clean round: the share is %v of %v", w.alpha, alphaOne)
	}
	// A round of four frames, two of them marked: congestion avoidance adds frame^2 / cwnd for each, then the cut.
	for range 4 {
		send()
	}
	w.end = w.sent
	alpha := w.alpha + (alphaOne/2-w.alpha)/16
	want := w.cwnd
	for k := range 4 {
		if k == 0 {
			want += frame // before the first mark
		} else {
			want += frame * frame / want
		}
	}
	for k := range 4 {
		w.ack(frame, k == 1 || k == 3, frame)
	}
	want -= units.Bytes(int64(want) * alpha / alphaOne / 2)
	if w.alpha != alpha || w.cwnd < want-1 || w.cwnd > want+1 || w.slow {
		t.Fatalf("window %v and share %v, want %v and %v", w.cwnd, w.alpha, want, alpha)
	}
	// A round without marks only grows the window.
	before := w.cwnd
	send()
	w.end = w.sent
	if w.ack(frame, false, frame); w.cwnd <= before {
		t.Fatalf("a round without marks takes the window from %v to %v", before, w.cwnd)
	}
	// The window never falls below a frame.
	for range 200 {
		send()
		w.end = w.sent
		w.ack(frame, true, frame)
	}
	if w.cwnd < frame || w.cwnd > 3*frame {
		t.Errorf("all is marked, and the window is %v", w.cwnd)
	}
}
