package scenario

import (
	"errors"
	"fmt"
	"io"

	"farflash/units"
	"farflash/workload"
	"farflash/workload/synth"
	"farflash/workload/trace"
)

// replay yields a trace's records with its times scaled, a part of it only, or
// several times over.
type replay struct {
	flow   string // what notes are about: a file's name would make equal runs differ
	path   string
	opts   trace.Options
	scale  float64
	count  int64 // records of a round; -1: all
	rounds int

	r      *trace.Reader
	read   int64 // of this round
	base   units.Duration
	last   units.Duration
	notes  []string
	ended  error
	loaded bool
}

// openTrace opens a trace to be replayed.
func (s *Scenario) openTrace(i int, seed uint64) (*replay, error) {
	t := s.Workload[i].Trace
	p := &replay{
		flow:  s.name(i),
		path:  s.path(t.File),
		opts:  trace.Options{Format: t.Format, Seed: seed, SkipBad: t.SkipBad, Volume: t.Volume, Window: t.Window},
		scale: t.Scale, count: -1, rounds: t.Loop,
	}
	if t.Part < 1 {
		n, err := countRecords(p.path, p.opts)
		if err != nil {
			return nil, err
		}
		p.count = int64(float64(n) * float64(t.Part))
	}
	return p, p.open()
}

// countRecords reads a trace through.
func countRecords(path string, opts trace.Options) (int64, error) {
	r, err := trace.Open(path, opts)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	var rec workload.Record
	for n := int64(0); ; n++ {
		if err := r.Next(&rec); err != nil {
			if errors.Is(err, io.EOF) {
				return n, nil
			}
			return 0, err
		}
	}
}

func (p *replay) open() error {
	r, err := trace.Open(p.path, p.opts)
	p.r = r
	p.read = 0
	return err
}

// Next implements workload.Source.
func (p *replay) Next(rec *workload.Record) error {
	for p.ended == nil {
		if p.read != p.count {
			err := p.r.Next(rec)
			if err == nil {
				p.read++
				p.loaded = true
				if p.scale != 1 {
					rec.Time = units.Duration(float64(rec.Time) * p.scale)
				}
				rec.Time += p.base
				p.last = rec.Time
				return nil
			}
			if !errors.Is(err, io.EOF) {
				p.end(err)
				return err
			}
		}
		p.notes = p.r.Notes()
		p.rounds--
		switch {
		case !p.loaded:
			p.end(fmt.Errorf("%s: no request to replay", p.path))
		case p.rounds == 0:
			p.end(io.EOF)
		default:
			// The next round begins one mean interval after the last record.
			if p.read > 1 {
				p.last += (p.last - p.base) / units.Duration(p.read-1)
			}
			p.base = p.last
			if err := p.r.Close(); err != nil {
				p.end(err)
			} else if err := p.open(); err != nil {
				p.end(err)
			}
		}
	}
	return p.ended
}

func (p *replay) end(err error) {
	p.ended = err
	if p.r != nil {
		p.notes = p.r.Notes()
	}
}

// Close closes the trace.
func (p *replay) Close() error {
	if p.r == nil {
		return nil
	}
	return p.r.Close()
}

// copyName is what the streams of an initiator's own copy of a workload are told apart by; the first
// has the workload's own.
func copyName(copy int) string {
	if copy == 0 {
		return ""
	}
	return fmt.Sprintf("/initiator[%d]", copy)
}

// synthetic is a flow's generator with what the scenario around it decides: the
// trial's seed, whether it is a closed loop, and the namespace's size for requests
// that may go anywhere.
func (s *Scenario) synthetic(i, copy int, seed uint64, capacity units.Bytes) synth.Config {
	l := &s.Workload[i]
	c := *l.Synthetic
	c.Seed, c.Name, c.QueueDepth = seed, fmt.Sprintf("workload[%d]", i)+copyName(copy), l.Closed
	anywhere := func(f *synth.Flow) *synth.Flow {
		if f == nil {
			return nil
		}
		x := *f
		if x.Addresses.Space == 0 {
			x.Addresses.Space = capacity - x.Addresses.Start
		}
		return &x
	}
	c.Reads, c.Writes = anywhere(c.Reads), anywhere(c.Writes)
	return c
}
