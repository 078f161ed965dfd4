package trace

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"

	"farflash/block"
	"farflash/internal/spelling"
	"farflash/numeric/units"
	"farflash/workload"
)

// CSV describes a table: one request per line, in columns separated by commas, semicolons, tabs or spaces, whichever
// the first line contains.
type CSV struct {
	Columns Columns `yaml:"columns"` // Columns are the columns that hold the fields of a request.
	Unit    Unit    `yaml:"unit"`    // Unit is the unit of each numeric column.
}

// Columns are the columns of a table, by their names in its first line or by numbers from 1.
type Columns struct {
	Time string `yaml:"time"` // Time is the request's arrival.
	// Op is read, write, trim or flush, or its first letter, in either case; rd, wr, discard and unmap are accepted
	// too.
	Op     string `yaml:"op"`
	Offset string `yaml:"offset"` // Offset is where the request begins.
	Size   string `yaml:"size"`   // Size is its length.
	// Volume is the volume, disk or file. By default there is one volume.
	Volume string `yaml:"volume,omitempty"`
	// Response is the response time, in the unit of time. It may be empty.
	Response string `yaml:"response,omitempty"`
	// Reads is the value of op that means a read, if it is another: 0 in many tables.
	Reads  string `yaml:"reads,omitempty"`
	Writes string `yaml:"writes,omitempty"` // Writes is the value of op that means a write.
}

// Unit is the unit of each column.
type Unit struct {
	// Time is a power of ten of seconds, such as 1s, 1ms or 100ns. 0 is 1s.
	Time   units.Duration `yaml:"time,omitempty"`
	Offset units.Bytes    `yaml:"offset,omitempty"` // Offset is 512B for addresses in sectors. 0 is 1B.
	Size   units.Bytes    `yaml:"size,omitempty"`   // Size is 512B for lengths in sectors. 0 is 1B.
}

// Validate rejects configurations that cannot read any table.
func (c *CSV) Validate() error {
	for _, x := range []struct{ key, value string }{{"time", c.Columns.Time}, {"op", c.Columns.Op},
		{"offset", c.Columns.Offset}, {"size", c.Columns.Size}} {
		if strings.TrimSpace(x.value) == "" {
			return units.Wrong("columns."+x.key,
				"no column; give its name in the first line, or its number from 1")
		}
	}
	if c.Columns.Reads != "" && c.Columns.Reads == c.Columns.Writes {
		return units.Wrong("columns.writes", "%q cannot mean a write and a read; leave out one of them",
			c.Columns.Writes)
	}
	if _, ok := c.Unit.exponent(); !ok {
		return units.Wrong("unit.time", "%v is not a power of ten of a second; use 1s, 1ms, 1us, 100ns or 1ns",
			c.Unit.Time)
	}
	for _, x := range []struct {
		key   string
		value units.Bytes
	}{{"offset", c.Unit.Offset}, {"size", c.Unit.Size}} {
		if x.value < 0 || x.value > units.GiB {
			return units.Wrong("unit."+x.key, "%v is not possible; use 1B for bytes, 512B for sectors", x.value)
		}
	}
	return nil
}

// exponent is n if the unit of time is 10^-n seconds.
func (u *Unit) exponent() (n int, ok bool) {
	at := u.Time
	if at == 0 {
		return 0, true
	}
	for n, d := 0, units.Second; d > 0; n, d = n+1, d/10 {
		if d == at {
			return n, true
		}
	}
	return 0, false
}

// The columns of a table, as indices in csvDecoder.
const (
	colTime = iota
	colOp
	colOffset
	colSize
	colVolume
	colResponse
	cols
)

var colNames = [cols]string{"time", "op", "offset", "size", "volume", "response"}

// csvDecoder reads a table.
type csvDecoder struct {
	volumes   *volumes
	cfg       *CSV
	separator byte // ' ' stands for runs of spaces and tabs
	at        [cols]int
	names     [cols]string // as in the first line
	exponent  int
	units     [2]int64 // of offset and size
	header    bool     // the first line is a header and has not been skipped yet
	fields    [][]byte
	unquoted  []byte
}

