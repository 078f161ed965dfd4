package trace

import (
	"bytes"

	"farflash/block"
	"farflash/workload"
)

// disksimDecoder reads DiskSim's ASCII traces: milliseconds, 512-byte blocks, and hexadecimal flags whose lowest bit
// means read.
type disksimDecoder struct {
	fields [5][]byte
	strict bool // reject a time without a decimal point: such a line could also be MQSim's
}

func (d *disksimDecoder) decode(line []byte, e *event) (bool, error) {
	f := &d.fields
	switch n := splitSpace(line, f[:]); n {
	case len(f):
	case 0:
		return false, nil
	default:
		return false, columns(n, "5")
	}
	var ok bool
	if e.at, ok = parseDecimal(f[0], 3); !ok || d.strict && bytes.IndexByte(f[0], '.') < 0 {
		return false, fieldError("time", f[0], "a decimal number of milliseconds")
	}
	if e.volume, ok = parseVolume(f[1]); !ok {
		return false, fieldError("device", f[1], "a whole number")
	}
	if e.offset, e.size, ok = sectorRange(f[2], f[3]); !ok {
		return false, sectorError("block", f[2], "blocks", f[3])
	}
	flags, ok := parseHex(f[4])
	if !ok {
		return false, fieldError("flags", f[4], "a hexadecimal number")
	}
	e.op = block.Write
	if flags&1 != 0 {
		e.op = block.Read
	}
	e.response = workload.NoResponse
	return true, nil
}

// disksimEncoder writes DiskSim's ASCII format with as many decimals as a time needs, at least 6.
type disksimEncoder struct {
	out *Writer
}

func (d *disksimEncoder) encode(dst []byte, r *workload.Record) ([]byte, error) {
	return d.out.appendPlain(d.out.appendDecimal(dst, uint64(r.Time)/1e9, int64(r.Time)%1e9, 9, 6), r)
}
