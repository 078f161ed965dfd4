// Package nvmetest supports tests of NVMe/TCP targets: Conn is a connection that sends exactly the PDUs that a test
// asks for, valid or not; Host is an association with I/O queues, set up with the commands that a kernel sends; Serve
// provides a target with a server in front.
//
// It does none of the other work of a real host: it does not retry, keep associations alive or reconnect.
package nvmetest

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"

	"farflash/flash/nvme/chap"
	"farflash/flash/nvme/wire"
)

// Conn is one connection after the exchange of ICReq and ICResp.
type Conn struct {
	net.Conn
	Digests wire.Digests
	Limit   uint32 // MAXH2CDATA
	// Chunk, if not 0, is the longest H2CData to send, in bytes.
	Chunk uint32
	Queue uint16
	// Asked reports that the controller demands authentication.
	Asked bool
	r     *bufio.Reader
	cid   uint16
}

// Dial connects, and agrees on digests and the alignment of data from the controller.
func Dial(addr string, d wire.Digests, align uint8) (*Conn, error) {
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	c := &Conn{Conn: nc, Digests: d, r: bufio.NewReaderSize(nc, 64<<10)}
	if err := c.initialize(align); err != nil {
		return nil, errors.Join(err, nc.Close())
	}
	return c, nil
}

func (c *Conn) initialize(align uint8) error {
	if _, err := c.Write(wire.IC{Align: align, Digests: c.Digests}.Append(nil, wire.ICReq)); err != nil {
		return err
	}
	b := make([]byte, wire.ICSize)
	if _, err := io.ReadFull(c.r, b); err != nil {
		return err
	}
	x, f, ok := wire.DecodeIC(b, wire.ICResp)
	if !ok {
		return f
	}
	if x.Digests != c.Digests || x.Align != 0 { // as Linux demands
		return fmt.Errorf("the ICResp is %+v", x)
	}
	c.Limit = x.Limit
	return nil
}

// PDU is a PDU from the controller.
type PDU struct {
	wire.Header
	wire.Transfer          // of C2HData and R2T
	CQE           wire.CQE // of CapsuleResp
	Fault         wire.Fault
	Data          []byte
}

// Next reads a PDU, and verifies its header and digests.
func (c *Conn) Next() (p PDU, err error) {
	b := make([]byte, wire.CommonSize, wire.Longest)
	if _, err := io.ReadFull(c.r, b); err != nil {
		return p, err
	}
	p.Header = wire.Common(b)
	if f, ok := p.Check(false, c.Digests, 4<<20); !ok {
		return p, fmt.Errorf("%+v: %w", p.Header, f)
	}
	head, pad, n := p.Parts()
	b = b[:head+pad]
	if _, err := io.ReadFull(c.r, b[wire.CommonSize:]); err != nil {
		return p, err
	}
	if f, ok := p.Sound(b); !ok {
		return p, f
	}
	p.Data = make([]byte, n)
	if _, err := io.ReadFull(c.r, p.Data); err != nil {
		return p, err
	}
	if p.Flags&wire.FlagDataDigest != 0 {
		var d [wire.DigestSize]byte
		if _, err := io.ReadFull(c.r, d[:]); err != nil {
			return p, err
		}
		if want := digest(p.Data); want != d {
			return p, fmt.Errorf("data digest %x, want %x", d, want)
		}
	}
	switch p.Type {
	case wire.CapsuleResp:
		p.CQE = wire.DecodeCQE(b[wire.CommonSize:])
	case wire.C2HTermReq:
		p.Fault = wire.Term(b)
	default:
		p.Transfer = wire.DecodeTransfer(b)
	}
	return p, nil
}

func digest(b []byte) [wire.DigestSize]byte {
	d := wire.Digest(0, b)
	return [wire.DigestSize]byte{byte(d), byte(d >> 8), byte(d >> 16), byte(d >> 24)}
}

// sealed appends data, and their digest if data have one.
func (c *Conn) sealed(b, data []byte) []byte {
	b = append(b, data...)
	if c.Digests.Data && len(data) > 0 {
		d := digest(data)
		b = append(b, d[:]...)
	}
	return b
}

