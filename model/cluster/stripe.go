package cluster

import "farflash/numeric/units"

// Partial overwrites of a chunk under an erasure code. Parity depends on all data, so the rest must be known: either
// the data to be overwritten is read together with the parity, or the rest of the stripe is read, whichever is less
// (read-modify-write and reconstruct-write: Chen et al., RAID, ACM Computing Surveys 1994, section 3.2).

// mostPieces is the largest number of pieces of a chunk.
const mostPieces = 16

// layout describes how chunks are cut, and how much of them is written at a time.
type layout struct {
	Chunk        units.Bytes
	Data, Parity int         // numbers of pieces
	Size         units.Bytes // of a part, which lies at a multiple of it
}

// part gives the number of bytes of each piece that are read first, and that are written.
type part struct {
	Read, Write [mostPieces]units.Bytes
}

// Piece returns the size of a piece.
func (l layout) Piece() units.Bytes {
	k := units.Bytes(l.Data)
	return (l.Chunk + k - 1) / k
}

// Places returns the number of places of a chunk at which a part can be.
func (l layout) Places() int64 { return max(int64(l.Chunk/max(l.Size, 1)), 1) }

// At returns the part at a place, from 0.
func (l layout) At(place int64) (s part) {
	piece, offset := l.Piece(), units.Bytes(place)*l.Size
	end := min(offset+l.Size, l.Chunk)
	first, last := int(offset/piece), int((end-1)/piece)
	from, to := offset-units.Bytes(first)*piece, end-units.Bytes(last)*piece
	// The written range of the parity is the union of the pieces' ranges: [from, to) within one piece, [from, piece)
	// and [0, to) for two, otherwise all.
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

// Mean returns the amounts read and written for a part, averaged over places, in pieces.
func (l layout) Mean() (read, written float64) {
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
