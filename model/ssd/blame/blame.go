// Package blame attributes the waits of a drive's requests to their causes: what the die and the channel of a request's
// last page were doing while it waited for them.
//
// Its main type is Watch. It receives all work of channels and dies (ssd.Work), keeps the most recent part of it, and
// divides the wait of a served request (ssd.Account) into Stages: behind the host's reads and programs, collection's
// moves, erases, mapping pages, and others on the channel. The stages add up to the request's time in the drive.
//
// It leaves out the waits of a request's other pages, which completed earlier, and work older than it keeps, whose
// share of a wait gets no cause.
package blame

import (
	"farflash/model/ssd"
	"farflash/sim"
)

// Stage is a component of the time of a request to a local drive.
type Stage uint8

// The stages, in the order of a read.
const (
	Host       Stage = iota // for a place in the submission queue
	Queue                   // for the drive to fetch the command
	Link                    // the host link
	DRAM                    // the drive's memory
	Cache                   // a write: for cache space
	Mapping                 // for the mapping page
	Reads                   // behind the host's reads in the die
	Programs                // behind programs of the host's data in the die
	Moves                   // behind reads and programs of collection
	Erases                  // behind an erase
	Map                     // behind reads and programs of mapping pages
	Bus                     // behind others on the channel
	Held                    // in the scheduler, for none of the causes above
	Array                   // the flash array
	Transfer                // the flash channel
	Other                   // other pages of the request, or data already being written
	Controller              // a processor of the drive's controller, queueing included
	Stages
)

// Names are the stages' names in results, Words those in tables.
var (
	Names = [Stages]string{"host_queue", "queue", "host_link", "dram", "cache", "mapping", "behind_reads",
		"behind_programs", "behind_gc", "behind_erases", "behind_map", "behind_bus", "held", "array", "transfer",
		"other", "controller"}
	Words = [Stages]string{"waiting in the host", "waiting in the queue", "host link", "DRAM",
		"waiting for a place in the cache", "mapping look-up", "behind reads", "behind programs",
		"behind garbage collection", "behind erases", "behind the map", "behind others on the channel", "held back",
		"flash array", "flash channel", "other pages", "controller's processors"}
)

// Times are the times of a request by stage.
type Times [Stages]sim.Time

// Blame is the longest wait of a request behind other work.
type Blame struct {
	By   Stage // Stages: none
	Time sim.Time
	// Stream is the placement stream of the last program of host data that the request waited behind; -1 if there was
	// none.
	Stream int16
}

// kept is the number of spans of work kept for each die or channel; a power of two.
const kept = 1 << 10

type span struct {
	begin, end sim.Time
	tag        uint64
	activity   ssd.Activity
	cause      ssd.Cause
	stream     uint8
	own        bool // a host request, the one with the tag, waits for it
}

type ring struct {
	spans []span
	n     int // added so far
}

func (r *ring) add(s span) {
	if len(r.spans) < kept {
		r.spans = append(r.spans, s)
	} else {
		r.spans[r.n&(kept-1)] = s
	}
	r.n++
}

// at returns the i-th most recent span, from 0; false if there is none or it is no longer kept.
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
	// Last is the breakdown of the last request explained.
	Last  Times
	Blame Blame
	Whole sim.Time // that request's time in the drive
}

// New creates a watch of a drive and connects it to the drive's probes.
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

// Work records a span of work.
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

// stageOf returns the stage of a wait behind a span.
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

// Explain breaks down a request's time. The result is in Last, Blame and Whole until the next call.
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

// divide attributes each part of a request's wait to the work of its lane at that time or else of its channel. It
// returns the rest.
func (w *Watch) divide(a *ssd.Account) (left sim.Time) {
	left = a.Wait
	lane, channel := &w.lanes[a.Lane], &w.channels[int(a.Lane)/w.lanesPerChannel]
	begin, end := a.Ended, a.Ended // of the request's own array operation
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
	// Before the array starts, gaps in the lane's work are attributed to the channel.
	to := begin
	for i := 0; to > a.Queued; i++ {
		s, ok := lane.at(i)
		if !ok || s.end <= a.Queued {
			break
		}
		if s.begin >= begin {
			continue // the request's own, or later
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

// busy returns how long a channel was busy between from and to. Work that ends at own is the request's own and does not
// count.
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
