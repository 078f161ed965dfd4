package trace

import (
	"farflash/internal/heap"
	"farflash/numeric/rng"
	"fmt"
	"io"
	"slices"
	"strconv"
)

// sorter sorts events by time, and by file order for equal times, within a window of events.
type sorter struct {
	window int
	heap   heap.Heap[queued, *queued]
	filed  int64   // events read from the file
	last   instant // time of the last event yielded
	begun  bool
	coming queued // scratch for reading
	err    error  // why reading ended
}

type queued struct {
	event event
	seq   int64
}

func newSorter(window int) *sorter { return &sorter{window: window} }

// Before orders by time, then by position in the file.
func (q *queued) Before(p *queued) bool {
	if q.event.at != p.event.at {
		return q.event.at.before(p.event.at)
	}
	return q.seq < p.seq
}

func (s *sorter) next(r *Reader, e *event) error {
	for s.err == nil && s.heap.Len() <= s.window {
		q := &s.coming
		if s.err = r.filed(&q.event); s.err != nil {
			break
		}
		if s.begun && q.event.at.before(s.last) {
			back, _ := s.last.since(q.event.at)
			err := r.locate(q.event.place,
				fmt.Errorf("its time is %v before that of a request already returned: the window of %d"+
					" records is too small to sort it; make it larger (--window)", back, s.window))
			s.err = r.skip(err)
			continue
		}
		q.seq = s.filed
		s.filed++
		s.heap.Push(*q)
	}
	if s.err != nil && s.err != io.EOF {
		return s.err
	}
	if s.heap.Len() == 0 {
		return io.EOF
	}
	*e = s.heap.Pop().event
	s.last, s.begun = e.at, true
	return nil
}

// spread places the events of one second at sorted uniform times within it. The random stream is named after the
// second, so a second is spread identically wherever the file starts.
type spread struct {
	seed   uint64
	second []event // of the second being yielded
	at     []int64 // their offsets within it, in ps
	place  int
	ahead  event // the first event of the next second
	held   bool
	err    error // why reading ended
}

func (s *spread) next(r *Reader, e *event) error {
	if s.place == len(s.second) {
		if err := s.gather(r); err != nil {
			return err
		}
	}
	*e = s.second[s.place]
	e.at.ps = s.at[s.place]
	s.place++
	return nil
}

// gather reads one whole second.
func (s *spread) gather(r *Reader) error {
	if !s.held {
		if s.err != nil {
			return s.err
		}
		if s.err = r.sorted(&s.ahead); s.err != nil {
			return s.err
		}
	}
	s.second = append(s.second[:0], s.ahead)
	s.held, s.place = false, 0
	for {
		if s.err = r.sorted(&s.ahead); s.err == io.EOF {
			break
		} else if s.err != nil {
			return s.err
		}
		if s.ahead.at.sec != s.second[0].at.sec {
			s.held = true
			break
		}
		s.second = append(s.second, s.ahead)
	}
	stream := rng.NewStream(s.seed, "workload/trace/second/"+strconv.FormatInt(s.second[0].at.sec, 10))
	s.at = s.at[:0]
	for range s.second {
		s.at = append(s.at, stream.IntN(psPerSecond))
	}
	slices.Sort(s.at)
	return nil
}

// pairs matches requests with their completions, by volume, end and operation, to fill in response times. Requests wait
// for their completion in order; if too many wait, the oldest is yielded without.
type pairs struct {
	waiting   []event // in order, from index head on
	head      int
	passed    int64 // requests removed from waiting: waiting[0] has this number
	open      map[pairKey]int64
	completed int64
	coming    event // scratch for reading
	err       error
}

type pairKey struct {
	end    int64
	volume uint32
	op     uint8
}

const maxPending = 1 << 12

func newPairs() *pairs { return &pairs{open: make(map[pairKey]int64)} }

func (e *event) pairKey() pairKey { return pairKey{e.offset + e.size, e.volume, uint8(e.op)} }

func (p *pairs) next(r *Reader, e *event) error {
	for p.err == nil && len(p.waiting)-p.head < maxPending {
		if p.head < len(p.waiting) && p.waiting[p.head].response >= 0 {
			break
		}
		in := &p.coming
		if p.err = r.ordered(in); p.err != nil {
			break
		}
		if in.completes {
			p.complete(in)
		} else {
			p.wait(in)
		}
	}
	if p.err != nil && p.err != io.EOF {
		return p.err
	}
	if p.head == len(p.waiting) {
		return io.EOF
	}
	*e = p.waiting[p.head]
	if number, ok := p.open[e.pairKey()]; ok && number == p.passed+int64(p.head) {
		delete(p.open, e.pairKey())
	}
	p.head++
	return nil
}

// wait queues a request. The space of yielded requests is reclaimed once it is half of the queue.
func (p *pairs) wait(in *event) {
	if p.head > 32 && p.head > len(p.waiting)/2 {
		n := copy(p.waiting, p.waiting[p.head:])
		p.waiting = p.waiting[:n]
		p.passed += int64(p.head)
		p.head = 0
	}
	p.open[in.pairKey()] = p.passed + int64(len(p.waiting))
	p.waiting = append(p.waiting, *in)
}

// complete fills in the response time of the request that matches this completion, if there is one.
func (p *pairs) complete(in *event) {
	number, ok := p.open[in.pairKey()]
	if !ok {
		return
	}
	delete(p.open, in.pairKey())
	request := &p.waiting[number-p.passed]
	if d, ok := in.at.since(request.at); ok && d >= 0 {
		request.response = d
		p.completed++
	}
}

// volumeFilter selects one volume by name, caching the last numbers compared.
type volumeFilter struct {
	want      string
	yes, no   uint32
	hasYes    bool
	hasNo     bool
	others    []string // the first few other volumes, for an error
	moreOther bool
}

func (f *volumeFilter) accepts(id uint32, v *volumes) bool {
	if f.hasYes && f.yes == id {
		return true
	}
	if f.hasNo && f.no == id {
		return false
	}
	name := v.name(id)
	if name == f.want {
		f.yes, f.hasYes = id, true
		return true
	}
	f.no, f.hasNo = id, true
	if !slices.Contains(f.others, name) {
		if len(f.others) < 10 {
			f.others = append(f.others, name)
		} else {
			f.moreOther = true
		}
	}
	return false
}

// seen lists some of the volumes in the trace.
func (f *volumeFilter) seen() string {
	text := ""
	for i, name := range f.others {
		if i > 0 {
			text += " "
		}
		text += strconv.Quote(name)
	}
	if f.moreOther {
		text += " and others"
	}
	return text
}
