package tier

import (
	"math"

	"farflash/numeric/units"
	"farflash/sim"
)

// cycle is the SSD's division of its time: it accepts toTake writes and moves toMove chunks, and then checks its
// watermarks again. It ends early when the remaining work is impossible, because there is no space or no chunk to move.
type cycle struct {
	share    float64 // share of the cycle for writes
	toTake   int
	toMove   int
	taken    int
	moved    int
	moving   int // chunks that HDDs have not acknowledged
	turn     int // index of the next HDD, from 0
	draining bool
	awake    bool
}

// Cycle is the start of a cycle.
type Cycle struct {
	At       sim.Time
	Used     units.Bytes
	Take     int  // number of writes to accept
	Move     int  // number of chunks to move
	Draining bool // the high watermark was reached, and the SSD has not fallen below resume since
}

// Below a share of favourWrites, writes get favour more of a cycle than the watermarks give; the values are SURGE's.
const (
	favourWrites = 0.60
	favour       = 0.10
)

// next starts a cycle.
func (y *cycle) next(s *Server) {
	used := float64(s.used) / float64(s.cfg.SSD.Capacity)
	low, resume, high := float64(s.cfg.Low), float64(s.cfg.Resume), float64(s.cfg.High)
	switch {
	case s.full():
		y.drain(s)
	case used <= low:
		y.share, y.draining = 1, false
	case used < resume:
		y.draining = false // the share stays as it was until the low watermark
	case y.draining:
		y.share = 0
	case used < high:
		y.share = 1 - (used-low)/(high-low)
		if y.share < favourWrites {
			y.share += favour
		}
	default:
		y.drain(s)
	}
	y.toTake = int(math.Round(float64(float64(s.cfg.Cycle) * y.share)))
	y.toMove = s.cfg.Cycle - y.toTake
	y.taken, y.moved = 0, 0
	s.Counters.Cycles++
	if s.OnCycle != nil {
		s.OnCycle(&Cycle{At: s.eng.Now(), Used: s.used, Take: y.toTake, Move: y.toMove, Draining: y.draining})
	}
}

// drain switches the SSD to moving chunks only.
func (y *cycle) drain(s *Server) {
	if !y.draining {
		s.Counters.HighReached++
	}
	y.share, y.draining = 0, true
}

// step does all work that is possible now.
func (s *Server) step() {
	y := &s.cycle
	for {
		progress := s.moveOn()
		progress = s.takeWaiting() || progress
		if (y.taken >= y.toTake || s.full()) && (y.moved >= y.toMove || s.used < s.cfg.Chunk && y.moving == 0) {
			if y.taken+y.moved == 0 {
				return // no progress was possible; the next event tries again
			}
			y.next(s)
			continue
		}
		if !progress {
			return
		}
	}
}

// full reports whether the SSD has no space for a chunk.
func (s *Server) full() bool { return s.used+s.cfg.Chunk > s.cfg.SSD.Capacity }

// takeWaiting has the SSD accept the oldest waiting write, if the cycle allows it. When all of the initiator's commands
// wait, one is accepted out of turn, because otherwise no command would be in flight between the initiator and the SSD;
// this does not apply while the SSD drains.
func (s *Server) takeWaiting() bool {
	y := &s.cycle
	if s.waiting.Len() == 0 || s.full() {
		return false
	}
	if y.taken >= y.toTake && (y.draining || s.waiting.Len() < s.cfg.SSD.Window) {
		return false
	}
	k := s.waiting.Pop()
	s.used += s.cfg.Chunk
	s.Counters.Taken++
	y.taken++
	s.take(k)
	return true
}

// moveOn sends the next chunk to the next HDD whose link is free, round-robin. Its space on the SSD is free as soon as
// it is sent.
func (s *Server) moveOn() bool {
	y := &s.cycle
	if y.moved >= y.toMove || y.moving >= s.cfg.Moving || s.used < s.cfg.Chunk {
		return false
	}
	now, soonest := s.eng.Now(), sim.Forever
	for range s.cfg.HDDs {
		i := 1 + y.turn
		y.turn = (y.turn + 1) % s.cfg.HDDs
		d := &s.devices[i]
		if d.bridge > now {
			soonest = min(soonest, d.bridge)
			continue
		}
		d.bridge = now + s.transfer
		s.used -= s.cfg.Chunk
		s.Counters.Moved++
		s.Counters.TransferBytes += uint64(s.cfg.Chunk)
		y.moved++
		y.moving++
		s.after(s.transfer+s.cfg.Trip, evMove, int32(i))
		return true
	}
	if !y.awake {
		y.awake = true
		s.after(soonest-now, evCycle, 0)
	}
	return false
}