// Capsule returns the bytes of a command with data in its capsule.
func (c *Conn) Capsule(r wire.Request, data []byte) []byte {
	return c.sealed(wire.AppendCommand(nil, c.Digests, r.Append(nil), len(data)), data)
}

// H2C returns the bytes of an H2CData.
func (c *Conn) H2C(t wire.Transfer, last bool, data []byte) []byte {
	flags := uint8(0)
	if last {
		flags = wire.FlagLast
	}
	return c.sealed(wire.AppendData(nil, wire.H2CData, c.Digests, flags, 0, t), data)
}

// Op is a command with its data: Out are sent, in the capsule if InCapsule is set, and In are received.
type Op struct {
	wire.Request
	Out, In   []byte
	InCapsule bool
	CQE       wire.CQE
	Success   bool // answered by a flag of the last C2HData
	Asked     int  // R2Ts

	got, due uint32
}

// Send sends a command and gives it an identifier.
func (c *Conn) Send(o *Op) error {
	c.cid++
	o.CID = c.cid
	o.got, o.due, o.Asked, o.Success = 0, 0, 0, false
	o.SGL = wire.SGL{Length: uint32(len(o.Out) + len(o.In)), Type: wire.Transport}
	var capsule []byte
	if o.InCapsule {
		o.SGL.Type, capsule = wire.InCapsule, o.Out
	}
	_, err := c.Write(c.Capsule(o.Request, capsule))
	return err
}

// Run sends commands, all at once, and completes them.
func (c *Conn) Run(ops ...*Op) error {
	left := map[uint16]*Op{}
	for _, o := range ops {
		if err := c.Send(o); err != nil {
			return err
		}
		left[o.CID] = o
	}
	for len(left) > 0 {
		p, err := c.Next()
		if err != nil {
			return err
		}
		done, err := c.handle(p, left)
		if err != nil {
			return err
		}
		delete(left, done)
	}
	return nil
}

// handle does what a PDU asks for, and returns the identifier of the command that it completes.
func (c *Conn) handle(p PDU, left map[uint16]*Op) (done uint16, err error) {
	switch p.Type {
	case wire.CapsuleResp:
		o := left[p.CQE.CID]
		if o == nil {
			return 0, fmt.Errorf("answer to command %d, which is not outstanding", p.CQE.CID)
		}
		o.CQE = p.CQE
		if o.CQE.Status == 0 && (o.got != uint32(len(o.In)) || !o.InCapsule && o.due != uint32(len(o.Out))) {
			return 0, fmt.Errorf("success after %d of %d bytes were read and %d of %d asked for", o.got, len(o.In),
				o.due,
				len(o.Out))
		}
		return o.CID, nil
	case wire.C2HData:
		o := left[p.Transfer.Command]
		switch {
		case o == nil:
			return 0, fmt.Errorf("data of command %d, which is not outstanding", p.Transfer.Command)
		case p.Transfer.Offset != o.got || int(p.Transfer.Length) != len(p.Data) ||
			uint64(p.Transfer.Offset)+uint64(p.Transfer.Length) > uint64(len(o.In)):
			return 0, fmt.Errorf("%+v with %d bytes after %d of %d", p.Transfer, len(p.Data), o.got, len(o.In))
		}
		o.got += uint32(copy(o.In[p.Transfer.Offset:], p.Data))
		last := p.Flags&wire.FlagLast != 0
		if last != (o.got == uint32(len(o.In))) {
			return 0, fmt.Errorf("%d of %d bytes, LAST is %v", o.got, len(o.In), last)
		}
		if p.Flags&wire.FlagSuccess != 0 {
			if !last {
				return 0, errors.New("SUCCESS without LAST")
			}
			o.CQE, o.Success = wire.CQE{CID: o.CID}, true
			return o.CID, nil
		}
	case wire.R2T:
		o := left[p.Transfer.Command]
		if o == nil || o.InCapsule || p.Transfer.Offset != o.due || p.Transfer.Length == 0 ||
			p.Transfer.Length > c.Limit ||
			uint64(p.Transfer.Offset)+uint64(p.Transfer.Length) > uint64(len(o.Out)) {
			return 0, fmt.Errorf("R2T %+v", p.Transfer)
		}
		o.due += p.Transfer.Length
		o.Asked++
		return 0, c.supply(p.Transfer, o.Out)
	case wire.C2HTermReq:
		return 0, p.Fault
	}
	return 0, nil
}

