// Package record writes the lines of a server's recording, the trace format "farflash" of package trace: a table with a
// header and one line for each operation, in the order of their ends.
//
// It is a package of its own so that a server records without the readers of all formats. It leaves out the file; see
// flash/recorder.
package record

import (
	"strconv"
	"strings"
	"time"
)

// Header is the first line of a recording. time is the operation's arrival, in seconds since the Unix epoch. op is
// read, write, trim or flush. offset and length are bytes within the export. latency is in seconds, and empty if it is
// unknown. session distinguishes connections, as a client's address does; it may be empty.
const Header = "time,op,export,offset,length,latency,session"

// Operation is one line.
type Operation struct {
	At              time.Time
	Op              string
	Export, Session string
	Offset          uint64 // bytes
	Length          int    // bytes
	Latency         time.Duration
	Timed           bool // the latency is known
}

// Append appends the line of an operation, with its end, to dst.
func Append(dst []byte, x *Operation) []byte {
	dst = seconds(dst, x.At.Unix(), x.At.Nanosecond())
	dst = append(dst, ',')
	dst = append(dst, x.Op...)
	dst = append(dst, ',')
	dst = text(dst, x.Export)
	dst = append(dst, ',')
	dst = strconv.AppendUint(dst, x.Offset, 10)
	dst = append(dst, ',')
	dst = strconv.AppendInt(dst, int64(x.Length), 10)
	dst = append(dst, ',')
	if x.Timed {
		d := max(x.Latency, 0)
		dst = seconds(dst, int64(d/time.Second), int(d%time.Second))
	}
	dst = append(dst, ',')
	dst = text(dst, x.Session)
	return append(dst, '\n')
}

// seconds appends a time with nine decimals.
func seconds(dst []byte, whole int64, nanos int) []byte {
	dst = strconv.AppendInt(dst, whole, 10)
	dst = append(dst, '.')
	for unit := 100_000_000; unit > 0; unit /= 10 {
		dst = append(dst, byte('0'+nanos/unit%10))
	}
	return dst
}

// text appends a field, in quotes if it needs them. A line cannot contain another, so control characters, which no name
// of an export has, become spaces.
func text(dst []byte, s string) []byte {
	if !strings.ContainsFunc(s, func(r rune) bool { return r == ',' || r == '"' || r <= ' ' }) {
		return append(dst, s...)
	}
	dst = append(dst, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"':
			dst = append(dst, '"', '"')
		case c < ' ':
			dst = append(dst, ' ')
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}
