package peer

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"farflash/numeric/units"
)

// NS3Trace reads the packet trace of HPCC's ns-3, mix.tr: a header, then a record
// of 56 bytes for each event, little-endian.
type NS3Trace struct {
	Ports  []NS3PortRate
	Window uint32 // bytes; the largest bandwidth-delay product of two hosts

	name   string
	r      *bufio.Reader
	offset int64
	err    error
	buffer [ns3RecordSize]byte
}

// NS3PortRate is the rate of one port, from the header.
type NS3PortRate struct {
	Node int
	Port int // from 1
	Rate units.BitRate
}

// NS3Event is a packet event.
type NS3Event uint8

// The events of a trace.
const (
	NS3Receive NS3Event = iota
	NS3Enqueue
	NS3Dequeue
	NS3Drop
)

// String returns the event's name.
func (e NS3Event) String() string {
	if names := [...]string{"receive", "enqueue", "dequeue", "drop"}; int(e) < len(names) {
		return names[e]
	}
	return fmt.Sprintf("NS3Event(%d)", uint8(e))
}

// The simulator's protocol numbers of packets.
const (
	NS3Data = 0x11 // a UDP packet
	NS3ACK  = 0xfc
	NS3NACK = 0xfd
	NS3PFC  = 0xfe
	NS3CNP  = 0xff // HPCC's ns-3 sends none; ACKs carry the mark
)

// NS3Record is one event. The fields after Switch depend on the packet's protocol; others are 0.
type NS3Record struct {
	Time        units.Duration
	Node, Port  int
	Queue       uint8
	QueueLength uint32 // bytes
	SrcIP       uint32 // see NS3Address; 0 of PFC frames
	DstIP       uint32
	Size        uint16 // bytes
	Protocol    uint8
	Event       NS3Event
	ECN         uint8 // the two bits of the IP header
	Switch      bool

	SrcPort, DstPort uint16 // all but PFC and CNP; of a CNP, SrcPort is the flow
	Sequence         uint32 // data, ACK, NACK, CNP
	Timestamp        uint64 // ns; data, ACK, NACK
	Priority         uint16 // data, ACK, NACK; the queue of PFC and CNP
	Payload          uint16 // data: bytes
	Flags            uint16 // ACK and NACK; bit 0 is the mark that replaces a CNP. Of a CNP, its ECN bits
	PauseTime        uint32 // PFC: us; 0 resumes
	PauseQueue       uint32 // PFC: bytes queued at its sender
}

const ns3RecordSize = 56

// mostPorts bounds a header; there are no more port ids.
const mostPorts = ns3MaxNodes * 256

// NewNS3Trace reads the header of a trace. name is used in errors.
func NewNS3Trace(name string, r io.Reader) (*NS3Trace, error) {
	t := &NS3Trace{name: name, r: bufio.NewReaderSize(r, 1<<16)}
	b, err := t.read(4, "number of ports")
	if err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint32(b)
	if n > mostPorts {
		return nil, fmt.Errorf("%s: byte 0: %d ports; this is not a trace of HPCC's ns-3", name, n)
	}
	for i := range n {
		if b, err = t.read(11, fmt.Sprintf("port %d of %d", i+1, n)); err != nil {
			return nil, err
		}
		bps := binary.LittleEndian.Uint64(b[3:])
		if bps > 1<<63-1 {
			return nil, fmt.Errorf("%s: byte %d: a port of %d bit/s", name, t.offset-8, bps)
		}
		t.Ports = append(t.Ports, NS3PortRate{int(binary.LittleEndian.Uint16(b)), int(b[2]), units.BitRate(bps)})
	}
	if b, err = t.read(4, "window"); err != nil {
		return nil, err
	}
	t.Window = binary.LittleEndian.Uint32(b)
	return t, nil
}

// read reads n bytes of the header.
func (t *NS3Trace) read(n int, what string) ([]byte, error) {
	b := t.buffer[:n]
	if _, err := io.ReadFull(t.r, b); err != nil {
		if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, fmt.Errorf("%s: byte %d: the file ends within its header, before the %s", t.name, t.offset,
				what)
		}
		return nil, fmt.Errorf("%s: %w", t.name, err)
	}
	t.offset += int64(n)
	return b, nil
}

// Next reads the next record. It returns io.EOF at the end; after an error, every
// further call returns the same one.
func (t *NS3Trace) Next(r *NS3Record) error {
	if t.err == nil {
		t.err = t.next(r)
	}
	return t.err
}

func (t *NS3Trace) next(r *NS3Record) error {
	b := &t.buffer
	switch _, err := io.ReadFull(t.r, b[:]); {
	case err == io.EOF:
		return err
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%s: byte %d: the file ends within a record of %d bytes", t.name, t.offset, ns3RecordSize)
	case err != nil:
		return fmt.Errorf("%s: %w", t.name, err)
	}
	le := binary.LittleEndian
	ns := le.Uint64(b[:])
	switch {
	case ns > uint64(units.Forever/units.Nanosecond):
		return fmt.Errorf("%s: byte %d: a time of %d ns is out of range", t.name, t.offset, ns)
	case b[27] > uint8(NS3Drop):
		return fmt.Errorf("%s: byte %d: event %d is not 0 (receive) to 3 (drop)", t.name, t.offset+27, b[27])
	case b[29] > 1:
		return fmt.Errorf("%s: byte %d: node type %d is neither 0 (host) nor 1 (switch)", t.name, t.offset+29, b[29])
	}
	*r = NS3Record{
		Time: units.Duration(ns) * units.Nanosecond, Node: int(le.Uint16(b[8:])), Port: int(b[10]), Queue: b[11],
		QueueLength: le.Uint32(b[12:]), SrcIP: le.Uint32(b[16:]), DstIP: le.Uint32(b[20:]), Size: le.Uint16(b[24:]),
		Protocol: b[26], Event: NS3Event(b[27]), ECN: b[28], Switch: b[29] == 1,
	}
	// The remainder is a C union, aligned to 8 bytes.
	u := b[32:]
	switch r.Protocol {
	case NS3PFC:
		r.PauseTime, r.PauseQueue, r.Priority = le.Uint32(u), le.Uint32(u[4:]), uint16(u[8])
	case NS3CNP:
		r.SrcPort, r.Priority, r.Flags, r.Sequence = le.Uint16(u), uint16(u[2]), uint16(u[3]), le.Uint32(u[4:])
	case NS3ACK, NS3NACK:
		r.Flags, r.Priority, r.Sequence, r.Timestamp = le.Uint16(u[4:]), le.Uint16(u[6:]), le.Uint32(u[8:]),
			le.Uint64(u[16:])
	case NS3Data:
		r.Sequence, r.Timestamp, r.Priority, r.Payload = le.Uint32(u[4:]), le.Uint64(u[8:]), le.Uint16(u[16:]),
			le.Uint16(u[18:])
	}
	if r.Protocol != NS3PFC && r.Protocol != NS3CNP {
		r.SrcPort, r.DstPort = le.Uint16(u), le.Uint16(u[2:])
	}
	t.offset += ns3RecordSize
	return nil
}
