package convert

import (
	"strings"

	"farflash/internal/term"
)

// comment writes text as YAML comments, one per line. A note may have several lines, and a file name may contain a
// newline, after which text would be read as keys.
func comment(b *strings.Builder, text string) {
	for line := range strings.Lines(text) {
		b.WriteString("# " + term.Shown(strings.TrimSuffix(line, "\n")) + "\n")
	}
}
