package resp

import (
	"bytes"
	"fmt"
)

// Parser divides a client's bytes into commands. It holds at most Limits.Request bytes of arguments, and a line.
type Parser struct {
	limits Limits
	// Known clients may send what the limits allow. Of others it takes short commands only.
	Known bool

	state parse
	line  []byte // begun
	left  int    // arguments that have not begun
	want  int    // bytes of the argument that have not arrived, with its line end
	keep  bool   // the argument is kept
	long  int    // the length of one that was too long
	total int    // bytes of all arguments
	data  []byte // the arguments, one after the other
	ends  []int
	args  [][]byte
}

// parse is what a Parser expects.
type parse uint8

const (
	first  parse = iota // of a command
	inline              // the rest of a command that is a line
	count               // the number of arguments
	length              // the length of an argument
	body                // an argument
)

// mostKept is the memory that a Parser keeps between commands.
const mostKept = 64 << 10

// The most of clients that have not proved who they are.
const (
	strangersArgs  = 10
	strangersValue = 16 << 10
)

// NewParser returns a parser.
func NewParser(l Limits) *Parser { return &Parser{limits: l} }

// Args are the arguments of the command that Input has completed, until the next call of Input. There is at least one.
func (p *Parser) Args() [][]byte { return p.args }

// TooLong is the length of one of its arguments, or of all together, if that exceeds a limit; 0: none does. Args are
// then of no use.
func (p *Parser) TooLong() int { return p.long }

// Input takes bytes up to the end of a command, and reports whether that has been reached. An error cannot be repaired:
// the connection must be closed.
func (p *Parser) Input(b []byte) (n int, done bool, err error) {
	for n < len(b) {
		switch p.state {
		case first:
			if cap(p.data) > mostKept || cap(p.ends) > mostKept/16 {
				p.data, p.ends, p.args = nil, nil, nil
			}
			p.data, p.ends, p.line, p.long, p.total = p.data[:0], p.ends[:0], p.line[:0], 0, 0
			p.state = inline
			if b[n] == '*' {
				p.state = count
				n++
			}
		case body:
			if k := p.take(b[n:]); k > 0 {
				n += k
				break
			}
			n++ // of the line end
			if p.want--; p.want > 0 {
				break
			}
			if p.state = length; p.left == 0 {
				p.complete()
				return n, true, nil
			}
		default:
			i := bytes.IndexByte(b[n:], '\n')
			if more := b[n:]; i < 0 {
				if len(p.line)+len(more) > p.limits.Inline {
					return n, false, p.tooLong()
				}
				p.line = append(p.line, more...)
				return len(b), false, nil
			}
			if len(p.line)+i > p.limits.Inline {
				return n, false, p.tooLong()
			}
			p.line = append(p.line, b[n:n+i]...)
			n += i + 1
			if done, err = p.lined(bytes.TrimSuffix(p.line, []byte{'\r'})); done || err != nil {
				return n, done, err
			}
			p.line = p.line[:0]
		}
	}
	return n, false, nil
}

// take takes bytes of an argument, without its line end.
func (p *Parser) take(b []byte) int {
	k := min(p.want-2, len(b))
	if k <= 0 {
		return 0
	}
	if p.keep {
		p.data = append(p.data, b[:k]...)
	}
	if p.want -= k; p.want == 2 {
		p.ends = append(p.ends, len(p.data))
	}
	return k
}

func (p *Parser) tooLong() error {
	switch p.state {
	case count:
		return fault("too big mbulk count string")
	case length:
		return fault("too big bulk count string")
	}
	return fault("too big inline request")
}

// fault is an error that ends the connection, in the words that clients know.
type fault string

func (f fault) Error() string { return "Protocol error: " + string(f) }

