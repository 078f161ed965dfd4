package fabric

import (
	"math/bits"

	"farflash/numeric/units"
	"farflash/sim"
)

// Pause reports that a port was paused or resumed.
type Pause struct {
	At     sim.Time
	Port   int32 // the paused port
	Class  uint8
	Resume bool
}

// pause asks the other end of a port to stop sending a class.
func (n *Network) pause(pi int32, p *port, l *classQueue, class uint8) {
	l.off = true
	n.Counters.Pauses++
	n.frame(pi, p, class, pauseFrame)
	n.keepPaused(pi, p, class)
}

// resume asks the other end of a port to send a class again.
func (n *Network) resume(pi int32, p *port, l *classQueue, class uint8) {
	l.off = false
	n.Counters.Resumes++
	n.frame(pi, p, class, resumeFrame)
}

func (n *Network) frame(pi int32, p *port, class uint8, k kind) {
	if n.draws != nil {
		n.draws.Next() // the frame's identification
	}
	// A frame that still waits for the wire is updated in place. So each class has at most one frame waiting, as the
	// headroom assumes.
	for i := range p.frames.N {
		if x := p.frames.At(i); x.class == class {
			x.kind = k
			return
		}
	}
	n.Counters.Frames++
	p.urgent = true
	p.frames.Push(packet{kind: k, class: class, size: uint16(n.cfg.PFC.Frame)})
	n.kick(pi, p)
}

// takeFrame removes the first waiting pause frame.
func (p *port) takeFrame() packet {
	p.urgent = p.frames.N > 1
	return p.frames.Pop()
}

// lasts returns how long a pause lasts unless it is refreshed: PFC.Quanta of 512 bit times.
func (n *Network) lasts(p *port) sim.Time {
	if n.cfg.Pools != nil {
		return n.cfg.Pools.Lasts
	}
	hi, lo := bits.Mul64(uint64(n.cfg.PFC.Quanta)*512, uint64(units.Second))
	t, _ := bits.Div64(hi, lo, uint64(p.rate))
	return sim.Time(t)
}

// keepPaused schedules a refresh of the pause at half its duration.
func (n *Network) keepPaused(pi int32, p *port, class uint8) {
	if n.cfg.PFC.Quanta > 0 {
		at := n.eng.Now() + n.lasts(p)/2
		n.looks[int(pi)*MaxClasses+int(class)] = at
		n.eng.Schedule(n.inPort(p), n.target, at, refresh, uint32(pi)*MaxClasses+uint32(class))
	}
}

// refreshed handles a refresh event: at the pausing switch the pause is due for a refresh, at the paused port it has
// expired. Both sides keep the time of their latest event; other events are stale. A class queue can be paused by its
// peer and pause it as well, so events of the paused side are marked by the top bit.
func (n *Network) refreshed(arg int32) {
	const pausedSide = -1 << 31
	i := arg &^ pausedSide
	pi, class := i/MaxClasses, uint8(i%MaxClasses)
	p := &n.ports[pi]
	if arg&pausedSide != 0 {
		if n.ends[i] == n.eng.Now() && p.paused>>class&1 != 0 {
			n.unpause(pi, p, class)
		}
		return
	}
	l := &n.lanes[i]
	if l.off && n.looks[i] == n.eng.Now() {
		if n.cfg.Pools != nil {
			n.recheck(pi, p, l, class)
			return
		}
		n.Counters.Refreshes++
		n.frame(pi, p, class, pauseFrame)
		n.keepPaused(pi, p, class)
	}
}

// paused handles a pause or resume frame received through a port.
func (n *Network) paused(pi int32, p *port, x packet) {
	if x.kind == resumeFrame {
		if p.paused>>x.class&1 != 0 {
			n.unpause(pi, p, x.class)
		}
		return
	}
	now := n.eng.Now()
	i := pi*MaxClasses + int32(x.class)
	if now < n.ignores[i] {
		return
	}
	if n.lasts(p) > 0 {
		end := now + n.lasts(p)
		n.ends[i] = end
		n.eng.Schedule(n.inPort(p), n.target, end, refresh, uint32(i)|1<<31)
	}
	if p.paused>>x.class&1 != 0 {
		return // a refresh
	}
	n.since[i] = now
	if p.paused == 0 {
		p.stats.since = now
	}
	p.paused |= 1 << x.class
	p.stats.pauses++
	n.Counters.Paused++
	n.OnPause.Fire(Pause{At: now, Port: pi, Class: x.class})
	n.dog.begin(n)
}

// unpause lets a port send a class again.
func (n *Network) unpause(pi int32, p *port, class uint8) {
	now := n.eng.Now()
	p.paused &^= 1 << class
	if p.paused == 0 {
		p.stats.paused += now - p.stats.since
		p.stats.longest = max(p.stats.longest, now-p.stats.since)
		p.stats.since = -1
	}
	n.Counters.Unpaused++
	n.OnPause.Fire(Pause{At: now, Port: pi, Class: class, Resume: true})
	n.kick(pi, p)
}
