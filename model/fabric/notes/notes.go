// Package notes stores the telemetry that data packets and their ACKs carry for congestion control: when a packet was
// sent, and the data that switches wrote into it (INT, and PINT's power). Packets carry the index of a note, so that
// those without telemetry stay small.
//
// It leaves out who writes into a note and when, which is package fabric's.
package notes

import (
	"farflash/model/fabric/cc"
	"farflash/sim"
)

// Book has the notes of a network or of a part of one. Note 0 is none.
type Book struct {
	Used  bool // Used: the algorithm wants any telemetry.
	at    []sim.Time
	hops  [][cc.MaxHops]cc.Hop
	count []uint8
	path  []uint32
	power []uint16
	free  []uint32
	Taken int // Taken is the number of notes in use.
	inUse cc.Wants
}

// New returns a book for the telemetry that an algorithm wants.
func New(w cc.Wants) Book {
	k := Book{Used: w.RTT || w.INT || w.PINT, inUse: w}
	k.grow() // note 0
	return k
}

func (k *Book) grow() uint32 {
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

// Take allocates a cleared note.
func (k *Book) Take(now sim.Time) uint32 {
	k.Taken++
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

// Give frees a note; 0 is ignored.
func (k *Book) Give(i uint32) {
	if i != 0 {
		k.Taken--
		k.free = append(k.free, i)
	}
}

// Add appends the telemetry of a switch's port. Records beyond MaxHops are dropped, as in a packet. The path's id
// combines the ports, where the paper (section 4.1) combines the switches, so that parallel links count as distinct
// paths.
func (k *Book) Add(i uint32, h cc.Hop, port int32) {
	k.path[i] ^= uint32(port+1) * 0x9e3779b1
	if c := k.count[i]; c < cc.MaxHops {
		k.hops[i][c] = h
		k.count[i] = c + 1
	}
}

// Raise sets the note's power to the maximum of itself and power.
func (k *Book) Raise(i uint32, power uint16) { k.power[i] = max(k.power[i], power) }

// Most returns the largest number of switches that have written into any one note.
func (k *Book) Most() uint8 {
	most := uint8(0)
	for _, n := range k.count {
		most = max(most, n)
	}
	return most
}

// Read copies a note into a signal.
func (k *Book) Read(i uint32, x *cc.Signal) {
	if i == 0 {
		return
	}
	x.RTT = x.Now - k.at[i]
	x.Power = k.power[i]
	if k.inUse.INT {
		x.Hops, x.Path = k.hops[i][:k.count[i]], k.path[i]
	}
}

// Record is the content of a note, in transit to another book.
type Record struct {
	at    sim.Time
	power uint16
	count uint8
	path  uint32
	hops  [cc.MaxHops]cc.Hop
}

// Record returns the content of a note.
func (k *Book) Record(i uint32) Record {
	x := Record{at: k.at[i], power: k.power[i], count: k.count[i]}
	if k.inUse.INT {
		x.hops, x.path = k.hops[i], k.path[i]
	}
	return x
}

// Restore allocates a note with the given content.
func (k *Book) Restore(x *Record) uint32 {
	i := k.Take(x.at)
	k.power[i], k.count[i] = x.power, x.count
	if k.inUse.INT {
		k.hops[i], k.path[i] = x.hops, x.path
	}
	return i
}
