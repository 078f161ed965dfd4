package networks

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"sync/atomic"

	"farflash/model/cosim"
	"farflash/model/fabric"
	"farflash/sim"
	"farflash/workload/flows"
)

// divided runs a network in parts: alternately, or on several threads.
type divided struct {
	*Network
	parts   *fabric.Parts
	src     flows.Source
	head    flows.Flow // the next flow to plan
	ended   bool       // there are no more
	planned uint64
	tallies []*Tally
	pausing [][]fabric.Pause
	threads int
	keep    bool
	most    uint64 // recent events per window, above which it is worth waking other threads
	looked  uint64 // events at the last poll for progress
}

// lookEvery is the number of events between two polls for progress.
const lookEvery = 1 << 16

// The memory of a part, chosen so that it fits in a processor's cache while it is simulated, and the default limit on
// the number of parts.
const (
	partBytes = 1 << 20
	mostParts = 64
)

// drive posts flows on the network, with the scenario's numbers of parts and threads.
func (y *Network) drive(src flows.Source, keepPauses, whole bool) error {
	x := y.s.Fabric
	parts := x.Parts
	if parts == 0 {
		parts = min(int(y.Net.Bytes()/partBytes), mostParts)
	}
	threads := max(1, x.Threads)
	parts = max(parts, threads)
	if y.reactive != nil && parts > 1 && (x.Parts > 1 || threads > 1) {
		y.remarks = append(y.remarks,
			"fabric.parts and fabric.threads: flows wait for others anywhere in the network, so it is not "+
				"divided")
	}
	if whole || y.reactive != nil || y.Net.OneSequence() {
		parts = 1
	}
	of := y.Graph.Partition(parts)
	count := 0
	for _, p := range of {
		count = max(count, int(p)+1)
	}
	if count == 1 || !y.Graph.Apart(of) {
		if keepPauses {
			y.KeepPauses()
		}
		t := cosim.NewTraffic(y.Eng, y.Net, src, y.Hosts)
		y.Watch(t)
		if y.reactive != nil {
			t.React(y.reactive)
			y.Tally.traffic = t
		}
		y.driver, y.comes = &inOne{y, t}, t.More
		y.watchOver()
		y.tally([]*Tally{&y.Tally})
		return t.Start()
	}
	d := &divided{Network: y, src: src, keep: keepPauses, threads: min(threads, count, runtime.GOMAXPROCS(0))}
	if threads > d.threads {
		y.remarks = append(y.remarks,
			fmt.Sprintf("fabric.threads: %d of %d are used: the network divides into %d parts, and there are %d "+
				"processors (GOMAXPROCS)", d.threads, threads, count, runtime.GOMAXPROCS(0)))
	}
	var sinks []fabric.Sink
	for range count {
		t := &Tally{net: y.net}
		d.tallies = append(d.tallies, t)
		sinks = append(sinks, t)
	}
	var err error
	if d.parts, err = y.Net.Divide(of, sinks, d.threads > 1); err != nil {
		return err
	}
	d.pausing = make([][]fabric.Pause, count)
	for i := range d.tallies {
		d.tallies[i].clock = d.parts.Engine(i)
		if y.forgets {
			d.tallies[i].forget = func(m int32) { d.parts.Forget(i, m) }
		}
		if keepPauses {
			d.parts.OnPause(i, func(p fabric.Pause) { d.pausing[i] = append(d.pausing[i], p) })
		}
	}
	y.driver, y.comes = d, func() bool { return !d.ended }
	y.watchOver()
	y.tally(d.tallies)
	return d.fetch()
}

// fetch reads the next flow from the source.
func (d *divided) fetch() error {
	before := d.head.Start
	err := d.src.Next(&d.head)
	if errors.Is(err, io.EOF) {
		d.ended = true
		return nil
	}
	if err != nil {
		return err
	}
	return cosim.CheckFlow(&d.head, d.planned, before, len(d.Hosts))
}

