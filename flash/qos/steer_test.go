package qos_test

import (
	"slices"
	"testing"

	"farflash/flash/qos"
	"farflash/numeric/rng"
	"farflash/policy/ratecontrol"
)

// network is a client in virtual time behind a network that takes bytes at a rate, in order, and holds some itself; the
// pool answers after a while. Answers to writes queue behind read data.
type network struct {
	t           *testing.T
	s           *qos.Steer[op] // nil: everything begins at once
	rate        float64        // bytes per second
	buffer      int64          // bytes that are taken at once
	latency     int64          // of the pool, ns
	now         int64
	pool        []answer // by the time at which they are done
	out         []answer // to be sent, in order
	free        int64    // when the network has sent everything before
	outstanding int64    // bytes of reads begun and not taken
	most        int64    // of outstanding, lately
	read, wrote int64
	asked       int64
}

type op struct {
	read  bool
	bytes int64
	id    *int32
}

type answer struct {
	op
	at int64 // done by the pool
}

func (n *network) ask(o op) {
	o.id = new(int32)
	n.asked++
	if n.s == nil {
		n.begin(o)
		return
	}
	*o.id = n.s.Offer(n.now, o.read, n.asked<<20, o.bytes, o)
	n.next()
}

func (n *network) next() {
	for n.s != nil {
		o, ok := n.s.Next(n.now)
		if !ok {
			return
		}
		n.begin(o)
	}
}

func (n *network) begin(o op) {
	if o.read {
		n.outstanding += o.bytes
		n.most = max(n.most, n.outstanding)
	}
	n.pool = append(n.pool, answer{o, n.now + n.latency})
}

// run runs until a time.
func (n *network) run(until int64) {
	for n.now < until {
		for len(n.pool) > 0 && n.pool[0].at <= n.now {
			a := n.pool[0]
			n.pool = n.pool[1:]
			if n.s != nil {
				n.s.Done(n.now, *a.id, false)
				n.next()
			}
			n.out = append(n.out, a)
		}
		for len(n.out) > 0 {
			a := n.out[0]
			if float64(n.free-n.now)*n.rate/1e9 > float64(n.buffer) {
				break
			}
			n.out = n.out[1:]
			if !a.read {
				n.wrote += a.bytes
				n.ask(op{bytes: a.bytes})
				continue
			}
			n.free = max(n.free, n.now) + int64(float64(a.bytes)/n.rate*1e9)
			n.outstanding -= a.bytes
			n.read += a.bytes
			if n.s != nil {
				n.s.Sent(n.now, *a.id)
			}
			n.ask(op{read: true, bytes: a.bytes})
			n.next()
		}
		if n.s != nil {
			if at, ok := n.s.When(); ok && at <= n.now {
				n.s.Tick(n.now)
				n.next()
			}
		}
		n.now += 20_000
	}
}

// TestSteer verifies that reserve finds the rate of a slow network, begins no more reads than the network takes in a
// few reads' time, keeps it busy, and so lets through many times the writes that wait behind reads without it; and
// that it follows a network that becomes slower or faster, and does not bind where no network limits.
func TestSteer(t *testing.T) {
	const size = 64 << 10
	start := func(s *qos.Steer[op]) *network {
		n := &network{t: t, s: s, rate: 20e6, buffer: 128 << 10, latency: 100_000}
		for range 32 {
			n.ask(op{read: true, bytes: size})
		}
		for range 8 {
			n.ask(op{bytes: size})
		}
		return n
	}
	var wrote [2]int64
	for i := range wrote {
		var s *qos.Steer[op]
		if i == 1 {
			var err error
			if s, err = qos.NewSteer[op](ratecontrol.Reserve, 8<<20); err != nil {
				t.Fatal(err)
			}
		}
		n := start(s)
		n.run(1e9)
		n.read, n.wrote, n.most = 0, 0, 0
		n.run(3e9)
		if got := float64(n.read) / 2; got < 0.97*20e6 {
			t.Errorf("%d: the network is not busy: %v B/s", i, got)
		}
		wrote[i] = n.wrote
		if s == nil {
			continue
		}
		if d := s.Demand(); d < 0.9*20e6 || d > 1.1*20e6 {
			t.Errorf("a network of 20 MB/s demands %v", d)
		}
		if n.most > 6*size {
			t.Errorf("%d bytes of reads wait for the network", n.most)
		}
		for _, rate := range []float64{5e6, 80e6} {
			n.rate = rate
			n.run(n.now + 3e9) // the controller shortens its horizon slowly
			n.read, n.most = 0, 0
			n.run(n.now + 1e9)
			if d := s.Demand(); d < 0.85*rate || d > 1.15*rate {
				t.Errorf("a network of %v B/s now demands %v", rate, d)
			}
			if got := float64(n.read); got < 0.95*rate || n.most > 8*size {
				t.Errorf("at %v B/s now %v are read, %d bytes wait", rate, got, n.most)
			}
		}
	}
	if wrote[1] < 3*wrote[0] {
		t.Errorf("with rate control %d bytes are written, without %d", wrote[1], wrote[0])
	}
	s, err := qos.NewSteer[op](ratecontrol.Reserve, 8<<20)
	if err != nil {
		t.Fatal(err)
	}
	n := start(s)
	n.rate, n.buffer = 1e10, 4<<20
	n.run(1e9)
	if reading, limit := s.Reading(); limit > 0 && reading >= limit || s.Waiting() > 0 {
		t.Errorf("a fast network holds reads back: %d of %d, %d wait", reading, limit, s.Waiting())
	}
}

