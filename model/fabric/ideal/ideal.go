// Package ideal is how long a message takes that has a network to itself, in closed form: the times of its packets on
// the links of its way, one behind the other, and those of its ACKs on the way back. What flows take is set in
// relation to it.
//
// Message is told its way link by link. Where switches choose a way for each packet, Ways says on how many links side
// by side each part of it is. It is exact for one way, and may be the time of a packet or two less for several that
// are alike.
//
// It leaves out everything that waits: other messages, windows and rates, what is lost.
package ideal

import "farflash/numeric/units"

// Message is a message of so many packets, which comes to be known as its way is told. Its other fields are zero.
type Message struct {
	Packets uint32
	Every   uint32 // packets that an ACK answers

	end, before units.Duration // of the last packet, and of the first full one, behind the links so far
	// of links so far the one that keeps packets the furthest apart, and how many of it there are
	slowest, wide     units.Duration
	back, slowestBack units.Duration
}

// behind is how long after the first packet a later one comes, at least.
func (m *Message) behind(k uint32) units.Duration { return units.Duration(k) / m.wide * m.slowest }

// Forth is the next link of the way there: how long it takes to send a full packet and the last one, its delay, and
// how many such links packets are divided among.
//
// The last packet leaves a link when it has arrived there and the one before it there has left; the full ones leave
// behind each other at the rate of the slowest link so far.
func (m *Message) Forth(full, last, delay, abreast units.Duration) {
	m.before += full
	if m.wide == 0 || full*m.wide > m.slowest*abreast || full*m.wide == m.slowest*abreast && abreast > m.wide {
		m.slowest, m.wide = full, abreast
	}
	if w := uint32(max(abreast, m.wide)); m.Packets > w { // those of its round come by other links
		m.end = max(m.end, m.before+m.behind(m.Packets-1-w))
	}
	m.end += last + delay
	m.before += delay
}

// Back is the next link of the ACKs' way.
func (m *Message) Back(ack, delay units.Duration) {
	m.back += ack + delay
	m.slowestBack = max(m.slowestBack, ack)
}

// Takes is how long the message takes from its posting until its ACK.
//
// The last ACK goes behind the others, which take longer than the packets that they answer if those are small or come
// a faster way. Packets arrive evenly but for the last, so it is behind all ACKs or behind none or one.
func (m *Message) Takes() units.Duration {
	end, acks := m.end, (m.Packets+m.Every-1)/m.Every
	if acks > 1 {
		full := (acks - 1) * m.Every // answered by the last ACK but one
		end = max(end, m.before+m.behind(m.Every-1)+units.Duration(acks-1)*m.slowestBack)
		if m.wide == 1 { // else the last packets come together
			end = max(end, m.before+m.behind(full-1)+m.slowestBack)
		}
	}
	return end + m.back
}

// longest is how many links a way has at most of which those side by side are counted.
const longest = 32

// Ways counts the links side by side on which a message's packets pass each part of their way. There are no more than
// ways have come apart since the source, nor than come together until the destination; in trees, Clos networks and
// the like, whose equally short ways are alike, there are as many. The zero value is one way.
type Ways struct {
	apart [2][longest]units.Duration
	links [2]int
}

// Link is the next link of a way, there (0) or back (1), at whose beginning a packet has so many to choose from.
func (w *Ways) Link(back, choices int) {
	n := w.links[back]
	w.links[back]++
	if n >= longest {
		return
	}
	w.apart[back][n] = units.Duration(max(1, choices))
	if n > 0 {
		w.apart[back][n] *= w.apart[back][n-1]
	}
}

// Abreast is how many links there are side by side at a part of the way there.
func (w *Ways) Abreast(link int) units.Duration {
	if w.links[0] != w.links[1] || w.links[0] > longest || link >= w.links[0] {
		return 1
	}
	return min(w.apart[0][link], w.apart[1][w.links[1]-1-link])
}
