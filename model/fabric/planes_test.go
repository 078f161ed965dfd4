package fabric

import (
	"math"
	"testing"

	"farflash/model/fabric/topo"
	"farflash/numeric/units"
)

// TestPlanesCarry verifies that queue pairs between two hosts with a link to each of four planes take as long as the
// queue pairs of the most used plane take in sequence, and that those of a failed plane continue in the others.
func TestPlanesCarry(t *testing.T) {
	const planes, pairs, size = 4, 64, units.MB
	c := plain()
	c.QueuePairs.PerPeer = pairs
	g := build(t, topo.Config{Star: &topo.Star{Hosts: 3}, Planes: planes}, 100*units.Gbps, 100*units.Gbps,
		units.Microsecond)
	r := newRig(t, c, g, 1)
	met := map[int32]int{}
	for range pairs {
		m := r.mustSend(t, 0, 1, 1, size)
		met[r.net.senders[r.net.Messages()[m].QP].port]++
	}
	r.run(t, 1e7)
	r.drained(t)
	most, last := 0, 0.0
	for _, n := range met {
		most = max(most, n)
	}
	for _, m := range r.net.Messages() {
		last = max(last, m.Acked.Microseconds())
	}
	packets := float64((size + c.Payload - 1) / c.Payload)
	want := float64(most) * (float64(size) + packets*float64(c.Header)) * 8 / 100e3
	if len(met) != planes || math.Abs(last/want-1) > 0.01 {
		t.Errorf("%d planes are met, by %v; the last ends after %.1f us, want %.1f", len(met), met, last, want)
	}
	r = newRig(t, c, g, 1)
	if err := r.net.Fail(0, 100*units.Microsecond, 0); err != nil { // host 0's link in the first plane
		t.Fatal(err)
	}
	for range pairs {
		r.mustSend(t, 0, 1, 1, size)
	}
	r.run(t, 1e7)
	r.check(t)
	r.completed(t)
}
