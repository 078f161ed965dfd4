// Package ideal has the ideal completion time of a message, in closed form: it has the network to itself, and its
// packets follow one another on the links of its path, as do its ACKs on the way back. Flow completion times are set in
// relation to it.
//
// Its main types are Message, to which package fabric describes the path link by link, and Links, which counts the
// parallel links that each stage of the path is spread over, where switches choose a path for each packet. The result
// is exact for a single path. For several paths that are alike it can be too low by the time of a packet or two.
//
// Left out are all causes of waiting: other messages, windows and rates, and losses.
package ideal

import "farflash/numeric/units"

// Message is a message of a number of packets, whose path is added link by link. Its other fields start at zero.
type Message struct {
	Packets uint32
	Every   uint32 // packets per ACK

	end, before units.Duration // arrival of the last packet, and of the first full one, past the links so far
	// the link so far that spaces packets furthest apart, and the number of such links in parallel
	slowest, wide     units.Duration
	back, slowestBack units.Duration
}

// behind returns the least time by which packet k arrives after the first.
func (m *Message) behind(k uint32) units.Duration { return units.Duration(k) / m.wide * m.slowest }

// Forward adds the next link of the forward path: the times to send a full packet and the last packet, the delay, and
// the number of parallel links that packets are spread over.
//
// The last packet leaves a link once it has arrived there and the packet before it on that link has left. Full packets
// follow each other at the rate of the slowest link so far.
func (m *Message) Forward(full, last, delay, abreast units.Duration) {
	m.before += full
	if m.wide == 0 || full*m.wide > m.slowest*abreast || full*m.wide == m.slowest*abreast && abreast > m.wide {
		m.slowest, m.wide = full, abreast
	}
	if w := uint32(max(abreast, m.wide)); m.Packets > w { // the others of its round take the other links
		m.end = max(m.end, m.before+m.behind(m.Packets-1-w))
	}
	m.end += last + delay
	m.before += delay
}

// Backward adds the next link of the ACKs' path.
func (m *Message) Backward(ack, delay units.Duration) {
	m.back += ack + delay
	m.slowestBack = max(m.slowestBack, ack)
}

// Takes returns the time from the message's posting to its ACK.
//
// The last ACK queues behind the others, which take longer than the packets that they acknowledge if those are small or
// come over a faster path. Packets arrive evenly except for the last, so the last ACK waits behind all other ACKs, or
// behind at most one.
func (m *Message) Takes() units.Duration {
	end, acks := m.end, (m.Packets+m.Every-1)/m.Every
	if acks > 1 {
		full := (acks - 1) * m.Every // answered by the last ACK but one
		end = max(end, m.before+m.behind(m.Every-1)+units.Duration(acks-1)*m.slowestBack)
		if m.wide == 1 { // otherwise the last packets arrive together
			end = max(end, m.before+m.behind(full-1)+m.slowestBack)
		}
	}
	return end + m.back
}

// mostStages is the number of a path's links up to which parallel links are counted.
const mostStages = 32

// Links counts the parallel links over which a message's packets are spread at each stage of their path.
// There are no more than the paths that have diverged since the source, nor than those that converge before the
// destination; in trees, Clos networks and the like, whose equally short paths are alike, there are exactly as many.
// The zero value is a single path.
type Links struct {
	apart [2][mostStages]units.Duration
	links [2]int
}

// Link adds the next link of the path, forward (0) or back (1), at whose start a packet has a number of choices.
func (w *Links) Link(back, choices int) {
	n := w.links[back]
	w.links[back]++
	if n >= mostStages {
		return
	}
	w.apart[back][n] = units.Duration(max(1, choices))
	if n > 0 {
		w.apart[back][n] *= w.apart[back][n-1]
	}
}

// Abreast returns the number of parallel links at a stage of the forward path.
func (w *Links) Abreast(link int) units.Duration {
	if w.links[0] != w.links[1] || w.links[0] > mostStages || link >= w.links[0] {
		return 1
	}
	return min(w.apart[0][link], w.apart[1][w.links[1]-1-link])
}
