package put

import "farflash/numeric/units"

// arrivals is a target's state of pieces that arrive without a request: those received in part, in the order in which
// they began.
type arrivals []coming

// coming is a piece received in part.
type coming struct {
	chunk    int32
	place    int8 // the target's index in the chunk
	gateway  int32
	id       uint64
	received units.Bytes
	piece    units.Bytes // protocol grants: the piece's size, once a frame has arrived; 0 is the largest
	granted  units.Bytes // protocol grants: the offset up to which its gateway may send
}

// of returns the index of a chunk's piece, or -1.
func (a arrivals) of(id uint64) int {
	for k := range a {
		if a[k].id == id {
			return k
		}
	}
	return -1
}

// add counts a received frame and returns the index of its piece.
func (a *arrivals) add(x *Chunk, i int32, f Frame) int {
	k := a.of(x.ID)
	if k < 0 {
		k = len(*a)
		*a = append(*a, coming{chunk: i, id: x.ID, gateway: x.Gateway, place: int8(x.Place(f.Target))})
	}
	(*a)[k].received += f.Size
	return k
}

// whole counts a received frame and reports whether that completes the piece, which is then removed.
func (a *arrivals) whole(x *Chunk, i int32, f Frame, piece units.Bytes) bool {
	k := a.add(x, i, f)
	if (*a)[k].received < piece {
		return false
	}
	a.remove(k)
	return true
}

// forget removes a chunk's piece, if there is one.
func (a *arrivals) forget(id uint64) {
	if k := a.of(id); k >= 0 {
		a.remove(k)
	}
}

func (a *arrivals) remove(k int) { *a = append((*a)[:k], (*a)[k+1:]...) }
