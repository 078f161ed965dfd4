package remains

import (
	"fmt"
	"slices"

	"farflash/flash/ctl/media"
	"farflash/flash/device"
)

// Streamed is the result of Stream but for the entries.
type Streamed struct {
	Segments []media.Segment
	Rebuilt  []int64 // grains of the body that were rebuilt from their group and its parity
	Parity   []int64 // groups, by their first grain, whose parity is wrong
	// Err is the error of the first grain that is lost, or of the caller.
	Err error
}

// stream is a checkpoint that is read in order, several groups at a time.
type stream struct {
	*Pool
	*Streamed
	header  media.Header
	parity  bool // is verified
	each    func(segment int64, s media.Segment, entries media.Entries) error
	body    media.Body // its segments
	known   bool       // all of them
	entries media.Entries
	done    int64 // segments that each was called for
	all     int64
}

// groupRead is the read of a group of grains, which begins with grain i of the body, and its parity.
type groupRead struct {
	op   device.Op
	i    int64
	buf  []byte
	over chan struct{}
}

// groupsAhead is the number of groups that Stream reads at once.
const groupsAhead = 8

// Stream reads a checkpoint and calls each, in order, for each segment and its entries, which are only valid until it
// returns, and empty for an erased one. An error that each returns, or that of a grain that is lost, ends it. The
// parities are only looked at if that is asked for, or to rebuild a grain.
func (p *Pool) Stream(h media.Header, parity bool,
	each func(segment int64, s media.Segment, entries media.Entries) error) *Streamed {
	segments := p.Shape.AllSegments()
	x := p.stream(h)
	x.parity, x.each, x.entries = parity, each, media.MakeEntries(p.Shape.Pages)
	var reads, idle []*groupRead
	for at := int64(0); len(reads) > 0 || at < x.all && x.Err == nil; {
		// Which groups of entries there are is only known with the segments.
		for x.Err == nil && len(reads) < groupsAhead && (x.known || len(reads) == 0) {
			if at = x.next(at); at >= x.all {
				break
			}
			var r *groupRead
			if n := len(idle); n > 0 {
				r, idle = idle[n-1], idle[:n-1]
			} else {
				r = newGroupRead()
			}
			x.begin(r, at)
			reads, at = append(reads, r), at+media.Group
		}
		if len(reads) == 0 {
			break
		}
		r := reads[0]
		<-r.over
		if x.Err == nil {
			x.take(r)
		}
		reads, idle = slices.Delete(reads, 0, 1), append(idle, r)
	}
	x.deliver(segments)
	return x.Streamed
}

// States reads the states of segments of a checkpoint, and no entries.
func (p *Pool) States(h media.Header) *Streamed {
	segments := p.Shape.AllSegments()
	x := p.stream(h)
	for at := int64(0); at < media.EntriesGrain(0, segments) && x.Err == nil; at += media.Group {
		r := newGroupRead()
		x.begin(r, at)
		<-r.over
		x.take(r)
	}
	return x.Streamed
}

func (p *Pool) stream(h media.Header) *stream {
	segments := p.Shape.AllSegments()
	x := &stream{Pool: p, header: h, all: media.BodyPages(segments, p.Shape.Pages), Streamed: &Streamed{},
		body: media.Body{Segments: make([]media.Segment, segments), Pages: p.Shape.Pages}}
	x.Segments = x.body.Segments
	return x
}

func newGroupRead() *groupRead {
	return &groupRead{buf: device.Aligned((media.Group + 1) * device.Grain), over: make(chan struct{}, 1)}
}

// next returns the first group that there is from grain i on.
func (x *stream) next(i int64) int64 {
	for i < x.all && !x.body.Holds(i) {
		i += media.Group
	}
	return i
}

func (x *stream) begin(r *groupRead, i int64) {
	r.i = i
	n := min(media.Group, x.all-i)
	r.op = device.Op{Kind: device.Read, Buf: r.buf[:(n+1)*device.Grain],
		Offset: (x.Shape.CheckpointStart(int(x.header.Generation&1)) + media.BodyGrain(i)) * device.Grain,
		Done:   func(*device.Op) { r.over <- struct{}{} }}
	x.Devices[0].Submit(&r.op)
}

// take takes a group that has been read.
func (x *stream) take(r *groupRead) {
	group, generation := r.op.Buf, x.body.Generation(r.i, x.header.Generation)
	n := int64(len(group)/device.Grain) - 1
	if r.op.Err != nil {
		x.SpanInto(group, r.op.Offset/device.Grain, func(k int64, grain []byte) {
			if grain == nil {
				clear(group[k*device.Grain:][:device.Grain])
			}
		})
	}
	mended, err := media.Mend(group, r.i, x.Shape.UUID, generation)
	if err != nil {
		x.Err = err
		return
	}
	if mended >= 0 {
		x.Rebuilt = append(x.Rebuilt, r.i+mended)
	} else if x.parity {
		sum := make([]byte, device.Grain)
		for k := range n + 1 {
			media.Parity(sum, group[k*device.Grain:][:device.Grain])
		}
		if slices.Max(sum) != 0 {
			x.Parity = append(x.Parity, r.i)
		}
	}
	for k := int64(0); k < n && x.Err == nil; k++ {
		x.grain(group[k*device.Grain:][:device.Grain], r.i+k, generation)
	}
}

// grain takes grain i of the body, which is valid.
func (x *stream) grain(page []byte, i int64, generation uint64) {
	segments, pages := int64(len(x.Segments)), int64(x.body.Pages)
	from, to, places := media.Covers(i, segments, x.body.Pages)
	if !places {
		if err := x.body.DecodePage(page, i, x.Shape.UUID, generation); err != nil {
			x.Err = fmt.Errorf("grain %d: %w", i, err)
		}
		x.known = to == segments
		return
	}
	if x.each == nil {
		return
	}
	for at := from; at < to; {
		segment, in := at/pages, at%pages
		n := min(to-at, pages-in)
		if x.Segments[segment].Use != media.Erased {
			x.entries.Copy(int(in), media.EntriesOf(page, int(at-from), int(n)))
			if in+n == pages {
				if x.deliver(segment); x.Err == nil {
					x.Err = x.each(segment, x.Segments[segment], x.entries)
				}
				x.done++
			}
		}
		at += n
	}
}

// deliver calls each for the segments before one, all of which are erased.
func (x *stream) deliver(before int64) {
	for ; x.done < before && x.Err == nil; x.done++ {
		x.Err = x.each(x.done, x.Segments[x.done], nil)
	}
}
