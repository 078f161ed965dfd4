package scenario

import (
	"errors"
	"io"
	"math"

	"farflash/block"
	"farflash/cluster"
	"farflash/rng"
	"farflash/shape"
	"farflash/units"
	"farflash/workload"
)

// A trace of an object cluster: its requests are cut into chunks, which come to gateways at its times.

// chunked is a trace as chunks.
type chunked struct {
	src      workload.Source
	chunk    int64
	gateways int32
	objects  uint64
	rec      workload.Record
	next     int64 // byte of the record that has not come yet
	end      int64
	err      error
}

// Next implements cluster.Source: all chunks that a request touches come at its time, to a gateway that has all of its volume's 64 MiB around them. Reads
// of one chunk are always of the same object; flushes and trims come to nobody.
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

// chunks opens the trace of an object cluster; close it.
func (s *Scenario) chunks(seed uint64) (*replay, *chunked, error) {
	p, err := s.openTrace(0, seed)
	if err != nil {
		return nil, nil, s.at(0, err)
	}
	var src workload.Source = p
	if l := &s.Workload[0]; l.Limit > 0 || l.Until > 0 {
		src = workload.Limit(src, l.Limit, l.Until)
	}
	c := s.ObjectCluster
	return p, &chunked{src: src, chunk: int64(c.Chunk), gateways: int32(c.Gateways), objects: uint64(c.Objects)}, nil
}

// readShare reads the trace up to when the run ends and returns the share of its chunks that are read, which the population and the bounds
// need in advance.
func (s *Scenario) readShare(seed uint64) (units.Fraction, error) {
	p, t, err := s.chunks(seed)
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
		return 0, s.at(0, err)
	}
	if all == 0 {
		return 0, s.at(0, errors.New("no request comes before measure.until"))
	}
	return units.Fraction(math.Round(1e4*float64(reads)/float64(all)) / 1e4), nil
}

// checkChunks checks what an object cluster takes from other sections: a drive for its targets, and a trace of its requests.
func (s *Scenario) checkChunks(d *shape.Decoder) {
	c := s.ObjectCluster
	switch ssd := c.Disk.Model == cluster.ModelSSD; {
	case ssd && s.SSD == nil:
		d.Fail(s.where("object_cluster.disk.model"), "object_cluster.disk.model: there is no section ssd that says which drive; add one, such as ssd: tlc-enterprise")
	case !ssd && s.SSD != nil:
		d.Fail(s.where("ssd"), "ssd: the targets of an object cluster have such drives with object_cluster.disk.model: ssd only; set that, or leave ssd out")
	}
	if s.SSD != nil {
		s.SSD.finish(d, s.where, "ssd")
	}
	for i := range s.Workload {
		s.checkLoad(d, i, false)
	}
	if len(s.Workload) == 0 {
		return
	}
	if len(s.Workload) > 1 || s.Workload[0].Trace == nil {
		d.Fail(s.where("workload"), "workload: an object cluster replays one trace; leave out all others, or say with object_cluster.load how many chunks come")
		return
	}
	if s.Workload[0].Closed > 0 {
		d.Fail(s.where("workload[0].closed"), "workload[0].closed: how many chunks a gateway works on is object_cluster.outstanding; leave closed out")
	}
	if c.Load != (cluster.Load{}) {
		d.Fail(s.where("object_cluster.load"), "object_cluster.load: the trace says when chunks come; leave one of both out")
	}
	if c.Reads > 0 {
		d.Fail(s.where("object_cluster.reads"), "object_cluster.reads: the trace says what is read; leave one of both out")
	}
	if !c.Control.Queued {
		d.Fail(s.where("object_cluster.control.queued"), "object_cluster.control.queued: a trace needs links that carry one frame at a time; use true")
	}
}

// failed is what was wrong with the trace.
func (t *chunked) failed() error {
	if errors.Is(t.err, io.EOF) {
		return nil
	}
	return t.err
}
