package trace

import (
	"strconv"

	"farflash/block"
	"farflash/workload"
)

// tencentDecoder reads the Tencent CBS format: whole seconds since the Unix epoch, 512-byte sectors, 0 for read and 1
// for write, the opposite of MQSim's.
type tencentDecoder struct {
	fields [5][]byte
}

func (d *tencentDecoder) decode(line []byte, e *event) (bool, error) {
	f := &d.fields
	if n := splitComma(line, f[:]); n != len(f) {
		return false, columns(n, "5")
	}
	stamp, ok := parseInt63(f[0])
	if !ok {
		if string(f[0]) == "Timestamp" {
			return false, nil
		}
		return false, fieldError("Timestamp", f[0], "a whole number of seconds")
	}
	e.at = instant{sec: stamp}
	if e.offset, e.size, ok = sectorRange(f[1], f[2]); !ok {
		return false, sectorError("Offset", f[1], "Size", f[2])
	}
	switch {
	case len(f[3]) == 1 && f[3][0] == '0':
		e.op = block.Read
	case len(f[3]) == 1 && f[3][0] == '1':
		e.op = block.Write
	default:
		return false, fieldError("IOType", f[3], "0 (read) or 1 (write)")
	}
	if e.volume, ok = parseVolume(f[4]); !ok {
		return false, fieldError("VolumeID", f[4], "a whole number")
	}
	e.response = workload.NoResponse
	return true, nil
}

// sectorRange converts a first sector and a number of sectors to bytes.
func sectorRange(first, count []byte) (offset, size int64, ok bool) {
	a, okA := parseInt63(first)
	b, okB := parseInt63(count)
	offset, okX := sectors(a)
	size, okY := sectors(b)
	return offset, size, okA && okB && okX && okY
}

// sectorError reports which of the two fields of sectorRange is invalid.
func sectorError(firstName string, first []byte, countName string, count []byte) error {
	const want = "a whole number of 512-byte sectors"
	if v, ok := parseInt63(first); ok {
		if _, ok = sectors(v); ok {
			return fieldError(countName, count, want)
		}
	}
	return fieldError(firstName, first, want)
}

// tencentEncoder writes the Tencent CBS format.
type tencentEncoder struct {
	out *Writer
}

func (t *tencentEncoder) encode(dst []byte, r *workload.Record) ([]byte, error) {
	stamp, err := t.out.ticks(t.out.absolute(r.Time), 1)
	if err != nil {
		return dst, err
	}
	first, count, err := t.out.sectors(r)
	if err != nil {
		return dst, err
	}
	volume := uint64(r.Volume)
	dst = strconv.AppendInt(dst, stamp, 10)
	dst = append(dst, ',')
	dst = strconv.AppendInt(dst, first, 10)
	dst = append(dst, ',')
	dst = strconv.AppendInt(dst, count, 10)
	switch t.out.readWrite(r.Op) {
	case 'R':
		dst = append(dst, ",0,"...)
	case 'W':
		dst = append(dst, ",1,"...)
	default:
		return dst, t.out.cannot(r.Op)
	}
	t.out.dropResponse(r)
	return strconv.AppendUint(dst, volume, 10), nil
}