// newCSVDecoder determines the separator and the columns from the first line.
func newCSVDecoder(cfg *CSV, head *headReader, v *volumes) (*csvDecoder, error) {
	d := &csvDecoder{volumes: v, cfg: cfg,
		units: [2]int64{max(int64(cfg.Unit.Offset), 1), max(int64(cfg.Unit.Size), 1)}}
	d.exponent, _ = cfg.Unit.exponent()
	var first []byte
	for _, line := range head.lines() {
		if len(trim(line)) > 0 && line[0] != '#' {
			first = line
			break
		}
	}
	d.separator = ' '
	for _, c := range []byte{',', ';', '\t'} {
		if bytes.IndexByte(first, c) >= 0 {
			d.separator = c
			break
		}
	}
	names, err := d.split(first)
	if err != nil {
		return nil, err
	}
	var header []string
	for _, f := range names {
		header = append(header, string(f))
	}
	c := &cfg.Columns
	for i, want := range []string{c.Time, c.Op, c.Offset, c.Size, c.Volume, c.Response} {
		d.at[i] = -1
		if want == "" {
			continue
		}
		if d.at[i], err = d.find(colNames[i], want, header); err != nil {
			return nil, err
		}
		d.names[i] = header[d.at[i]]
	}
	if !d.header {
		// Columns were numbered, so a first line whose time is not a number is a header.
		_, isTime := parseDecimal(names[d.at[colTime]], d.exponent)
		d.header = !isTime
	}
	return d, nil
}

// find returns the index of a column in the first line, from 0.
func (d *csvDecoder) find(what, want string, header []string) (int, error) {
	// A number is never a name, because the first line of a table without names can hold its value.
	if n, err := strconv.Atoi(want); err == nil {
		if n < 1 || n > len(header) {
			return 0, units.Wrong("columns."+what, "no column %d; the first line has %d", n, len(header))
		}
		return n - 1, nil
	}
	for i, name := range header {
		if strings.EqualFold(name, want) {
			d.header = true
			return i, nil
		}
	}
	near := ""
	if x := spelling.Nearest(want, header); x != "" {
		near = fmt.Sprintf("; did you mean %q?", x)
	}
	return 0, units.Wrong("columns."+what, "the first line has no column %q%s (it has %s)", want, near,
		strings.Join(header, ", "))
}

// describe reports which columns are used.
func (d *csvDecoder) describe() string {
	var b strings.Builder
	for i, at := range d.at {
		if at < 0 {
			continue
		}
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s from column %d", colNames[i], at+1)
		if d.header {
			fmt.Fprintf(&b, " (%s)", d.names[i])
		}
	}
	fmt.Fprintf(&b, "; 1 is %v of time, %v of an offset and %v of a size", d.second(), units.Bytes(d.units[0]),
		units.Bytes(d.units[1]))
	return b.String()
}

// split splits a line into its fields, which are valid until the next call. A field in double quotes may contain
// separators, and a doubled quote for a quote.
func (d *csvDecoder) split(line []byte) ([][]byte, error) {
	d.fields, d.unquoted = d.fields[:0], d.unquoted[:0]
	if d.separator == ' ' {
		for rest := line; ; {
			rest = bytes.TrimLeft(rest, " \t")
			if len(rest) == 0 {
				return d.fields, nil
			}
			end := bytes.IndexAny(rest, " \t")
			if end < 0 {
				end = len(rest)
			}
			d.fields = append(d.fields, rest[:end])
			rest = rest[end:]
		}
	}
	for rest := line; ; {
		field, more, err := d.field(&rest)
		if err != nil {
			return nil, err
		}
		d.fields = append(d.fields, field)
		if !more {
			return d.fields, nil
		}
	}
}

// field cuts the first field off rest; more reports whether another one follows.
func (d *csvDecoder) field(rest *[]byte) (field []byte, more bool, err error) {
	text := bytes.TrimLeft(*rest, " ")
	if len(text) == 0 || text[0] != '"' {
		field, *rest, more = bytes.Cut(*rest, []byte{d.separator})
		return trim(field), more, nil
	}
	from := len(d.unquoted)
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] != '"':
			d.unquoted = append(d.unquoted, text[i])
		case i+1 < len(text) && text[i+1] == '"':
			d.unquoted = append(d.unquoted, '"')
			i++
		default:
			after := trim(text[i+1:])
			if len(after) > 0 && after[0] != d.separator {
				return nil, false, fmt.Errorf("a field in quotes is followed by %q; it must be %q", after[0],
					d.separator)
			}
			if len(after) > 0 {
				*rest, more = after[1:], true
			}
			return d.unquoted[from:], more, nil
		}
	}
	return nil, false, fmt.Errorf("a quote is not closed on its line")
}

