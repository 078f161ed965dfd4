package requests

import (
	"errors"
	"fmt"
	"io"
	"math"

	"farflash/numeric/units"
	"farflash/scenario"
	"farflash/workload"
	"farflash/workload/trace"
)

// Replay yields a trace's records with its times scaled, a part of it only, or repeated.
type Replay struct {
	// Flow identifies the flow in notes: a file's name would make equal runs differ.
	Flow string
	// Notes are the reader's remarks so far.
	Notes []string

	path   string
	opts   trace.Options
	scale  float64
	count  int64 // records of a round; -1: all
	rounds int
	again  units.Duration // gap between its last record and the next round; negative: a mean interval

	r      *trace.Reader
	most   units.Duration // limit of times, because the flow's start is added
	read   int64          // of this round
	base   units.Duration
	last   units.Duration
	ended  error
	loaded bool

	volumes *stack // positions of volumes; nil while only one is known, or if they are overlaid
	stacked bool
	first   uint32 // the first volume that appears; it is at 0
	room    int64  // of the namespace; 0: no limit
	lain    []string
}

// stack holds the positions of a trace's volumes, one after another.
type stack struct {
	base map[uint32]int64
	all  int64 // total size
}

// stackUnit is the granularity of volume sizes, so that alignment in a volume is preserved in the namespace.
const stackUnit = int64(units.MiB)

// stack places the volumes of the trace one after another, according to the scenario, in a namespace of the given
// capacity in bytes; 0 means no limit. Otherwise a record has its volume's own address.
func (p *Replay) stack(way scenario.VolumeWay, room int64) {
	p.stacked, p.room = way == scenario.VolumesStacked, room
}

// measure reads the whole trace to determine the size of each volume.
func (p *Replay) measure() (*stack, error) {
	r, err := trace.Open(p.path, p.opts)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	end := map[uint32]int64{}
	var order []uint32
	var rec workload.Record
	for {
		if err := r.Next(&rec); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		have, known := end[rec.Volume]
		if !known {
			order = append(order, rec.Volume)
		}
		end[rec.Volume] = max(have, rec.End())
	}
	s := &stack{base: make(map[uint32]int64, len(order))}
	for _, v := range order {
		s.base[v] = s.all
		if end[v] > math.MaxInt64-stackUnit-s.all {
			return nil, fmt.Errorf(
				"%s: %d volumes one after the other exceed 2^63 bytes; replay one of them (volume), or use "+
					"volumes: overlay", p.path, len(order))
		}
		s.all += (end[v] + stackUnit - 1) / stackUnit * stackUnit
	}
	if p.room > 0 && s.all > p.room {
		return nil, fmt.Errorf(
			"%s: its %d volumes take %v one after the other, but the space is %v; replay one of them (volume), "+
				"use volumes: overlay or addresses: fold, or use a larger drive", p.path,
			len(order), rough(s.all, p.room), rough(p.room, s.all))
	}
	p.lain = []string{fmt.Sprintf("its %d volumes lie one after the other and take %v (volumes: overlay lays them over "+
		"each other)", len(order), rough(s.all, 0))}
	return s, nil
}

// rough rounds a size to three digits, unless the result could be confused with another size.
func rough(n, other int64) units.Bytes {
	unit := int64(1)
	for n/unit >= 1000 {
		unit *= 10
	}
	if n/unit == other/unit {
		return units.Bytes(n)
	}
	return units.Bytes((n + unit/2) / unit * unit)
}

// lay moves a record to the position of its volume.
func (p *Replay) lay(rec *workload.Record) error {
	switch {
	case !p.stacked:
		return nil
	case !p.loaded:
		p.first = rec.Volume
		return nil
	case p.volumes == nil && rec.Volume == p.first:
		return nil
	case p.volumes == nil:
		s, err := p.measure()
		if err != nil {
			return err
		}
		p.volumes = s
	}
	rec.Offset += p.volumes.base[rec.Volume]
	return nil
}

