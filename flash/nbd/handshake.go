package nbd

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// TLS is a server's policy for TLS.
type TLS uint8

// The policies. NoTLS never uses TLS; OfferTLS lets the client choose; RequireTLS answers every other option with an
// error until TLS is established.
const (
	NoTLS TLS = iota
	OfferTLS
	RequireTLS
)

// Limits of a handshake.
const (
	maxOption  = 64 << 10 // maximum payload of a parsed option, in bytes
	maxSkip    = 1 << 20  // maximum payload that is skipped; a longer one ends the connection
	maxOptions = 256      // maximum number of options
	maxQueries = 128      // maximum number of queries in a context option
	maxList    = 1 << 20  // maximum size of the answer to one OptList, in bytes
	enough     = 64 << 10 // pending output, in bytes, above which no option is processed
)

// allocation is the only supported metadata context, allocationID its number.
const (
	allocation   = "base:allocation"
	allocationID = 1
)

// State is the state of a handshake.
type State uint8

// The states. In Upgrading, the driver sends the pending output, starts TLS and calls Secured. In Transmitting, a
// Session takes over. In Ended, the driver sends the pending output and closes.
const (
	Negotiating State = iota
	Upgrading
	Transmitting
	Ended
)

// Errors that end a connection.
var (
	errMagic    = errors.New("nbd: wrong magic number; the peer does not speak NBD")
	errOptions  = errors.New("nbd: too many or too long options")
	errInjected = errors.New("nbd: plaintext received after the request for TLS")
)

// Handshake is the server's side of the negotiation, up to transmission or the end.
type Handshake struct {
	exports Exports
	tls     TLS
	state   State
	secure  bool
	flags   bool   // the client's flags have arrived
	fixed   bool   // the client negotiates fixed newstyle
	zeroes  bool   // the client wants the padding after the answer to OptExportName
	skip    uint32 // bytes of an oversized option still to skip
	options int
	out     []byte
	err     error

	structured bool
	context    bool   // base:allocation was selected
	selected   string // the export it was selected for
	chosen     Export
}

// NewHandshake returns a handshake whose output starts with the server's greeting.
func NewHandshake(exports Exports, tls TLS) *Handshake {
	h := &Handshake{exports: exports, tls: tls}
	h.out = binary.BigEndian.AppendUint64(h.out, magicServer)
	h.out = binary.BigEndian.AppendUint64(h.out, magicOption)
	h.out = binary.BigEndian.AppendUint16(h.out, FlagFixedNewstyle|FlagNoZeroes)
	return h
}

// State returns the state of the handshake.
func (h *Handshake) State() State { return h.state }

// Err returns, in state Ended, why the handshake ended; nil if the client requested it.
func (h *Handshake) Err() error { return h.err }

// Output returns the bytes to send; the caller owns them. Input stops while much output is pending.
func (h *Handshake) Output() []byte {
	out := h.out
	h.out = nil
	return out
}

// Chosen returns the export to transmit, whether replies are structured, and whether base:allocation was selected.
func (h *Handshake) Chosen() (e Export, structured, context bool) {
	return h.chosen, h.structured, h.context
}

// Secured reports that TLS is established and sets the client's exports. Everything negotiated before is discarded.
func (h *Handshake) Secured(exports Exports) {
	if h.state != Upgrading {
		return
	}
	h.exports, h.secure, h.state = exports, true, Negotiating
	h.structured, h.context, h.selected = false, false, ""
}

func (h *Handshake) end(err error) {
	h.state, h.err = Ended, err
}

// Abandon closes an export that was opened.
func (h *Handshake) Abandon() {
	closeExport(h.chosen)
	h.chosen = Export{}
}

func closeExport(e Export) {
	if e.Close != nil {
		e.Close()
	}
}

// Input consumes received bytes and returns the number consumed; the caller passes the remainder again after taking
// Output, or with more bytes. A client that does not read therefore makes the server buffer the answers to few options
// only, however many it sends.
func (h *Handshake) Input(b []byte) int {
	n := 0
	for h.state == Negotiating && len(h.out) < enough {
		k := h.step(b[n:])
		if k == 0 {
			break
		}
		n += k
	}
	if h.state == Upgrading && n < len(b) {
		// Bytes before TLS could have been injected in transit.
		h.end(errInjected)
	}
	return n
}

