package fabric

import (
	"farflash/model/fabric/cc"
	"farflash/sim"
)

// noteBook stores the telemetry of data packets and their ACKs for congestion control, of a network or of a part of
// one: when a packet was sent, and the data that switches wrote into it. A packet carries the index of its note; 0 is
// none.
type noteBook struct {
	used  bool // the algorithm wants any telemetry
	at    []sim.Time
	hops  [][cc.MaxHops]cc.Hop
	count []uint8
	path  []uint32
	power []uint16
	free  []uint32
	taken int // notes in use
	inUse cc.Wants
}

// newNoteBook returns a book for the telemetry that an algorithm wants.
func newNoteBook(w cc.Wants) noteBook {
	k := noteBook{used: w.RTT || w.INT || w.PINT, inUse: w}
	k.grow() // note 0
	return k
}

func (k *noteBook) grow() uint32 {
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

// take allocates a cleared note.
func (k *noteBook) take(now sim.Time) uint32 {
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

// give frees a note; 0 is ignored.
func (k *noteBook) give(i uint32) {
	if i != 0 {
		k.taken--
		k.free = append(k.free, i)
	}
}

// add appends the telemetry of a switch's port. Records beyond MaxHops are dropped, as in a packet. The path's id
// combines the ports, where the paper (section 4.1) combines the switches, so that parallel links count as distinct
// paths.
func (k *noteBook) add(i uint32, h cc.Hop, port int32) {
	k.path[i] ^= uint32(port+1) * 0x9e3779b1
	if c := k.count[i]; c < cc.MaxHops {
		k.hops[i][c] = h
		k.count[i] = c + 1
	}
}

// raise sets the note's power to the maximum of itself and power.
func (k *noteBook) raise(i uint32, power uint16) { k.power[i] = max(k.power[i], power) }

// most returns the largest number of switches that have written into any one note.
func (k *noteBook) most() uint8 {
	most := uint8(0)
	for _, n := range k.count {
		most = max(most, n)
	}
	return most
}

// read copies a note into a signal.
func (k *noteBook) read(i uint32, x *cc.Signal) {
	if i == 0 {
		return
	}
	x.RTT = x.Now - k.at[i]
	x.Power = k.power[i]
	if k.inUse.INT {
		x.Hops, x.Path = k.hops[i][:k.count[i]], k.path[i]
	}
}

// noteRecord is the content of a note, in transit to another book.
type noteRecord struct {
	at    sim.Time
	power uint16
	count uint8
	path  uint32
	hops  [cc.MaxHops]cc.Hop
}

// record returns the content of a note.
func (k *noteBook) record(i uint32) noteRecord {
	x := noteRecord{at: k.at[i], power: k.power[i], count: k.count[i]}
	if k.inUse.INT {
		x.hops, x.path = k.hops[i], k.path[i]
	}
	return x
}

// restore allocates a note with the given content.
func (k *noteBook) restore(x *noteRecord) uint32 {
	i := k.take(x.at)
	k.power[i], k.count[i] = x.power, x.count
	if k.inUse.INT {
		k.hops[i], k.path[i] = x.hops, x.path
	}
	return i
}
