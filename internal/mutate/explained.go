package main

import (
	"fmt"
	"strings"
)

// reason identifies a mutant that no test kills and that is not a gap, by the text of its source line, the replaced
// text and the replacement.
type reason struct {
	file, within, was, is string
}

type reasons []reason

// parse parses explained.txt: blocks of three lines, separated by empty lines or comments. The third line is the
// reason:
//
//	sim/queue.go: < -> <=
//		for i := 0; i < n; i++ {
//		why no test can observe the difference
func parse(text string) (reasons, error) {
	var out reasons
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		if l := strings.TrimSpace(lines[i]); l == "" || l[0] == '#' {
			continue
		}
		file, change, ok := strings.Cut(lines[i], ": ")
		was, is, arrow := strings.Cut(change, " -> ")
		if !ok || !arrow || i+2 >= len(lines) || !strings.HasPrefix(lines[i+1], "\t") ||
			!strings.HasPrefix(lines[i+2], "\t") {
			return nil, fmt.Errorf(
				"explained.txt:%d: write \"file: was -> is\", then the line of source and the reason, each after a tab", i+1)
		}
		out = append(out, reason{file, strings.TrimSpace(lines[i+1]), was, is})
		i += 2
	}
	return out, nil
}

// covers reports whether a mutant is explained.
func (r reasons) covers(m mutant) bool {
	for _, x := range r {
		if x.file == m.File && x.within == m.Within && x.was == m.Was && x.is == m.Is {
			return true
		}
	}
	return false
}
