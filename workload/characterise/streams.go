package characterise

import "math"

// streams counts the bytes in sequential runs when up to atMost runs are followed at once.
//
// A stream expects the address after its last request. A request at an expected address continues that stream: its
// bytes count and, if it is the second of the run, so do those of the first. Any other request starts a stream; if
// there are too many, the least recently used one ends. Two streams that expect the same address become one: if a new
// run joins, the stream becomes as recent as that run; if a continued run joins, the stream keeps its age. Volumes are
// not distinguished, as by a drive that holds them side by side.
type streams struct {
	list   []stream // most recently used first
	bytes  int64
	atMost int
}

type stream struct {
	next    int64
	first   int64 // size of the run's first request
	members int64
}

func newStreams(atMost int) streams {
	return streams{list: make([]stream, 0, atMost+1), atMost: atMost}
}

func (s *streams) add(offset, size int64) {
	end := offset + size
	if i := s.find(offset); i >= 0 {
		run := s.list[i]
		s.bytes += size
		if run.members == 1 {
			s.bytes += run.first
		}
		run.next, run.members = end, run.members+1
		s.remove(i)
		if j := s.find(end); j >= 0 {
			s.list[j] = run
		} else {
			s.push(run)
		}
		return
	}
	if j := s.find(end); j >= 0 {
		s.remove(j)
	}
	s.push(stream{end, size, 1})
	if len(s.list) > s.atMost {
		s.list = s.list[:s.atMost]
	}
}

func (s *streams) find(next int64) int {
	for i := range s.list {
		if s.list[i].next == next {
			return i
		}
	}
	return -1
}

func (s *streams) remove(i int) {
	copy(s.list[i:], s.list[i+1:])
	s.list = s.list[:len(s.list)-1]
}

func (s *streams) push(run stream) {
	s.list = append(s.list, stream{})
	copy(s.list[1:], s.list)
	s.list[0] = run
}

// ratio returns the fraction of all bytes that is sequential; NaN if there are none.
func (s *streams) ratio(all int64) Number {
	if all == 0 {
		return Number(math.NaN())
	}
	return Number(float64(s.bytes) / float64(all))
}
