package trace

import (
	"bytes"
	"strconv"

	"farflash/block"
	"farflash/workload"
)

// disksimDecoder reads DiskSim's ASCII traces: milliseconds, 512-byte blocks, and hexadecimal flags whose lowest bit means read.
type disksimDecoder struct {
	fields [5][]byte
	strict bool // a time without a decimal point is refused: such a line could as well be MQSim's
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

// disksimEncoder writes DiskSim's ASCII format with as many decimals as a time needs, and at least 6.
type disksimEncoder struct {
	out *Writer
}

func (d *disksimEncoder) encode(dst []byte, r *workload.Record) ([]byte, error) {
	first, count, err := d.out.sectors(r)
	if err != nil {
		return dst, err
	}
	volume := uint64(r.Volume)
	dst = d.out.appendDecimal(dst, uint64(r.Time)/1e9, int64(r.Time)%1e9, 9, 6)
	dst = append(dst, ' ')
	dst = strconv.AppendUint(dst, volume, 10)
	dst = append(dst, ' ')
	dst = strconv.AppendInt(dst, first, 10)
	dst = append(dst, ' ')
	dst = strconv.AppendInt(dst, count, 10)
	d.out.dropResponse(r)
	switch d.out.readWrite(r.Op) {
	case 'R':
		return append(dst, " 1"...), nil
	case 'W':
		return append(dst, " 0"...), nil
	}
	return dst, d.out.cannot(r.Op)
}
