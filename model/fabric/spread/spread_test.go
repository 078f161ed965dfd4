package spread_test

import (
	"fmt"
	"math"
	"testing"

	"farflash/model/fabric/spread"
	"farflash/numeric/units"
)

func chooser(c spread.Choice, per spread.Unit) *spread.Chooser {
	x := spread.DefaultConfig()
	x.Choice, x.Per, x.Table = c, per, 8
	return spread.New(x, 2, 1, func(i int) string { return fmt.Sprint("s", i) })
}

// TestEven verifies that each policy uses all paths equally often: exactly in rotation, and within five standard errors
// at random.
func TestEven(t *testing.T) {
	const ways, times = 5, 50000
	for _, c := range []spread.Choice{spread.RoundRobin, spread.Random, spread.LeastQueue} {
		k := chooser(c, spread.Packet)
		var n [ways]int
		for range times {
			if k.Looks() {
				clear(k.Queues(1, ways))
			}
			n[k.Choose(1, ways)]++
		}
		for i, x := range n {
			off := math.Abs(float64(x - times/ways))
			if limit := 5 * math.Sqrt(times/ways); off > limit || c != spread.Random && off > 0 {
				t.Errorf("%v: way %d is taken %d of %d times", c, i, x, times)
			}
		}
	}
}

func TestLeastQueue(t *testing.T) {
	k := chooser(spread.LeastQueue, spread.Packet)
	for i := range 12 {
		q := k.Queues(0, 4)
		q[0], q[1], q[2], q[3] = 7, 3, 9, 3
		if got, want := k.Choose(0, 4), []int{1, 1, 3, 3}[i%4]; got != want {
			t.Errorf("choice %d is %d, want %d", i, got, want)
		}
	}
}

// TestQueues verifies that a switch with ports of different numbers of paths has as many queues each time.
func TestQueues(t *testing.T) {
	k := chooser(spread.LeastQueue, spread.Packet)
	for _, n := range []int{4, 2, 3, 9, 1} {
		if got := len(k.Queues(1, n)); got != n {
			t.Errorf("%d queues for %d paths", got, n)
		}
	}
}

// TestFlowlets verifies that the packets of an entry keep their port until there is a gap.
func TestFlowlets(t *testing.T) {
	k := chooser(spread.Random, spread.Flowlet)
	gap := spread.DefaultConfig().Gap
	if _, ok := k.Again(0, 3, 0); ok {
		t.Error("a packet follows nothing")
	}
	k.Remember(0, 3, 7)
	for i := range units.Duration(4) {
		if port, ok := k.Again(0, 11, i*gap); !ok || port != 7 { // 11 shares the entry of 3
			t.Errorf("after a gap of %v: %d, %v", gap, port, ok)
		}
	}
	if _, ok := k.Again(0, 3, 4*gap+1); ok {
		t.Error("a flowlet goes on after a longer gap")
	}
	if _, ok := k.Again(1, 3, 0); ok {
		t.Error("another switch knows of it")
	}
}

func Example() {
	k := chooser(spread.RoundRobin, spread.Packet)
	for range 4 {
		fmt.Print(k.Choose(0, 3), " ")
	}
	// Output: 0 1 2 0
}
