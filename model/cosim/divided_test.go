package cosim_test

import (
	"testing"

	"farflash/block"
	"farflash/block/blocktest"
	"farflash/model/cosim"
	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/sim"
)

// TestDivided verifies, on a device that serves requests in fixed times, that each request completes once, in its own
// queue and with its own tag; that the device never has more commands than its depth; that commands are fetched by the
// weights while both queues wait; and that a command never overtakes an overlapping one that was waiting when it
// arrived.
func TestDivided(t *testing.T) {
	const depth, write = 4, 3
	eng := sim.New()
	type request struct {
		block.Request
		queue block.QueueID
		done  int
		at    sim.Time
	}
	var all []*request
	var ended []*request
	var d *cosim.Divided
	d = cosim.NewDivided(eng, depth, blocktest.Sink(func(c block.Completion) {
		x := all[c.Tag]
		x.done++
		ended = append(ended, x)
		if c.Queue != x.queue || c.Op != x.Op || c.Length != x.Length || c.Submitted != x.at ||
			c.Fetched < c.Submitted || c.Finished != eng.Now() {
			t.Errorf("request %d on queue %d at %v ended as %+v", c.Tag, x.queue, x.at, c)
		}
		if err := d.Check(); err != nil {
			t.Error(err)
		}
	}))
	inside, most := 0, 0
	cfg := blocktest.DefaultConfig()
	cfg.Latency[block.Write] = cfg.Latency[block.Read] // so that they complete in the order in which they are fetched
	var dev *blocktest.Device
	dev, err := blocktest.New(cfg, eng, func(c block.Completion) {
		inside--
		d.Complete(c)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Behind(counted{dev, func() { inside++; most = max(most, inside) }}); err != nil {
		t.Fatal(err)
	}
	d.Queues().SetWeights(1, write)
	queues := make([]block.QueueID, 2)
	for i := range queues {
		if queues[i], err = d.Open(block.QueueConfig{Depth: 2, Weight: 1}); err != nil {
			t.Fatal(err)
		}
	}
	submit := func(r block.Request, q int) {
		r.Tag = uint64(len(all))
		all = append(all, &request{Request: r, queue: queues[q], at: eng.Now()})
		if !d.Submit(queues[q], r) {
			t.Errorf("request %d is refused", r.Tag)
		}
	}
	for i := range 400 { // far apart
		submit(block.Request{Op: block.Op(i % 2), Offset: int64(i) * 1 << 20, Length: 4096}, i/2%2)
	}
	if got := d.Waiting(); got != 400-depth {
		t.Errorf("%d requests wait; want all but %d", got, depth)
	}
	eng.Run(10 * units.Millisecond)
	// Of every four that completed while both queues waited, three are writes; the first four were fetched as they
	// arrived.
	count := [2]int{}
	for _, x := range ended[depth:200] {
		count[x.Op]++
	}
	if w := count[block.Write]; w < 3*count[block.Read]-4 || w > 3*count[block.Read]+4 {
		t.Errorf("%d reads and %d writes are fetched at weights of 1 and 3", count[block.Read], w)
	}
	eng.Run(units.Second)
	r := rng.NewStream(1, "divided")
	ended = ended[:0]
	from := len(all)
	for range 600 {
		submit(block.Request{Op: block.Op(r.IntN(2)), Offset: 4096 * r.IntN(12), Length: 4096 * (1 + r.IntN(3))},
			int(r.IntN(2)))
	}
	eng.Run(2 * units.Second)
	place := map[*request]int{}
	for i, x := range ended {
		place[x] = i
	}
	for i := from + depth; i < len(all); i++ { // the first had a place at once
		for _, y := range all[i+1:] {
			if x := all[i]; place[y] < place[x] && x.Offset < y.Offset+y.Length && y.Offset < x.Offset+x.Length {
				t.Fatalf("%v at %d of %d passes %v at %d of %d", y.Op, y.Offset, y.Length, x.Op, x.Offset, x.Length)
			}
		}
	}
	for i, x := range all {
		if x.done != 1 {
			t.Errorf("request %d ended %d times", i, x.done)
		}
	}
	if most != depth || d.Waiting() != 0 {
		t.Errorf("%d requests were in the device at once, of %d; %d wait", most, depth, d.Waiting())
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// counted is a device that reports submitted requests.
type counted struct {
	block.Device
	submitted func()
}

func (c counted) Submit(q block.QueueID, r block.Request) bool {
	ok := c.Device.Submit(q, r)
	if ok {
		c.submitted()
	}
	return ok
}

// TestDividedAtTheLargestDepth submits more commands than the largest submission queue has entries. The drive holds one
// less than the entries, and all complete.
func TestDividedAtTheLargestDepth(t *testing.T) {
	const largest = 65536
	eng := sim.New()
	done := 0
	d := cosim.NewDivided(eng, largest, blocktest.Sink(func(block.Completion) { done++ }))
	dev, err := blocktest.New(blocktest.DefaultConfig(), eng, func(c block.Completion) { d.Complete(c) })
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Behind(dev); err != nil {
		t.Fatal(err)
	}
	q, err := d.Open(block.QueueConfig{})
	if err != nil {
		t.Fatal(err)
	}
	for range largest + 100 {
		if !d.Submit(q, block.Request{Op: block.Read, Length: 512}) {
			t.Fatal("a command is refused")
		}
	}
	if n := d.Waiting(); n != 101 {
		t.Errorf("%d commands wait", n)
	}
	eng.Run(sim.Forever)
	if done != largest+100 {
		t.Errorf("%d commands completed", done)
	}
}