// step consumes one message.
func (h *Handshake) step(b []byte) int {
	if h.skip > 0 {
		n := min(int(h.skip), len(b))
		h.skip -= uint32(n)
		return n
	}
	if !h.flags {
		if len(b) < 4 {
			return 0
		}
		f := binary.BigEndian.Uint32(b)
		if f&^(FlagFixedNewstyle|FlagNoZeroes) != 0 {
			h.end(fmt.Errorf("nbd: the client set flags that were not offered: %#x", f))
			return 4
		}
		h.flags, h.fixed, h.zeroes = true, f&FlagFixedNewstyle != 0, f&FlagNoZeroes == 0
		return 4
	}
	if len(b) < optionSize {
		return 0
	}
	head := optionHeader(b[:optionSize])
	o, length := head.option(), head.length()
	switch {
	case head.magic() != magicOption:
		h.end(errMagic)
		return optionSize
	case length > maxOption:
		if o == OptExportName || length > maxSkip || !h.count() {
			h.end(errOptions)
			return optionSize
		}
		if h.admits(o) {
			h.refuse(o, ReplyTooBig, "too long")
		}
		h.skip = length
		return optionSize
	case len(b)-optionSize < int(length):
		return 0
	}
	if h.count() {
		h.option(o, b[optionSize:][:length])
	} else {
		h.end(errOptions)
	}
	return optionSize + int(length)
}

func (h *Handshake) count() bool {
	h.options++
	return h.options <= maxOptions
}

// Need is the maximum number of bytes that one step of Input can use, to size the driver's buffer.
func (h *Handshake) Need() int { return optionSize + maxOption }

func (h *Handshake) reply(o Option, r Reply, payload []byte) {
	h.out = appendReply(h.out, o, r, payload)
}

// refuse replies with an error. An oversized text is truncated at a character boundary.
func (h *Handshake) refuse(o Option, r Reply, text string) {
	h.reply(o, r, []byte(strings.ToValidUTF8(text[:min(len(text), maxString)], "")))
}

// admits reports whether the client may use an option at this point. Otherwise it refuses the option or ends the
// connection.
func (h *Handshake) admits(o Option) bool {
	switch {
	case !h.fixed && o != OptExportName:
		h.end(errors.New("nbd: option from a client without fixed newstyle negotiation"))
	case h.tls != RequireTLS || h.secure || o == OptStartTLS || o == OptAbort:
		return true
	case o == OptExportName:
		h.end(errors.New("nbd: export requested without TLS"))
	default:
		h.refuse(o, ReplyTLSRequired, "start TLS first")
	}
	return false
}

func (h *Handshake) option(o Option, payload []byte) {
	if !h.admits(o) {
		return
	}
	switch o {
	case OptExportName:
		h.exportName(payload)
	case OptAbort:
		h.reply(o, ReplyAck, nil)
		h.end(nil)
	case OptList:
		if h.empty(o, payload) {
			h.list()
		}
	case OptStartTLS:
		h.startTLS(payload)
	case OptInfo, OptGo:
		h.open(o, payload)
	case OptStructuredReply:
		if h.empty(o, payload) {
			h.structured = true
			h.reply(o, ReplyAck, nil)
		}
	case OptListMetaContext, OptSetMetaContext:
		h.contexts(o, payload)
	default:
		h.refuse(o, ReplyUnsupported, "unsupported option")
	}
}

// empty reports whether an option has no payload, and refuses it otherwise.
func (h *Handshake) empty(o Option, payload []byte) bool {
	if len(payload) > 0 {
		h.refuse(o, ReplyInvalid, "this option has no payload")
		return false
	}
	return true
}

func (h *Handshake) startTLS(payload []byte) {
	switch {
	case !h.empty(OptStartTLS, payload):
	case h.secure:
		h.refuse(OptStartTLS, ReplyInvalid, "TLS is already active")
	case h.tls == NoTLS:
		h.refuse(OptStartTLS, ReplyPolicy, "TLS is not available")
	default:
		h.reply(OptStartTLS, ReplyAck, nil)
		h.state = Upgrading
	}
}

// list answers with all exports, or with an error if they exceed maxList.
func (h *Handshake) list() {
	begin := len(h.out)
	for e := range h.exports.List() {
		p := binary.BigEndian.AppendUint32(nil, uint32(len(e.Name)))
		p = append(p, e.Name...)
		h.reply(OptList, ReplyServer, append(p, e.Description...))
		if len(h.out)-begin > maxList {
			h.out = h.out[:begin]
			h.refuse(OptList, ReplyTooBig, "too many exports to list; request one by name")
			return
		}
	}
	h.reply(OptList, ReplyAck, nil)
}

// name splits a string, prefixed with its 32-bit length, off a payload.
func name(p []byte) (s string, rest []byte, ok bool) {
	if len(p) < 4 {
		return "", nil, false
	}
	n := binary.BigEndian.Uint32(p)
	if n > maxString || int(n) > len(p)-4 {
		return "", nil, false
	}
	s, rest = string(p[4:4+n]), p[4+n:]
	return s, rest, valid(s)
}

// valid reports whether a string satisfies the protocol: UTF-8, no NUL, at most maxString bytes.
func valid(s string) bool {
	for i := range len(s) {
		if s[i] == 0 {
			return false
		}
	}
	return len(s) <= maxString && utf8.ValidString(s)
}

