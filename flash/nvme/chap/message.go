package chap

import "slices"

// Message types and identifiers (Base 8.13.5.1).
const (
	common = 0 // AUTH_type
	dhchap = 1

	idNegotiate = 0x00
	idFailure2  = 0xf0
	idFailure1  = 0xf1

	idChallenge = 0x01
	idReply     = 0x02
	idSuccess1  = 0x03
	idSuccess2  = 0x04
)

// Reason is why an exchange has failed: the explanation in AUTH_Failure1 and AUTH_Failure2.
type Reason uint8

// The reasons.
const (
	Failed       Reason = 1 // the response does not match: a wrong key
	NoProtocol   Reason = 2
	NoConcat     Reason = 3 // secure channel concatenation
	NoHash       Reason = 4
	NoGroup      Reason = 5
	WrongPayload Reason = 6
	WrongMessage Reason = 7 // unexpected at this point
)

func (r Reason) Error() string {
	switch r {
	case Failed:
		return "authentication failed: the keys differ"
	case NoProtocol:
		return "authentication failed: the host does not offer DH-HMAC-CHAP"
	case NoConcat:
		return "authentication failed: the host asks for secure channel concatenation"
	case NoHash:
		return "authentication failed: no common hash function"
	case NoGroup:
		return "authentication failed: no common Diffie-Hellman group"
	case WrongPayload:
		return "authentication failed: an invalid message"
	}
	return "authentication failed: an unexpected message"
}

// Sizes of messages without their variable parts, in bytes.
const (
	headSize       = 8
	descriptorSize = 64
	fixedSize      = 16 // of those of DH-HMAC-CHAP
	listAt         = 4  // in a descriptor: identifiers of hashes
	groupsAt       = 34 // and of groups
	mostHashes     = groupsAt - listAt
	mostGroups     = descriptorSize - groupsAt
)

// message appends the first bytes of a message, up to n.
func message(kind, id uint8, transaction uint16, n int) []byte {
	b := make([]byte, n)
	b[0], b[1] = kind, id
	le.PutUint16(b[4:], transaction)
	return b
}

// failure is an AUTH_Failure1 or AUTH_Failure2.
func failure(id uint8, transaction uint16, r Reason) []byte {
	b := message(common, id, transaction, headSize)
	b[6], b[7] = 1, uint8(r) // the only reason code: authentication failed
	return b
}

// offer is what a host can do.
type offer struct {
	transaction uint16
	secure      uint8
	hashes      []Hash
	groups      []Group
}

func (o offer) append() []byte {
	b := message(common, idNegotiate, o.transaction, headSize+descriptorSize)
	b[6], b[7] = o.secure, 1
	d := b[headSize:]
	d[0], d[2], d[3] = 1, uint8(len(o.hashes)), uint8(len(o.groups))
	for i, h := range o.hashes {
		d[listAt+i] = uint8(h)
	}
	for i, g := range o.groups {
		d[groupsAt+i] = uint8(g)
	}
	return b
}

// decodeOffer decodes an AUTH_Negotiate.
func decodeOffer(b []byte) (o offer, r Reason) {
	if len(b) < headSize {
		return o, WrongPayload
	}
	o.transaction, o.secure = le.Uint16(b[4:]), b[6]
	for n := range int(b[7]) {
		d := b[min(headSize+n*descriptorSize, len(b)):]
		if len(d) < descriptorSize {
			return o, WrongPayload
		}
		if d[0] != 1 { // another protocol
			continue
		}
		if d[2] > mostHashes || d[3] > mostGroups {
			return o, WrongPayload
		}
		for _, h := range d[listAt:][:d[2]] {
			o.hashes = append(o.hashes, Hash(h))
		}
		for _, g := range d[groupsAt:][:d[3]] {
			o.groups = append(o.groups, Group(g))
		}
		return o, 0
	}
	return o, NoProtocol
}

// challenge is a DH-HMAC-CHAP_Challenge, and reply a DH-HMAC-CHAP_Reply, in which response precedes the challenge.
type challenge struct {
	hash     Hash
	group    Group
	sequence uint32
	value    []byte
	public   []byte
}

func (c challenge) append(transaction uint16) []byte {
	b := message(dhchap, idChallenge, transaction, fixedSize)
	b[6], b[8], b[9] = uint8(len(c.value)), uint8(c.hash), uint8(c.group)
	le.PutUint16(b[10:], uint16(len(c.public)))
	le.PutUint32(b[12:], c.sequence)
	return slices.Concat(b, c.value, c.public)
}

func decodeChallenge(b []byte) (c challenge, ok bool) {
	if len(b) < fixedSize {
		return c, false
	}
	c.hash, c.group, c.sequence = Hash(b[8]), Group(b[9]), le.Uint32(b[12:])
	n, public := int(b[6]), int(le.Uint16(b[10:]))
	if c.hash.function() == nil || c.group >= groups || n != c.hash.size() || public != c.group.size() ||
		len(b) < fixedSize+n+public {
		return c, false
	}
	c.value, c.public = b[fixedSize:][:n], b[fixedSize+n:][:public]
	return c, true
}

type reply struct {
	response []byte
	asks     bool // the controller must prove its key as well
	sequence uint32
	value    []byte // its challenge
	public   []byte
}

func (r reply) append(transaction uint16) []byte {
	b := message(dhchap, idReply, transaction, fixedSize)
	b[6] = uint8(len(r.response))
	if r.asks {
		b[8] = 1
	}
	le.PutUint16(b[10:], uint16(len(r.public)))
	le.PutUint32(b[12:], r.sequence)
	return slices.Concat(b, r.response, r.value, r.public)
}

// decodeReply decodes a reply with hashes of n bytes and a public value of the given length.
func decodeReply(b []byte, n, public int) (r reply, ok bool) {
	if len(b) < fixedSize+2*n+public || int(b[6]) != n || int(le.Uint16(b[10:])) != public {
		return r, false
	}
	r.asks, r.sequence = b[8]&1 != 0, le.Uint32(b[12:])
	r.response, r.value, r.public = b[fixedSize:][:n], b[fixedSize+n:][:n], b[fixedSize+2*n:][:public]
	return r, true
}

// success1 is the controller's answer to a reply. response is nil if the host did not ask for it.
func success1(transaction uint16, n int, response []byte) []byte {
	b := message(dhchap, idSuccess1, transaction, fixedSize)
	b[6] = uint8(n)
	if response != nil {
		b[8] = 1
	}
	return append(b, response...)
}
