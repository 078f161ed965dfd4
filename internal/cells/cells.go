// Package cells makes users' text safe in CSV tables, which people open in spreadsheets.
//
// A spreadsheet evaluates a cell that begins with one of = + - @ as a formula, even if it is the name of a workload.
// Text puts an apostrophe in front of such text, which makes spreadsheets show it as text; Plain removes the
// apostrophe, for tables that are read back. See OWASP, CSV injection.
//
// It leaves out numbers, which are written unchanged, and the quoting of commas, which encoding/csv does.
package cells

import "strings"

// signs are the characters that can begin a formula. Spreadsheets skip tabs and returns before it.
const signs = "=+-@\t\r"

// Text returns s as the contents of a text cell.
func Text(s string) string {
	if s != "" && strings.IndexByte(signs, s[0]) >= 0 {
		return "'" + s
	}
	return s
}

// Row returns a row of text cells.
func Row(cells ...string) []string {
	out := make([]string, len(cells))
	for i, s := range cells {
		out[i] = Text(s)
	}
	return out
}

// Plain reverses Text.
func Plain(s string) string {
	if len(s) > 1 && s[0] == '\'' && strings.IndexByte(signs, s[1]) >= 0 {
		return s[1:]
	}
	return s
}
