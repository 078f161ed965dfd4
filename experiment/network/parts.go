package network

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"

	"farflash/cosim"
	"farflash/fabric"
	"farflash/sim"
	"farflash/workload/flows"
)

// errOnePiece says that a run in parts has come to something that can only be found out in one
// piece.
var errOnePiece = errors.New("the network must be simulated in one piece")

// divided runs a network in parts, each on a goroutine of its own.
type divided struct {
	*Network
	parts   *fabric.Parts
	traffic []*cosim.Planned
	tallies []*Tally
	pausing [][]fabric.Pause
	flows   int
	round   uint32
	keep    bool
}

// inParts divides the network, or leaves it whole if it has no pods to divide it by.
func (y *Network) inParts(src flows.Source, n int, keepPauses bool) (driver, error) {
	list, err := flows.Collect(src)
	if err != nil {
		return nil, err
	}
	of := y.Graph.Partition(n)
	ahead := y.Graph.Lookahead(of)
	if ahead == sim.Forever || ahead <= 0 {
		if keepPauses {
			y.KeepPauses()
		}
		t := cosim.NewTraffic(y.Eng, y.Net, flows.Slice(list), y.Hosts)
		return &whole{y, t}, t.Start()
	}
	d := &divided{Network: y, flows: len(list), keep: keepPauses}
	count := int32(0)
	for _, p := range of {
		count = max(count, p+1)
	}
	plan := make([]fabric.Flow, len(list))
	mine := make([][]int32, count)
	starts := make([][]sim.Time, count)
	for i, f := range list {
		x := fabric.Flow{Src: y.Hosts[f.Src], Dst: y.Hosts[f.Dst], Class: f.Class, Size: f.Size, Start: f.Start}
		plan[i] = x
		mine[of[x.Src]] = append(mine[of[x.Src]], int32(i))
		starts[of[x.Src]] = append(starts[of[x.Src]], f.Start)
	}
	var sinks []fabric.Sink
	for range count {
		t := &Tally{}
		d.tallies = append(d.tallies, t)
		sinks = append(sinks, t)
	}
	if d.parts, err = y.Net.Divide(of, ahead, plan, sinks); err != nil {
		return nil, err
	}
	d.pausing = make([][]fabric.Pause, count)
	for i := range d.tallies {
		e := d.parts.Engine(i)
		d.tallies[i].clock = e
		d.traffic = append(d.traffic, cosim.NewPlanned(e, mine[i], starts[i], func(flow int32) error { return d.parts.Begin(i, flow) }))
		if keepPauses {
			d.parts.OnPause(i, func(p fabric.Pause) { d.pausing[i] = append(d.pausing[i], p) })
		}
	}
	return d, nil
}

// barrier lets goroutines wait for each other. Windows are short, so they spin for a while before they
// give way.
type barrier struct {
	n       int32
	waiting atomic.Int32
	turn    atomic.Uint32
}

func (b *barrier) wait() {
	turn := b.turn.Load()
	if b.waiting.Add(1) == b.n {
		b.waiting.Store(0)
		b.turn.Add(1)
		return
	}
	for spins := 0; b.turn.Load() == turn; spins++ {
		if spins > 1000 {
			runtime.Gosched()
		}
	}
}

// run goes through the windows up to a time. A window ends before anything that another part does in it can
// arrive.
func (d *divided) run(to sim.Time) (bool, error) {
	n := len(d.traffic)
	next := make([]sim.Time, n)
	dry := false
	b := barrier{n: int32(n)}
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			for round := d.round + 1; ; round++ {
				next[i] = d.parts.Take(i, round)
				stuck := d.parts.Stuck() // no part runs now, so all see the same
				b.wait()
				first := sim.Forever
				for _, t := range next {
					first = min(first, t)
				}
				if first > to || stuck {
					if i == 0 {
						d.round, dry = round, first == sim.Forever
					}
					return
				}
				d.parts.Run(i, min(first+d.parts.Ahead()-1, to))
				b.wait()
			}
		})
	}
	all.Wait()
	if d.parts.Stuck() {
		return false, errOnePiece
	}
	d.parts.Settle()
	if d.keep {
		for i := range d.pausing {
			d.pauses = append(d.pauses, d.pausing[i]...)
			d.pausing[i] = d.pausing[i][:0]
		}
	}
	var errs []error
	for _, t := range d.traffic {
		errs = append(errs, t.Err())
	}
	return dry, errors.Join(errs...)
}

func (d *divided) progress() (uint64, bool, sim.Time) {
	var done uint64
	var last sim.Time
	for _, t := range d.tallies {
		done += t.done
		last = max(last, t.last)
	}
	return done, done == uint64(d.flows), last
}

func (d *divided) now() sim.Time {
	var at sim.Time
	for i := range d.traffic {
		at = max(at, d.parts.Engine(i).Now())
	}
	return at
}

func (d *divided) events() uint64 { return d.parts.Events() }
