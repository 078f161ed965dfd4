package traffic

import "farflash/sim"

// choose draws a peer for a node: the least loaded of Choices; -1 if no peer has capacity.
func (m *Machine) choose(i int32) int32 {
	best := int32(-1)
	for range m.cfg.Choices {
		k := m.draw(i)
		if k < 0 {
			return -1
		}
		if best < 0 || m.nodes[k].pending < m.nodes[best].pending {
			best = k
		}
	}
	return best
}

// draw draws a peer at random, or the next one with capacity; -1 if there is none.
func (m *Machine) draw(i int32) int32 {
	first, n := int64(m.cfg.Gateways), int64(m.cfg.Targets)
	if int(i) >= m.cfg.Gateways {
		first, n = 0, int64(m.cfg.Gateways)
	}
	at := m.rand.IntN(n)
	for range n {
		k := int32(first + at)
		switch {
		case m.cfg.Load > 0 && int(m.nodes[k].pending) > m.cfg.Load:
		case m.cfg.Apart && m.between[m.pair(i, k)]:
		default:
			return k
		}
		if at++; at == n {
			at = 0
		}
	}
	return -1
}

// pair returns the number of a pair of gateway and target.
func (m *Machine) pair(gateway, target int32) int {
	return int(gateway)*m.cfg.Targets + int(target) - m.cfg.Gateways
}

// bucket is a leaky bucket: it admits Burst exchanges at once, and then one per Refill.
type bucket struct {
	tokens int
	since  sim.Time // time of the last token
}

// attempt has a node of an open loop begin an exchange as soon as its bucket permits.
func (m *Machine) attempt(i int32) {
	b := &m.nodes[i].bucket
	now := m.eng.Now()
	if m.cfg.Burst == 0 {
		m.begin(i)
		m.plan(i)
		return
	}
	if b.tokens < m.cfg.Burst {
		got := int((now - b.since) / m.cfg.Refill)
		if b.since += sim.Time(got) * m.cfg.Refill; b.tokens+got >= m.cfg.Burst {
			got = m.cfg.Burst - b.tokens
		}
		b.tokens += got
	}
	if b.tokens == 0 {
		// A node that must wait schedules its next exchange only after it has sent this one.
		m.Counters.Waited++
		m.eng.Schedule(m.self, m.here, b.since+m.cfg.Refill, evBegin, uint32(i))
		return
	}
	if m.begin(i) {
		if b.tokens == m.cfg.Burst {
			b.since = now
		}
		b.tokens--
	}
	m.plan(i)
}
