package tier

import (
	"math"

	"farflash/numeric/units"
	"farflash/sim"
)

// cycle is how the SSD divides its time: it takes so many writes and moves so many chunks, and then looks at its
// watermarks again. It ends early when what is left to do cannot be done: there is no room, or nothing to move.
type cycle struct {
	share    float64 // of the cycle that is writes
	toTake   int
	toMove   int
	taken    int
	moved    int
	moving   int // chunks that HDDs have not acknowledged
	turn     int // the HDD whose turn it is, from 0
	draining bool
	awake    bool
}

// Cycle is a cycle that begins.
type Cycle struct {
	At       sim.Time
	Used     units.Bytes
	Take     int  // how many writes it is to take
	Move     int  // how many chunks it is to move
	Draining bool // the high watermark was reached, and the SSD has not come down yet
}

// Below favourWrites writes get favour more of a cycle than the watermarks say; SURGE's numbers.
const (
	favourWrites = 0.60
	favour       = 0.10
)

// next begins a cycle.
func (y *cycle) next(s *Server) {
	used := float64(s.used) / float64(s.cfg.SSD.Capacity)
	low, resume, high := float64(s.cfg.Low), float64(s.cfg.Resume), float64(s.cfg.High)
	switch {
	case s.full():
		y.drain(s)
	case used <= low:
		y.share, y.draining = 1, false
	case used < resume:
		y.draining = false // but it goes on as before until it is at the low watermark
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

// drain lets the SSD only move chunks.
func (y *cycle) drain(s *Server) {
	if !y.draining {
		s.Counters.HighReached++
	}
	y.share, y.draining = 0, true
}

// step does all that can be done now.
func (s *Server) step() {
	y := &s.cycle
	for {
		progress := s.moveOn()
		progress = s.takeWaiting() || progress
		if (y.taken >= y.toTake || s.full()) && (y.moved >= y.toMove || s.used < s.cfg.Chunk && y.moving == 0) {
			if y.taken+y.moved == 0 {
				return // there was nothing to do; the next event looks again
			}
			y.next(s)
			continue
		}
		if !progress {
			return
		}
	}
}

// full reports whether a chunk has no room on the SSD.
func (s *Server) full() bool { return s.used+s.cfg.Chunk > s.cfg.SSD.Capacity }

// takeWaiting has the SSD take the write that has waited longest, if it is its turn. When all of the initiator's
// commands wait one is taken out of turn, because otherwise nothing would be under way between the initiator and the
// SSD, unless it drains.
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

// moveOn sends the next chunk to the next HDD whose link is free, in turns. Its room on the SSD is free as soon as it
// is sent.
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