// OpenTrace opens the trace of a workload's item. The caller must close it.
func OpenTrace(s *scenario.Scenario, i int, seed uint64) (*Replay, error) {
	t := s.Workload[i].Trace
	p := &Replay{
		Flow:  s.LoadName(i),
		path:  s.Path(t.File),
		opts:  t.Options(seed),
		scale: t.Scale, count: -1, rounds: t.Loop, again: -1, most: units.Forever - s.Workload[i].Start,
	}
	if s.AsMQSim() {
		p.again = s.Workload[i].Start
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

// countRecords reads a trace to its end and counts its records.
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

func (p *Replay) open() error {
	r, err := trace.Open(p.path, p.opts)
	p.r = r
	p.read = 0
	return err
}

// locate adds to an error about the n-th replayed record, counted from 1, its position in the file, if the file can be
// read again.
func (p *Replay) locate(n uint64, wrong error) error {
	for {
		k, err := p.look(n, wrong)
		switch {
		case err != nil:
			return err
		case k == 0:
			return wrong
		}
		n -= k
	}
}

// look reads a round of the trace for its n-th record, and returns the error about it with its position, or the number
// of records per round.
func (p *Replay) look(n uint64, wrong error) (uint64, error) {
	r, err := trace.Open(p.path, p.opts)
	if err != nil {
		return 0, nil
	}
	defer r.Close()
	var rec workload.Record
	for k := uint64(0); ; k++ {
		if p.count >= 0 && k == uint64(p.count) || r.Next(&rec) != nil {
			return k, nil
		}
		if k+1 == n {
			return 0, r.Locate(wrong)
		}
	}
}

// Next implements workload.Source.
func (p *Replay) Next(rec *workload.Record) error {
	for p.ended == nil {
		if p.read != p.count {
			err := p.r.Next(rec)
			if err == nil {
				p.read++
				if err := p.lay(rec); err != nil {
					p.end(err)
					return err
				}
				p.loaded = true
				if err := p.place(rec); err != nil {
					p.end(err)
					return err
				}
				return nil
			}
			if !errors.Is(err, io.EOF) {
				p.end(err)
				return err
			}
		}
		p.Notes = append(p.r.Notes(), p.lain...)
		p.rounds--
		switch {
		case !p.loaded:
			p.end(fmt.Errorf("%s: no requests to replay", p.path))
		case p.rounds == 0:
			p.end(io.EOF)
		case p.again >= 0:
			p.anew(p.again)
		default:
			// The next round starts one mean interval after the last record.
			gap := units.Duration(0)
			if p.read > 1 {
				gap = (p.last - p.base) / units.Duration(p.read-1)
			}
			p.anew(gap)
		}
	}
	return p.ended
}

// anew starts the next round, gap after the last record.
func (p *Replay) anew(gap units.Duration) {
	p.last = min(p.last, p.most-gap) + gap
	p.base = p.last
	if err := p.r.Close(); err != nil {
		p.end(err)
	} else if err := p.open(); err != nil {
		p.end(err)
	}
}

// place sets a record's replay time. The clock's range ends after 106 days.
func (p *Replay) place(rec *workload.Record) error {
	at := rec.Time
	if p.scale != 1 {
		scaled := float64(at) * p.scale
		if !(scaled < float64(p.most)) {
			return p.r.Locate(fmt.Errorf("scale %v moves the request, %v after the first one, past the 106 days "+
				"of the clock; use a smaller scale, part or limit", p.scale, at))
		}
		at = units.Duration(scaled)
	}
	if at > p.most-p.base {
		return p.r.Locate(fmt.Errorf("the request arrives %v after the first one of its round, which started at %v "+
			"(start and loop): past the 106 days of the clock; use fewer rounds or an earlier start",
			at, p.base+(units.Forever-p.most)))
	}
	rec.Time = at + p.base
	p.last = rec.Time
	return nil
}

func (p *Replay) end(err error) {
	p.ended = err
	if p.r != nil {
		p.Notes = append(p.r.Notes(), p.lain...)
	}
}

// Close closes the trace.
func (p *Replay) Close() error {
	if p.r == nil {
		return nil
	}
	return p.r.Close()
}
