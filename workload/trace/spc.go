package trace

import (
	"fmt"
	"strconv"

	"farflash/workload"
)

// spcDecoder reads the SPC trace file format 1.0: application specific unit, 512-byte block address, size in bytes,
// opcode, seconds from the start; further fields are writer-specific.
type spcDecoder struct {
	fields [5][]byte
}

func (d *spcDecoder) decode(line []byte, e *event) (bool, error) {
	f := &d.fields
	if n := splitComma(line, f[:]); n < len(f) {
		return false, columns(n, "5 or more")
	}
	var ok bool
	if e.volume, ok = parseVolume(f[0]); !ok {
		return false, fieldError("ASU", f[0], "a whole number")
	}
	lba, ok := parseInt63(f[1])
	if ok {
		e.offset, ok = sectors(lba)
	}
	if !ok {
		return false, fieldError("LBA", f[1], "a whole number of 512-byte blocks")
	}
	if e.size, ok = parseInt63(f[2]); !ok {
		return false, fieldError("Size", f[2], "a whole number of bytes")
	}
	if e.op, ok = readOrWrite(f[3]); !ok {
		return false, fieldError("Opcode", f[3], "R or W")
	}
	if e.at, ok = parseDecimal(f[4], 0); !ok {
		return false, fieldError("Timestamp", f[4], "a decimal number of seconds")
	}
	e.response = workload.NoResponse
	return true, nil
}

// spcEncoder writes the SPC format with as many decimals as a time needs, at least 6.
type spcEncoder struct {
	out *Writer
}

func (s *spcEncoder) encode(dst []byte, r *workload.Record) ([]byte, error) {
	if r.Offset%sector != 0 {
		return dst, &unsupported{fmt.Sprintf("offset %d is not a multiple of 512, as the spc format needs", r.Offset)}
	}
	word := s.out.readWrite(r.Op)
	if word == 0 {
		return dst, s.out.cannot(r.Op)
	}
	volume := uint64(r.Volume)
	dst = strconv.AppendUint(dst, volume, 10)
	dst = append(dst, ',')
	dst = strconv.AppendInt(dst, r.Offset/sector, 10)
	dst = append(dst, ',')
	dst = strconv.AppendInt(dst, r.Size, 10)
	dst = append(dst, ',', word, ',')
	s.out.dropResponse(r)
	return s.out.appendSeconds(dst, durationInstant(r.Time), 6), nil
}