// plan plans the flows that start up to a time.
func (d *divided) plan(to sim.Time) error {
	for !d.ended && d.head.Start <= to {
		f := &d.head
		m, err := d.parts.Plan(fabric.Flow{Src: d.Hosts[f.Src], Dst: d.Hosts[f.Dst], Class: f.Class, Size: f.Size,
			Start: f.Start})
		if err != nil {
			return fmt.Errorf("flow %d: %w", d.planned, err)
		}
		d.planned++
		d.posted(m, f)
		if err := d.fetch(); err != nil || d.planned%cosim.EnoughEvery == 0 && d.enough() {
			return err
		}
	}
	return nil
}

// run executes the windows up to a time. A window ends before any effect of one part in it can arrive at another.
func (d *divided) run(to sim.Time) (dry bool, err error) {
	crew := newCrew(d)
	defer crew.dismiss()
	for {
		first := d.parts.First()
		if !d.ended {
			first = min(first, d.head.Start)
		}
		if d.enough() {
			break // keep the results so far
		}
		if first > to || d.Dead {
			dry = first == sim.Forever || d.Dead
			break
		}
		if d.parts.Whole(first) {
			continue
		}
		horizon := min(to, d.parts.Horizon(first))
		if err := d.plan(horizon); err != nil {
			return false, err
		}
		if d.enough() {
			break
		}
		d.parts.First()
		crew.run(d.parts.Window(horizon))
		d.parts.Watch()
		if err := d.parts.Err(); err != nil {
			return false, err
		}
		if n := d.parts.Events(); n-d.looked >= lookEvery {
			d.looked = n
			d.parts.Settle()
			if d.watch.Look(d.parts.Now(), n) {
				break
			}
		}
	}
	d.parts.Settle()
	if d.keep {
		for i := range d.pausing {
			d.pauses = append(d.pauses, d.pausing[i]...)
			d.pausing[i] = d.pausing[i][:0]
		}
	}
	return dry, nil
}

// crew is the threads that run the parts of a window, each taking the next unclaimed one. They sleep between windows,
// and a window with few events is left to the first thread.
type crew struct {
	d    *divided
	next atomic.Int32
	wake []chan struct{}
	busy sync.WaitGroup
	// A panic of a thread is passed on: the first one is kept until the others have finished.
	broken atomic.Pointer[any]
}

// worthWaking is the number of events in a window from which waking a thread, which takes some microseconds, is
// worthwhile.
const worthWaking = 128

func newCrew(d *divided) *crew {
	c := &crew{d: d}
	for range d.threads - 1 {
		wake := make(chan struct{}, 1)
		c.wake = append(c.wake, wake)
		go func() {
			for range wake {
				c.safely()
			}
		}()
	}
	return c
}

// safely works, and stores a panic.
func (c *crew) safely() {
	defer c.busy.Done()
	defer func() {
		if x := recover(); x != nil {
			c.broken.CompareAndSwap(nil, &x)
		}
	}()
	c.work()
}

func (c *crew) dismiss() {
	for _, w := range c.wake {
		close(w)
	}
}

// run runs a window with events in the given number of parts.
func (c *crew) run(parts int) {
	before := c.d.parts.Events()
	c.next.Store(0)
	others := 0
	if c.d.most >= worthWaking {
		others = min(len(c.wake), parts-1)
	}
	c.busy.Add(others)
	for _, w := range c.wake[:others] {
		w <- struct{}{}
	}
	c.work()
	c.busy.Wait()
	if x := c.broken.Load(); x != nil {
		panic(*x)
	}
	// Exponential average over windows, with factor 1/2.
	c.d.most = (c.d.most + c.d.parts.Events() - before) / 2
}

func (c *crew) work() {
	for i := c.next.Add(1) - 1; int(i) < len(c.d.tallies); i = c.next.Add(1) - 1 {
		c.d.parts.Run(int(i))
	}
}

func (d *divided) progress() (uint64, bool, sim.Time) {
	var done uint64
	var last sim.Time
	for _, t := range d.tallies {
		done += t.done
		last = max(last, t.last)
	}
	return done, d.ended && done == d.planned, last
}

func (d *divided) now() sim.Time  { return d.parts.Now() }
func (d *divided) events() uint64 { return d.parts.Events() }