func (d *csvDecoder) decode(line []byte, e *event) (bool, error) {
	if len(trim(line)) == 0 || line[0] == '#' {
		return false, nil
	}
	if d.header {
		d.header = false
		return false, nil
	}
	f, err := d.split(line)
	if err != nil {
		return false, err
	}
	get := func(c int) []byte {
		if at := d.at[c]; at >= 0 && at < len(f) {
			return f[at]
		}
		return nil
	}
	for c := colTime; c <= colSize; c++ {
		if d.at[c] >= len(f) {
			return false, fmt.Errorf("%d columns, and %s is number %d", len(f), colNames[c], d.at[c]+1)
		}
	}
	var ok bool
	if e.at, ok = parseDecimal(get(colTime), d.exponent); !ok {
		return false, fieldError("time", get(colTime), "a decimal number without sign or exponent")
	}
	if e.op, e.append, ok = d.op(get(colOp)); !ok {
		return false, fieldError("op", get(colOp),
			"read, write, trim or flush, or append, reset, finish, open or close of a zone (columns: reads and "+
				"writes name other words)")
	}
	for i, to := range []*int64{&e.offset, &e.size} {
		c := colOffset + i
		n, ok := parseInt63(get(c))
		if (e.op == block.Flush || e.op.OfZone() && i == 1) && !ok {
			n, ok = 0, true
		}
		if !ok || n > math.MaxInt64/d.units[i] {
			return false, fieldError(colNames[c], get(c), "a whole number")
		}
		*to = n * d.units[i]
	}
	if e.op == block.Flush {
		e.offset, e.size = 0, 0
	}
	if e.op.OfZone() {
		e.size = 0
	}
	if d.at[colVolume] >= 0 {
		if e.volume, err = d.volumes.intern(get(colVolume)); err != nil {
			return false, err
		}
	}
	e.response = workload.NoResponse
	if r := get(colResponse); len(r) > 0 {
		t, ok := parseDecimal(r, d.exponent)
		if ok {
			e.response, ok = t.since(instant{})
		}
		if !ok {
			return false, fieldError("response", r, "a decimal number, or empty")
		}
	}
	return true, nil
}

// opWords are the words accepted in a column of operations.
var opWords = [...]struct {
	word    string
	op      block.Op
	appends bool
}{
	{word: "append", op: block.Write, appends: true},
	{word: "r", op: block.Read}, {word: "read", op: block.Read}, {word: "rd", op: block.Read},
	{word: "reads", op: block.Read}, {word: "w", op: block.Write}, {word: "write", op: block.Write},
	{word: "wr", op: block.Write}, {word: "writes", op: block.Write},
	{word: "reset", op: block.Reset}, {word: "finish", op: block.Finish}, {word: "open", op: block.Open},
	{word: "close", op: block.Close},
	{word: "t", op: block.Trim}, {word: "trim", op: block.Trim}, {word: "d", op: block.Trim},
	{word: "discard", op: block.Trim}, {word: "unmap", op: block.Trim}, {word: "f", op: block.Flush},
	{word: "flush", op: block.Flush}, {word: "sync", op: block.Flush},
}

// op parses an operation's word; appends reports a Zone Append, which is a write.
func (d *csvDecoder) op(word []byte) (op block.Op, appends, ok bool) {
	c := &d.cfg.Columns
	switch {
	case len(word) == 0:
		return 0, false, false
	case string(word) == c.Reads:
		return block.Read, false, true
	case string(word) == c.Writes:
		return block.Write, false, true
	}
	for _, w := range &opWords {
		if len(w.word) != len(word) {
			continue
		}
		same := true
		for i := range word {
			same = same && word[i]|0x20 == w.word[i]
		}
		if same {
			return w.op, w.appends, true
		}
	}
	return 0, false, false
}

// second is the unit of time.
func (d *csvDecoder) second() units.Duration {
	if d.cfg.Unit.Time == 0 {
		return units.Second
	}
	return d.cfg.Unit.Time
}
