package stream_test

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"net"
)

// rawPeer is one end of a connection, written from RFC 5040, 5041, 5044, 6581 and 7306 alone. It shares no code with
// the implementation under test and sends whatever the test wants.
type rawPeer struct {
	nc  net.Conn
	in  *bufio.Reader
	rnd *rand.Rand

	crc               bool
	marksOut, marksIn bool
	posOut, posIn     int // positions in the FPDU streams, in bytes
	out               []byte

	msnOut, msnIn [4]uint32
	ird           int // limit on outstanding reads and atomics at the other end
}

var (
	big    = binary.BigEndian
	crc32c = crc32.MakeTable(crc32.Castagnoli)
)

// Opcodes, by their numbers in RFC 5040, 4.3 and RFC 7306, 4.1.
const (
	rawWrite = iota
	rawReadRequest
	rawReadResponse
	rawSend
	rawSendInvalidate
	rawSendSolicited
	rawSendSolicitedInvalidate
	rawTerminate
	rawImmediate
	rawImmediateSolicited
	rawAtomicRequest
	rawAtomicResponse
)

func newRawPeer(nc net.Conn, rnd *rand.Rand) *rawPeer {
	p := &rawPeer{nc: nc, in: bufio.NewReaderSize(nc, 1<<16), rnd: rnd}
	for i := range p.msnOut {
		p.msnOut[i], p.msnIn[i] = 1, 1
	}
	return p
}

// startupFrame is an MPA Request or Reply.
type startupFrame struct {
	markers, crc, reject bool
	revision             byte
	enhanced             bool
	peerToPeer           bool
	rtr                  byte // 1 Send, 2 Write, 4 Read
	ird, ord             uint16
	private              []byte
}

func (f startupFrame) bytes(reply bool) []byte {
	b := []byte("MPA ID Req Frame")
	if reply {
		b = []byte("MPA ID Rep Frame")
	}
	set := func(on bool, bit byte) (x byte) {
		if on {
			x = bit
		}
		return x
	}
	private := f.private
	if f.enhanced {
		e := make([]byte, 4)
		big.PutUint16(e, f.ird&0x3fff)
		big.PutUint16(e[2:], f.ord&0x3fff)
		e[0] |= set(f.peerToPeer, 0x80) | set(f.rtr&1 != 0, 0x40)
		e[2] |= set(f.rtr&2 != 0, 0x80) | set(f.rtr&4 != 0, 0x40)
		private = append(e, private...)
	}
	b = append(b, set(f.markers, 0x80)|set(f.crc, 0x40)|set(f.reject, 0x20)|set(f.enhanced, 0x10), f.revision)
	b = big.AppendUint16(b, uint16(len(private)))
	return append(b, private...)
}

// readStartup reads the startup frame of the other end.
func (p *rawPeer) readStartup(reply bool) (f startupFrame, err error) {
	b := make([]byte, 20)
	if _, err = io.ReadFull(p.in, b); err != nil {
		return f, err
	}
	key := "MPA ID Req Frame"
	if reply {
		key = "MPA ID Rep Frame"
	}
	if string(b[:16]) != key {
		return f, fmt.Errorf("a startup frame begins %q", b[:16])
	}
	f.markers, f.crc, f.reject, f.enhanced, f.revision = b[16]&0x80 != 0, b[16]&0x40 != 0, b[16]&0x20 != 0,
		b[16]&0x10 != 0, b[17]
	f.private = make([]byte, big.Uint16(b[18:]))
	if _, err = io.ReadFull(p.in, f.private); err != nil {
		return f, err
	}
	if f.enhanced {
		e := f.private
		f.ird, f.ord, f.peerToPeer = big.Uint16(e)&0x3fff, big.Uint16(e[2:])&0x3fff, e[0]&0x80 != 0
		if e[0]&0x40 != 0 {
			f.rtr |= 1
		}
		if e[2]&0x80 != 0 {
			f.rtr |= 2
		}
		if e[2]&0x40 != 0 {
			f.rtr |= 4
		}
		f.private = e[4:]
	}
	return f, nil
}

