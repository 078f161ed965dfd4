package cluster

import "farflash/numeric/units"

// held is a piece in memory.
type held struct {
	id    uint64 // of the attempt at its chunk
	chunk int32
	size  units.Bytes
	whole bool // it has arrived in full
}

// room is a node's memory for incoming pieces of chunks until they are written. The zero value is empty.
type room struct {
	pieces []held
	used   units.Bytes
}

// takes allocates space for a piece within the limit, unless that has been done, and reports whether the piece has
// space. If space is short, it first frees incomplete pieces whose attempts are over according to live.
func (r *room) takes(id uint64, chunk int32, size, limit units.Bytes, live func(chunk int32, id uint64) bool) bool {
	for k := range r.pieces {
		if r.pieces[k].id == id {
			return true
		}
	}
	if r.used+size > limit {
		n := 0
		for _, x := range r.pieces {
			if !x.whole && !live(x.chunk, x.id) {
				r.used -= x.size
				continue
			}
			r.pieces[n] = x
			n++
		}
		r.pieces = r.pieces[:n]
	}
	if r.used+size > limit {
		return false
	}
	r.pieces = append(r.pieces, held{id: id, chunk: chunk, size: size})
	r.used += size
	return true
}

// complete records that a piece has arrived in full: it stays until it leaves.
func (r *room) complete(id uint64) {
	for k := range r.pieces {
		if r.pieces[k].id == id {
			r.pieces[k].whole = true
		}
	}
}

// leaves frees the space of a piece that has arrived in full and is written.
func (r *room) leaves(id uint64) {
	for k, x := range r.pieces {
		if x.id == id && x.whole {
			r.used -= x.size
			r.pieces = append(r.pieces[:k], r.pieces[k+1:]...)
			return
		}
	}
}

// clear frees everything.
func (r *room) clear() { r.pieces, r.used = r.pieces[:0], 0 }
