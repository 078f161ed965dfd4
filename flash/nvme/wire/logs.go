package wire

// Log is the identifier of a log page (Base 5.16.1).
type Log uint8

// The log pages.
const (
	LogErrors     Log = 0x01
	LogHealth     Log = 0x02
	LogFirmware   Log = 0x03
	LogNamespaces Log = 0x04 // changed namespaces
	LogCommands   Log = 0x05
	LogANA        Log = 0x0c
	LogDiscovery  Log = 0x70
)

// LogRequest are the fields of Get Log Page (Base 5.16.1).
type LogRequest struct {
	Log    Log
	Retain bool
	Length uint64 // bytes
	Offset uint64
}

// LogRequest decodes the command.
func (s SQE) LogRequest() LogRequest {
	w := s.Word(10)
	dwords := uint64(w>>16) | uint64(s.Word(11)&0xffff)<<16 // minus one
	return LogRequest{Log: Log(w), Retain: w&RetainEvent != 0, Length: 4 * (dwords + 1),
		Offset: uint64(s.Word(12)) | uint64(s.Word(13))<<32}
}

// Words encodes the command's dwords 10 to 15. The length is a multiple of 4.
func (r LogRequest) Words() [6]uint32 {
	n := uint32(r.Length/4 - 1)
	w := uint32(r.Log) | n<<16
	if r.Retain {
		w |= RetainEvent
	}
	return [6]uint32{w, n >> 16, uint32(r.Offset), uint32(r.Offset >> 32)}
}

// Health is the SMART / Health Information log page (Base 5.16.1.3).
type Health struct {
	Warning           uint8  // critical warnings
	Kelvin            uint16 // temperature
	Spare, Threshold  uint8  // percent
	Used              uint8  // percent
	Read, Written     uint64 // bytes
	Reads, Writes     uint64 // commands
	PowerCycles       uint64
	PowerOn           uint64 // hours
	MediaErrors       uint64
	Entries           uint64 // of the error log, over the subsystem's life
	UnsafeTerminating uint64 // shutdowns
}

// WarnReadOnly is the critical warning of media that accept no writes any more.
const WarnReadOnly = 1 << 3

// HealthSize is the size of the page, in bytes.
const HealthSize = 512

// unit is the unit of data read and written, in bytes: thousands of 512-byte units, rounded up.
const unit = 512 * 1000

// Append appends the page's bytes.
func (h Health) Append(b []byte) []byte {
	from := len(b)
	b = append(b, make([]byte, HealthSize)...)
	p := b[from:]
	p[0] = h.Warning
	le.PutUint16(p[1:], h.Kelvin)
	p[3], p[4], p[5] = h.Spare, h.Threshold, h.Used
	le.PutUint64(p[32:], h.Read/unit+min(h.Read%unit, 1))
	le.PutUint64(p[48:], h.Written/unit+min(h.Written%unit, 1))
	le.PutUint64(p[64:], h.Reads)
	le.PutUint64(p[80:], h.Writes)
	le.PutUint64(p[112:], h.PowerCycles)
	le.PutUint64(p[128:], h.PowerOn)
	le.PutUint64(p[144:], h.UnsafeTerminating)
	le.PutUint64(p[160:], h.MediaErrors)
	le.PutUint64(p[176:], h.Entries)
	return b
}

// DecodeHealth decodes HealthSize bytes. Bytes read and written are multiples of the page's unit.
func DecodeHealth(p []byte) Health {
	_ = p[HealthSize-1]
	return Health{Warning: p[0], Kelvin: le.Uint16(p[1:]), Spare: p[3], Threshold: p[4], Used: p[5],
		Read: le.Uint64(p[32:]) * unit, Written: le.Uint64(p[48:]) * unit, Reads: le.Uint64(p[64:]),
		Writes: le.Uint64(p[80:]), PowerCycles: le.Uint64(p[112:]), PowerOn: le.Uint64(p[128:]),
		UnsafeTerminating: le.Uint64(p[144:]),
		MediaErrors:       le.Uint64(p[160:]), Entries: le.Uint64(p[176:])}
}

// ErrorEntry is an entry of the error log (Base 5.16.1.2), of ErrorSize bytes.
type ErrorEntry struct {
	Count      uint64 // unique, from 1
	Queue, CID uint16
	Status     Status
	Field      uint16 // offset of the parameter in error; 0xffff is none in particular
	SLBA       uint64
	NSID       uint32
}

