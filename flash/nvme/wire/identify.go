package wire

// IdentifySize is the size of all Identify structures, in bytes.
const IdentifySize = 4096

// CNS selects an Identify structure (Base 5.17.1).
type CNS uint8

// The structures.
const (
	CNSNamespace     CNS = 0x00 // of the NVM command set
	CNSController    CNS = 0x01
	CNSActive        CNS = 0x02 // identifiers of active namespaces
	CNSDescriptors   CNS = 0x03 // names of a namespace
	CNSSetNamespace  CNS = 0x05 // of a command set
	CNSSetController CNS = 0x06 // of a command set
	CNSSetActive     CNS = 0x07
	CNSIndependent   CNS = 0x08 // namespace, independent of a command set
	CNSSets          CNS = 0x1c // command sets
)

// Optional commands, the ONCS field (Base 5.17.2.1).
const (
	OptionCompare     = 1 << 0
	OptionDataset     = 1 << 2
	OptionWriteZeroes = 1 << 3
	OptionVerify      = 1 << 7
)

// Optional events, the OAES field and the feature AsyncEvents.
const (
	EventNamespace = 1 << 8
	EventANA       = 1 << 11
	EventDiscovery = 1 << 31
)

// Controller is the Identify Controller structure (Base 5.17.2.1), as far as it is not constant for this target.
type Controller struct {
	Serial, Model, Firmware string
	ID                      uint16
	Version                 uint32
	Transfer                uint8 // MDTS: at most 4 KiB << Transfer in a command; 0 is no limit
	Events                  uint32
	Discovery               bool
	Entries                 uint16 // MAXCMD
	Namespaces              uint32 // NN and, with ANA, MNAN
	Options                 uint16
	VolatileCache           bool
	ANA                     bool
	KeepAlive               uint16 // KAS: granularity of the timer, in 100 ms
	InCapsule               int    // bytes of data in a capsule of an I/O queue
	Subsystem               string
}

// Constants of every controller: the number of AERs outstanding, minus one; the bits of CMIC.
const (
	eventLimit      = 3
	cmicPorts       = 1 << 0
	cmicControllers = 1 << 1
	cmicANA         = 1 << 3
)

// The ANA groups: of namespaces in the state of their port, and of those that are inaccessible on all.
const (
	GroupServed = 1
	GroupHeld   = 2
)

// EventLimit is the number of Asynchronous Event Requests that may be outstanding.
const EventLimit = eventLimit + 1

// put copies a string, padded with spaces.
func put(b []byte, s string) {
	for i := copy(b, s); i < len(b); i++ {
		b[i] = ' '
	}
}

// Append appends the structure's bytes.
func (c Controller) Append(b []byte) []byte {
	from := len(b)
	b = append(b, make([]byte, IdentifySize)...)
	p := b[from:]
	put(p[4:24], c.Serial)
	put(p[24:64], c.Model)
	put(p[64:72], c.Firmware)
	p[77] = c.Transfer
	le.PutUint16(p[78:], c.ID)
	le.PutUint32(p[80:], c.Version)
	le.PutUint32(p[92:], c.Events)
	le.PutUint32(p[96:], 1|1<<6) // CTRATT: host identifiers of 128 bits, traffic-based keep-alive
	p[111] = 1                   // CNTRLTYPE: I/O
	p[258] = 3                   // ACL
	p[259] = eventLimit          // AERL
	p[260] = 3                   // FRMW: one slot, read-only
	p[261] = 1<<1 | 1<<2         // LPA: log of commands supported, lengths and offsets of 32 bits
	p[262] = ErrorEntries - 1    // ELPE
	le.PutUint16(p[320:], c.KeepAlive)
	p[512], p[513] = 0x66, 0x44 // SQES, CQES
	le.PutUint16(p[514:], c.Entries)
	le.PutUint32(p[536:], 1|1<<20) // SGLS: supported, with offsets
	copy(p[768:][:MaxName], c.Subsystem)
	le.PutUint32(p[1792:], uint32(SQESize+c.InCapsule)/16) // IOCCSZ
	le.PutUint32(p[1796:], CQESize/16)                     // IORCSZ
	p[1803] = 1                                            // MSDBD
	if c.Discovery {
		p[111] = 2
		return b
	}
	p[76] = cmicPorts | cmicControllers
	le.PutUint32(p[516:], c.Namespaces)
	le.PutUint16(p[520:], c.Options)
	if c.VolatileCache {
		p[525] = 1 | 3<<1 // Flush may name all namespaces
	}
	if c.ANA { // Linux refuses ANA unless MNAN is from 1 to NN
		p[76] |= cmicANA
		p[342] = 10                         // ANATT, seconds
		p[343] = 0x1f                       // ANACAP: all states; the group of a namespace can change
		le.PutUint32(p[344:], GroupHeld)    // ANAGRPMAX
		le.PutUint32(p[348:], GroupHeld)    // NANAGRPID
		le.PutUint32(p[540:], c.Namespaces) // MNAN
	}
	return b
}

// DecodeController decodes IdentifySize bytes.
func DecodeController(p []byte) Controller {
	_ = p[IdentifySize-1]
	return Controller{
		Serial: trim(p[4:24]), Model: trim(p[24:64]), Firmware: trim(p[64:72]), Transfer: p[77], ID: le.Uint16(p[78:]),
		Version: le.Uint32(p[80:]), Events: le.Uint32(p[92:]), Discovery: p[111] == 2, KeepAlive: le.Uint16(p[320:]),
		Entries: le.Uint16(p[514:]), Namespaces: le.Uint32(p[516:]), Options: le.Uint16(p[520:]),
		VolatileCache: p[525]&1 != 0, ANA: p[76]&cmicANA != 0, Subsystem: trim(p[768:1024]),
		// A corrupt length must not become negative or excessive.
		InCapsule: max(0, int(min(le.Uint32(p[1792:]), 1<<24))*16-SQESize),
	}
}

