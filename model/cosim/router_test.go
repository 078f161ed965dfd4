package cosim_test

import (
	"math"
	"testing"

	"farflash/block"
	"farflash/model/cosim"
	"farflash/numeric/units"
	"farflash/sim"
)

// recorded submits requests to a recorder behind a route, and returns it.
func recorded(t *testing.T, route cosim.Route, initiators int, targets [][]int32, flows int,
	requests ...block.Request) *cosim.Recorder {
	t.Helper()
	if route.MaxTransfer == 0 {
		route.MaxTransfer = units.MiB
	}
	r, err := cosim.NewRouter(route, initiators, targets, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	c, err := cosim.NewRecorder(sim.New(), r)
	if err != nil {
		t.Fatal(err)
	}
	var queues []block.QueueID
	for k := range flows {
		q, err := c.Open(block.QueueConfig{})
		if err != nil || int(q) != k {
			t.Fatalf("flow %d has queue %d: %v", k, q, err)
		}
		queues = append(queues, q)
	}
	for k, x := range requests {
		if !c.Submit(queues[k%flows], x) {
			t.Fatal("a recorder refuses")
		}
	}
	return c
}

// TestInitiators verifies the initiators of requests, by turn, volume and flow.
func TestInitiators(t *testing.T) {
	drives := [][]int32{{0}}
	var list []block.Request
	for v := range uint32(6) {
		list = append(list, block.Request{Length: 512, Volume: v / 2})
	}
	for name, x := range map[string]struct {
		route cosim.Route
		want  [6]int32
	}{
		"by turn":   {cosim.Route{Initiator: cosim.ByTurn}, [6]int32{0, 1, 2, 0, 1, 2}},
		"by volume": {cosim.Route{Initiator: cosim.ByVolume, Drive: cosim.ByVolume}, [6]int32{0, 0, 1, 1, 2, 2}},
		"by flow":   {cosim.Route{Initiator: cosim.ByFlow, Owners: []int32{2, 0}}, [6]int32{2, 0, 2, 0, 2, 0}},
		"by turn, the first flow bound": {cosim.Route{Initiator: cosim.ByTurn, Owners: []int32{2, -1}},
			[6]int32{2, 0, 2, 1, 2, 2}},
	} {
		c := recorded(t, x.route, 3, drives, 2, list...)
		if [6]int32(c.Initiators) != x.want {
			t.Errorf("%s: %v, not %v", name, c.Initiators, x.want)
		}
	}
}

// TestDrives verifies that a volume's number selects its drive, among all drives or among those of its target.
func TestDrives(t *testing.T) {
	targets := [][]int32{{0, 1, 2}, {3}}
	var list []block.Request
	for v := range uint32(8) {
		list = append(list, block.Request{Length: 4096, Offset: 1 << 20, Volume: v})
	}
	for name, x := range map[string]struct {
		drive cosim.Spread
		want  []int32
	}{
		"by volume": {cosim.ByVolume, []int32{0, 1, 2, 3, 0, 1, 2, 3}},
		"by target": {cosim.ByTarget, []int32{0, 3, 1, 3, 2, 3, 0, 3}},
	} {
		c := recorded(t, cosim.Route{Drive: x.drive}, 1, targets, 1, list...)
		for k, j := range c.Jobs {
			if j.Drive != x.want[k] || j.Request != int32(k) || j.Command.Offset != 1<<20 || j.Command.Length != 4096 {
				t.Errorf("%s: part %d is %+v, not on drive %d", name, k, j, x.want[k])
			}
		}
	}
	// 1 MiB each, except for the last.
	c := recorded(t, cosim.Route{Drive: cosim.ByVolume}, 1, targets, 1, block.Request{Length: 5 << 19, Volume: 6})
	if len(c.Jobs) != 3 || c.Jobs[1].Command.Offset != 1<<20 || c.Jobs[2].Command.Offset != 2<<20 ||
		c.Jobs[2].Command.Length != 1<<19 || c.Jobs[2].Drive != 2 {
		t.Errorf("parts of 2.5 MiB: %+v", c.Jobs)
	}
	if c := recorded(t, cosim.Route{Drive: cosim.ByVolume}, 1, targets, 1,
		block.Request{Op: block.Flush}); len(c.Jobs) != 1 || c.Jobs[0].Command.Op != block.Flush {
		t.Errorf("a flush is %+v", c.Jobs)
	}
}

// TestStripes verifies that volume v begins at drive v, and that stripe s of n drives is the s/n-th of its drive.
func TestStripes(t *testing.T) {
	const k = 1 << 10
	c := recorded(t, cosim.Route{Drive: cosim.ByStripe, Unit: 64 * units.KiB}, 1, [][]int32{{0, 1}, {2}}, 1,
		block.Request{Offset: 7*64*k + k, Length: 64 * k, Volume: 1})
	// Stripe 7 of volume 1 is on drive (7 + 1) mod 3, the third one there; stripe 8 on drive 0.
	want := []cosim.Job{{Drive: 2, Command: block.Request{Offset: 2*64*k + k, Length: 63 * k}},
		{Drive: 0, Command: block.Request{Offset: 2 * 64 * k, Length: k}}}
	for n, w := range want {
		if j := c.Jobs[n]; j.Drive != w.Drive || j.Command.Offset != w.Command.Offset ||
			j.Command.Length != w.Command.Length {
			t.Errorf("part %d is %+v, not %+v", n, j, w)
		}
	}
	// 1 GiB and 5 KiB hold 16384 whole stripes on each of three drives; the 5 KiB are unused.
	r, err := cosim.NewRouter(cosim.Route{Drive: cosim.ByStripe, Unit: 64 * units.KiB}, 1, [][]int32{{0, 1}, {2}},
		1<<30+5*k)
	if err != nil || r.Capacity(0) != 3<<30 {
		t.Errorf("%d bytes, %v", r.Capacity(0), err)
	}
}

// TestImpossibleRouters covers routers without drives, without initiators, and with drives smaller than a stripe.
func TestImpossibleRouters(t *testing.T) {
	for name, x := range map[string]struct {
		initiators int
		targets    [][]int32
		capacity   int64
		wrong      bool
	}{
		"no drives":            {1, [][]int32{{}}, 1 << 30, true},
		"no initiators":        {0, [][]int32{{0}}, 1 << 30, true},
		"less than a stripe":   {1, [][]int32{{0}}, 64<<10 - 1, true},
		"a stripe and no more": {1, [][]int32{{0}}, 64 << 10, false},
	} {
		if _, err := cosim.NewRouter(cosim.Route{Drive: cosim.ByStripe, Unit: 64 * units.KiB}, x.initiators,
			x.targets, x.capacity); (err != nil) != x.wrong {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestHashes verifies that extents are distributed over drives and initiators as if drawn at random (chi-square),
// independently for each volume; that an extent is in one place; and that initiator and drive are independent.
func TestHashes(t *testing.T) {
	const n, extents, unit = 4, 4000, 64 << 10
	route := cosim.Route{Initiator: cosim.ByHash, Drive: cosim.ByHash, Unit: unit}
	targets := [][]int32{{0, 1}, {2, 3}}
	var list []block.Request
	for k := range int64(extents) {
		list = append(list, block.Request{Offset: k / 2 * unit, Length: unit, Volume: uint32(k % 2)})
	}
	c := recorded(t, route, n, targets, 1, list...)
	inside := list
	for k := range inside {
		inside[k].Offset += unit / 2
		inside[k].Length = 512
	}
	again := recorded(t, route, n, targets, 1, inside...)
	var drives, initiators [n]float64
	var both [n][n]float64
	same := 0 // extents of the same number in the two volumes
	for k := range extents {
		d, i := c.Jobs[k].Drive, c.Initiators[k]
		if again.Jobs[k].Drive != d || again.Initiators[k] != i || again.Jobs[k].Command.Offset != inside[k].Offset {
			t.Fatalf("extent %d is on drive %d by %d, and in its midst on %d by %d", k, d, i, again.Jobs[k].Drive,
				again.Initiators[k])
		}
		drives[d]++
		initiators[i]++
		both[d][i]++
		if k%2 == 1 && d == c.Jobs[k-1].Drive {
			same++
		}
	}
	// 0.999 of chi-square with 3 and 15 degrees of freedom: 16.3 and 37.7.
	chi := func(counts []float64) float64 {
		sum, mean := 0.0, float64(extents)/float64(len(counts))
		for _, x := range counts {
			sum += (x - mean) * (x - mean) / mean
		}
		return sum
	}
	var all []float64
	for d := range n {
		all = append(all, both[d][:]...)
	}
	if chi(drives[:]) > 16.3 || chi(initiators[:]) > 16.3 || chi(all) > 37.7 {
		t.Errorf("drives %v, initiators %v, both %v", drives, initiators, both)
	}
	if want := extents / 2.0 / n; math.Abs(float64(same)-want) > 4*math.Sqrt(want) {
		t.Errorf("%d extents of %d are on the drive of the other volume's", same, extents/2)
	}
	// A part ends at the end of its extent.
	c = recorded(t, route, n, targets, 1, block.Request{Offset: unit - 1024, Length: 2048})
	if len(c.Jobs) != 2 || c.Jobs[0].Command.Length != 1024 || c.Jobs[1].Command.Offset != unit ||
		c.Jobs[1].Command.Length != 1024 {
		t.Errorf("over the end of an extent: %+v", c.Jobs)
	}
}
