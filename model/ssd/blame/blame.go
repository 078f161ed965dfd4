// Package blame says what stood in the way of a drive's requests: what the die and the channel of a request's last
// page did while it waited for them.
//
// Its main type is Watch. It is told of all work of channels and dies (ssd.Work), keeps the last of it, and divides
// the wait of a request that has been served (ssd.Account) into Stages: behind the host's reads and programs,
// collection's moves, erases, pages of the map, and what others had on the channel. The parts add up to the request's
// time in the drive.
//
// What it leaves out: waits of a request's other pages, which ended earlier; work longer ago than it keeps, whose
// share stays with no cause.
package blame

import (
	"farflash/model/ssd"
	"farflash/sim"
)

// Stage is where the time of a local drive's request went.
type Stage uint8

// The stages, in the order of a read.
const (
	Host       Stage = iota // for a place in the submission queue
	Queue                   // for the drive to fetch the command
	Link                    // the host link
	DRAM                    // the drive's memory
	Cache                   // a write: for a place in the cache
	Mapping                 // for the map's page
	Reads                   // behind the host's reads in the die
	Programs                // behind programs of the host's data in the die
	Moves                   // behind reads and programs of collection
	Erases                  // behind an erase
	Map                     // behind reads and programs of the map's pages
	Bus                     // behind others on the channel
	Held                    // in the scheduler for what none of these says
	Array                   // the flash array
	Transfer                // the flash channel
	Other                   // its other pages, or data that were on their way already
	Controller              // a processor of the drive's controller, and the wait for one
	Stages
)

// Names are the stages' names in results, Words what they are in tables.
var (
	Names = [Stages]string{"host_queue", "queue", "host_link", "dram", "cache", "mapping", "behind_reads",
		"behind_programs", "behind_gc", "behind_erases", "behind_map", "behind_bus", "held", "array", "transfer",
		"other", "controller"}
	Words = [Stages]string{"waiting in the host", "waiting in the queue", "host link", "DRAM",
		"waiting for a place in the cache", "mapping look-up", "behind reads", "behind programs",
		"behind garbage collection", "behind erases", "behind the map", "behind others on the channel", "held back",
		"flash array", "flash channel", "other pages", "controller's processors"}
)

// Times are how long a request was in each stage.
type Times [Stages]sim.Time

// Blame is what stood longest in the way of a request.
type Blame struct {
	By   Stage // Stages: nothing did
	Time sim.Time
	// Stream is, of a program of the host's data that was among it, the placement stream; -1 if there was none.
	Stream int16
}

// kept is how many spans of work of a die or a channel are kept; a power of two.
const kept = 1 << 10

type span struct {
	begin, end sim.Time
	tag        uint64
	activity   ssd.Activity
	cause      ssd.Cause
	stream     uint8
	own        bool // a host's request waits for it, that with the tag
}

type ring struct {
	spans []span
	n     int // in all so far
}

func (r *ring) add(s span) {
	if len(r.spans) < kept {
		r.spans = append(r.spans, s)
	} else {
		r.spans[r.n&(kept-1)] = s
	}
	r.n++
}

// at is the i-th last span, from 0; false if there is none or it is no longer kept.
func (r *ring) at(i int) (*span, bool) {
	if i >= len(r.spans) {
		return nil, false
	}
	return &r.spans[(r.n-1-i)&(kept-1)], true
}

// Watch follows a drive's channels and dies.
type Watch struct {
	lanes, channels []ring
	lanesPerChannel int
	// Last is what was found of the last request that was explained.
	Last  Times
	Blame Blame
	Whole sim.Time // its time in the drive
}

// New makes a watch of a drive and lets it be told of everything.
func New(d *ssd.Drive) *Watch {
	w := &Watch{lanes: make([]ring, d.Lanes()), channels: make([]ring, d.Channels()),
		lanesPerChannel: d.Lanes() / d.Channels()}
	work, suspend := d.OnWork, d.OnSuspend
	d.OnWork = func(x ssd.Work) {
		work.Fire(x)
		w.Work(x)
	}
	d.OnSuspend = func(x ssd.Suspension) {
		suspend.Fire(x)
		w.Suspend(x)
	}
	d.OnAccount = w.Explain
	return w
}

