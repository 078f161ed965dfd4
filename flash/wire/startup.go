package wire

// Keys of the MPA startup frames (RFC 5044, 7.1.1).
const (
	RequestKey = "MPA ID Req Frame"
	ReplyKey   = "MPA ID Rep Frame"
)

// Limits of startup frames, in bytes.
const (
	StartupLength  = 20  // without private data
	MaxPrivate     = 512 // private data, including the RFC 6581 header
	EnhancedLength = 4
)

// Flags of a startup frame; startupEnhanced is the S bit of RFC 6581.
const (
	startupMarkers  = 0x80
	startupCRC      = 0x40
	startupReject   = 0x20
	startupEnhanced = 0x10
)

// Startup is an MPA Request or Reply frame. Its methods need StartupLength bytes.
type Startup []byte

// IsReply reports whether the frame has the reply key.
func (s Startup) IsReply() bool { return string(s[:16]) == ReplyKey }

// Markers reports whether the sender requires markers in the stream that it receives.
func (s Startup) Markers() bool { return s[16]&startupMarkers != 0 }

// CRC reports whether the sender asks for CRCs. CRCs are used if either side asks.
func (s Startup) CRC() bool { return s[16]&startupCRC != 0 }

// Reject reports whether the responder refuses the connection.
func (s Startup) Reject() bool { return s[16]&startupReject != 0 }

// IsEnhanced reports whether the private data starts with an Enhanced header. In revision 1 the bit is reserved and
// ignored.
func (s Startup) IsEnhanced() bool { return s[16]&startupEnhanced != 0 && s.Revision() >= 2 }

// Revision is the MPA revision: 1, or 2 for RFC 6581.
func (s Startup) Revision() uint8 { return s[17] }

// PrivateLength is the length of the private data, in bytes.
func (s Startup) PrivateLength() int { return int(be.Uint16(s[18:])) }

// Length is the length of the whole frame, in bytes.
func (s Startup) Length() int { return StartupLength + s.PrivateLength() }

// Enhanced is the RFC 6581 header at the front of the private data, or nil if there is none.
func (s Startup) Enhanced() Enhanced {
	if !s.IsEnhanced() || s.PrivateLength() < EnhancedLength || len(s) < StartupLength+EnhancedLength {
		return nil
	}
	return Enhanced(s[StartupLength : StartupLength+EnhancedLength])
}

// Private is the upper layer's private data, without the Enhanced header.
func (s Startup) Private() []byte {
	p := s[StartupLength:s.Length()]
	if s.Enhanced() != nil {
		return p[EnhancedLength:]
	}
	return p
}

// Unnegotiated is the IRD or ORD value that leaves the limit to the upper layer (RFC 6581, 9.1).
const Unnegotiated = 0x3FFF

// RTR is a set of ready-to-receive messages: the zero-length messages that may be the first of a peer-to-peer
// connection (RFC 6581, 9.2).
type RTR uint8

// The ready-to-receive messages.
const (
	RTRSend RTR = 1 << iota
	RTRWrite
	RTRRead
)

// Enhanced is the four-byte header of RFC 6581, section 9.
type Enhanced []byte

// PeerToPeer reports whether the initiator signals with a ready-to-receive message that it is ready.
func (e Enhanced) PeerToPeer() bool { return e[0]&0x80 != 0 }

// RTR is the set of messages offered for that; empty if the connection is not peer to peer.
func (e Enhanced) RTR() RTR {
	if !e.PeerToPeer() {
		return 0
	}
	var r RTR
	if e[0]&0x40 != 0 {
		r |= RTRSend
	}
	if e[2]&0x80 != 0 {
		r |= RTRWrite
	}
	if e[2]&0x40 != 0 {
		r |= RTRRead
	}
	return r
}

// IRD is the number of inbound reads that the sender accepts concurrently.
func (e Enhanced) IRD() uint16 { return be.Uint16(e) & 0x3FFF }

// ORD is the number of outbound reads that the sender wants to keep outstanding.
func (e Enhanced) ORD() uint16 { return be.Uint16(e[2:]) & 0x3FFF }

// StartupFields are the fields of a startup frame. With Enhanced set, which needs revision 2, Put writes the RFC 6581
// header before Private.
type StartupFields struct {
	Reply                bool
	Markers, CRC, Reject bool
	Revision             uint8
	Enhanced             bool
	PeerToPeer           bool
	RTR                  RTR
	IRD, ORD             uint16
	Private              []byte // at most MaxPrivate bytes, EnhancedLength fewer if Enhanced
}

// Fields decodes the whole frame. Private aliases the frame.
func (s Startup) Fields() StartupFields {
	f := StartupFields{Reply: s.IsReply(), Markers: s.Markers(), CRC: s.CRC(), Reject: s.Reject(),
		Revision: s.Revision(), Private: s.Private()}
	if e := s.Enhanced(); e != nil {
		f.Enhanced, f.PeerToPeer, f.RTR, f.IRD, f.ORD = true, e.PeerToPeer(), e.RTR(), e.IRD(), e.ORD()
	}
	return f
}

// Length is the length of the frame that Put writes.
func (f StartupFields) Length() int {
	n := StartupLength + len(f.Private)
	if f.Enhanced {
		n += EnhancedLength
	}
	return n
}

// Put writes the frame into the first Length bytes of b and returns that length.
func (f StartupFields) Put(b []byte) int {
	n := f.Length()
	_ = b[n-1]
	if f.Reply {
		copy(b, ReplyKey)
	} else {
		copy(b, RequestKey)
	}
	b[16] = flag(f.Markers, startupMarkers) | flag(f.CRC, startupCRC) | flag(f.Reject, startupReject) |
		flag(f.Enhanced, startupEnhanced)
	b[17] = f.Revision
	be.PutUint16(b[18:], uint16(n-StartupLength))
	p := b[StartupLength:n]
	if f.Enhanced {
		be.PutUint16(p, f.IRD&0x3FFF)
		be.PutUint16(p[2:], f.ORD&0x3FFF)
		if f.PeerToPeer {
			p[0] |= 0x80 | flag(f.RTR&RTRSend != 0, 0x40)
			p[2] |= flag(f.RTR&RTRWrite != 0, 0x80) | flag(f.RTR&RTRRead != 0, 0x40)
		}
		p = p[EnhancedLength:]
	}
	copy(p, f.Private)
	return n
}

func flag(on bool, bit byte) byte {
	if on {
		return bit
	}
	return 0
}

// CheckStartup inspects the front of a stream that must start with a request or a reply frame. It returns the frame's
// length in bytes or, while that is unknown, the number of bytes needed to determine it. It returns FaultStartup as
// soon as a byte rules out a valid frame (RFC 5044, 7.1.2).
func CheckStartup(b []byte, reply bool) (int, error) {
	key := RequestKey
	if reply {
		key = ReplyKey
	}
	if n := min(len(b), len(key)); string(b[:n]) != key[:n] {
		return 0, FaultStartup
	}
	if len(b) < StartupLength {
		return StartupLength, nil
	}
	s := Startup(b)
	if s.Revision() != 1 && s.Revision() != 2 || s.PrivateLength() > MaxPrivate ||
		s.IsEnhanced() && s.PrivateLength() < EnhancedLength {
		return 0, FaultStartup
	}
	return s.Length(), nil
}
