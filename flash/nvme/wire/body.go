package wire

// Body is the receiving side of a PDU's framing: the header is taken as a whole, and padding, data and the data digest
// after it in pieces of any size. It is the same at both ends of a connection. The zero value expects a header.
type Body struct {
	pad, left int
	check     bool // a data digest follows
	sum       uint32
	into      []byte // for the rest of the data; nil: they are discarded
}

// Pending is the number of bytes of the PDU still to be received after its header; 0 between PDUs.
func (d *Body) Pending() int {
	if d.check {
		return d.pad + d.left + DigestSize
	}
	return d.pad + d.left
}

// Begin takes a header from the beginning of b, sent by the host or by the controller on a connection with these
// digests, with at most most bytes of data. n is 0 while b does not contain all of it, and if it is wrong; bad is then
// what to quote in the answer to the fault.
func (d *Body) Begin(b []byte, host bool, digests Digests, most int) (h Header, n int, bad []byte, f Fault) {
	h = Common(b)
	f, ok := h.Check(host, digests, most)
	if !ok {
		return h, 0, b[:CommonSize], f
	}
	n, pad, data := h.Parts()
	if len(b) < n {
		return h, 0, nil, Fault{}
	}
	if f, ok = h.Sound(b); !ok {
		return h, 0, b[:h.HLen], f
	}
	*d = Body{pad: pad, left: data, check: h.Flags&FlagDataDigest != 0}
	return h, n, nil, Fault{}
}

// Data is the number of bytes of data still to be received.
func (d *Body) Data() int { return d.left }

// Into sets where the data go: to the beginning of memory that is long enough for them. nil discards them.
func (d *Body) Into(b []byte) {
	if d.into = b; b != nil {
		d.into = b[:d.left]
	}
}

// Take consumes bytes after the header and returns their number, and whether the PDU ends with them. sound is false if
// the data have another digest than the one sent.
func (d *Body) Take(b []byte) (n int, ended, sound bool) {
	switch {
	case d.pad > 0:
		n = min(d.pad, len(b))
		d.pad -= n
		return n, false, false
	case d.left > 0:
		b = b[:min(d.left, len(b))]
		if d.into != nil {
			copy(d.into, b)
		}
		return len(b), d.arrived(b), true
	case !d.check || len(b) < DigestSize:
		return 0, false, false
	}
	d.check = false
	return DigestSize, true, le.Uint32(b) == d.sum
}

// Sink returns memory into which the next data bytes can be read directly, or nil.
func (d *Body) Sink() []byte {
	if d.pad > 0 || d.left == 0 {
		return nil
	}
	return d.into
}

// Sunk reports that n bytes were read into Sink, and returns whether the PDU ends with them.
func (d *Body) Sunk(n int) (ended bool) {
	return n > 0 && d.arrived(d.into[:n])
}

// arrived counts data bytes that were received to their place.
func (d *Body) arrived(b []byte) (ended bool) {
	if d.check {
		d.sum = Digest(d.sum, b)
	}
	d.left -= len(b)
	if d.into != nil {
		d.into = d.into[len(b):]
	}
	return d.left == 0 && !d.check
}
