package objects

import (
	"errors"
	"io"
	"math"

	"farflash/block"
	"farflash/experiment/requests"
	"farflash/model/cluster"
	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/scenario"
	"farflash/workload"
)

// A trace for an object cluster: its requests are split into chunks, which arrive at gateways at its times.

// chunked converts a trace to chunks.
type chunked struct {
	src      workload.Source
	chunk    int64
	gateways int32
	objects  uint64
	rec      workload.Record
	next     int64 // next byte of the record to emit
	end      int64
	err      error
}

// Next implements cluster.Source: all chunks that a request touches arrive at its time, at a gateway responsible for
// the surrounding 64 MiB of its volume. Reads of the same chunk always read the same object; flushes and trims are
// ignored.
func (t *chunked) Next(a *cluster.Arrival) bool {
	for t.next >= t.end {
		if t.err != nil {
			return false
		}
		if err := t.src.Next(&t.rec); err != nil {
			t.err = err
			return false
		}
		if t.rec.Op > block.Write {
			continue
		}
		t.next = t.rec.Offset / t.chunk * t.chunk
		t.end = t.rec.End()
	}
	a.At, a.Read = t.rec.Time, t.rec.Op == block.Read
	a.Gateway = int32(rng.Mix(uint64(t.rec.Volume)<<40|uint64(t.next)/uint64(64*units.MiB)) % uint64(t.gateways))
	a.Object = int64(rng.Mix(uint64(t.rec.Volume)<<40|uint64(t.next)/uint64(t.chunk)) % t.objects)
	t.next += t.chunk
	return true
}

// chunks opens the trace of an object cluster. The caller must close it.
func chunks(s *scenario.Scenario, seed uint64) (*requests.Replay, *chunked, error) {
	p, err := requests.OpenTrace(s, 0, seed)
	if err != nil {
		return nil, nil, s.LoadError(0, err)
	}
	var src workload.Source = p
	if l := &s.Workload[0]; l.Limit > 0 || l.Until > 0 {
		src = workload.Limit(src, l.Limit, l.Until)
	}
	c := s.ObjectCluster
	return p, &chunked{src: src, chunk: int64(c.Chunk), gateways: int32(c.Gateways), objects: uint64(c.Objects)}, nil
}

// readShare reads the trace up to the end of the run and returns the read share of its chunks, which the population and
// the bounds need in advance.
func readShare(s *scenario.Scenario, seed uint64) (units.Fraction, error) {
	p, t, err := chunks(s, seed)
	if err != nil {
		return 0, err
	}
	var a cluster.Arrival
	reads, all := 0, 0
	for t.Next(&a) && a.At < s.Measure.Until.Time {
		if all++; a.Read {
			reads++
		}
	}
	if err := errors.Join(t.failed(), p.Close()); err != nil {
		return 0, s.LoadError(0, err)
	}
	if all == 0 {
		return 0, s.LoadError(0, errors.New("no request arrives before measure.until"))
	}
	return units.Fraction(math.Round(1e4*float64(reads)/float64(all)) / 1e4), nil
}

// failed returns the trace's error, if any.
func (t *chunked) failed() error {
	if errors.Is(t.err, io.EOF) {
		return nil
	}
	return t.err
}
