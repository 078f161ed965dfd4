package fabric

import (
	"farflash/fabric/cc"
	"farflash/sim"
)

// notes are what is measured on the way of a data packet and its ACK: when it was
// sent, and what switches wrote into it. A packet has the index of its note; note 0 is none.
type notes struct {
	used  bool
	at    []sim.Time
	hops  [][cc.MaxHops]cc.Hop
	count []uint8
	path  []uint32
	power []uint16
	free  []uint32
	taken int
	inUse cc.Wants
}

func (k *notes) init(w cc.Wants) {
	k.used = w.RTT || w.INT || w.PINT
	k.inUse = w
	k.grow() // note 0
}

func (k *notes) grow() uint32 {
	i := uint32(len(k.at))
	k.at = append(k.at, 0)
	k.count = append(k.count, 0)
	k.power = append(k.power, 0)
	if k.inUse.INT {
		k.hops = append(k.hops, [cc.MaxHops]cc.Hop{})
		k.path = append(k.path, 0)
	}
	return i
}

// take returns a fresh note.
func (k *notes) take(now sim.Time) uint32 {
	k.taken++
	var i uint32
	if last := len(k.free) - 1; last >= 0 {
		i = k.free[last]
		k.free = k.free[:last]
	} else {
		i = k.grow()
	}
	k.at[i], k.count[i], k.power[i] = now, 0, 0
	if k.inUse.INT {
		k.path[i] = 0
	}
	return i
}

// give takes a note back; 0 is none.
func (k *notes) give(i uint32) {
	if i != 0 {
		k.taken--
		k.free = append(k.free, i)
	}
}

// add appends the telemetry of a switch's port. Beyond MaxHops there is no room, as in a packet. The path's id is the ports' as one, where the paper
// (section 4.1) takes the switches': links side by side are ways of their own.
func (k *notes) add(i uint32, h cc.Hop, port int32) {
	k.path[i] ^= uint32(port+1) * 0x9e3779b1
	if c := k.count[i]; c < cc.MaxHops {
		k.hops[i][c] = h
		k.count[i] = c + 1
	}
}

// read puts a note into a signal.
func (k *notes) read(i uint32, x *cc.Signal) {
	if i == 0 {
		return
	}
	x.RTT = x.Now - k.at[i]
	x.Power = k.power[i]
	if k.inUse.INT {
		x.Hops, x.Path = k.hops[i][:k.count[i]], k.path[i]
	}
}