// ErrorSize is the size of an entry, in bytes. ErrorEntries is the number of entries of a controller's log (ELPE).
const (
	ErrorSize    = 64
	ErrorEntries = 16
)

// Append appends the entry's bytes.
func (e ErrorEntry) Append(b []byte) []byte {
	from := len(b)
	b = le.AppendUint16(le.AppendUint16(le.AppendUint64(b, e.Count), e.Queue), e.CID)
	b = le.AppendUint16(le.AppendUint16(b, uint16(e.Status)<<1), e.Field)
	b = le.AppendUint32(le.AppendUint64(b, e.SLBA), e.NSID)
	b = append(b, 0, 3) // vendor specific information, transport type TCP
	return pad(b, from+ErrorSize)
}

// DecodeErrorEntry decodes ErrorSize bytes.
func DecodeErrorEntry(p []byte) ErrorEntry {
	_ = p[ErrorSize-1]
	return ErrorEntry{le.Uint64(p), le.Uint16(p[8:]), le.Uint16(p[10:]), Status(le.Uint16(p[12:]) >> 1),
		le.Uint16(p[14:]), le.Uint64(p[16:]), le.Uint32(p[24:])}
}

// AppendFirmware appends the Firmware Slot Information page: slot 1 is active (Base 5.16.1.4).
func AppendFirmware(b []byte, revision string) []byte {
	from := len(b)
	b = append(b, make([]byte, 512)...)
	b[from] = 1
	put(b[from+8:from+16], revision)
	return b
}

// Effects of a command (Base 5.16.1.6).
const (
	supported      = 1 << 0
	changesContent = 1 << 1
)

// AppendCommands appends the page of the commands that are supported, and their effects. Options are as in Controller.
func AppendCommands(b []byte, options uint16) []byte {
	from := len(b)
	b = append(b, make([]byte, 4096)...)
	p := b[from:]
	for _, o := range []Opcode{GetLogPage, Identify, Abort, SetFeatures, GetFeatures, AsyncEvent, KeepAlive} {
		le.PutUint32(p[4*int(o):], supported)
	}
	io := p[1024:]
	for _, o := range []struct {
		Opcode
		option uint16
		effect uint32
	}{{Flush, 0, 0}, {Read, 0, 0}, {Write, 0, changesContent}, {Compare, OptionCompare, 0},
		{WriteZeroes, OptionWriteZeroes, changesContent}, {Dataset, OptionDataset, changesContent},
		{Verify, OptionVerify, 0}} {
		if o.option == 0 || options&o.option != 0 {
			le.PutUint32(io[4*int(o.Opcode):], supported|o.effect)
		}
	}
	return b
}

// State is the state of an ANA group on a controller (Base 8.1.2).
type State uint8

// The states.
const (
	Optimized    State = 1
	NonOptimized State = 2
	Inaccessible State = 3
	Lost         State = 4 // persistently
	Changing     State = 15
)

// Group is an entry of the ANA log page (Base 5.16.1.13).
type Group struct {
	ID         uint32
	Changes    uint64
	State      State
	Namespaces []uint32
}

// AppendANA appends the ANA page.
func AppendANA(b []byte, changes uint64, groups []Group) []byte {
	b = le.AppendUint16(le.AppendUint64(b, changes), uint16(len(groups)))
	b = append(b, make([]byte, 6)...)
	for _, g := range groups {
		b = le.AppendUint32(le.AppendUint32(b, g.ID), uint32(len(g.Namespaces)))
		b = le.AppendUint64(b, g.Changes)
		b = append(append(b, byte(g.State)), make([]byte, 15)...)
		for _, id := range g.Namespaces {
			b = le.AppendUint32(b, id)
		}
	}
	return b
}

// DecodeANA decodes the ANA page; ok is false if an entry is cut off.
func DecodeANA(b []byte) (changes uint64, groups []Group, ok bool) {
	if len(b) < 16 {
		return 0, nil, false
	}
	changes = le.Uint64(b)
	n := int(le.Uint16(b[8:]))
	for b = b[16:]; n > 0; n-- {
		if len(b) < 32 {
			return changes, groups, false
		}
		g := Group{ID: le.Uint32(b), Changes: le.Uint64(b[8:]), State: State(b[16])}
		ids := uint64(le.Uint32(b[4:]))
		if b = b[32:]; uint64(len(b)) < 4*ids {
			return changes, groups, false
		}
		for ; ids > 0; ids-- {
			g.Namespaces = append(g.Namespaces, le.Uint32(b))
			b = b[4:]
		}
		groups = append(groups, g)
	}
	return changes, groups, true
}