// supply answers an R2T.
func (c *Conn) supply(t wire.Transfer, out []byte) error {
	most := c.Limit
	if c.Chunk > 0 {
		most = min(most, c.Chunk)
	}
	for end := t.Offset + t.Length; t.Offset < end; t.Offset += t.Length {
		t.Length = min(most, end-t.Offset)
		if _, err := c.Write(c.H2C(t, t.Offset+t.Length == end, out[t.Offset:][:t.Length])); err != nil {
			return err
		}
	}
	return nil
}

// Do runs a command and returns its status as an error, if it is not Success.
func (c *Conn) Do(o *Op) error {
	if err := c.Run(o); err != nil {
		return err
	}
	if o.CQE.Status != 0 {
		return o.CQE.Status
	}
	return nil
}

// Login are the parameters of an association.
type Login struct {
	wire.Identity
	Digests   wire.Digests
	Align     uint8
	Queues    int
	Entries   int    // of the I/O queues; 0 is 128
	KeepAlive uint32 // ms
	NoFlow    bool
	Keys      *chap.Keys // to prove who it is, if it is asked to
}

// Host is an association.
type Host struct {
	Admin      *Conn
	IO         []*Conn
	Controller wire.Controller
	ID         uint16
	login      Login
	addr       string
}

// Connect sends a Connect for a queue.
func (c *Conn) Connect(l Login, queue, controller uint16) (id uint16, err error) {
	x := wire.Connection{Queue: queue, Size: 31, KeepAlive: l.KeepAlive}
	if queue > 0 {
		x.Size, x.KeepAlive = 127, 0
		if l.Entries > 0 {
			x.Size = uint16(l.Entries - 1)
		}
	}
	if l.NoFlow {
		x.Attribs = wire.NoFlowControl
	}
	l.Controller = controller
	o := &Op{Request: wire.Request{Opcode: wire.Fabrics, Fabrics: wire.Connect, Words: x.Words()}, InCapsule: true,
		Out: l.Append(nil)}
	err = c.Do(o)
	c.Queue, c.Asked = queue, o.CQE.Result&wire.ConnectProve != 0
	return uint16(o.CQE.Result), err
}

// Prove authenticates the host.
func (c *Conn) Prove(h *chap.Host) error {
	for {
		b := h.Send()
		if b == nil {
			return errors.Join(h.Err(), errors.New("the exchange has ended early"))
		}
		if err := c.Do(&Op{Request: wire.Request{Opcode: wire.Fabrics, Fabrics: wire.AuthSend,
			Words: wire.ProofWords(len(b))}, InCapsule: true, Out: b}); err != nil || h.Done() || h.Err() != nil {
			return errors.Join(err, h.Err())
		}
		o := &Op{Request: wire.Request{Opcode: wire.Fabrics, Fabrics: wire.AuthReceive, Words: wire.ProofWords(4096)},
			In: make([]byte, 4096)}
		if err := c.Do(o); err != nil {
			return err
		}
		if h.Receive(o.In); h.Done() && !h.Says() {
			return nil
		}
		if h.Err() != nil && !h.Says() {
			return h.Err()
		}
	}
}

// Set and Get access a property.
func (c *Conn) Set(p wire.Property) error {
	return c.Do(&Op{Request: wire.Request{Opcode: wire.Fabrics, Fabrics: wire.PropertySet, Words: p.Words()}})
}

// Get reads a property.
func (c *Conn) Get(at uint32, wide bool) (uint64, error) {
	p := wire.Property{Wide: wide, Offset: at}
	o := &Op{Request: wire.Request{Opcode: wire.Fabrics, Fabrics: wire.PropertyGet, Words: p.Words()}}
	err := c.Do(o)
	return o.CQE.Result, err
}

