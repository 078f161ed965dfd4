package trace

import (
	"strconv"

	"farflash/workload"
)

// systorDecoder reads the SYSTOR'17 format: times and responses in seconds since the Unix epoch in Japan's time zone,
// accurate to the microsecond. Records are in order of completion; responses may be missing.
type systorDecoder struct {
	fields [6][]byte
}

func (d *systorDecoder) decode(line []byte, e *event) (bool, error) {
	f := &d.fields
	if n := splitComma(line, f[:]); n != len(f) {
		return false, columns(n, "6")
	}
	var ok bool
	if e.at, ok = parseDecimal(f[0], 0); !ok {
		if string(f[0]) == "Timestamp" {
			return false, nil
		}
		return false, fieldError("Timestamp", f[0], "a decimal number of seconds")
	}
	if e.response = workload.NoResponse; len(f[1]) > 0 {
		if e.response, ok = parseDuration(f[1]); !ok {
			return false, fieldError("Response", f[1], "a decimal number of seconds, or empty")
		}
	}
	if e.op, ok = readOrWrite(f[2]); !ok {
		return false, fieldError("IOType", f[2], "R or W")
	}
	if e.volume, ok = parseVolume(f[3]); !ok {
		return false, fieldError("LUN", f[3], "a whole number")
	}
	if e.offset, ok = parseInt63(f[4]); !ok {
		return false, fieldError("Offset", f[4], "a whole number of bytes")
	}
	if e.size, ok = parseInt63(f[5]); !ok {
		return false, fieldError("Size", f[5], "a whole number of bytes")
	}
	return true, nil
}

// systorEncoder writes the SYSTOR'17 format with as many decimals as a time needs, at least 9.
type systorEncoder struct {
	out *Writer
}

func (s *systorEncoder) encode(dst []byte, r *workload.Record) ([]byte, error) {
	at := s.out.absolute(r.Time)
	if at.sec < 0 {
		return dst, absurdStamp(at)
	}
	dst = s.out.appendSeconds(dst, at, 9)
	dst = append(dst, ',')
	if r.Response == workload.NoResponse {
		s.out.count(&s.out.noResponse)
	} else {
		dst = s.out.appendSeconds(dst, durationInstant(r.Response), 9)
	}
	word := s.out.readWrite(r.Op)
	if word == 0 {
		return dst, s.out.cannot(r.Op)
	}
	volume := uint64(r.Volume)
	dst = append(dst, ',', word, ',')
	dst = strconv.AppendUint(dst, volume, 10)
	dst = append(dst, ',')
	dst = strconv.AppendInt(dst, r.Offset, 10)
	dst = append(dst, ',')
	return strconv.AppendInt(dst, r.Size, 10), nil
}
