package trace

import (
	"fmt"
	"strconv"

	"farflash/workload"
)

// fiuDecoder reads FIU's format: nanoseconds, 512-byte sectors, and the MD5 of the content, which is dropped. The
// process name may contain spaces, so fields are counted from both ends.
type fiuDecoder struct {
	fields [32][]byte
}

func (d *fiuDecoder) decode(line []byte, e *event) (bool, error) {
	n := splitSpace(line, d.fields[:])
	if n < 9 || n > len(d.fields) {
		if n == 0 {
			return false, nil
		}
		return false, columns(n, "9")
	}
	f := d.fields[n-6 : n] // lba size op major minor md5
	stamp, ok := parseInt63(d.fields[0])
	if !ok {
		return false, fieldError("timestamp", d.fields[0], "a whole number of nanoseconds")
	}
	e.at = ticks(uint64(stamp), 1e9)
	if _, ok := parseUint(d.fields[1]); !ok {
		return false, fieldError("pid", d.fields[1], "a whole number")
	}
	if e.offset, e.size, ok = sectorRange(f[0], f[1]); !ok {
		return false, sectorError("lba", f[0], "size", f[1])
	}
	if e.op, ok = readOrWrite(f[2]); !ok {
		return false, fieldError("op", f[2], "R or W")
	}
	if e.volume, ok = parseDevice(f[3], f[4]); !ok {
		return false, fmt.Errorf("device %q,%q is not a major and minor number", f[3], f[4])
	}
	e.response = workload.NoResponse
	return true, nil
}

// parseDevice parses a Linux device number.
func parseDevice(major, minor []byte) (uint32, bool) {
	a, okA := parseUint(major)
	b, okB := parseUint(minor)
	if !okA || !okB {
		return 0, false
	}
	return deviceNumber(a, b)
}

// fiuEncoder writes FIU's format with zeros for the process and the checksum, which are unknown.
type fiuEncoder struct {
	out *Writer
}

func (f *fiuEncoder) encode(dst []byte, r *workload.Record) ([]byte, error) {
	stamp, err := f.out.ticks(f.out.absolute(r.Time), 1e9)
	if err != nil {
		return dst, err
	}
	first, count, err := f.out.sectors(r)
	if err != nil {
		return dst, err
	}
	word := f.out.readWrite(r.Op)
	if word == 0 {
		return dst, f.out.cannot(r.Op)
	}
	dst = strconv.AppendInt(dst, stamp, 10)
	dst = append(dst, " 0 unknown "...)
	dst = strconv.AppendInt(dst, first, 10)
	dst = append(dst, ' ')
	dst = strconv.AppendInt(dst, count, 10)
	dst = append(dst, ' ', word, ' ')
	dst = strconv.AppendUint(dst, uint64(r.Volume>>20), 10)
	dst = append(dst, ' ')
	dst = strconv.AppendUint(dst, uint64(r.Volume&(1<<20-1)), 10)
	f.out.dropResponse(r)
	return append(dst, " 00000000000000000000000000000000"...), nil
}
