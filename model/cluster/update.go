package cluster

import (
	"farflash/model/cluster/internal/stripe"
	"farflash/model/cluster/put"
	"farflash/numeric/units"
	"farflash/sim"
)

// Writes of a part of a chunk that is kept under an erasure code: the gateway reads what package stripe says, and
// then writes the data and the parity to the targets that have them. Nobody chooses targets: pieces stay where they
// are, so no protocol has a part in it. What a piece keeps beside what is written of it is not touched.

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

// parts is how chunks are written over.
func (c *Config) parts() stripe.Layout {
	return stripe.Layout{Chunk: c.Chunk, Data: c.Code.Data, Parity: c.Code.Parity, Size: c.Update.Size}
}

// updater is the gateways' and targets' side of it.
type updater struct {
	c     *Cluster
	under []renewal // by chunk
}

// renewal is an update under way.
type renewal struct {
	stripe.Part
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
	*s = renewal{Part: c.cfg.parts().At(t.place)}
	x.N = int8(copy(x.Targets[:], c.kept.find(t.object)))
	for k, size := range s.Read[:x.N] {
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

// send has a gateway send the parts that are written.
func (u *updater) send(i int32) {
	c := u.c
	x, s := &c.bus.Chunks[i], &u.under[i]
	s.sends, s.got = true, [maxReplicas]units.Bytes{}
	for k, size := range s.Write[:x.N] {
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

// message handles what is heard of updates.
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

// frame: some of a part has come, to its gateway or to a target.
func (u *updater) frame(i, place int32, size units.Bytes) {
	c := u.c
	x, s := &c.bus.Chunks[i], &u.under[i]
	s.got[place] += size
	switch {
	case !s.sends && s.got[place] == s.Read[place]:
		if s.left--; s.left == 0 {
			u.send(i)
		}
	case s.sends && s.got[place] == s.Write[place]:
		target := x.Targets[place]
		at := c.lies(c.tasks.Items[i].object, target)
		m := put.Message{Kind: partKept, From: target, To: x.Gateway, Chunk: i, ID: x.ID}
		now, late := c.bus.Acknowledges(c.disks[at].backlog(c.eng.Now()) + c.takes(at, s.Write[place]))
		c.work(job{disk: at, size: s.Write[place], updates: true, acked: now, late: late, message: m})
		if now {
			c.toGateway(m, 0)
		}
	}
}
