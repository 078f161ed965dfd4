package trace

import (
	"fmt"
	"strings"
)

// detectLines is the number of lines of a text file that detection tries.
const detectLines = 1000

// detect determines the format of a file from its beginning, and the reason. An ambiguous file is refused.
func detect(head *headReader, name string) (Format, string, error) {
	if order := blktraceOrder(head.head); order != nil {
		return Blktrace, "it begins with blktrace's magic number (" + order.String() + ")", nil
	}
	if n, version := vscsiRun(head.head); n > 0 {
		return VSCSI, fmt.Sprintf("its first %d records have version %d in their version field", n, version), nil
	}
	lines := head.lines()
	if len(lines) > detectLines {
		lines = lines[:detectLines]
	}
	if i := binaryByte(lines); i >= 0 {
		return Auto, "", fmt.Errorf(
			"%s: binary data, but neither blktrace's magic number nor vscsi records; if it is one of the text formats,"+
				" line %d is damaged", name, i+1)
	}
	if err := reversed(lines, name); err != nil {
		return Auto, "", err
	}
	best := trial{}
	var fits []Format
	var closest trial
	for f := MSR; f < formatCount; f++ {
		t := try(f, lines)
		switch {
		case t.good == 0 || t.bad > t.good:
			if t.good > closest.good || closest.err == nil {
				closest = t
			}
		case t.good > best.good:
			best, fits = t, []Format{f}
		case t.good == best.good:
			fits = append(fits, f)
		}
	}
	switch {
	case len(fits) == 1:
		why := fmt.Sprintf("%d of the first %d records read as %s", best.good, best.good+best.bad, best.format.Layout())
		return best.format, why, nil
	case len(fits) > 1:
		options := make([]string, len(fits))
		for i, f := range fits {
			options[i] = "--format " + f.String()
		}
		return Auto, "", fmt.Errorf("%s: ambiguous: it is valid in several formats; choose one with %s", name,
			strings.Join(options, " or "))
	}
	return Auto, "", fmt.Errorf(
		"%s: unknown trace format; choose one with --format (%s), or name the columns of a table with --columns%s",
		name, strings.Join(names(), ", "), closest.hint(name))
}

// trial is the result of reading the first lines as one format.
type trial struct {
	format    Format
	good, bad int
	err       error // of the first bad line
	line      int
}

func (t *trial) hint(name string) string {
	if t.good == 0 || t.err == nil {
		return ""
	}
	return fmt.Sprintf("; the closest is %s, but %s:%d: %v", t.format, name, t.line, t.err)
}

// try reads lines as format f.
func try(f Format, lines [][]byte) trial {
	t := trial{format: f}
	var v volumes
	opts := Options{Action: actionQueued}
	if f == Blkparse {
		opts.Action, _ = chooseAction(lines)
	}
	d := newLineDecoder(f, &opts, &v)
	if d == nil {
		return t
	}
	if disksim, ok := d.(*disksimDecoder); ok {
		disksim.strict = true
	}
	for i, line := range lines {
		if len(line) == 0 {
			continue
		}
		var e event
		ok, err := d.decode(line, &e)
		switch {
		case err != nil:
			t.bad++
			if t.err == nil {
				t.err, t.line = err, i+1
			}
		case ok:
			t.good++
		}
	}
	return t
}

// vscsiRun returns the number of records of one vscsi version at the start of head, if they fill all of it.
func vscsiRun(head []byte) (n, version int) {
	version = vscsiVersion(head)
	if version == 0 {
		return 0, 0
	}
	d := vscsiDecoder{version: version}
	for len(head) >= d.size() && n < detectLines {
		if vscsiVersion(head) != version {
			// A damaged record does not rule out the format, but the first few must be intact.
			if n < 4 {
				return 0, 0
			}
			break
		}
		head = head[d.size():]
		n++
	}
	return n, version
}

// binaryByte returns the index of the first line with a NUL byte, or -1.
func binaryByte(lines [][]byte) int {
	for i, line := range lines {
		for _, c := range line {
			if c == 0 {
				return i
			}
		}
	}
	return -1
}

// reversed refuses five integer columns whose direction is ambiguous. Tencent's fourth column is 0 for read and 1 for
// write; MQSim's fifth is 0 for write and 1 for read: one format's reads are the other's writes.
func reversed(lines [][]byte, name string) error {
	rows, comma, fourth, fifth := 0, 0, 0, 0
	var f [5][]byte
	for _, line := range lines {
		if len(line) == 0 {
			continue
		}
		isComma := splitComma(line, f[:]) == len(f)
		if !isComma && splitSpace(line, f[:]) != len(f) {
			return nil
		}
		for _, field := range f {
			if _, ok := parseUint(field); !ok {
				if rows == 0 {
					break // possibly a header
				}
				return nil
			}
		}
		if _, ok := parseUint(f[0]); !ok {
			continue
		}
		rows++
		if isComma {
			comma++
		}
		if bit(f[3]) {
			fourth++
		}
		if bit(f[4]) {
			fifth++
		}
	}
	if rows == 0 {
		return nil
	}
	const reversal = "mqsim (fifth column, 0 is a write) and tencent (fourth column, 0 is a read) give 0 and 1 " +
		"reversed meanings;" +
		" choose one with --format mqsim or --format tencent"
	switch {
	case fourth == rows && fifth == rows:
		return fmt.Errorf("%s: ambiguous: the fourth and the fifth of five columns are both 0 or 1 in all of the "+
			"first %d lines: %s", name, rows, reversal)
	case comma > 0 && fifth == rows:
		return fmt.Errorf("%s: ambiguous: columns are separated by commas as in tencent's traces, but the fifth is 0 "+
			"or 1 as in mqsim's: %s", name, reversal)
	case comma == 0 && fourth == rows:
		return fmt.Errorf("%s: ambiguous: columns are separated by spaces as in mqsim's traces, but the fourth is 0 "+
			"or 1 as in tencent's: %s", name, reversal)
	}
	return nil
}

// bit reports whether a field is 0 or 1.
func bit(s []byte) bool { return len(s) == 1 && (s[0] == '0' || s[0] == '1') }
