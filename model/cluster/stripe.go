package cluster

import "farflash/numeric/units"

// Partial overwrites of a chunk under an erasure code. Parity depends on all data, so the rest must be known: either
// the data to be overwritten is read together with the parity, or the rest of the stripe is read, whichever is less
// (read-modify-write and reconstruct-write: Chen et al., RAID, ACM Computing Surveys 1994, section 3.2).

// mostPieces is the largest number of pieces of a chunk.
const mostPieces = 16

// layout describes how chunks are cut, and how much of them is written at a time.
type layout struct {
	chunk        units.Bytes
	data, parity int         // numbers of pieces
	size         units.Bytes // of a part, which lies at a multiple of it
}

// part gives the number of bytes of each piece that are read first, and that are written.
type part struct {
	read, write [mostPieces]units.Bytes
}

// piece returns the size of a piece.
func (l layout) piece() units.Bytes {
	k := units.Bytes(l.data)
	return (l.chunk + k - 1) / k
}

// places returns the number of places of a chunk at which a part can be.
func (l layout) places() int64 { return max(int64(l.chunk/max(l.size, 1)), 1) }

// at returns the part at a place, from 0.
func (l layout) at(place int64) (s part) {
	piece, offset := l.piece(), units.Bytes(place)*l.size
	end := min(offset+l.size, l.chunk)
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
		s.write[k] = piece
		if k == first {
			s.write[k] -= from
		}
		if k == last {
			s.write[k] -= piece - to
		}
	}
	modify, rest := end-offset+units.Bytes(l.parity)*parity, units.Bytes(l.data)*parity-(end-offset)
	if rest < modify {
		for k := range l.data {
			s.read[k] = parity - min(s.write[k], parity)
		}
	} else {
		s.read = s.write
	}
	for k := l.data; k < l.data+l.parity; k++ {
		if s.write[k] = parity; rest >= modify {
			s.read[k] = parity
		}
	}
	return s
}

// mean returns the amounts read and written for a part, averaged over places, in pieces.
func (l layout) mean() (read, written float64) {
	n := l.places()
	for place := range n {
		s := l.at(place)
		for k := range s.read {
			read += float64(s.read[k])
			written += float64(s.write[k])
		}
	}
	all := float64(n) * float64(l.piece())
	return read / all, written / all
}
