package wiretest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"testing"
)

// A Stream is one direction of a TCP connection.
type Stream struct {
	From, To int // ports
	Bytes    []byte
}

// Read returns the TCP streams of a capture, reassembled, in order of their first packet. A gap fails the test.
func Read(t testing.TB, path string) []Stream {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	frames, err := packets(b)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	streams, err := reassemble(frames)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return streams
}

// packets returns the frames of a pcap or pcapng file.
func packets(b []byte) ([][]byte, error) {
	le := binary.LittleEndian
	if len(b) < 24 {
		return nil, fmt.Errorf("%d bytes are too short for a capture", len(b))
	}
	var out [][]byte
	switch magic := le.Uint32(b); magic {
	case 0xA1B2C3D4, 0xA1B23C4D:
		for b = b[24:]; len(b) >= 16; {
			n := int(le.Uint32(b[8:]))
			if n > len(b)-16 {
				return nil, fmt.Errorf("truncated packet of %d bytes", n)
			}
			out = append(out, b[16:16+n])
			b = b[16+n:]
		}
		return out, nil
	case 0x0A0D0D0A:
	default:
		return nil, fmt.Errorf("unknown magic number %#x", magic)
	}
	for len(b) >= 12 {
		kind, n := le.Uint32(b), int(le.Uint32(b[4:]))
		if n < 12 || n > len(b) || n%4 != 0 {
			return nil, fmt.Errorf("invalid block of %d bytes", n)
		}
		if kind == 6 && n >= 32 {
			held := int(le.Uint32(b[20:]))
			if held > n-32 {
				return nil, fmt.Errorf("packet of %d bytes exceeds its block of %d", held, n)
			}
			out = append(out, b[28:28+held])
		}
		b = b[n:]
	}
	return out, nil
}

// reassemble joins the TCP payloads of the Ethernet and IPv4 frames into streams.
func reassemble(frames [][]byte) ([]Stream, error) {
	type end struct{ from, to uint16 }
	type state struct {
		index int
		next  uint32
		later map[uint32][]byte
	}
	ends := map[end]*state{}
	var out []Stream
	for i, f := range frames {
		if len(f) < 14+20+20 || binary.BigEndian.Uint16(f[12:]) != 0x0800 {
			continue
		}
		ip := f[14:]
		if total := int(binary.BigEndian.Uint16(ip[2:])); total >= 40 && total < len(ip) {
			ip = ip[:total]
		}
		head := int(ip[0]&0xF) * 4
		if ip[9] != 6 || head+20 > len(ip) {
			continue
		}
		tcp := ip[head:]
		e := end{binary.BigEndian.Uint16(tcp), binary.BigEndian.Uint16(tcp[2:])}
		seq, flags, off := binary.BigEndian.Uint32(tcp[4:]), tcp[13], int(tcp[12]>>4)*4
		if off > len(tcp) {
			return nil, fmt.Errorf("frame %d: invalid TCP header of %d bytes", i, off)
		}
		s := ends[e]
		if flags&2 != 0 || s == nil { // SYN
			s = &state{index: len(out), next: seq, later: map[uint32][]byte{}}
			if flags&2 != 0 {
				s.next++
				seq++
			}
			ends[e] = s
			out = append(out, Stream{From: int(e.from), To: int(e.to)})
		}
		if p := tcp[off:]; len(p) > 0 {
			s.later[seq] = p
		}
		for again := true; again; {
			again = false
			for at, p := range s.later {
				if skip := int32(s.next - at); skip >= 0 {
					delete(s.later, at)
					if int(skip) < len(p) {
						out[s.index].Bytes = append(out[s.index].Bytes, p[skip:]...)
						s.next += uint32(len(p) - int(skip))
					}
					again = true
					break
				}
			}
		}
	}
	for e, s := range ends {
		if len(s.later) > 0 {
			return nil, fmt.Errorf("the stream from port %d to %d has a gap", e.from, e.to)
		}
	}
	return out, nil
}

// Capture builds a pcap file of one TCP connection, write by write.
type Capture struct {
	buf  bytes.Buffer
	next [2]uint32
	now  uint32
}

// NewCapture returns a capture that starts with the three-way handshake.
func NewCapture() *Capture {
	c := &Capture{next: [2]uint32{1000, 2000}}
	for _, w := range []uint32{0xA1B2C3D4, 4<<16 | 2, 0, 0, 262144, 1} {
		c.buf.Write(binary.LittleEndian.AppendUint32(nil, w))
	}
	c.packet(0, 0x02, nil)
	c.packet(1, 0x12, nil)
	c.packet(0, 0x10, nil)
	return c
}

// Bytes returns a copy of the file so far.
func (c *Capture) Bytes() []byte { return slices.Clone(c.buf.Bytes()) }

// Add appends the bytes that one side wrote (0 is the side that connected), in packets of at most mss bytes.
func (c *Capture) Add(side int, b []byte, mss int) {
	for len(b) > 0 {
		n := min(mss, len(b))
		c.packet(side, 0x18, b[:n])
		c.packet(1-side, 0x10, nil)
		b = b[n:]
	}
}

func (c *Capture) packet(side int, flags byte, payload []byte) {
	ports := [2]uint16{40000, 17174}
	n := 14 + 20 + 20 + len(payload)
	f := make([]byte, 54, n)
	be := binary.BigEndian
	be.PutUint16(f[12:], 0x0800)
	ip := f[14:]
	ip[0], ip[8], ip[9] = 0x45, 64, 6
	be.PutUint16(ip[2:], uint16(n-14))
	copy(ip[12:], []byte{127, 0, 0, 1, 127, 0, 0, 1})
	tcp := ip[20:]
	be.PutUint16(tcp, ports[side])
	be.PutUint16(tcp[2:], ports[1-side])
	be.PutUint32(tcp[4:], c.next[side])
	if flags != 2 {
		be.PutUint32(tcp[8:], c.next[1-side])
	}
	tcp[12], tcp[13] = 5<<4, flags
	be.PutUint16(tcp[14:], 65535)
	c.next[side] += uint32(len(payload))
	if flags&2 != 0 {
		c.next[side]++
	}
	c.now++
	for _, w := range []uint32{0, c.now, uint32(n), uint32(n)} {
		c.buf.Write(binary.LittleEndian.AppendUint32(nil, w))
	}
	c.buf.Write(f)
	c.buf.Write(payload)
}
