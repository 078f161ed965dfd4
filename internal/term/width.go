package term

import (
	"strings"
	"unicode"
)

// wide lists the ranges of runes that occupy two columns: the blocks in which Unicode's EastAsianWidth is W or F almost
// throughout, and the emoji that terminals draw wide.
var wide = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0x1100, 0x115f, 1}, {0x231a, 0x231b, 1}, {0x23e9, 0x23ec, 1}, {0x25fd, 0x25fe, 1}, {0x2614, 0x2615, 1},
		{0x2648, 0x2653, 1}, {0x26aa, 0x26ab, 1}, {0x26bd, 0x26be, 1}, {0x2705, 0x2705, 1}, {0x274c, 0x274c, 1},
		{0x2753, 0x2755, 1}, {0x2795, 0x2797, 1}, {0x2b1b, 0x2b1c, 1}, {0x2b50, 0x2b50, 1},
		{0x2e80, 0x303e, 1}, {0x3041, 0x33ff, 1}, {0x3400, 0x4dbf, 1}, {0x4e00, 0x9fff, 1}, {0xa000, 0xa4cf, 1},
		{0xa960, 0xa97f, 1}, {0xac00, 0xd7a3, 1}, {0xf900, 0xfaff, 1}, {0xfe30, 0xfe6f, 1}, {0xff00, 0xff60, 1},
		{0xffe0, 0xffe6, 1},
	},
	R32: []unicode.Range32{
		{0x16fe0, 0x18aff, 1}, {0x1b000, 0x1b2ff, 1}, {0x1f300, 0x1f64f, 1}, {0x1f680, 0x1f6ff, 1},
		{0x1f900, 0x1f9ff, 1},
		{0x1fa70, 0x1faff, 1}, {0x20000, 0x3fffd, 1},
	},
}

// Width returns the number of columns that s occupies on a terminal. Escape sequences for colour, combining marks and
// control characters occupy none.
func Width(s string) int {
	n := 0
	escape := false
	for i, r := range s {
		switch {
		case escape:
			// A sequence ends with its first letter.
			escape = !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z')
		case r == '\x1b' && strings.HasPrefix(s[i:], "\x1b["):
			escape = true
		default:
			n += runeWidth(r)
		}
	}
	return n
}

func runeWidth(r rune) int {
	switch {
	case r < 0x20 || r >= 0x7f && r < 0xa0:
		return 0
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case unicode.Is(wide, r):
		return 2
	}
	return 1
}

// pad pads s with spaces to the given width, on the left if right is set, otherwise on the right.
func pad(s string, width int, right bool) string {
	gap := width - Width(s)
	if gap <= 0 {
		return s
	}
	if right {
		return strings.Repeat(" ", gap) + s
	}
	return s + strings.Repeat(" ", gap)
}
