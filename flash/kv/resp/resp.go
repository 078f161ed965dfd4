// Package resp is the protocol of Redis clients, RESP2 and RESP3, for key-value stores: the server's side of a
// connection as a plain state machine, without I/O, clocks or goroutines.
//
// Parser divides what a client sends into commands. Session answers those about the connection by itself, and hands out
// each Command that needs a store; Command.Apply is its effect on a key, and Session.Answer its reply. Package
// server runs them.
//
// The protocol is that of redis.io/docs/reference/protocol-spec, and the commands behave as in Redis 7.0. It leaves out
// expiry, which is refused by name, transactions, other types than strings, and scripts. A command on several keys is
// not one step.
package resp

import (
	"strconv"
)

// Limits bound what a client can send and ask for. Redis has the same for Args and Inline.
type Limits struct {
	Value   int // the longest argument in bytes. A longer one is skipped, and its command refused
	Request int // bytes of a command's arguments together. Of a longer one the rest is skipped, and it is refused
	Reply   int // bytes of the keys or values in a reply
	Args    int // of a command
	Inline  int // bytes of a command that is a line, and of a length
}

// DefaultLimits returns limits for values of up to a mebibyte.
func DefaultLimits() Limits {
	return Limits{Value: 1 << 20, Request: 32 << 20, Reply: 64 << 20, Args: 1 << 20, Inline: 64 << 10}
}

// longestBulk is the longest argument that a client of Redis may send. What announces more is no client.
const longestBulk = 512 << 20

// writer appends replies in a version of the protocol.
type writer struct {
	out   []byte
	proto int
}

func (w *writer) head(kind byte, n int64) {
	w.out = append(strconv.AppendInt(append(w.out, kind), n, 10), '\r', '\n')
}

func (w *writer) line(kind byte, text string) {
	w.out = append(append(append(w.out, kind), text...), '\r', '\n')
}

func (w *writer) simple(text string) { w.line('+', text) }

// failed replies with an error. Its text must be one line.
func (w *writer) failed(text string) {
	w.out = append(w.out, '-')
	for i := range len(text) {
		c := text[i]
		if c == '\r' || c == '\n' {
			c = ' '
		}
		w.out = append(w.out, c)
	}
	w.out = append(w.out, '\r', '\n')
}

func (w *writer) integer(n int64) { w.head(':', n) }

func (w *writer) bulk(b []byte) {
	w.head('$', int64(len(b)))
	w.out = append(append(w.out, b...), '\r', '\n')
}

func (w *writer) text(s string) {
	w.head('$', int64(len(s)))
	w.out = append(append(w.out, s...), '\r', '\n')
}

// verbatim replies with text for people.
func (w *writer) verbatim(s string) {
	if w.proto < 3 {
		w.text(s)
		return
	}
	w.head('=', int64(len(s)+4))
	w.out = append(append(append(w.out, "txt:"...), s...), '\r', '\n')
}

func (w *writer) null() {
	if w.proto < 3 {
		w.line('$', "-1")
		return
	}
	w.line('_', "")
}

// value replies with a value, or null.
func (w *writer) value(b []byte, there bool) {
	if !there {
		w.null()
		return
	}
	w.bulk(b)
}

func (w *writer) array(n int) { w.head('*', int64(n)) }

// pairs begins a map of n keys with values.
func (w *writer) pairs(n int) {
	if w.proto < 3 {
		w.array(2 * n)
		return
	}
	w.head('%', int64(n))
}

// set begins a set.
func (w *writer) set(n int) {
	if w.proto < 3 {
		w.array(n)
		return
	}
	w.head('~', int64(n))
}
