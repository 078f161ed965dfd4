package trace

import (
	"strconv"

	"farflash/workload"
)

// k5cloudDecoder reads the Fujitsu K5 cloud format: seconds since the first request of all logs, bytes.
type k5cloudDecoder struct {
	fields [5][]byte
}

func (d *k5cloudDecoder) decode(line []byte, e *event) (bool, error) {
	f := &d.fields
	if n := splitComma(line, f[:]); n != len(f) {
		return false, columns(n, "5")
	}
	var ok bool
	if e.volume, ok = parseVolume(f[0]); !ok {
		if string(f[0]) == "ID" || string(f[0]) == "VolumeId" || string(f[0]) == "VolumeID" {
			return false, nil
		}
		return false, fieldError("VolumeID", f[0], "a whole number")
	}
	if e.at, ok = parseDecimal(f[1], 0); !ok {
		return false, fieldError("Timestamp", f[1], "a decimal number of seconds")
	}
	if e.op, ok = readOrWrite(f[2]); !ok {
		return false, fieldError("Type", f[2], "R or W")
	}
	if e.offset, ok = parseInt63(f[3]); !ok {
		return false, fieldError("Offset", f[3], "a whole number of bytes")
	}
	if e.size, ok = parseInt63(f[4]); !ok {
		return false, fieldError("Length", f[4], "a whole number of bytes")
	}
	e.response = workload.NoResponse
	return true, nil
}

// k5cloudEncoder writes the K5 cloud format with as many decimals as a time needs, at least 6.
type k5cloudEncoder struct {
	out *Writer
}

func (k *k5cloudEncoder) encode(dst []byte, r *workload.Record) ([]byte, error) {
	word := k.out.readWrite(r.Op)
	if word == 0 {
		return dst, k.out.cannot(r.Op)
	}
	volume := uint64(r.Volume)
	dst = strconv.AppendUint(dst, volume, 10)
	dst = append(dst, ',')
	dst = k.out.appendSeconds(dst, durationInstant(r.Time), 6)
	dst = append(dst, ',', word, ',')
	dst = strconv.AppendInt(dst, r.Offset, 10)
	dst = append(dst, ',')
	k.out.dropResponse(r)
	return strconv.AppendInt(dst, r.Size, 10), nil
}
