// Package room has the memory of a node for pieces of chunks that come in and wait until they are written: Room. Room
// for all of a piece is taken when it begins to come. It leaves out who waits for room.
package room

import "farflash/numeric/units"

// held is a piece in memory.
type held struct {
	id    uint64 // of the attempt at its chunk
	chunk int32
	size  units.Bytes
	whole bool // it has come
}

// Room is a node's memory. The zero one is empty.
type Room struct {
	pieces []held
	used   units.Bytes
}

// Used is how much is taken.
func (r *Room) Used() units.Bytes { return r.used }

// Takes reports whether there is room for a piece, of a limit, and takes it, unless it has been taken. Pieces of
// which the rest will not come, as live says of a chunk and an attempt at it, give theirs back when it is wanted.
func (r *Room) Takes(id uint64, chunk int32, size, limit units.Bytes, live func(chunk int32, id uint64) bool) bool {
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

// Whole notes that a piece has come as a whole: it stays until it leaves.
func (r *Room) Whole(id uint64) {
	for k := range r.pieces {
		if r.pieces[k].id == id {
			r.pieces[k].whole = true
		}
	}
}

// Leaves gives back the room of a piece that has come as a whole and is written.
func (r *Room) Leaves(id uint64) {
	for k, x := range r.pieces {
		if x.id == id && x.whole {
			r.used -= x.size
			r.pieces = append(r.pieces[:k], r.pieces[k+1:]...)
			return
		}
	}
}

// Clear empties it.
func (r *Room) Clear() { r.pieces, r.used = r.pieces[:0], 0 }
