package peer

import (
	"bufio"
	"fmt"
	"io"
	"strconv"

	"farflash/numeric/units"
)

// ns3Address returns the IPv4 address of a host in HPCC's ns-3, 11.x.y.1.
func ns3Address(node int) uint32 {
	return 0x0b000001 + uint32(node/256)<<16 + uint32(node%256)<<8
}

// ns3Node returns the host that an address belongs to.
func ns3Node(address uint32) (int, bool) {
	node := int(address >> 8 & 0xffff)
	return node, ns3Address(node) == address
}

// NS3Completion is a line of fct.txt: a completed flow. Times are written as whole nanoseconds, truncated.
type NS3Completion struct {
	Src, Dst         int
	SrcPort, DstPort uint16
	Bytes            units.Bytes
	Start            units.Duration
	FCT              units.Duration // until the sender receives the last ACK
	Ideal            units.Duration // if the flow were alone
}

const fctLayout = "sip dip sport dport bytes start_ns fct_ns ideal_ns"

// AppendTo appends the line to b, in the format of HPCC's ns-3.
func (c *NS3Completion) AppendTo(b []byte) []byte {
	b = appendHex(b, ns3Address(c.Src))
	b = appendHex(append(b, ' '), ns3Address(c.Dst))
	for _, n := range [...]int64{int64(c.SrcPort), int64(c.DstPort), int64(c.Bytes), nanoseconds(c.Start),
		nanoseconds(c.FCT), nanoseconds(c.Ideal)} {
		b = strconv.AppendInt(append(b, ' '), n, 10)
	}
	return append(b, '\n')
}

// appendHex appends eight hexadecimal digits.
func appendHex(b []byte, x uint32) []byte {
	const digits = "0123456789abcdef"
	for shift := 28; shift >= 0; shift -= 4 {
		b = append(b, digits[x>>shift&15])
	}
	return b
}

func nanoseconds(d units.Duration) int64 { return int64(d / units.Nanosecond) }

// WriteNS3Completions writes an fct.txt.
func WriteNS3Completions(w io.Writer, completions []NS3Completion) error {
	return writeLines(w, completions, func(c *NS3Completion, b []byte) []byte { return c.AppendTo(b) })
}

// writeLines writes one line per item, in the form that line appends.
func writeLines[T any](w io.Writer, items []T, line func(*T, []byte) []byte) error {
	buffered := bufio.NewWriterSize(w, 1<<16)
	var b []byte
	for i := range items {
		b = line(&items[i], b[:0])
		if _, err := buffered.Write(b); err != nil {
			return err
		}
	}
	return buffered.Flush()
}

// ReadNS3Completions reads an fct.txt. name is used in errors.
func ReadNS3Completions(name string, r io.Reader) ([]NS3Completion, error) {
	w, err := newWords(name, r)
	if err != nil {
		return nil, err
	}
	var out []NS3Completion
	for {
		v, ok := w.next()
		if !ok {
			return out, nil
		}
		var c NS3Completion
		if c.Src, err = address(v.text); err != nil {
			return nil, w.fail(v, "sip: %w", err)
		}
		if v, err = w.field("dip", fctLayout); err != nil {
			return nil, err
		}
		if c.Dst, err = address(v.text); err != nil {
			return nil, w.fail(v, "dip: %w", err)
		}
		var ports [2]uint64
		for i, what := range []string{"sport", "dport"} {
			if ports[i], err = w.number(what, 1<<16-1, fctLayout); err != nil {
				return nil, err
			}
		}
		c.SrcPort, c.DstPort = uint16(ports[0]), uint16(ports[1])
		size, err := w.number("bytes", 1<<63-1, fctLayout)
		if err != nil {
			return nil, err
		}
		c.Bytes = units.Bytes(size)
		for _, f := range []struct {
			what string
			to   *units.Duration
		}{{"start_ns", &c.Start}, {"fct_ns", &c.FCT}, {"ideal_ns", &c.Ideal}} {
			if *f.to, err = w.nanoseconds(f.what, fctLayout); err != nil {
				return nil, err
			}
		}
		if err := w.end(fctLayout); err != nil {
			return nil, err
		}
		out = append(out, c)
	}
}

// nanoseconds consumes a whole number of nanoseconds that is a field of a record.
func (w *words) nanoseconds(what, layout string) (units.Duration, error) {
	n, err := w.number(what, uint64(units.Forever/units.Nanosecond), layout)
	return units.Duration(n) * units.Nanosecond, err
}

// address parses a host's address in hexadecimal digits.
func address(text string) (int, error) {
	x, err := strconv.ParseUint(text, 16, 32)
	if err == nil && len(text) == 8 {
		if node, ok := ns3Node(uint32(x)); ok {
			return node, nil
		}
	}
	return 0, fmt.Errorf("%q is not an address of a host; that of host 1 is 0b000101", clip(text))
}

// NS3Pause is a line of pfc.txt: a port was paused or resumed. It is logged by the paused device, not by the one that
// sends the pause.
type NS3Pause struct {
	Time   units.Duration // written as whole nanoseconds, truncated
	Node   int
	Switch bool
	Port   int  // from 1, in the order of the topology's links
	Pause  bool // false: resume
}

const pfcLayout = "time_ns node node_type port type"

// AppendTo appends the line to b, in the format of HPCC's ns-3.
func (p *NS3Pause) AppendTo(b []byte) []byte {
	b = strconv.AppendInt(b, nanoseconds(p.Time), 10)
	for _, n := range [...]int{p.Node, zeroOne(p.Switch), p.Port, zeroOne(p.Pause)} {
		b = strconv.AppendInt(append(b, ' '), int64(n), 10)
	}
	return append(b, '\n')
}

func zeroOne(is bool) int {
	if is {
		return 1
	}
	return 0
}

// WriteNS3Pauses writes a pfc.txt.
func WriteNS3Pauses(w io.Writer, pauses []NS3Pause) error {
	return writeLines(w, pauses, func(p *NS3Pause, b []byte) []byte { return p.AppendTo(b) })
}

// ReadNS3Pauses reads a pfc.txt. name is used in errors.
func ReadNS3Pauses(name string, r io.Reader) ([]NS3Pause, error) {
	w, err := newWords(name, r)
	if err != nil {
		return nil, err
	}
	var out []NS3Pause
	for {
		v, ok := w.next()
		if !ok {
			return out, nil
		}
		var p NS3Pause
		ns, err := whole(v.text, uint64(units.Forever/units.Nanosecond))
		if err != nil {
			return nil, w.fail(v, "time: %w", err)
		}
		p.Time = units.Duration(ns) * units.Nanosecond
		var fields [4]uint64
		for i, f := range []struct {
			what string
			most uint64
		}{{"node", ns3MaxNodes - 1}, {"node type", 1}, {"port", 1<<31 - 1}, {"type", 1}} {
			if fields[i], err = w.number(f.what, f.most, pfcLayout); err != nil {
				return nil, err
			}
		}
		p.Node, p.Switch, p.Port, p.Pause = int(fields[0]), fields[1] == 1, int(fields[2]), fields[3] == 1
		if p.Port == 0 {
			return nil, w.fail(v, "port 0 of node %d; ports count from 1", p.Node)
		}
		if err := w.end(pfcLayout); err != nil {
			return nil, err
		}
		out = append(out, p)
	}
}
