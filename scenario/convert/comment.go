package convert

import (
	"strings"

	"farflash/internal/term"
)

// comment writes text as comments of a YAML file, a line each: a note may have several, and a file's name may hold an
// end of line, behind which keys would stand that nobody wrote.
func comment(b *strings.Builder, text string) {
	for line := range strings.Lines(text) {
		b.WriteString("# " + term.Shown(strings.TrimSuffix(line, "\n")) + "\n")
	}
}
