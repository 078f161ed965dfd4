package trace

import (
	"strconv"

	"farflash/block"
	"farflash/workload"
)

// mqsimDecoder reads MQSim's ASCII traces: nanoseconds (MQSim ignores the unit that its XML gives), 512-byte sectors, 0
// for write and 1 for read. MQSim ignores the device column; here it is the volume.
type mqsimDecoder struct {
	fields [5][]byte
}

func (d *mqsimDecoder) decode(line []byte, e *event) (bool, error) {
	f := &d.fields
	switch n := splitSpace(line, f[:]); n {
	case len(f):
	case 0:
		return false, nil
	default:
		return false, columns(n, "5")
	}
	stamp, ok := parseInt63(f[0])
	if !ok {
		return false, fieldError("time", f[0], "a whole number of nanoseconds")
	}
	e.at = ticks(uint64(stamp), 1e9)
	if e.volume, ok = parseVolume(f[1]); !ok {
		return false, fieldError("device", f[1], "a whole number")
	}
	if e.offset, e.size, ok = sectorRange(f[2], f[3]); !ok {
		return false, sectorError("first sector", f[2], "sectors", f[3])
	}
	switch {
	case len(f[4]) == 1 && f[4][0] == '1':
		e.op = block.Read
	case len(f[4]) == 1 && f[4][0] == '0':
		e.op = block.Write
	default:
		return false, fieldError("type", f[4], "0 (write) or 1 (read)")
	}
	e.response = workload.NoResponse
	return true, nil
}

// mqsimEncoder writes MQSim's format.
type mqsimEncoder struct {
	out *Writer
}

func (m *mqsimEncoder) encode(dst []byte, r *workload.Record) ([]byte, error) {
	stamp := m.out.relative(durationInstant(r.Time), 1e9)
	return m.out.appendPlain(strconv.AppendInt(dst, stamp, 10), r)
}
