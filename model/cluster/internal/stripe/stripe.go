// Package stripe has what writing over a part of a chunk comes to under an erasure code. Parity follows from all
// data, so what is not written has to be known: either what is going to be overwritten is read and the parity with
// it, or the rest of the stripe, whichever is less (read-modify-write and reconstruct-write: Chen et al., RAID, ACM
// Computing Surveys 1994, section 3.2).
//
// Its main type is Layout; it leaves out who reads and writes, and what is in the pieces.
package stripe

import "farflash/numeric/units"

// Most is how many pieces a chunk has at most.
const Most = 16

// Layout is how chunks are cut, and how much of them is written at a time.
type Layout struct {
	Chunk        units.Bytes
	Data, Parity int         // pieces
	Size         units.Bytes // of a part, at any multiple of it
}

// Part is how many bytes of each piece are read first, and how many are written.
type Part struct {
	Read, Write [Most]units.Bytes
}

// Piece is the size of a piece.
func (l Layout) Piece() units.Bytes {
	k := units.Bytes(l.Data)
	return (l.Chunk + k - 1) / k
}

// Places is at how many places of a chunk a part may be.
func (l Layout) Places() int64 { return max(int64(l.Chunk/max(l.Size, 1)), 1) }

// At is the part at a place, from 0 on.
func (l Layout) At(place int64) (s Part) {
	piece, offset := l.Piece(), units.Bytes(place)*l.Size
	end := min(offset+l.Size, l.Chunk)
	first, last := int(offset/piece), int((end-1)/piece)
	from, to := offset-units.Bytes(first)*piece, end-units.Bytes(last)*piece
	// Of the parity as much as any of the pieces: from where the first begins to be written and up to where the last
	// one ends, or all between.
	parity := piece
	switch {
	case first == last:
		parity = to - from
	case last == first+1:
		parity = min(piece, piece-from+to)
	}
	for k := first; k <= last; k++ {
		s.Write[k] = piece
		if k == first {
			s.Write[k] -= from
		}
		if k == last {
			s.Write[k] -= piece - to
		}
	}
	modify, rest := end-offset+units.Bytes(l.Parity)*parity, units.Bytes(l.Data)*parity-(end-offset)
	if rest < modify {
		for k := range l.Data {
			s.Read[k] = parity - min(s.Write[k], parity)
		}
	} else {
		s.Read = s.Write
	}
	for k := l.Data; k < l.Data+l.Parity; k++ {
		if s.Write[k] = parity; rest >= modify {
			s.Read[k] = parity
		}
	}
	return s
}

// Mean is how much is read and written for a part, mean over places, in pieces.
func (l Layout) Mean() (read, written float64) {
	n := l.Places()
	for place := range n {
		s := l.At(place)
		for k := range s.Read {
			read += float64(s.Read[k])
			written += float64(s.Write[k])
		}
	}
	all := float64(n) * float64(l.Piece())
	return read / all, written / all
}
