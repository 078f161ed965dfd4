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

	// MaxULPDU is the largest segment that an FPDU can carry.
	MaxULPDU = 65535
	// MaxMarkedULPDU is the largest with markers, which point back 65535 bytes at most.
	MaxMarkedULPDU = 65535 - (fpduHeader + fpduCRC + 65535%4) - markerLength*128
	// MaxFPDU is the largest FPDU, with pad, CRC and all markers.
	MaxFPDU = (MaxULPDU+fpduHeader+3)&^3 + fpduCRC + ((MaxULPDU+16)/(markerInterval-markerLength)+2)*markerLength
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// MaxSegment is the largest segment whose FPDU fits into a TCP segment of emss bytes
// (RFC 5044, 4.5), but at least 128.
func MaxSegment(emss int, markers bool) int {
	m := emss - (fpduHeader + fpduCRC + emss%4)
	if markers {
		m -= markerLength * ((emss + markerInterval - 1) / markerInterval)
	}
	return min(max(m, 128), Limit(markers))
}

// Limit is the largest segment that a stream with or without markers carries.
func Limit(markers bool) int {
	if markers {
		return MaxMarkedULPDU
	}
	return MaxULPDU
}

// Framer puts segments into FPDUs. The zero value sends neither CRCs nor markers. It
// counts the stream's bytes for the markers.
type Framer struct {
	CRC     bool
	Markers bool
	phase   int // bytes since the last marker's place
	// Of the frame being written.
	start int
}

// Overhead bounds what Begin and End add to a segment of n bytes.
func (f *Framer) Overhead(n int) int {
	o := fpduHeader + 3 + fpduCRC
	if f.Markers {
		o += ((n+o)/(markerInterval-markerLength) + 2) * markerLength
	}
	return o
}

// Size is the length of the FPDU of a segment of n bytes without markers.
func Size(n int) int { return (n+fpduHeader+3)&^3 + fpduCRC }

// Begin starts an FPDU at the end of b, which has room for the segment and its Overhead,
// and returns b with the segment's n bytes made part of it, to be written by the caller
// at b[len(b)-n:], and then given to End. A segment has at most Limit bytes.
func (f *Framer) Begin(b []byte, n int) []byte {
	f.start = len(b)
	b = b[:f.start+fpduHeader+n]
	be.PutUint16(b[f.start:], uint16(n))
	return b
}

// End finishes the FPDU that Begin started, and returns b with all of it.
func (f *Framer) End(b []byte) []byte {
	for (len(b)-f.start)%4 != 0 { // who wants other pad has appended it
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

// mark opens gaps for markers in the FPDU from f.start on, which has no CRC yet, from its
// end backwards so that every byte moves once.
//
// A marker stands where the stream has gone 512 bytes since the last one's beginning.
// Everything between is a multiple of four long, so it never cuts the header or the CRC.
// One that is due after the pad comes before the CRC; one that is due after the CRC is
// the next FPDU's.
func (f *Framer) mark(b []byte) []byte {
	body := len(b) - f.start
	// A marker at the start has phase 0: it comes before the header.
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
		from := at - i*markerLength // in the body as it was
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

// Deframer takes segments out of FPDUs. The zero value expects neither CRCs nor markers.
type Deframer struct {
	CRC     bool
	Markers bool
	phase   int
}

// Next looks at the bytes of a stream where an FPDU begins. Of a whole one it returns the
// segment, which lies in b, and the FPDU's length. Where there is not enough, it returns
// no segment and how many bytes are needed, as far as that can be told: at least one more
// than there are. With markers, it moves b's bytes together, so that an FPDU is looked at
// once. The errors are FaultCRC and FaultMarker; after one, the stream has no more frames.
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
	// Together again, from the front: everything behind a marker moves up.
	end := first
	for i := range count {
		at := first + i*markerInterval
		pointer := 0
		if at > 0 {
			pointer = at - lead
		}
		// The two low bits are reserved and taken as zero.
		if int(be.Uint16(b[at+2:])&^3) != pointer {
			return nil, 0, FaultMarker
		}
		next := min(at+markerInterval, total)
		end += copy(b[end:], b[at+markerLength:next])
	}
	d.phase = (d.phase + n) % markerInterval
	return Segment(b[fpduHeader : fpduHeader+length]), n, nil
}
