// Package cells makes text of users safe in CSV tables, which people open in spreadsheets.
//
// A spreadsheet takes a cell that begins with one of = + - @ for a formula and computes it, be it the name of a
// workload. Text writes such a name with an apostrophe before it, which spreadsheets show as text; Plain takes it
// away again, for tables that are read back. See OWASP, CSV injection.
//
// What it leaves out: numbers, which are written as they are, and the quoting of commas, which encoding/csv does.
package cells

import "strings"

// signs are what a formula may begin with; tabs and returns are skipped before one.
const signs = "=+-@\t\r"

// Text is a cell of text.
func Text(s string) string {
	if s != "" && strings.IndexByte(signs, s[0]) >= 0 {
		return "'" + s
	}
	return s
}

// Row is a row of text.
func Row(cells ...string) []string {
	out := make([]string, len(cells))
	for i, s := range cells {
		out[i] = Text(s)
	}
	return out
}

// Plain is the text of a cell that Text has made.
func Plain(s string) string {
	if len(s) > 1 && s[0] == '\'' && strings.IndexByte(signs, s[1]) >= 0 {
		return s[1:]
	}
	return s
}
