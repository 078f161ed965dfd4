package put

import "farflash/numeric/units"

// arrivals is what a target knows of the pieces that come to it without its having been asked: those of which it has
// some frames and not yet all, in the order in which they began.
type arrivals []coming

// coming is a piece that comes.
type coming struct {
	chunk    int32
	place    int8 // which of the chunk's targets this is
	gateway  int32
	id       uint64
	received units.Bytes
	piece    units.Bytes // of protocol grants, as granted is: how large it is; 0 is the largest
	granted  units.Bytes // up to where its gateway may send, of protocol grants
}

// of returns the number of a chunk's piece, or -1.
func (a arrivals) of(id uint64) int {
	for k := range a {
		if a[k].id == id {
			return k
		}
	}
	return -1
}

// add takes a frame in and returns the number of its piece.
func (a *arrivals) add(x *Chunk, i int32, f Frame) int {
	k := a.of(x.ID)
	if k < 0 {
		k = len(*a)
		*a = append(*a, coming{chunk: i, id: x.ID, gateway: x.Gateway, place: int8(x.Place(f.Target))})
	}
	(*a)[k].received += f.Size
	return k
}

// whole takes a frame in and reports whether the target has now all of its piece, which is then none that comes any
// more.
func (a *arrivals) whole(x *Chunk, i int32, f Frame, piece units.Bytes) bool {
	k := a.add(x, i, f)
	if (*a)[k].received < piece {
		return false
	}
	a.remove(k)
	return true
}

// forget forgets a chunk's piece, if one has begun to come.
func (a *arrivals) forget(id uint64) {
	if k := a.of(id); k >= 0 {
		a.remove(k)
	}
}

func (a *arrivals) remove(k int) { *a = append((*a)[:k], (*a)[k+1:]...) }
