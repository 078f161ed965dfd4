package trace

import (
	"fmt"
	"math"
	"strconv"

	"farflash/numeric/units"
	"farflash/workload"
)

// unixFiletime is the Unix epoch as a Windows filetime: 100 ns ticks since 1601.
const unixFiletime = 116444736000000000

// msrDecoder reads the MSR Cambridge format. Times and responses are Windows filetime ticks of 100 ns. Disk numbers
// repeat across hosts, so a volume is identified by host and disk.
type msrDecoder struct {
	volumes *volumes
	fields  [7][]byte
}

func (d *msrDecoder) decode(line []byte, e *event) (bool, error) {
	f := &d.fields
	if n := splitComma(line, f[:]); n != len(f) {
		return false, columns(n, "7")
	}
	stamp, ok := parseInt63(f[0])
	if !ok {
		if string(f[0]) == "Timestamp" {
			return false, nil
		}
		return false, fieldError("Timestamp", f[0], "a whole number of 100 ns ticks since 1601 (Windows filetime)")
	}
	e.at = filetime(stamp)
	if len(f[1]) == 0 {
		return false, fieldError("Hostname", f[1], "a name")
	}
	if _, ok := parseUint(f[2]); !ok {
		return false, fieldError("DiskNumber", f[2], "a whole number")
	}
	if e.op, ok = readOrWrite(f[3]); !ok {
		return false, fieldError("Type", f[3], "Read or Write")
	}
	if e.offset, ok = parseInt63(f[4]); !ok {
		return false, fieldError("Offset", f[4], "a whole number of bytes")
	}
	if e.size, ok = parseInt63(f[5]); !ok {
		return false, fieldError("Size", f[5], "a whole number of bytes")
	}
	response, ok := parseInt63(f[6])
	if !ok || response > math.MaxInt64/msrTick {
		return false, fieldError("ResponseTime", f[6], "a whole number of 100 ns ticks")
	}
	e.response = units.Duration(response * msrTick)
	var err error
	e.volume, err = d.volumes.intern(span(line, f[1], f[2]))
	return true, err
}

// span returns the part of line from the start of a to the end of b, both of which are subslices of it.
func span(line, a, b []byte) []byte {
	from := cap(line) - cap(a)
	return line[from : cap(line)-cap(b)+len(b)]
}

const msrTick = int64(100 * units.Nanosecond)

func filetime(n int64) instant {
	t := ticks(uint64(n), 1e7)
	t.sec -= unixFiletime / 1e7
	return t
}

// msrEncoder writes the MSR Cambridge format.
type msrEncoder struct {
	out *Writer
}

func (m *msrEncoder) encode(dst []byte, r *workload.Record) ([]byte, error) {
	at := m.out.absolute(r.Time)
	at.sec += unixFiletime / 1e7
	stamp, err := m.out.ticks(at, 1e7)
	if err != nil {
		return dst, err
	}
	dst = strconv.AppendInt(dst, stamp, 10)
	host, disk := msrVolume(m.out.volumeName(r.Volume))
	dst = append(dst, ',')
	dst = append(dst, host...)
	dst = append(dst, ',')
	dst = append(dst, disk...)
	switch word := m.out.readWrite(r.Op); word {
	case 'R':
		dst = append(dst, ",Read,"...)
	case 'W':
		dst = append(dst, ",Write,"...)
	default:
		return dst, m.out.cannot(r.Op)
	}
	dst = strconv.AppendInt(dst, r.Offset, 10)
	dst = append(dst, ',')
	dst = strconv.AppendInt(dst, r.Size, 10)
	dst = append(dst, ',')
	response := int64(0)
	if r.Response == workload.NoResponse {
		m.out.count(&m.out.noResponse)
	} else {
		response = int64(r.Response) / msrTick
		if int64(r.Response)%msrTick != 0 {
			m.out.count(&m.out.roundedResponses)
		}
	}
	return strconv.AppendInt(dst, response, 10), nil
}

// msrVolume splits a volume name into host and disk number; a name without a disk number becomes disk 0 of a host of
// that name.
func msrVolume(name string) (host, disk string) {
	for i := len(name) - 1; i > 0; i-- {
		if name[i] == ',' {
			if _, ok := parseUint([]byte(name[i+1:])); ok {
				return name[:i], name[i+1:]
			}
			break
		}
	}
	if _, ok := parseUint([]byte(name)); ok {
		return "volume", name
	}
	return name, "0"
}

// absurdStamp reports a time that cannot be represented.
func absurdStamp(t instant) error {
	return fmt.Errorf("time %d s cannot be written in this format", t.sec)
}
