package trace

import (
	"bytes"
	"errors"
	"fmt"
	"math"

	"farflash/block"
	"farflash/numeric/units"
	"farflash/workload"
)

// fioLogDecoder reads fio's I/O logs. Version 3 stamps every line with microseconds from the start (fio's manual gives
// no unit; its iolog.c writes and replays microseconds). Version 2 has no timestamps: time advances only by the
// microseconds of its wait lines. A volume is a file.
type fioLogDecoder struct {
	volumes *volumes
	fields  [5][]byte
	version int
	waited  int64 // version 2: microseconds so far
}

func (d *fioLogDecoder) decode(line []byte, e *event) (bool, error) {
	if d.version == 0 {
		return false, d.header(line)
	}
	f := d.fields[:]
	n := splitSpace(line, f)
	if n == 0 {
		return false, nil
	}
	stamp := d.waited
	if d.version == 3 {
		var ok bool
		if stamp, ok = parseInt63(f[0]); !ok {
			return false, fieldError("timestamp", f[0], "a whole number of microseconds")
		}
		f, n = f[1:], n-1
	}
	if n != 2 && n != 4 {
		return false, columns(n, "a file and an action, or a file, an action, an offset and a length")
	}
	action := string(f[1])
	switch action {
	case "add", "open", "close":
		if n != 2 {
			return false, fmt.Errorf("action %s takes neither offset nor length", action)
		}
		return false, nil
	case "read":
		e.op = block.Read
	case "write":
		e.op = block.Write
	case "trim":
		e.op = block.Trim
	case "sync", "datasync":
		e.op = block.Flush
	case "wait":
		return false, d.wait(f, n)
	default:
		return false, fieldError("action", f[1], "add, open, close, read, write, trim, sync, datasync or wait")
	}
	if e.op != block.Flush {
		var ok bool
		if n != 4 {
			return false, fmt.Errorf("action %s needs an offset and a length", action)
		}
		if e.offset, ok = parseInt63(f[2]); !ok {
			return false, fieldError("offset", f[2], "a whole number of bytes")
		}
		if e.size, ok = parseInt63(f[3]); !ok {
			return false, fieldError("length", f[3], "a whole number of bytes")
		}
	}
	e.at = ticks(uint64(stamp), 1e6)
	e.response = workload.NoResponse
	var err error
	e.volume, err = d.volumes.intern(f[0])
	return true, err
}

func (d *fioLogDecoder) header(line []byte) error {
	switch text := string(bytes.TrimSpace(line)); text {
	case "fio version 3 iolog":
		d.version = 3
	case "fio version 2 iolog":
		d.version = 2
	case "fio version 1 iolog":
		return errors.New("fio I/O logs of version 1 are not supported, nor by fio since 2008; write version 2 or 3")
	default:
		return fieldError("the first line", line, `"fio version 2 iolog" or "fio version 3 iolog"`)
	}
	return nil
}

func (d *fioLogDecoder) wait(f [][]byte, n int) error {
	if d.version == 3 {
		return errors.New("version 3 has no wait action: it has timestamps")
	}
	if n != 4 {
		return errors.New("action wait needs its microseconds in place of the offset, and a length")
	}
	us, ok := parseInt63(f[2])
	if !ok || us > math.MaxInt64/int64(units.Microsecond)-d.waited {
		return fieldError("wait", f[2], "a whole number of microseconds")
	}
	d.waited += us
	return nil
}

// fioLogEncoder writes version 3. The header precedes all requests, and each file's add and open lines precede its
// first request.
type fioLogEncoder struct {
	out  *Writer
	open map[uint32]bool
}

func (l *fioLogEncoder) encode(dst []byte, r *workload.Record) ([]byte, error) {
	stamp := l.out.relative(durationInstant(r.Time), 1e6)
	name := l.file(r.Volume)
	if l.open == nil {
		l.open = make(map[uint32]bool)
		dst = append(dst, "fio version 3 iolog\n"...)
	}
	if !l.open[r.Volume] {
		l.open[r.Volume] = true
		dst = fmt.Appendf(dst, "%d %s add\n%d %s open\n", stamp, name, stamp, name)
	}
	l.out.dropResponse(r)
	switch r.Op {
	case block.Read, block.Write, block.Trim:
		return fmt.Appendf(dst, "%d %s %s %d %d", stamp, name, r.Op, r.Offset, r.Size), nil
	case block.Flush:
		return fmt.Appendf(dst, "%d %s sync 0 0", stamp, name), nil
	}
	return dst, l.out.cannot(r.Op)
}

// file returns a volume's name without spaces.
func (l *fioLogEncoder) file(volume uint32) string {
	name := []byte(l.out.volumeName(volume))
	for i, c := range name {
		if c <= ' ' {
			name[i] = '_'
		}
	}
	if _, ok := parseUint(name); ok {
		return "volume" + string(name)
	}
	return string(name)
}
