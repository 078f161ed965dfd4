package cc

import (
	"math"
	"testing"

	"farflash/numeric/units"
	"farflash/sim"
)

// line is a TCP on a path with a fixed round trip, whose window is always full; every packet is acknowledged.
type line struct {
	Algorithm
	s    Sender
	now  sim.Time
	next uint64
	rtt  sim.Time
}

const segment = 1000

func newLine(t *testing.T, c TCP, rtt sim.Time) *line {
	t.Helper()
	l := &line{Algorithm: must(newTCP(c)), s: newSender(100 * units.Gbps), rtt: rtt}
	l.s.MTU = segment
	l.Start(0, &l.s)
	return l
}

func (l *line) window() float64 { return float64(l.s.Window) / segment }

// trip simulates a round trip: the packets in the window are acknowledged one by one, some of them with marks, while as
// many are sent.
func (l *line) trip(marked int) {
	n := int(l.window())
	first := l.next
	for i := range n {
		x := Signal{Kind: Ack, Now: l.now + l.rtt, Acked: first + uint64(i+1)*segment, RTT: l.rtt, Marked: i < marked}
		x.Next = x.Acked + uint64(l.window()-1)*segment
		l.React(0, &l.s, &x)
	}
	l.next = first + uint64(n)*segment
	l.now += l.rtt
}

func (l *line) lose() {
	l.React(0, &l.s, &Signal{Kind: Loss, Now: l.now, Acked: l.next, Next: l.next + uint64(l.window())*segment})
}

func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if math.Abs(got-want) > within {
		t.Errorf("%s: %.3f, want %.3f", what, got, want)
	}
}

// TestSlowStart verifies that the window doubles each round trip, that the losses of a round halve it once, and that it
// then grows by a packet per round trip.
func TestSlowStart(t *testing.T) {
	c := defaultTCP()
	c.Growth = GrowthNewReno
	l := newLine(t, c, 100*us)
	for _, want := range []float64{10, 20, 40, 80} {
		near(t, "slow start", l.window(), want, 0)
		l.trip(0)
	}
	l.lose()
	l.lose()
	near(t, "after losses", l.window(), 80, 0)
	l.trip(0) // recovery of the packets sent before the loss
	l.trip(0)
	for i := range 10 {
		near(t, "avoidance", l.window(), 80+float64(i), 0.02*float64(i)+0.02)
		l.trip(0)
	}
	l.React(0, &l.s, &Signal{Kind: Timeout, Now: l.now, Acked: l.next, Next: l.next + 1})
	near(t, "after a timeout", l.window(), 1, 0)
	for _, want := range []float64{2, 4, 8, 16, 32} {
		l.trip(0)
		near(t, "slow start again", l.window(), want, 0)
	}
}

// TestIdleWindow verifies that a window that is not filled does not grow.
func TestIdleWindow(t *testing.T) {
	l := newLine(t, defaultTCP(), 100*us)
	for i := range uint64(1000) {
		l.React(0, &l.s, &Signal{Kind: Ack, Now: sim.Time(i) * 100 * us, Acked: (i + 1) * segment,
			Next: (i + 1) * segment, RTT: 100 * us})
	}
	near(t, "one packet at a time", l.window(), 10, 0)
}

// TestCubic verifies RFC 9438's window W(t) = C (t - K)^3 + W_max on a round trip so long that NewReno is slower.
func TestCubic(t *testing.T) {
	c := defaultTCP()
	const rtt = 100 * units.Millisecond
	l := newLine(t, c, rtt)
	for range 5 {
		l.trip(0)
	}
	most := l.window() // 320
	l.lose()
	near(t, "after a loss", l.window(), 0.7*most, 0.001)
	l.trip(0)
	k := math.Cbrt(most * 0.3 / 0.4)
	start := l.now
	l.trip(0) // begins the epoch
	for l.now-start < 9*units.Second {
		at := (l.now - start).Seconds()
		want := 0.4*math.Pow(at-k, 3) + most
		near(t, "W at "+(l.now-start).String(), l.window(), want, 0.02*want)
		l.trip(0)
	}
}

// TestDCTCPShare verifies that the window shrinks by half of the smoothed share of marks (RFC 8257, 3.3).
func TestDCTCPShare(t *testing.T) {
	c := defaultTCP()
	c.Growth = GrowthDCTCP
	l := newLine(t, c, 100*us)
	l.trip(0)
	for range 400 { // 10 of each window
		l.trip(int(l.window()) / 4)
	}
	// In equilibrium a packet per round trip makes up for a reduction of share/2 of the window; with a quarter marked
	// the window falls to near its minimum.
	if w := l.window(); w < 2 || w > 16 {
		t.Errorf("a window of %v packets with a quarter of them marked", w)
	}
	st := &l.Algorithm.(*tcp).qps[0]
	if st.share < 0.1 || st.share > 0.35 {
		t.Errorf("alpha is %.3f with a quarter marked", st.share)
	}
	for range 200 {
		l.trip(0)
	}
	near(t, "alpha without marks", st.share, 0, 0.001)
	was := l.window()
	l.trip(1)
	l.trip(0)
	if l.window() < was-2 {
		t.Errorf("one mark of %v packets takes the window to %v", was, l.window())
	}
}