// lined takes a whole line. done: it ends a command.
func (p *Parser) lined(line []byte) (done bool, err error) {
	switch p.state {
	case inline:
		p.state = first
		if err := p.split(line); err != nil {
			return false, err
		}
		if len(p.ends) > 0 {
			p.complete()
		}
		return len(p.ends) > 0, nil
	case count:
		n, ok := integer(line)
		switch {
		case !ok || n > int64(p.limits.Args):
			return false, fault("invalid multibulk length")
		case !p.Known && n > strangersArgs:
			return false, fault("unauthenticated multibulk length")
		case n <= 0: // no command
			p.state = first
			return false, nil
		}
		p.left, p.state = int(n), length
		return false, nil
	}
	if len(line) == 0 || line[0] != '$' {
		c := byte(0)
		if len(line) > 0 {
			c = line[0]
		}
		return false, fault(fmt.Sprintf("expected '$', got %q", c))
	}
	n, ok := integer(line[1:])
	switch {
	case !ok || n < 0 || n > longestBulk:
		return false, fault("invalid bulk length")
	case !p.Known && n > strangersValue:
		return false, fault("unauthenticated bulk length")
	}
	p.left--
	p.want, p.state = int(n)+2, body
	p.total += int(n)
	p.keep = p.long == 0 && int(n) <= p.limits.Value && p.total <= p.limits.Request
	switch {
	case p.keep || p.long > 0:
	case int(n) > p.limits.Value:
		p.long = int(n)
	default:
		p.long = p.total
	}
	if n == 0 {
		p.ends = append(p.ends, len(p.data))
	}
	return false, nil
}

// complete makes the arguments.
func (p *Parser) complete() {
	p.state, p.args = first, p.args[:0]
	from := 0
	for _, end := range p.ends {
		p.args = append(p.args, p.data[from:end:end])
		from = end
	}
}

// split divides a line at spaces. Words can be in quotes: in double ones \n, \r, \t, \b, \a and \xHH stand for
// characters, and \ before any other for that one; in single ones only \' does.
func (p *Parser) split(line []byte) error {
	for i := 0; ; {
		for i < len(line) && space(line[i]) {
			i++
		}
		if i == len(line) {
			return nil
		}
		for quote := byte(0); ; i++ {
			if i == len(line) {
				if quote != 0 {
					return errQuotes
				}
				break
			}
			c := line[i]
			if quote == 0 && space(c) {
				break
			}
			switch {
			case quote == 0 && (c == '"' || c == '\''):
				quote = c
				continue
			case quote != 0 && c == quote:
				if i+1 < len(line) && !space(line[i+1]) {
					return errQuotes
				}
				quote = 0
				continue
			case quote == '\'' && c == '\\' && i+1 < len(line) && line[i+1] == '\'':
				i++
				c = '\''
			case quote == '"' && c == '\\' && i+3 < len(line) && line[i+1] == 'x' &&
				digit(line[i+2]) >= 0 && digit(line[i+3]) >= 0:
				c = byte(digit(line[i+2])<<4 | digit(line[i+3]))
				i += 3
			case quote == '"' && c == '\\' && i+1 < len(line):
				i++
				c = escaped(line[i])
			}
			p.data = append(p.data, c)
		}
		p.ends = append(p.ends, len(p.data))
	}
}

var errQuotes = fault("unbalanced quotes in request")

func space(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// digit is the value of a hexadecimal digit, or -1.
func digit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c|32 >= 'a' && c|32 <= 'f':
		return int(c|32-'a') + 10
	}
	return -1
}

func escaped(c byte) byte {
	switch c {
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case 'b':
		return '\b'
	case 'a':
		return '\a'
	}
	return c
}

// integer parses a number in the only form that Redis takes: without spaces, plus and leading zeros.
func integer(b []byte) (n int64, ok bool) {
	negative := len(b) > 1 && b[0] == '-'
	if negative {
		b = b[1:]
	}
	if len(b) == 0 || len(b) > 19 || b[0] == '0' && (len(b) > 1 || negative) {
		return 0, false
	}
	x := uint64(0)
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		x = 10*x + uint64(c-'0') // below 10^19
	}
	switch {
	case negative && x <= 1<<63:
		return -int64(x), true
	case !negative && x < 1<<63:
		return int64(x), true
	}
	return 0, false
}
