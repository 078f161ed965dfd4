package host

import (
	"errors"
	"math"

	"farflash/flash/nvme/wire"
)

// Pending is the number of bytes of the current PDU still to be received after its header; 0 between PDUs.
func (q *Queue) Pending() int { return q.body.Pending() }

// Input consumes received bytes and returns the number consumed. The caller passes the remainder again with more bytes.
// A header is consumed only as a whole, so the caller's buffer must hold at least wire.Longest+wire.DigestSize bytes.
func (q *Queue) Input(b []byte) int {
	n := 0
	for q.err == nil {
		k := q.parse(b[n:])
		if k == 0 {
			break
		}
		n += k
	}
	return n
}

func (q *Queue) parse(b []byte) int {
	switch {
	case q.body.Pending() > 0:
		n, ended, sound := q.body.Take(b)
		if ended {
			q.delivered(sound)
		}
		return n
	case len(b) < wire.CommonSize:
		return 0
	}
	if !q.open {
		h := wire.Common(b)
		if h.Type == wire.ICResp && len(b) < wire.ICSize {
			return 0
		}
		q.initialize(h, b)
		return min(len(b), wire.ICSize)
	}
	h, n, bad, f := q.body.Begin(b, false, q.cfg.Digests, math.MaxInt32)
	if bad != nil {
		q.fail(f, bad, "the controller sent it")
	}
	if n == 0 {
		return 0
	}
	q.into, q.success = nil, false
	switch h.Type {
	case wire.CapsuleResp:
		q.response(b[:wire.DataSize])
	case wire.C2HData:
		q.data(h, b[:wire.DataSize], q.body.Data())
	case wire.R2T:
		q.ready(b[:wire.DataSize])
	case wire.C2HTermReq:
		q.err = errors.Join(errors.New("nvme: the controller ends the connection"), wire.Term(b))
	default: // another ICResp
		q.fail(wire.Fault{Status: wire.FaultSequence}, b[:h.HLen], "a second ICResp")
	}
	return n
}

// initialize takes the ICResp. A controller that does not do the digests asked for is refused, as Linux does: whoever
// asks for digests does not trust the connection.
func (q *Queue) initialize(h wire.Header, b []byte) {
	if h.Type == wire.C2HTermReq && len(b) >= wire.TermSize {
		q.err = errors.Join(errors.New("nvme: the controller refuses the connection"), wire.Term(b))
		return
	}
	if h.Type != wire.ICResp {
		q.fail(wire.Fault{Status: wire.FaultSequence}, b[:wire.CommonSize], "no ICResp")
		return
	}
	x, f, ok := wire.DecodeIC(b, wire.ICResp)
	switch {
	case !ok:
		q.fail(f, b[:wire.ICSize], "in the ICResp")
		return
	case x.Digests != q.cfg.Digests:
		q.fail(wire.Fault{Status: wire.FaultUnsupported, Field: 11}, b[:wire.ICSize],
			"the controller does not use the digests asked for")
		return
	}
	q.open, q.align, q.limit = true, x.Align, x.Limit
	for q.waiting.N > 0 && len(q.free) > 0 {
		q.begin(q.waiting.Pop())
	}
}

// find returns the outstanding command with an identifier, or nil. One that is answered is not outstanding.
func (q *Queue) find(cid uint16) *Command {
	slot := int(cid % MaxDepth)
	if slot >= len(q.slots) || q.slots[slot] == nil || q.slots[slot].cid != cid || q.slots[slot].ended {
		return nil
	}
	return q.slots[slot]
}

// response takes a CapsuleResp.
func (q *Queue) response(header []byte) {
	e := wire.DecodeCQE(header[wire.CommonSize:])
	c := q.find(e.CID)
	switch {
	case c == nil:
		q.fail(wire.Fault{Status: wire.FaultHeader, Field: wire.CommonSize + 12}, header,
			"the command is not outstanding")
		return
	case e.Status == 0 && (int(c.got) != len(c.In) || !c.capsule && int(c.due) != len(c.Out)):
		q.fail(wire.Fault{Status: wire.FaultSequence}, header, "success before all data")
		return
	}
	c.CQE = e
	q.end(c)
}

