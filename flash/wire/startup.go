package wire

// The keys that MPA's startup frames begin with (RFC 5044, 7.1.1).
const (
	RequestKey = "MPA ID Req Frame"
	ReplyKey   = "MPA ID Rep Frame"
)

// Limits of startup frames, in bytes.
const (
	StartupLength  = 20  // without private data
	MaxPrivate     = 512 // private data, with what RFC 6581 puts before it
	EnhancedLength = 4
)

// The flags of a startup frame; S is RFC 6581's.
const (
	startupMarkers  = 0x80
	startupCRC      = 0x40
	startupReject   = 0x20
	startupEnhanced = 0x10
)

// Startup is an MPA Request or Reply frame. Its methods need StartupLength bytes.
type Startup []byte

// IsRequest reports whether the key is a request's.
func (s Startup) IsRequest() bool { return string(s[:16]) == RequestKey }

// IsReply reports whether the key is a reply's.
func (s Startup) IsReply() bool { return string(s[:16]) == ReplyKey }

// Markers reports whether the sender requires markers in what it receives.
func (s Startup) Markers() bool { return s[16]&startupMarkers != 0 }

// CRC reports whether the sender wants CRCs. They are used if either side does.
func (s Startup) CRC() bool { return s[16]&startupCRC != 0 }

// Reject reports whether the responder refuses the connection.
func (s Startup) Reject() bool { return s[16]&startupReject != 0 }

// IsEnhanced reports whether the private data begins with Enhanced. In revision 1 the bit
// is reserved and not looked at.
func (s Startup) IsEnhanced() bool { return s[16]&startupEnhanced != 0 && s.Revision() >= 2 }

// Revision is MPA's revision: 1, or 2 for RFC 6581.
func (s Startup) Revision() uint8 { return s[17] }

// PrivateLength is the length of the private data, in bytes.
func (s Startup) PrivateLength() int { return int(be.Uint16(s[18:])) }

// Length is the length of the whole frame, in bytes.
func (s Startup) Length() int { return StartupLength + s.PrivateLength() }

// Enhanced is RFC 6581's part of the private data: nil if there is none.
func (s Startup) Enhanced() Enhanced {
	if !s.IsEnhanced() || s.PrivateLength() < EnhancedLength || len(s) < StartupLength+EnhancedLength {
		return nil
	}
	return Enhanced(s[StartupLength : StartupLength+EnhancedLength])
}

// Private is the private data of whoever is above, without Enhanced.
func (s Startup) Private() []byte {
	p := s[StartupLength:s.Length()]
	if s.Enhanced() != nil {
		return p[EnhancedLength:]
	}
	return p
}

// Unnegotiated is the value of IRD and ORD that says: agreed elsewhere (RFC 6581, 9.1).
const Unnegotiated = 0x3FFF

// RTR is a set of messages that can be the first of a peer-to-peer connection, each of
// length zero (RFC 6581, 9.2).
type RTR uint8

// The messages.
const (
	RTRSend RTR = 1 << iota
	RTRWrite
	RTRRead
)

// Enhanced is RFC 6581's four bytes (section 9).
type Enhanced []byte

// PeerToPeer reports whether the initiator announces with a message that it is ready.
func (e Enhanced) PeerToPeer() bool { return e[0]&0x80 != 0 }

// RTR is the messages that can do that; none if it is not peer to peer.
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

// IRD is how many reads the sender takes at a time.
func (e Enhanced) IRD() uint16 { return be.Uint16(e) & 0x3FFF }

// ORD is how many reads the sender would like to have under way.
func (e Enhanced) ORD() uint16 { return be.Uint16(e[2:]) & 0x3FFF }

// StartupFields are what a startup frame says. Revision 2 with Enhanced set writes
// RFC 6581's part before Private.
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

// Fields are all of a frame; they share its private data.
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

// Put writes the frame into the first Length bytes, and returns how many those are.
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

// CheckStartup looks at the first bytes of a stream where a startup frame is due, a
// request or a reply. It returns how many bytes the frame has: as many as are needed to
// tell while that is not known. FaultStartup is a frame that cannot be MPA's, known at the
// first byte that is wrong (RFC 5044, 7.1.2).
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
