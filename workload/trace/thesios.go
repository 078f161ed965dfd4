package trace

import (
	"fmt"
	"strings"
)

// thesiosColumns are the columns of a Thesios file that make up a record.
var thesiosColumns = [...]string{"filename", "file_offset", "op_type", "request_io_size_bytes", "start_time",
	"simulated_latency"}

// thesiosDecoder reads Google's Thesios traces. Columns are located by the header's names, so their order does not
// matter; shards joined into one file repeat the header. Offsets are within a file, and a volume is a file.
type thesiosDecoder struct {
	volumes *volumes
	fields  [32][]byte
	at      [len(thesiosColumns)]int
	columns int // 0 before the header
}

func (d *thesiosDecoder) decode(line []byte, e *event) (bool, error) {
	f := &d.fields
	n := splitComma(line, f[:])
	if n > len(f) {
		return false, columns(n, "17")
	}
	for _, field := range f[:n] {
		if string(field) == thesiosColumns[0] {
			return false, d.header(n)
		}
	}
	if d.columns == 0 {
		return false, fmt.Errorf("no header; the first line must name the columns, %s among them",
			strings.Join(thesiosColumns[:], ", "))
	}
	if n != d.columns {
		return false, columns(n, fmt.Sprintf("%d as in the header", d.columns))
	}
	var ok bool
	if e.offset, ok = parseInt63(f[d.at[1]]); !ok {
		return false, fieldError("file_offset", f[d.at[1]], "a whole number of bytes")
	}
	if e.op, ok = readOrWrite(f[d.at[2]]); !ok {
		return false, fieldError("op_type", f[d.at[2]], "READ or WRITE")
	}
	if e.size, ok = parseInt63(f[d.at[3]]); !ok {
		return false, fieldError("request_io_size_bytes", f[d.at[3]], "a whole number of bytes")
	}
	if e.at, ok = parseDecimal(f[d.at[4]], 0); !ok {
		return false, fieldError("start_time", f[d.at[4]], "a decimal number of seconds")
	}
	if e.response, ok = parseDuration(f[d.at[5]]); !ok {
		return false, fieldError("simulated_latency", f[d.at[5]], "a decimal number of seconds")
	}
	if len(f[d.at[0]]) == 0 {
		return false, fieldError("filename", f[d.at[0]], "a name")
	}
	var err error
	e.volume, err = d.volumes.intern(f[d.at[0]])
	return true, err
}

// header records the positions of the columns; the fields hold the header's names.
func (d *thesiosDecoder) header(n int) error {
	for i, name := range thesiosColumns {
		d.at[i] = -1
		for j, field := range d.fields[:n] {
			if string(field) == name {
				d.at[i] = j
			}
		}
		if d.at[i] < 0 {
			d.columns = 0
			return fmt.Errorf("the header has no column %s", name)
		}
	}
	d.columns = n
	return nil
}