// Identify reads an Identify structure.
func (c *Conn) Identify(cns wire.CNS, nsid uint32) ([]byte, error) {
	o := &Op{Request: wire.Request{Opcode: wire.Identify, NSID: nsid, Words: [6]uint32{uint32(cns)}},
		In: make([]byte, wire.IdentifySize)}
	return o.In, c.Do(o)
}

// Log reads part of a log page.
func (c *Conn) Log(r wire.LogRequest) ([]byte, error) {
	o := &Op{Request: wire.Request{Opcode: wire.GetLogPage, NSID: 0xffffffff, Words: r.Words()},
		In: make([]byte, r.Length)}
	return o.In, c.Do(o)
}

// Feature sets a feature, and returns the result.
func (c *Conn) Feature(f wire.Feature, v uint32) (uint32, error) {
	o := &Op{Request: wire.Request{Opcode: wire.SetFeatures, Words: [6]uint32{uint32(f), v}}}
	err := c.Do(o)
	return uint32(o.CQE.Result), err
}

// Open makes an association: the admin queue as far as Identify, then the I/O queues.
func Open(addr string, l Login) (*Host, error) {
	h := &Host{login: l, addr: addr}
	if err := h.begin(); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
}

func (h *Host) begin() (err error) {
	if h.Admin, err = Dial(h.addr, h.login.Digests, h.login.Align); err != nil {
		return err
	}
	if h.ID, err = h.Admin.Connect(h.login, 0, wire.AnyController); err != nil {
		return err
	}
	if h.Admin.Asked && h.login.Keys != nil {
		if err := h.Admin.Prove(chap.NewHost(*h.login.Keys,
			chap.Names{Host: h.login.Host, Subsystem: h.login.Subsystem},
			1, rand.Reader)); err != nil {
			return err
		}
	}
	if _, err = h.Admin.Get(wire.PropCAP, true); err != nil {
		return err
	}
	if err = h.Admin.Set(wire.Property{Offset: wire.PropCC, Value: 0x460001}); err != nil {
		return err
	}
	if v, err := h.Admin.Get(wire.PropCSTS, false); err != nil || v&wire.CSTSReady == 0 {
		return fmt.Errorf("CSTS %#x, %w", v, err)
	}
	b, err := h.Admin.Identify(wire.CNSController, 0)
	if err != nil {
		return err
	}
	h.Controller = wire.DecodeController(b)
	if h.login.Queues == 0 {
		return nil
	}
	n, err := h.Admin.Feature(wire.FeatureQueues, wire.Queues(h.login.Queues))
	if err != nil {
		return err
	}
	for q := range min(h.login.Queues, wire.DecodeQueues(n)) {
		if _, err := h.Join(uint16(q + 1)); err != nil {
			return err
		}
	}
	return nil
}

// Join connects an I/O queue.
func (h *Host) Join(queue uint16) (*Conn, error) {
	c, err := Dial(h.addr, h.login.Digests, h.login.Align)
	if err != nil {
		return nil, err
	}
	h.IO = append(h.IO, c)
	_, err = c.Connect(h.login, queue, h.ID)
	return c, err
}

// Close closes all connections, as a host does that crashes.
func (h *Host) Close() error {
	var errs []error
	for _, c := range append(h.IO, h.Admin) {
		if c != nil {
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(errs...)
}

// IOOp is a command of an I/O queue on blocks.
func IOOp(k wire.Opcode, nsid uint32, slba uint64, blocks int, flags uint32) *Op {
	return &Op{Request: wire.Request{Opcode: k, NSID: nsid,
		Words: [6]uint32{uint32(slba), uint32(slba >> 32), uint32(blocks-1) | flags}}}
}

// Ranges is a Dataset Management command that deallocates ranges.
func Ranges(nsid uint32, ranges ...wire.Range) *Op {
	o := &Op{Request: wire.Request{Opcode: wire.Dataset, NSID: nsid,
		Words: [6]uint32{uint32(len(ranges) - 1), wire.DatasetDiscard}}}
	for _, r := range ranges {
		o.Out = r.Append(o.Out)
	}
	return o
}