// Work takes a span of work in.
func (w *Watch) Work(x ssd.Work) {
	s := span{begin: x.Begin, end: x.End, tag: x.Tag, activity: x.Activity, cause: x.Cause, stream: x.Stream,
		own: x.ForRequest}
	if x.Activity.OnBus() {
		w.channels[x.Number].add(s)
	} else {
		w.lanes[x.Number].add(s)
	}
}

// Suspend ends the last span of a lane early.
func (w *Watch) Suspend(x ssd.Suspension) {
	if s, ok := w.lanes[x.Number].at(0); ok {
		s.end = min(s.end, x.At)
	}
}

// stageOf is what a wait behind a span is.
func stageOf(s *span) Stage {
	switch {
	case s.activity == ssd.Erase:
		return Erases
	case s.cause == ssd.ForCollection:
		return Moves
	case s.cause == ssd.ForMapping:
		return Map
	case s.activity == ssd.Program:
		return Programs
	}
	return Reads
}

// Explain divides a request's time. What it finds is in Last and Blame until the next one.
func (w *Watch) Explain(a *ssd.Account) {
	t := &w.Last
	*t = Times{Queue: a.Queue, Link: a.Link, DRAM: a.DRAM, Cache: a.Cache, Mapping: a.Mapping, Array: a.Array,
		Transfer: a.Transfer, Other: a.Backlog, Controller: a.Controller}
	w.Whole = a.Whole
	w.Blame = Blame{By: Stages, Stream: -1}
	left := a.Wait
	if a.Wait > 0 && a.Lane >= 0 {
		left = w.divide(a)
	}
	t[Held] = left
	for k := Reads; k <= Bus; k++ {
		if t[k] > w.Blame.Time {
			w.Blame.By, w.Blame.Time = k, t[k]
		}
	}
	if w.Blame.By != Programs {
		w.Blame.Stream = -1
	}
}

// divide gives each part of a request's wait to what its lane, or else its channel, did then. It returns what is left.
func (w *Watch) divide(a *ssd.Account) (left sim.Time) {
	left = a.Wait
	lane, channel := &w.lanes[a.Lane], &w.channels[int(a.Lane)/w.lanesPerChannel]
	begin, end := a.Ended, a.Ended // of the array's own work
	for i := 0; ; i++ {
		s, ok := lane.at(i)
		if !ok || s.end <= a.Queued {
			break
		}
		if s.end <= a.Ended && s.begin >= a.Queued && (s.end-s.begin == a.Array || s.own && s.tag == a.Tag) {
			begin, end = s.begin, s.end
			break
		}
	}
	give := func(k Stage, d sim.Time) {
		d = min(d, left)
		w.Last[k] += d
		left -= d
	}
	// Before the array begins: gaps of what the lane did are the channel's.
	to := begin
	for i := 0; to > a.Queued; i++ {
		s, ok := lane.at(i)
		if !ok || s.end <= a.Queued {
			break
		}
		if s.begin >= begin {
			continue // its own, or later
		}
		if s.end < to {
			give(Bus, channel.busy(max(s.end, a.Queued), to, begin))
		}
		k := stageOf(s)
		give(k, min(s.end, to)-max(s.begin, a.Queued))
		if k == Programs && w.Blame.Stream < 0 {
			w.Blame.Stream = int16(s.stream)
		}
		to = max(s.begin, a.Queued)
	}
	if to > a.Queued {
		give(Bus, channel.busy(a.Queued, to, begin))
	}
	if end < a.Ended {
		give(Bus, channel.busy(end, a.Ended, a.Ended))
	}
	return left
}

// busy is how long a channel was busy from one time to another, with what did not end at a third: that is the
// request's own.
func (r *ring) busy(from, to, own sim.Time) (sum sim.Time) {
	for i := 0; ; i++ {
		s, ok := r.at(i)
		if !ok || s.end <= from {
			return sum
		}
		if s.end == own || s.begin >= to {
			continue
		}
		sum += min(s.end, to) - max(s.begin, from)
	}
}