// frame appends the FPDU of a DDP segment to the output.
func (p *rawPeer) frame(segment []byte) {
	body := big.AppendUint16(nil, uint16(len(segment)))
	body = append(body, segment...)
	for len(body)%4 != 0 {
		body = append(body, 0)
	}
	begin, header := len(p.out), -1
	mark := func() {
		if p.marksOut && p.posOut%512 == 0 {
			pointer := uint16(0)
			if header >= 0 {
				pointer = uint16(len(p.out) - header)
			}
			p.out = append(p.out, 0, 0, byte(pointer>>8), byte(pointer))
			p.posOut += 4
		}
	}
	for ; len(body) > 0; body = body[4:] {
		mark()
		if header < 0 {
			header = len(p.out)
		}
		p.out = append(p.out, body[:4]...)
		p.posOut += 4
	}
	mark()
	sum := p.rnd.Uint32() // without CRCs the field is arbitrary
	if p.crc {
		sum = crc32.Checksum(p.out[begin:], crc32c)
	}
	p.out = binary.LittleEndian.AppendUint32(p.out, sum)
	p.posOut += 4
}

// flush sends the output, in pieces that ignore frame boundaries.
func (p *rawPeer) flush() error {
	for len(p.out) > 0 {
		n := len(p.out)
		if p.rnd.IntN(2) == 0 {
			n = 1 + p.rnd.IntN(n)
		}
		if _, err := p.nc.Write(p.out[:n]); err != nil {
			return err
		}
		p.out = p.out[n:]
	}
	p.out = nil
	return nil
}

// read returns the segment of the next FPDU.
func (p *rawPeer) read() ([]byte, error) {
	var frame, body []byte
	header := -1
	word := func(n int) ([]byte, error) {
		at := len(frame)
		frame = append(frame, make([]byte, n)...)
		_, err := io.ReadFull(p.in, frame[at:])
		p.posIn += n
		return frame[at:], err
	}
	mark := func() error {
		if !p.marksIn || p.posIn%512 != 0 {
			return nil
		}
		at := len(frame)
		m, err := word(4)
		if err != nil {
			return err
		}
		want := 0
		if header >= 0 {
			want = at - header
		}
		if int(big.Uint16(m[2:])) != want {
			return fmt.Errorf("a marker points back %d bytes, and the header is %d before it", big.Uint16(m[2:]), want)
		}
		return nil
	}
	for need := 4; len(body) < need; {
		if err := mark(); err != nil {
			return nil, err
		}
		if header < 0 {
			header = len(frame)
		}
		w, err := word(4)
		if err != nil {
			return nil, err
		}
		if body = append(body, w...); len(body) == 4 {
			need = (int(big.Uint16(body)) + 2 + 3) &^ 3
		}
	}
	if err := mark(); err != nil {
		return nil, err
	}
	sum := crc32.Checksum(frame, crc32c)
	w, err := word(4)
	if err != nil {
		return nil, err
	}
	if p.crc && binary.LittleEndian.Uint32(w) != sum {
		return nil, fmt.Errorf("a frame of %d bytes has a wrong CRC", len(frame))
	}
	return body[2 : 2+big.Uint16(body)], nil
}

// tagged frames one segment for a tagged buffer.
func (p *rawPeer) tagged(op byte, last bool, stag uint32, offset uint64, payload []byte) {
	b := []byte{0x81, 0x40 | op}
	if last {
		b[0] |= 0x40
	}
	b = big.AppendUint32(b, stag)
	b = big.AppendUint64(b, offset)
	p.frame(append(b, payload...))
}

// untaggedAt frames one segment of an untagged message with an arbitrary header.
func (p *rawPeer) untaggedAt(op byte, last bool, reserved, queue, msn, offset uint32, payload []byte) {
	b := []byte{0x01, 0x40 | op}
	if last {
		b[0] |= 0x40
	}
	for _, x := range []uint32{reserved, queue, msn, offset} {
		b = big.AppendUint32(b, x)
	}
	p.frame(append(b, payload...))
}