// TestSteerEnds gives random accesses that end in any order and in any way: each begins once, those that overlap in
// order, and none is left. Reads of a client that has gone run out.
func TestSteerEnds(t *testing.T) {
	const most = 40_000
	for _, k := range []ratecontrol.Kind{ratecontrol.AIMD, ratecontrol.Reserve} {
		for seed := uint64(1); seed <= 20; seed++ {
			draw := rng.NewStream(seed, "steer")
			s, err := qos.NewSteer[int](k, most)
			if err != nil {
				t.Fatal(err)
			}
			type access struct {
				id    int32
				read  bool
				at    int64
				begun bool
			}
			var all []access
			var busy, unsent []int
			now := int64(0)
			drain := func() {
				for {
					i, ok := s.Next(now)
					if !ok {
						return
					}
					if reading, _ := s.Reading(); reading > most+4096 {
						t.Fatalf("seed %d: reads hold %d bytes", seed, reading)
					}
					if all[i].begun {
						t.Fatalf("seed %d: %d begins twice", seed, i)
					}
					all[i].begun = true
					for j := range i {
						if x := all[j]; x.at == all[i].at && !x.begun {
							t.Fatalf("seed %d: %d begins before %d, which it overlaps", seed, i, j)
						}
					}
					busy = append(busy, i)
				}
			}
			pick := func(from *[]int) int {
				at := int(draw.IntN(int64(len(*from))))
				i := (*from)[at]
				*from = slices.Delete(*from, at, at+1)
				return i
			}
			const accesses = 600
			for len(all) < accesses || len(busy)+len(unsent) > 0 {
				now += draw.IntN(3_000_000)
				switch what := draw.IntN(4); {
				case what == 0 && len(all) < accesses:
					x := access{read: draw.IntN(2) == 0, at: draw.IntN(40) << 12}
					all = append(all, access{}) // Offer may not begin it
					x.id = s.Offer(now, x.read, x.at, 4096, len(all)-1)
					all[len(all)-1] = x
				case what == 1 && len(busy) > 0:
					i := pick(&busy)
					failed := draw.IntN(10) == 0
					s.Done(now, all[i].id, failed)
					if all[i].read && !failed {
						unsent = append(unsent, i)
					}
				case what == 2 && len(unsent) > 0:
					s.Sent(now, all[pick(&unsent)].id)
				case what == 3:
					s.Tick(now)
				}
				if len(all) == accesses {
					s.Open()
				}
				drain()
			}
			if reading, _ := s.Reading(); reading != 0 || s.Waiting() != 0 {
				t.Errorf("seed %d: %d bytes are being read, %d wait", seed, reading, s.Waiting())
			}
			for i, x := range all {
				if !x.begun {
					t.Fatalf("seed %d: access %d of %d has not begun", seed, i, len(all))
				}
			}
		}
	}
	for k := ratecontrol.None; k <= ratecontrol.Paced; k++ {
		_, err := qos.NewSteer[int](k, most)
		if acts := k == ratecontrol.AIMD || k == ratecontrol.Reserve; acts != (err == nil) {
			t.Errorf("%v: %v", k, err)
		}
	}
}

// TestSteerPause verifies that a network that pauses for 200 ms, at the start or later, as TCP does for a
// retransmission or a closed window, does not have the controller begin more reads afterwards than before.
func TestSteerPause(t *testing.T) {
	const size = 64 << 10
	s, err := qos.NewSteer[op](ratecontrol.Reserve, 8<<20)
	if err != nil {
		t.Fatal(err)
	}
	n := &network{t: t, s: s, rate: 20e6, buffer: 128 << 10, latency: 100_000}
	for range 32 {
		n.ask(op{read: true, bytes: size})
	}
	n.run(1e6)
	for range 5 {
		n.free = n.now + 200e6
		n.run(n.now + 300e6)
		n.read, n.most = 0, 0
		n.run(n.now + 700e6)
		if got := float64(n.read) / 0.7; got < 0.95*n.rate || n.most > 6*size {
			t.Errorf("after the pause %v B/s are read, and %d bytes wait", got, n.most)
		}
	}
}
