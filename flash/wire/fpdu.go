package wire

import (
	"encoding/binary"
	"hash/crc32"
)

// Sizes of MPA framing, in bytes (RFC 5044, 4).
const (
	fpduHeader     = 2
	fpduCRC        = 4
	markerLength   = 4
	markerInterval = 512

	// MaxULPDU is the largest segment that an FPDU can carry, limited by its 16-bit length.
	MaxULPDU = 65535
	// maxMarkedULPDU is the limit with markers, whose 16-bit pointers reach back at most 65535 bytes.
	maxMarkedULPDU = 65535 - (fpduHeader + fpduCRC + 65535%4) - markerLength*128
	// MaxFPDU is the size of the largest FPDU, including pad, CRC and markers.
	MaxFPDU = (MaxULPDU+fpduHeader+3)&^3 + fpduCRC + ((MaxULPDU+16)/(markerInterval-markerLength)+2)*markerLength
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Limit is the largest segment that a stream with or without markers can carry.
func Limit(markers bool) int {
	if markers {
		return maxMarkedULPDU
	}
	return MaxULPDU
}

// Framer wraps segments in FPDUs. The zero value writes a zero CRC field and no markers. It tracks the position in the
// stream to place the markers.
type Framer struct {
	CRC     bool
	Markers bool
	phase   int // bytes since the last marker position
	// start is the offset of the FPDU that Begin opened.
	start int
}

// Overhead is an upper bound on the bytes that Begin and End add to a segment of n bytes.
func (f *Framer) Overhead(n int) int {
	o := fpduHeader + 3 + fpduCRC
	if f.Markers {
		o += ((n+o)/(markerInterval-markerLength) + 2) * markerLength
	}
	return o
}

// Size is the length of the FPDU of an n-byte segment, without markers.
func Size(n int) int { return (n+fpduHeader+3)&^3 + fpduCRC }

// Begin starts an FPDU at the end of b, which must have capacity for the segment and its Overhead. It returns b
// extended by the n bytes of the segment; the caller writes the segment to b[len(b)-n:] and passes b to End. A segment
// has at most Limit bytes.
func (f *Framer) Begin(b []byte, n int) []byte {
	f.start = len(b)
	b = b[:f.start+fpduHeader+n]
	be.PutUint16(b[f.start:], uint16(n))
	return b
}

// End completes the FPDU that Begin started and returns b with pad, markers and CRC added.
func (f *Framer) End(b []byte) []byte {
	for (len(b)-f.start)%4 != 0 { // zero pad, unless the caller has appended its own
		b = append(b, 0)
	}
	if f.Markers {
		b = f.mark(b)
	}
	var crc uint32
	if f.CRC {
		crc = crc32.Checksum(b[f.start:], castagnoli)
	}
	return append(b, byte(crc), byte(crc>>8), byte(crc>>16), byte(crc>>24))
}

// mark inserts markers into the FPDU that starts at f.start and has no CRC yet. It works backwards from the end, so
// that each byte moves once.
//
// Markers are 512 bytes apart, measured from the start of one to the start of the next. Everything between them is a
// multiple of four bytes long, so a marker never splits the length field or the CRC. A marker due right after the pad
// precedes the CRC; one due after the CRC belongs to the next FPDU.
func (f *Framer) mark(b []byte) []byte {
	body := len(b) - f.start
	// At phase 0 the first marker precedes the length field.
	first := (markerInterval - f.phase) % markerInterval
	count := 0
	for at := first; at <= body+count*markerLength; at += markerInterval {
		count++
	}
	total := body + count*markerLength
	b = b[:f.start+total]
	frame := b[f.start:]
	lead := 0
	if first == 0 {
		lead = markerLength
	}
	end := body
	for i := count - 1; i >= 0; i-- {
		at := first + i*markerInterval
		from := at - i*markerLength // offset in the unmarked body
		copy(frame[at+markerLength:], frame[from:end])
		end = from
		pointer := uint16(0)
		if at > 0 {
			pointer = uint16(at - lead)
		}
		be.PutUint32(frame[at:], uint32(pointer))
	}
	f.phase = (f.phase + total + fpduCRC) % markerInterval
	return b
}

// Deframer extracts segments from FPDUs. The zero value expects no markers and ignores the CRC field.
type Deframer struct {
	CRC     bool
	Markers bool
	phase   int
}

// Next parses the FPDU at the front of b. If the FPDU is complete, it returns the segment, which aliases b, and the
// FPDU's length. Otherwise it returns a nil segment and the number of bytes needed so far, always more than len(b).
// With markers, Next compacts b in place, so it must see each complete FPDU only once. The errors are FaultCRC and
// FaultMarker; after either, no further frame can be read from the stream.
func (d *Deframer) Next(b []byte) (segment Segment, n int, err error) {
	if d.Markers {
		return d.marked(b)
	}
	if len(b) < fpduHeader {
		return nil, fpduHeader, nil
	}
	length := int(be.Uint16(b))
	n = Size(length)
	if len(b) < n {
		return nil, n, nil
	}
	body := n - fpduCRC
	if d.CRC && crc32.Checksum(b[:body], castagnoli) != binary.LittleEndian.Uint32(b[body:]) {
		return nil, 0, FaultCRC
	}
	return Segment(b[fpduHeader : fpduHeader+length]), n, nil
}

func (d *Deframer) marked(b []byte) (Segment, int, error) {
	first := (markerInterval - d.phase) % markerInterval
	lead := 0
	if first == 0 {
		lead = markerLength
	}
	if len(b) < lead+fpduHeader {
		return nil, lead + fpduHeader, nil
	}
	length := int(be.Uint16(b[lead:]))
	body := (length + fpduHeader + 3) &^ 3
	count := 0
	for at := first; at <= body+count*markerLength; at += markerInterval {
		count++
	}
	total := body + count*markerLength
	n := total + fpduCRC
	if len(b) < n {
		return nil, n, nil
	}
	if d.CRC && crc32.Checksum(b[:total], castagnoli) != binary.LittleEndian.Uint32(b[total:]) {
		return nil, 0, FaultCRC
	}
	// Compact from the front: the bytes after each marker move up over it.
	end := first
	for i := range count {
		at := first + i*markerInterval
		pointer := 0
		if at > 0 {
			pointer = at - lead
		}
		// The two low bits are reserved; they are ignored.
		if int(be.Uint16(b[at+2:])&^3) != pointer {
			return nil, 0, FaultMarker
		}
		next := min(at+markerInterval, total)
		end += copy(b[end:], b[at+markerLength:next])
	}
	d.phase = (d.phase + n) % markerInterval
	return Segment(b[fpduHeader : fpduHeader+length]), n, nil
}
