package cluster

import (
	"farflash/cluster/put"
	"farflash/sim"
	"farflash/units"
)

// Writes of a part of a chunk that is kept under an erasure code. Parity follows from all data, so what is not written has to be known: the gateway reads either what it is going to overwrite and the
// parity with it, or the rest of the stripe, whichever is less (read-modify-write and reconstruct-write, as arrays have them: Chen et al., RAID, ACM Computing Surveys 1994, section 3.2), and then writes the
// data and the parity to the targets that have them. Nobody chooses targets: pieces stay where they are, so no protocol has a part in it, and pieces are written as they come. What a piece keeps
// beside what is written of it is not touched.

// Update says which chunks are written in part.
type Update struct {
	// Share of the chunks that are put of which a part is written over; the others are new ones. It needs a code.
	Share units.Fraction
	// Size is how much of them, at any multiple of it.
	Size units.Bytes
}

func (c *Config) checkUpdate(f *units.Faults) {
	u := &c.Update
	f.Hold(u.Share >= 0 && u.Share <= 1, "update.share", "%v is not possible; use 0%% to 100%%", u.Share)
	if u.Share == 0 {
		f.Hold(u.Size == 0, "update.size", "nothing is written over; give update.share, or leave it out")
		return
	}
	f.Hold(c.Code.Data > 0, "update.share", "a part of a replica is written as a chunk of that size is; leave it out, or use a code")
	f.Hold(u.Size >= 1 && u.Size <= c.Chunk, "update.size", "%v is not possible; use a size up to the chunk's, %v", u.Size, c.Chunk)
	f.Hold(c.Control.Queued, "update.share", "it needs control.queued: true")
	f.Hold(len(c.Failures) == 0, "update.share", "what of a chunk is missing cannot be written over here; leave out failures, or this")
	f.Hold(len(c.Sizes) == 0, "update.share", "chunks of several sizes are written as a whole here; leave out sizes, or this")
	f.Hold(c.Reads < 1, "update.share", "all chunks are read; leave it out, or lower reads")
}

// stripe is what writing over a part of a chunk comes to: bytes of each piece that are read first and that are written.
type stripe struct {
	read, write [maxReplicas]units.Bytes
}

// stripe is that of an offset in a chunk.
func (c *Config) stripe(offset units.Bytes) (s stripe) {
	piece, data := c.piece(), c.Code.Data
	end := min(offset+c.Update.Size, c.Chunk)
	first, last := int(offset/piece), int((end-1)/piece)
	from, to := offset-units.Bytes(first)*piece, end-units.Bytes(last)*piece
	// Of the parity as much as any of the pieces: from where the first begins to be written and up to where the last one ends, or all between.
	parity := piece
	switch {
	case first == last:
		parity = to - from
	case last == first+1:
		parity = min(piece, piece-from+to)
	}
	modify, rest := end-offset, units.Bytes(data)*parity-(end-offset)
	for k := range data {
		part := units.Bytes(0)
		if k >= first && k <= last {
			part = piece
			if k == first {
				part -= from
			}
			if k == last {
				part -= piece - to
			}
		}
		s.write[k] = part
	}
	modify += units.Bytes(c.Code.Parity) * parity
	if rest < modify {
		for k := range data {
			s.read[k] = parity - min(s.write[k], parity)
		}
	} else {
		s.read = s.write
	}
	for k := range c.Code.Parity {
		if s.write[data+k] = parity; rest >= modify {
			s.read[data+k] = parity
		}
	}
	return s
}

// offsets is how many places a part may be at.
func (c *Config) offsets() int64 { return max(int64(c.Chunk/max(c.Update.Size, 1)), 1) }

// updated are the bytes that are read and written for an update, mean over places, in pieces.
func (c *Config) updated() (read, written float64) {
	if c.Update.Share == 0 {
		return 0, 0
	}
	n := c.offsets()
	for k := range n {
		s := c.stripe(units.Bytes(k) * c.Update.Size)
		for i := range s.read {
			read += float64(s.read[i])
			written += float64(s.write[i])
		}
	}
	all := float64(n) * float64(c.piece())
	return read / all, written / all
}

// updater is the gateways' and targets' side of it.
type updater struct {
	c     *Cluster
	under []renewal // by chunk
}

// renewal is an update under way.
type renewal struct {
	stripe
	got   [maxReplicas]units.Bytes // at the gateway, and when it has all at targets
	sends bool                     // it has all that it reads
	left  int8                     // pieces that are to be read, or to be kept
}

// Kinds of control messages of updates, behind those of reading.
const (
	partWanted = readBegun + 1 + iota // a part of a piece is read
	partKept                          // it is written
)

// begin has a gateway write over a part of a chunk.
func (u *updater) begin(i int32) {
	c := u.c
	for int(i) >= len(u.under) {
		u.under = append(u.under, renewal{})
	}
	x, t := &c.bus.Chunks[i], &c.tasks.Items[i]
	s := &u.under[i]
	*s = renewal{stripe: c.cfg.stripe(t.offset)}
	x.N = int8(copy(x.Targets[:], c.kept.find(t.object)))
	for k, size := range s.read[:x.N] {
		if size > 0 {
			s.left++
			c.tell(x.Gateway, put.Message{Kind: partWanted, From: x.Gateway, Chunk: i, ID: x.ID, N: int32(k), A: sim.Time(size)}, c.get.node(c.nodeOfTarget(x.Targets[k])))
		}
	}
	if s.left == 0 {
		u.send(i)
	}
}

// send has a gateway send the parts that are written.
func (u *updater) send(i int32) {
	c := u.c
	x, s := &c.bus.Chunks[i], &u.under[i]
	s.sends, s.got = true, [maxReplicas]units.Bytes{}
	for k, size := range s.write[:x.N] {
		if size > 0 {
			s.left++
		}
		for sent := units.Bytes(0); sent < size; {
			frame := min(c.cfg.Link.Frame, size-sent)
			sent += frame
			c.send(x.Gateway, i, x.ID, uint32(k), frame, c.bus.FrameTime(frame), c.get.node(c.nodeOfTarget(x.Targets[k])))
		}
	}
}

// message handles what is heard of updates.
func (u *updater) message(m *put.Message) {
	c := u.c
	if c.bus.Chunks[m.Chunk].ID != m.ID {
		return
	}
	s := &u.under[m.Chunk]
	switch m.Kind {
	case partWanted:
		c.work(job{disk: c.lies(c.tasks.Items[m.Chunk].object, m.To), size: units.Bytes(m.A), read: true, updates: true, message: *m})
	case partKept:
		if s.left--; s.left == 0 {
			c.done(m.Chunk)
		}
	}
}

// frame: some of a part has come, to its gateway or to a target.
func (u *updater) frame(i, place, node int32, size units.Bytes) {
	c := u.c
	x, s := &c.bus.Chunks[i], &u.under[i]
	s.got[place] += size
	switch {
	case !s.sends && s.got[place] == s.read[place]:
		if s.left--; s.left == 0 {
			u.send(i)
		}
	case s.sends && s.got[place] == s.write[place]:
		target := x.Targets[place]
		at := c.lies(c.tasks.Items[i].object, target)
		m := put.Message{Kind: partKept, From: target, To: x.Gateway, Chunk: i, ID: x.ID}
		now, late := c.bus.Acknowledges(c.disks[at].backlog(c.eng.Now()) + c.takes(at, s.write[place]))
		c.work(job{disk: at, size: s.write[place], updates: true, acked: now, late: late, message: m})
		if now {
			c.toGateway(m, 0)
		}
	}
}
