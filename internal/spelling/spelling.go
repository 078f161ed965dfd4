// Package spelling finds the word that a misspelt one was probably meant to be, for the "did you mean" of error
// messages.
//
// Its functions are Nearest, Distance, the optimal string alignment distance (Levenshtein's, with a swap of neighbours
// counted as one), OrList and Plural. It leaves out sound and meaning: a word with an entirely different spelling is
// not found.
package spelling

import (
	"fmt"
	"strings"
)

// longest is the length of the longest word that Nearest tries to match.
const longest = 200

// Nearest returns the candidate that a misspelt word was probably meant to be, or "" if none is close. It returns the
// first of equally close ones.
func Nearest(word string, candidates []string) string {
	if len(word) > longest {
		return ""
	}
	best, least := "", max(2, len(word)/3)+1
	word = strings.ToLower(word)
	for _, c := range candidates {
		low := strings.ToLower(c)
		d := Distance(word, low)
		if strings.HasPrefix(low, word) && len(word) >= 3 || strings.HasPrefix(word, low) && len(low) >= 3 {
			d = min(d, 1)
		}
		if d < least {
			best, least = c, d
		}
	}
	return best
}

// Distance counts the insertions, deletions and replacements of bytes and swaps of
// neighbours between a and b.
func Distance(a, b string) int {
	before2, before, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range before {
		before[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(before[j]+1, row[j-1]+1, before[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before2[j-2]+1)
			}
		}
		before2, before, row = before, row, before2
	}
	return before[len(b)]
}

// OrList formats a list as "a, b or c".
func OrList(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

// Plural formats a number with a noun: "1 die", "2 dies", "3 switches", "4 directories".
func Plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	switch {
	case strings.HasSuffix(what, "ch"):
		what += "e"
	case strings.HasSuffix(what, "ry"):
		what = strings.TrimSuffix(what, "y") + "ie"
	}
	return fmt.Sprintf("%d %ss", n, what)
}
