// Package term formats output for people at a terminal: aligned tables, quantities with readable units, a progress
// line, and colour if it is wanted.
//
// Its main types are [Table], [Progress] and [Style]. Colour follows https://no-color.org: none if NO_COLOR is set to
// any value, and none if the output is not a terminal.
//
// It leaves out input and full-screen drawing.
package term

import (
	"os"

	"golang.org/x/term"
)

// Style colours text, or leaves it unchanged. The zero Style adds no colour.
type Style struct{ on bool }

// Colour returns the style for a file: with colour if the file is a terminal that supports it and NO_COLOR is not set.
// environment is os.Getenv or a substitute.
func Colour(f *os.File, environment func(string) string) Style {
	return Style{on: IsTerminal(f) && environment("NO_COLOR") == "" && environment("TERM") != "dumb"}
}

// IsTerminal reports whether f is a terminal.
func IsTerminal(f *os.File) bool { return f != nil && term.IsTerminal(int(f.Fd())) }

// Columns returns the width of the terminal f in characters, or otherwise if f is not a terminal.
func Columns(f *os.File, otherwise int) int {
	if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
		return w
	}
	return otherwise
}

func (s Style) wrap(code, text string) string {
	if !s.on || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// Bold returns text in bold.
func (s Style) Bold(text string) string { return s.wrap("1", text) }

// Dim returns text in dim.
func (s Style) Dim(text string) string { return s.wrap("2", text) }

// Good returns text in the colour of success.
func (s Style) Good(text string) string { return s.wrap("32", text) }

// Warning returns text in the colour of warnings.
func (s Style) Warning(text string) string { return s.wrap("33", text) }

// Bad returns text in the colour of errors.
func (s Style) Bad(text string) string { return s.wrap("31", text) }