// queueOf is the queue of an untagged opcode.
func queueOf(op byte) uint32 {
	switch op {
	case rawReadRequest, rawAtomicRequest:
		return 1
	case rawTerminate:
		return 2
	case rawAtomicResponse:
		return 3
	}
	return 0
}

// untagged frames a whole message with the next sequence number, split by cut.
func (p *rawPeer) untagged(op byte, reserved uint32, payload []byte, cut func(left int) int) {
	q := queueOf(op)
	for at := 0; ; {
		n := len(payload) - at
		if cut != nil {
			n = cut(n)
		}
		p.untaggedAt(op, at+n == len(payload), reserved, q, p.msnOut[q], uint32(at), payload[at:at+n])
		if at += n; at == len(payload) {
			break
		}
	}
	p.msnOut[q]++
}

// pieces returns a random length for the next segment, from 0 to all that is left.
func (p *rawPeer) pieces(left int) int {
	switch p.rnd.IntN(5) {
	case 0:
		return min(left, p.rnd.IntN(8))
	case 1:
		return p.rnd.IntN(left + 1)
	case 2:
		return min(left, 4096)
	}
	return min(left, 60000)
}

// rawSegment is a decoded segment.
type rawSegment struct {
	op             byte
	tagged, last   bool
	stag           uint32
	offset         uint64
	queue, msn, mo uint32
	reserved       uint32
	payload        []byte
}

func parseRaw(b []byte) (s rawSegment, err error) {
	if len(b) < 14 || b[0]&3 != 1 || b[1]>>6 != 1 {
		return s, fmt.Errorf("a segment begins % x", b[:min(len(b), 4)])
	}
	s.tagged, s.last, s.op = b[0]&0x80 != 0, b[0]&0x40 != 0, b[1]&15
	if s.tagged {
		s.stag, s.offset, s.payload = big.Uint32(b[2:]), big.Uint64(b[6:]), b[14:]
		return s, nil
	}
	if len(b) < 18 {
		return s, fmt.Errorf("an untagged segment of %d bytes", len(b))
	}
	s.reserved, s.queue, s.msn, s.mo, s.payload = big.Uint32(b[2:]), big.Uint32(b[6:]), big.Uint32(b[10:]),
		big.Uint32(b[14:]), b[18:]
	if s.queue != queueOf(s.op) {
		return s, fmt.Errorf("opcode %d comes on queue %d", s.op, s.queue)
	}
	return s, nil
}

// next reads and decodes the next segment, and checks the sequence number of an untagged one.
func (p *rawPeer) next() (rawSegment, error) {
	b, err := p.read()
	if err != nil {
		return rawSegment{}, err
	}
	s, err := parseRaw(b)
	if err == nil && !s.tagged {
		if s.msn != p.msnIn[s.queue] {
			err = fmt.Errorf("opcode %d has number %d on queue %d, and %d is due", s.op, s.msn, s.queue,
				p.msnIn[s.queue])
		}
		if s.last {
			p.msnIn[s.queue]++
		}
	}
	return s, err
}

// rawReadRequestOf encodes the payload of an RDMA Read Request.
func rawReadRequestOf(sink uint32, sinkAt uint64, n uint32, source uint32, sourceAt uint64) []byte {
	b := big.AppendUint32(nil, sink)
	b = big.AppendUint64(b, sinkAt)
	b = big.AppendUint32(b, n)
	b = big.AppendUint32(b, source)
	return big.AppendUint64(b, sourceAt)
}

// rawAtomic encodes the payload of an Atomic Request.
func rawAtomic(swap bool, id, stag uint32, at, data, dataMask, compare, compareMask uint64) []byte {
	op := uint32(0)
	if swap {
		op = 2
	}
	b := big.AppendUint32(nil, op)
	b = big.AppendUint32(b, id)
	b = big.AppendUint32(b, stag)
	for _, x := range []uint64{at, data, dataMask, compare, compareMask} {
		b = big.AppendUint64(b, x)
	}
	return b
}