// data begins a C2HData with n bytes.
func (q *Queue) data(h wire.Header, header []byte, n int) {
	x := wire.DecodeTransfer(header)
	c := q.find(x.Command)
	last, success := h.Flags&wire.FlagLast != 0, h.Flags&wire.FlagSuccess != 0
	switch {
	case c == nil:
		q.fail(wire.Fault{Status: wire.FaultHeader, Field: 8}, header, "the command is not outstanding")
	case int64(x.Length) != int64(n) || n == 0:
		q.fail(wire.Fault{Status: wire.FaultHeader, Field: 16}, header, "not the length of the data")
	case x.Offset != c.got || c.last:
		q.fail(wire.Fault{Status: wire.FaultRange, Field: 12}, header, "data out of order")
	case n > len(c.In)-int(c.got):
		q.fail(wire.Fault{Status: wire.FaultRange, Field: 16}, header, "more data than the command reads")
	case success && (!last || n < len(c.In)-int(c.got)):
		q.fail(wire.Fault{Status: wire.FaultHeader, Field: 1}, header, "success before all data")
	default:
		q.into, q.success = c, success
		q.body.Into(c.In[c.got:])
		c.got += uint32(n)
		c.last = last
	}
}

// Sink returns memory into which the next data bytes can be read directly, or nil. The caller then calls Sunk with the
// number of bytes read. This saves a copy of long data.
func (q *Queue) Sink() []byte {
	if q.err != nil {
		return nil
	}
	return q.body.Sink()
}

// Sunk reports how many bytes were read into Sink.
func (q *Queue) Sunk(n int) {
	if q.body.Sunk(n) {
		q.delivered(true)
	}
}

// delivered ends a PDU with data.
func (q *Queue) delivered(sound bool) {
	c := q.into
	if q.into = nil; c == nil {
		return // what a C2HTermReq quotes
	}
	c.spoiled = c.spoiled || !sound
	if q.success {
		c.CQE = wire.CQE{CID: c.cid}
		q.end(c)
	}
}

// ready answers an R2T. The ICReq allowed one at a time for a command; another may come before Sent has reported the
// data of the last.
func (q *Queue) ready(header []byte) {
	x := wire.DecodeTransfer(header)
	c := q.find(x.Command)
	switch {
	case c == nil || c.capsule || len(c.Out) == 0:
		q.fail(wire.Fault{Status: wire.FaultHeader, Field: 8}, header, "the command has no data to ask for")
	case x.Offset != c.due:
		q.fail(wire.Fault{Status: wire.FaultRange, Field: 12}, header, "data are asked for out of order")
	case x.Length == 0 || int64(x.Length) > int64(len(c.Out))-int64(c.due):
		q.fail(wire.Fault{Status: wire.FaultRange, Field: 16}, header, "not the length of the command's data")
	case c.asks > 1:
		q.fail(wire.Fault{Status: wire.FaultLimit}, header, "several R2Ts for a command")
	default:
		c.asks++
		c.due += x.Length
		q.supply(c, x)
	}
}

// supply sends the data of an R2T.
func (q *Queue) supply(c *Command, x wire.Transfer) {
	for end := x.Offset + x.Length; x.Offset < end; x.Offset += x.Length {
		x.Length = min(q.limit, end-x.Offset)
		p, flags := q.piece(c), uint8(0)
		if p.answers = x.Offset+x.Length == end; p.answers {
			flags = wire.FlagLast
		}
		p.Head = wire.AppendData(p.Head, wire.H2CData, q.cfg.Digests, flags, q.align, x)
		q.push(p, c.Out[x.Offset:][:x.Length])
	}
}
