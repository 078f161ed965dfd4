package term

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode/utf8"
)

// A terminal obeys control characters in the names and texts of a file: a name can colour, hide or overwrite lines, set
// the window's title, or reverse the direction of text. So every rune other than letters, symbols and spaces is written
// as Go would quote it.

// Visible returns a writer to w that escapes the characters that a terminal would obey, except line ends, tabs, and the
// colours of the style. It is safe for concurrent use.
func Visible(w io.Writer, style Style) io.Writer { return &visible{w: w, style: style} }

// Shown returns text as Visible writes it without colours, on one line.
func Shown(text string) string {
	var b strings.Builder
	v := visible{w: &b, line: true}
	v.escape([]byte(text), true)
	return string(v.out)
}

type visible struct {
	mu    sync.Mutex
	w     io.Writer
	style Style
	line  bool   // escape line ends and tabs too
	rest  []byte // the start of an incomplete rune or colour
	out   []byte
}

// Write implements io.Writer.
func (v *visible) Write(text []byte) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	in := text
	if len(v.rest) > 0 {
		in = append(v.rest, text...)
	}
	v.out = v.out[:0]
	v.rest = bytes.Clone(v.escape(in, false))
	if _, err := v.w.Write(v.out); err != nil {
		return 0, err
	}
	return len(text), nil
}

// colours are the sequences that a Style writes.
var colours = []string{"\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[32m", "\x1b[33m", "\x1b[31m"}

// escape appends text to out and returns the incomplete rune or colour at its end; last reports that no more text
// follows.
func (v *visible) escape(text []byte, last bool) []byte {
	for len(text) > 0 {
		if text[0] == '\x1b' && v.style.on {
			n, more := colour(text)
			if more && !last {
				return text
			}
			if n > 0 {
				v.out = append(v.out, text[:n]...)
				text = text[n:]
				continue
			}
		}
		if !last && !utf8.FullRune(text) {
			return text
		}
		r, n := utf8.DecodeRune(text)
		switch {
		case r == utf8.RuneError && n == 1:
			v.out = fmt.Appendf(v.out, `\x%02x`, text[0])
		case (r == '\n' || r == '\t') && !v.line:
			v.out = append(v.out, byte(r))
		case r < 0x20 || r >= 0x7f && r < 0xa0:
			v.out = fmt.Appendf(v.out, `\x%02x`, r)
		case turns(r):
			v.out = fmt.Appendf(v.out, `\u%04x`, r)
		default:
			v.out = append(v.out, text[:n]...)
		}
		text = text[n:]
	}
	return nil
}

// colour returns the length of the colour that text begins with, or 0; more reports that text is the start of one.
func colour(text []byte) (n int, more bool) {
	for _, c := range colours {
		if bytes.HasPrefix(text, []byte(c)) {
			return len(c), false
		}
		more = more || strings.HasPrefix(c, string(text))
	}
	return 0, more
}

// turns reports whether a rune changes the direction of text, or ends a line.
func turns(r rune) bool {
	return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0x200e || r == 0x200f || r == 0x061c ||
		r == 0x2028 || r == 0x2029
}
