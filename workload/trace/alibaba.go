package trace

import (
	"strconv"

	"farflash/workload"
)

// alibabaDecoder reads the Alibaba block trace format: bytes, and microseconds since the Unix epoch.
type alibabaDecoder struct {
	fields [5][]byte
}

func (d *alibabaDecoder) decode(line []byte, e *event) (bool, error) {
	f := &d.fields
	if n := splitComma(line, f[:]); n != len(f) {
		return false, columns(n, "5")
	}
	var ok bool
	if e.volume, ok = parseVolume(f[0]); !ok {
		if string(f[0]) == "device_id" {
			return false, nil
		}
		return false, fieldError("device_id", f[0], "a whole number")
	}
	if e.op, ok = readOrWrite(f[1]); !ok {
		return false, fieldError("opcode", f[1], "R or W")
	}
	if e.offset, ok = parseInt63(f[2]); !ok {
		return false, fieldError("offset", f[2], "a whole number of bytes")
	}
	if e.size, ok = parseInt63(f[3]); !ok {
		return false, fieldError("length", f[3], "a whole number of bytes")
	}
	stamp, ok := parseInt63(f[4])
	if !ok {
		return false, fieldError("timestamp", f[4], "a whole number of microseconds")
	}
	e.at = ticks(uint64(stamp), 1e6)
	e.response = workload.NoResponse
	return true, nil
}

// alibabaEncoder writes the Alibaba format.
type alibabaEncoder struct {
	out *Writer
}

func (a *alibabaEncoder) encode(dst []byte, r *workload.Record) ([]byte, error) {
	stamp, err := a.out.ticks(a.out.absolute(r.Time), 1e6)
	if err != nil {
		return dst, err
	}
	word := a.out.readWrite(r.Op)
	if word == 0 {
		return dst, a.out.cannot(r.Op)
	}
	volume := uint64(r.Volume)
	dst = strconv.AppendUint(dst, volume, 10)
	dst = append(dst, ',', word, ',')
	dst = strconv.AppendInt(dst, r.Offset, 10)
	dst = append(dst, ',')
	dst = strconv.AppendInt(dst, r.Size, 10)
	dst = append(dst, ',')
	a.out.dropResponse(r)
	return strconv.AppendInt(dst, stamp, 10), nil
}