// Namespace is the Identify Namespace structure of the NVM command set (NVM 4.1.5.1), as far as it is not constant for
// this target. Deallocated blocks read as zeros.
type Namespace struct {
	Blocks, Used uint64
	Shift        uint8  // log2 of the block size in bytes
	Grain        uint16 // blocks, aligned, whose writes are atomic and whose deallocation frees space
	Group        uint32 // ANA group
	ReadOnly     bool
	NGUID        [16]byte
}

// Append appends the structure's bytes.
func (n Namespace) Append(b []byte) []byte {
	from := len(b)
	b = append(b, make([]byte, IdentifySize)...)
	p := b[from:]
	le.PutUint64(p, n.Blocks)
	le.PutUint64(p[8:], n.Blocks)
	le.PutUint64(p[16:], n.Used)
	p[24] = 1 | 1<<1 | 1<<4 // NSFEAT: thin, atomic units and granularities are valid
	p[30] = 1               // NMIC: shared
	p[33] = 1 | 1<<3        // DLFEAT: deallocated blocks read as zeros; Write Zeroes can deallocate
	unit := max(n.Grain, 1) - 1
	for _, at := range []int{34, 36, 40, 44, 64, 66, 68, 70, 72} {
		le.PutUint16(p[at:], unit) // NAWUN, NAWUPF, NABSN, NABSPF, NPWG, NPWA, NPDG, NPDA, NOWS
	}
	le.PutUint32(p[92:], n.Group)
	if n.ReadOnly {
		p[99] = 1
	}
	copy(p[104:], n.NGUID[:])
	p[130] = n.Shift // LBAF 0
	return b
}

// DecodeNamespace decodes IdentifySize bytes.
func DecodeNamespace(p []byte) Namespace {
	_ = p[IdentifySize-1]
	n := Namespace{Blocks: le.Uint64(p), Used: le.Uint64(p[16:]), Shift: p[130+4*int(p[26]&15)],
		Grain: le.Uint16(p[64:]) + 1, Group: le.Uint32(p[92:]), ReadOnly: p[99]&1 != 0}
	copy(n.NGUID[:], p[104:])
	return n
}

// AppendList appends a list of namespace identifiers, ascending, of those above after (Base 4.4.2).
func AppendList(b []byte, after uint32, ids []uint32) []byte {
	from := len(b)
	for _, id := range ids {
		if id > after && len(b) < from+IdentifySize {
			b = le.AppendUint32(b, id)
		}
	}
	return pad(b, from+IdentifySize)
}

// pad appends zeros up to a length.
func pad(b []byte, n int) []byte {
	for len(b) < n {
		b = append(b, 0)
	}
	return b
}

// DecodeList decodes a list of up to IdentifySize bytes.
func DecodeList(b []byte) (ids []uint32) {
	for b = b[:min(len(b), IdentifySize)]; len(b) >= 4 && le.Uint32(b) != 0; b = b[4:] {
		ids = append(ids, le.Uint32(b))
	}
	return ids
}

// Types of namespace names (Base 5.17.2.3).
const (
	nameNGUID = 2
	nameUUID  = 3
	nameSet   = 4
)

// AppendDescriptors appends the names of a namespace: its NGUID and UUID, and the NVM command set.
func AppendDescriptors(b []byte, nguid, uuid [16]byte) []byte {
	from := len(b)
	b = append(append(b, nameNGUID, 16, 0, 0), nguid[:]...)
	b = append(append(b, nameUUID, 16, 0, 0), uuid[:]...)
	b = append(b, nameSet, 1, 0, 0, 0)
	return pad(b, from+IdentifySize)
}

// DecodeDescriptors decodes the names of a namespace; ok is false if a name is cut off.
func DecodeDescriptors(b []byte) (nguid, uuid [16]byte, ok bool) {
	for len(b) >= 4 && b[1] != 0 {
		n := int(b[1])
		if len(b) < 4+n {
			return nguid, uuid, false
		}
		switch {
		case b[0] == nameNGUID && n == 16:
			copy(nguid[:], b[4:])
		case b[0] == nameUUID && n == 16:
			copy(uuid[:], b[4:])
		}
		b = b[4+n:]
	}
	return nguid, uuid, true
}

// SetLimits are the limits in the Identify Controller structure of the NVM command set (NVM 4.1.5.2).
type SetLimits struct {
	Verify, Zeroes uint8  // 4 KiB << n bytes in a command; 0 is no limit
	Ranges         uint8  // of Dataset Management; 0 is no limit
	RangeBlocks    uint32 // in a range; 0 is no limit
}

// Append appends the structure's bytes.
func (l SetLimits) Append(b []byte) []byte {
	from := len(b)
	b = append(b, l.Verify, l.Zeroes, 0, l.Ranges)
	b = le.AppendUint32(b, l.RangeBlocks)
	return pad(b, from+IdentifySize)
}

// DecodeSetLimits decodes IdentifySize bytes.
func DecodeSetLimits(p []byte) SetLimits {
	_ = p[IdentifySize-1]
	return SetLimits{p[0], p[1], p[3], le.Uint32(p[4:])}
}