// flagsOf returns the transmission flags of an export.
func (h *Handshake) flagsOf(e Export) uint16 {
	f := uint16(FlagHasFlags | FlagFlush | FlagFUA | FlagMultiConn | FlagCache)
	if h.structured {
		f |= FlagDF
	}
	if e.ReadOnly {
		return f | FlagReadOnly
	}
	return f | FlagTrim | FlagZeroes | FlagFastZeroes
}

func (h *Handshake) exportName(payload []byte) {
	s := string(payload)
	if !valid(s) {
		h.end(fmt.Errorf("nbd: invalid export name of %d bytes", len(s)))
		return
	}
	e, err := h.exports.Open(s)
	if err != nil {
		h.end(err) // the protocol has no error reply here
		return
	}
	h.out = binary.BigEndian.AppendUint64(h.out, e.Volume.Size())
	h.out = binary.BigEndian.AppendUint16(h.out, h.flagsOf(e))
	if h.zeroes {
		h.out = append(h.out, make([]byte, exportPad)...)
	}
	h.begin(e, s)
}

// begin ends the negotiation and enters transmission.
func (h *Handshake) begin(e Export, asked string) {
	h.chosen, h.state = e, Transmitting
	h.context = h.context && h.selected == asked
}

func (h *Handshake) open(o Option, payload []byte) {
	s, rest, ok := name(payload)
	if !ok || len(rest) < 2 || len(rest) != 2+2*int(binary.BigEndian.Uint16(rest)) {
		h.refuse(o, ReplyInvalid, "malformed")
		return
	}
	e, err := h.exports.Open(s)
	if err != nil {
		h.refuse(o, unopened(err), err.Error())
		return
	}
	p := binary.BigEndian.AppendUint16(nil, InfoExport)
	p = binary.BigEndian.AppendUint64(p, e.Volume.Size())
	h.reply(o, ReplyInfo, binary.BigEndian.AppendUint16(p, h.flagsOf(e)))
	var named, described bool
	for rest = rest[2:]; len(rest) > 0; rest = rest[2:] {
		// repeated requests are answered once; the block size is sent anyway
		kind := binary.BigEndian.Uint16(rest)
		named = named || kind == InfoName
		described = described || kind == InfoDescription && e.Description != ""
	}
	if named {
		h.reply(o, ReplyInfo, append(binary.BigEndian.AppendUint16(nil, InfoName), e.Name...))
	}
	if described {
		h.reply(o, ReplyInfo, append(binary.BigEndian.AppendUint16(nil, InfoDescription), e.Description...))
	}
	p = binary.BigEndian.AppendUint16(nil, InfoBlockSize)
	p = binary.BigEndian.AppendUint32(p, 1)
	p = binary.BigEndian.AppendUint32(p, 4096)
	h.reply(o, ReplyInfo, binary.BigEndian.AppendUint32(p, MaxPayload))
	h.reply(o, ReplyAck, nil)
	if o == OptInfo {
		closeExport(e)
		return
	}
	h.begin(e, s)
}

// unopened is the reply to a client whose export was not opened.
func unopened(err error) Reply {
	if errors.Is(err, ErrPolicy) {
		return ReplyPolicy
	}
	return ReplyUnknown
}

func (h *Handshake) contexts(o Option, payload []byte) {
	if o == OptSetMetaContext {
		h.context, h.selected = false, "" // even if an error follows
	}
	s, rest, ok := name(payload)
	if !ok || len(rest) < 4 {
		h.refuse(o, ReplyInvalid, "malformed")
		return
	}
	if !h.structured {
		h.refuse(o, ReplyInvalid, "negotiate structured replies first")
		return
	}
	count := binary.BigEndian.Uint32(rest)
	rest = rest[4:]
	if count > maxQueries {
		h.refuse(o, ReplyTooBig, "too many queries")
		return
	}
	found := o == OptListMetaContext && count == 0
	for range count {
		var q string
		if q, rest, ok = name(rest); !ok {
			h.refuse(o, ReplyInvalid, "malformed")
			return
		}
		if q == allocation || q == "base:" && o == OptListMetaContext {
			found = true
		}
	}
	if len(rest) > 0 {
		h.refuse(o, ReplyInvalid, "malformed")
		return
	}
	e, err := h.exports.Open(s)
	if err != nil {
		h.refuse(o, unopened(err), err.Error())
		return
	}
	closeExport(e)
	if found {
		id := uint32(0)
		if o == OptSetMetaContext {
			id, h.context, h.selected = allocationID, true, s
		}
		h.reply(o, ReplyMetaContext, append(binary.BigEndian.AppendUint32(nil, id), allocation...))
	}
	h.reply(o, ReplyAck, nil)
}
