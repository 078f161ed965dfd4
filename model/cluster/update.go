package cluster

import (
	"farflash/model/cluster/put"
	"farflash/numeric/units"
	"farflash/sim"
)

// Partial overwrites of stored chunks under an erasure code: the gateway reads the parts that layout.at lists, and
// then writes data and parity to the targets that store them. Pieces stay where they are, so no targets are chosen and
// no put protocol takes part. The rest of each piece is not touched.

// Update describes the puts that overwrite a part of a stored chunk.
type Update struct {
	// Share is the share of puts that overwrite a part of a chunk; the others put new ones. It needs a code.
	Share units.Fraction
	// Size is the size and the alignment of the part.
	Size units.Bytes
}

func (c *Config) checkUpdate(f *units.Faults) {
	u := &c.Update
	f.Hold(u.Share >= 0 && u.Share <= 1, "update.share", "%v is not possible; use 0%% to 100%%", u.Share)
	if u.Share == 0 {
		f.Hold(u.Size == 0, "update.size", "no updates; give update.share, or leave it out")
		return
	}
	f.Hold(c.Code.Data > 0, "update.share",
		"a part of a replica is written as a chunk of that size is; leave it out, or use a code")
	f.Hold(u.Size >= 1 && u.Size <= c.Chunk, "update.size", "%v is not possible; use a size up to the chunk's, %v",
		u.Size, c.Chunk)
	f.Hold(c.Control.Queued, "update.share", "it needs control.queued: true")
	f.Hold(len(c.Failures) == 0, "update.share",
		"what of a chunk is missing cannot be written over here; leave out failures, or this")
	f.Hold(len(c.Sizes) == 0, "update.share",
		"chunks of several sizes are written as a whole here; leave out sizes, or this")
	f.Hold(c.Reads < 1, "update.share", "all chunks are read; leave it out, or lower reads")
}

// parts returns the layout of overwrites.
func (c *Config) parts() layout {
	return layout{chunk: c.Chunk, data: c.Code.Data, parity: c.Code.Parity, size: c.Update.Size}
}

// updater implements both sides, the gateways' and the targets'.
type updater struct {
	c     *Cluster
	under []renewal // by chunk
}

// renewal is an overwrite in flight.
type renewal struct {
	part
	got   [maxReplicas]units.Bytes // received by the gateway during its reads, then by the targets
	sends bool                     // all reads are done, and it is writing
	left  int8                     // pieces still to be read, or to be written
}

// Kinds of control messages of updates, after those of reads.
const (
	partWanted = readBegun + 1 + iota // a request to read a part of a piece
	partKept                          // the part is written
)

// begin starts an overwrite at its gateway.
func (u *updater) begin(i int32) {
	c := u.c
	for int(i) >= len(u.under) {
		u.under = append(u.under, renewal{})
	}
	x, t := &c.bus.Chunks[i], &c.tasks.Items[i]
	s := &u.under[i]
	*s = renewal{part: c.cfg.parts().at(t.place)}
	x.N = int8(copy(x.Targets[:], c.kept.find(t.object)))
	for k, size := range s.read[:x.N] {
		if size > 0 {
			s.left++
			c.tell(x.Gateway, put.Message{Kind: partWanted, From: x.Gateway, Chunk: i, ID: x.ID, N: int32(k),
				A: sim.Time(size)}, c.get.node(c.nodeOfTarget(x.Targets[k])))
		}
	}
	if s.left == 0 {
		u.send(i)
	}
}

// send sends the parts that are written, once all reads are done.
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
			c.send(x.Gateway, i, x.ID, uint32(k), frame, c.bus.FrameTime(frame),
				c.get.node(c.nodeOfTarget(x.Targets[k])))
		}
	}
}

// message handles the control messages of updates.
func (u *updater) message(m *put.Message) {
	c := u.c
	if c.bus.Chunks[m.Chunk].ID != m.ID {
		return
	}
	s := &u.under[m.Chunk]
	switch m.Kind {
	case partWanted:
		c.work(job{disk: c.lies(c.tasks.Items[m.Chunk].object, m.To), size: units.Bytes(m.A), read: true,
			updates: true, message: *m})
	case partKept:
		if s.left--; s.left == 0 {
			c.done(m.Chunk)
		}
	}
}

// frame handles data of an overwrite that has arrived at its gateway or at a target.
func (u *updater) frame(i, place int32, size units.Bytes) {
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
