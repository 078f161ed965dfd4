package term

import (
	"bytes"
	"strings"
	"testing"

	"farflash/internal/patience"
)

func TestVisible(t *testing.T) {
	for _, x := range []struct {
		on        bool
		text, out string
	}{
		{false, "a\tb\nc", "a\tb\nc"},
		{false, "größer 中", "größer 中"},
		{false, "\x1b[31mred\x1b]0;title\a", `\x1b[31mred\x1b]0;title\x07`},
		{false, "a\rb\x7f\u009b", `a\x0db\x7f\x9b`},
		{false, "a\u202eb\u2066", `a\u202eb\u2066`},
		{false, "\xff\xfe", `\xff\xfe`},
		{true, "\x1b[1mbold\x1b[0m", "\x1b[1mbold\x1b[0m"},
		{true, "\x1b[2Jx\x1b[1", `\x1b[2Jx`},
	} {
		var whole, single bytes.Buffer
		w := Visible(&whole, Style{on: x.on})
		if n, err := w.Write([]byte(x.text)); n != len(x.text) || err != nil {
			t.Errorf("%q: %d, %v", x.text, n, err)
		}
		if whole.String() != x.out {
			t.Errorf("%q is shown as %q, not %q", x.text, whole.String(), x.out)
		}
		w = Visible(&single, Style{on: x.on})
		for i := range len(x.text) {
			if _, err := w.Write([]byte{x.text[i]}); err != nil {
				t.Fatal(err)
			}
		}
		if single.String() != x.out {
			t.Errorf("%q, byte by byte, is shown as %q, not %q", x.text, single.String(), x.out)
		}
	}
	if s := Shown("a\nb\x1b\xff"); s != `a\x0ab\x1b\xff` {
		t.Errorf("%q", s)
	}
}

// FuzzVisible verifies that no character that a terminal obeys passes through, wherever the text is split.
func FuzzVisible(f *testing.F) {
	f.Add("a\x1b[31mb\xe2\x80\xaec", 3)
	f.Fuzz(func(t *testing.T, text string, cut int) {
		defer patience.Limit()()
		var b bytes.Buffer
		w := Visible(&b, Style{})
		cut = min(max(cut, 0), len(text))
		for _, part := range []string{text[:cut], text[cut:]} {
			if _, err := w.Write([]byte(part)); err != nil {
				t.Fatal(err)
			}
		}
		if i := strings.IndexFunc(b.String(),
			func(r rune) bool {
				return r < 0x20 && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 ||
					turns(r)
			}); i >= 0 {
			t.Errorf("%q is shown as %q", text, b.String())
		}
	})
}
