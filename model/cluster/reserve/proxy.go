package reserve

import (
	"farflash/numeric/rng"
	"farflash/sim"
)

// Proxy is the first server of a group. It knows all reservations of the members and when their disks will be done,
// chooses for a gateway and accepts for the members: one request and one answer instead of a multicast, nine bids and a
// multicast. It is SURGE's model a, of its last build.
//
// Members are numbered from 0.
type Proxy struct {
	d       *Durations
	members []member
}

// member is a proxy's state of one server.
type member struct {
	pending  []promise // in order of their windows
	diskDone sim.Time  // when its disk will have written all reserved chunks
	left     sim.Time  // earliest start of a new window
	start    sim.Time  // when the disk could begin to write the data of that window
	chosen   bool
}

type promise struct {
	chunk uint64
	right sim.Time
}

// NewProxy returns a proxy for a group whose members are idle.
func NewProxy(d *Durations) *Proxy {
	p := &Proxy{d: d, members: make([]member, d.Group)}
	for i := range p.members {
		p.members[i].pending = make([]promise, 0, firstBids)
	}
	return p
}

// Assign chooses the members whose disks can begin to write a new chunk first, with the same window at all of them, and
// appends them to dst. With a stream, ties are broken at random, otherwise by number. The caller must send each chosen
// member its reservation, and the gateway one answer, immediately.
func (p *Proxy) Assign(now sim.Time, chunk uint64, rnd *rng.Stream, dst []Pick) []Pick {
	for i := range p.members {
		p.estimate(now, &p.members[i])
	}
	from, n := len(dst), int64(len(p.members))
	w := Window{}
	for range p.d.Replicas {
		at := int64(0)
		if rnd != nil {
			at = rnd.IntN(n)
		}
		best := int64(-1)
		for range n {
			if m := &p.members[at]; !m.chosen && (best < 0 || m.start < p.members[best].start) {
				best = at
			}
			if at++; at == n {
				at = 0
			}
		}
		m := &p.members[best]
		m.chosen = true
		w.Left = max(w.Left, m.left)
		dst = append(dst, Pick{Server: int32(best)})
	}
	w.Right = w.Left + p.d.Window
	for i := from; i < len(dst); i++ {
		dst[i].Window = w
		m := &p.members[dst[i].Server]
		m.pending = append(m.pending, promise{chunk, w.Right})
		m.diskDone = p.written(m.diskDone, w.Right)
	}
	return dst
}

// Done records that a member has received a chunk, and when its disk will have written everything that it has received.
// It reports whether the chunk had been reserved.
func (p *Proxy) Done(server int32, chunk uint64, diskDone sim.Time) bool {
	m := &p.members[server]
	for k := range m.pending {
		if m.pending[k].chunk != chunk {
			continue
		}
		m.pending = append(m.pending[:k], m.pending[k+1:]...)
		m.diskDone = diskDone
		for _, r := range m.pending {
			m.diskDone = p.written(m.diskDone, r.right)
		}
		return true
	}
	return false
}

// Expire removes reservations whose windows ended more than grace before now, and returns their number. Only lost
// messages and dead nodes make this necessary.
func (p *Proxy) Expire(now, grace sim.Time) int {
	n := 0
	for i := range p.members {
		m := &p.members[i]
		kept := m.pending[:0]
		for _, r := range m.pending {
			if r.right+grace >= now {
				kept = append(kept, r)
				continue
			}
			n++
		}
		m.pending = kept
	}
	return n
}

// Pending returns the number of chunks reserved at a member that it has not received.
func (p *Proxy) Pending(server int32) int { return len(p.members[server].pending) }

// DiskDone returns when a member's disk will have written everything that is reserved, as far as the proxy knows.
func (p *Proxy) DiskDone(server int32) sim.Time { return p.members[server].diskDone }

// written returns when a disk that is busy until a time has written a chunk that arrives at another time.
func (p *Proxy) written(busy, arrives sim.Time) sim.Time { return max(busy, arrives) + p.d.DiskChunk }

// estimate computes when a member could begin to receive and to write a new chunk.
func (p *Proxy) estimate(now sim.Time, m *member) {
	m.chosen = false
	soonest := now + p.d.Control + p.d.Trip
	left := soonest
	if l := len(m.pending); l > 0 {
		left = m.pending[l-1].right + p.d.Gap + p.d.Trip
	}
	received := max(left, soonest) + p.d.Chunk + p.d.Trip
	if p.d.Compat.discountsTwice() {
		delay := p.d.headDelay(m.diskDone - 2*(received-now) - now)
		m.left, m.start = left, max(received, m.diskDone)+delay
		return
	}
	delay := p.d.headDelay(m.diskDone - received)
	m.left = max(left, soonest+p.d.Lead) + delay
	m.start = max(received+delay, m.diskDone)
}