// Entry is an entry of the discovery log page (Base 5.16.1.23): how to reach a subsystem over TCP.
type Entry struct {
	Discovery bool // this discovery subsystem itself
	IPv6      bool
	Port      uint16
	Address   string
	Service   string // TCP port
	Subsystem string
}

// Sizes of the discovery log page, in bytes.
const (
	DiscoveryHeader = 1024
	EntrySize       = 1024
)

// AppendDiscovery appends the discovery log page.
func AppendDiscovery(b []byte, generation uint64, entries []Entry) []byte {
	from := len(b)
	b = le.AppendUint64(le.AppendUint64(b, generation), uint64(len(entries)))
	b = pad(b, from+DiscoveryHeader)
	for _, e := range entries {
		from = len(b)
		b = append(b, make([]byte, EntrySize)...)
		p := b[from:]
		// TCP, IPv4, an NVM subsystem. Whether a secure channel is required is not specified: nvme-cli 2.3 asks the
		// kernel for TLS if it is said not to be required.
		p[0], p[1], p[2], p[3] = 3, 1, 2, 0
		if e.IPv6 {
			p[1] = 2
		}
		if e.Discovery {
			p[2] = 3
		}
		le.PutUint16(p[4:], e.Port)
		le.PutUint16(p[6:], AnyController)
		le.PutUint16(p[8:], 32) // ASQSZ
		put(p[32:64], e.Service)
		copy(p[256:][:MaxName], e.Subsystem)
		put(p[512:768], e.Address)
	}
	return b
}

// DecodeDiscovery decodes the discovery log page; ok is false if an entry is cut off.
func DecodeDiscovery(b []byte) (generation uint64, entries []Entry, ok bool) {
	if len(b) < DiscoveryHeader {
		return 0, nil, false
	}
	generation = le.Uint64(b)
	n := le.Uint64(b[8:])
	for b = b[DiscoveryHeader:]; n > 0; n-- {
		if len(b) < EntrySize {
			return generation, entries, false
		}
		p := b[:EntrySize]
		entries = append(entries, Entry{Discovery: p[2] == 3, IPv6: p[1] == 2, Port: le.Uint16(p[4:]),
			Address: trim(p[512:768]), Service: trim(p[32:64]), Subsystem: trim(p[256:512])})
		b = b[EntrySize:]
	}
	return generation, entries, true
}

// trim returns a padded string.
func trim(b []byte) string {
	n := len(b)
	for i, c := range b {
		if c == 0 {
			n = i
			break
		}
	}
	for n > 0 && b[n-1] == ' ' {
		n--
	}
	return string(b[:n])
}

// Feature is the identifier of a feature (Base 5.27.1).
type Feature uint8

// The features.
const (
	FeatureArbitration   Feature = 0x01
	FeaturePower         Feature = 0x02
	FeatureTemperature   Feature = 0x04
	FeatureVolatileCache Feature = 0x06
	FeatureQueues        Feature = 0x07
	FeatureEvents        Feature = 0x0b
	FeatureKeepAlive     Feature = 0x0f
	FeatureHostID        Feature = 0x81
)

// Event is the result of an Asynchronous Event Request: a notice, with the log page that explains it (Base 5.2.1).
type Event uint32

// The events.
const (
	NamespacesChanged Event = 2 | 0x00<<8 | Event(LogNamespaces)<<16
	ANAChanged        Event = 2 | 0x03<<8 | Event(LogANA)<<16
	DiscoveryChanged  Event = 2 | 0xf0<<8 | Event(LogDiscovery)<<16
)

// Log is the page that explains the event.
func (e Event) Log() Log { return Log(e >> 16) }

// Queues encodes the number of I/O queues, as feature FeatureQueues has it, and DecodeQueues decodes it.
func Queues(n int) uint32       { return uint32(n-1) | uint32(n-1)<<16 }
func DecodeQueues(v uint32) int { return int(min(v&0xffff, v>>16)) + 1 }
