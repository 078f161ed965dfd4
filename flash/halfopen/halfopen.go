// Package halfopen bounds the connections whose client is not known yet: those in TLS, in MPA startup or in NBD's
// negotiation. A Table admits every newcomer and, when it is full, names the connection to close instead: the oldest of
// the source that has the most. So a host that opens connections and stays silent displaces its own, and a flood from
// many hosts displaces the oldest, which had the longest time to finish; a client that proceeds is served. It is the
// same idea as a SYN queue that drops its oldest entry (RFC 4987, section 3.4), with fair shares by source.
//
// A Table is a plain state machine: the caller holds a lock, closes connections and reads the clock. Limits on
// established connections, and on rates of arrival, are left out.
package halfopen

import (
	"net"
	"net/netip"
	"time"
)

// Table is the set of half-open connections, each identified by a value of type C. It is not safe for concurrent use.
type Table[C comparable] struct {
	most    int
	entries []entry[C] // by age, oldest first
	sources map[netip.Addr]int
	// displaced counts the connections that Enter removed; reported is its value in the last report, at last.
	displaced, reported int64
	last                time.Time
}

type entry[C comparable] struct {
	conn   C
	source netip.Addr
}

// New returns an empty table of at most most connections, at least one.
func New[C comparable](most int) *Table[C] {
	return &Table[C]{most: max(most, 1), sources: map[netip.Addr]int{}}
}

// Enter adds a connection. If that is one too many, it removes another one and returns it with full set: the caller
// closes it. report is the number of connections displaced since the last report if one is due, at most one a second,
// because displacements may come by the thousand; otherwise it is 0. It takes time in proportion to the connections in
// the table.
func (t *Table[C]) Enter(source netip.Addr, conn C, now time.Time) (oldest C, full bool, report int64) {
	t.entries = append(t.entries, entry[C]{conn, source})
	t.sources[source]++
	if len(t.entries) <= t.most {
		return oldest, false, 0
	}
	victim, highest := 0, 0
	for i := range t.entries {
		// The first entry of a source is its oldest, and of equal sources the first one seen has the older entry.
		if n := t.sources[t.entries[i].source]; n > highest {
			victim, highest = i, n
		}
	}
	oldest = t.entries[victim].conn
	t.remove(victim)
	t.displaced++
	if t.reported == 0 || now.Sub(t.last) >= time.Second {
		report, t.reported, t.last = t.displaced-t.reported, t.displaced, now
	}
	return oldest, true, report
}

// Displaced is the number of connections that Enter has removed.
func (t *Table[C]) Displaced() int64 { return t.displaced }

// Leave removes a connection that is known now, or has ended. It reports false if the table does not hold it, because
// Enter displaced it.
func (t *Table[C]) Leave(conn C) bool {
	for i := range t.entries {
		if t.entries[i].conn == conn {
			t.remove(i)
			return true
		}
	}
	return false
}

func (t *Table[C]) remove(i int) {
	source := t.entries[i].source
	if t.sources[source]--; t.sources[source] == 0 {
		delete(t.sources, source)
	}
	copy(t.entries[i:], t.entries[i+1:])
	t.entries[len(t.entries)-1] = entry[C]{}
	t.entries = t.entries[:len(t.entries)-1]
}

// Len is the number of connections in the table.
func (t *Table[C]) Len() int { return len(t.entries) }

// Each calls f with every connection, oldest first. f must not change the table.
func (t *Table[C]) Each(f func(C)) {
	for i := range t.entries {
		f(t.entries[i].conn)
	}
}

// Source returns what connections of one host share: the address, or the /64 prefix of an IPv6 address, of which one
// host can use all. Other kinds of address, such as Unix sockets, are one source.
func Source(a net.Addr) netip.Addr {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	addr := tcp.AddrPort().Addr().Unmap().WithZone("")
	if !addr.Is6() {
		return addr
	}
	prefix, err := addr.Prefix(64)
	if err != nil { // an IPv6 address has such a prefix
		return addr
	}
	return prefix.Addr()
}
