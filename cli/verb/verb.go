// Package verb is what all verbs of the command line share, in whichever package they are: errors with the exit code
// that they lead to, how arguments are checked, and what a verb has of the invocation. The exit codes are in
// docs/reference/exit-codes.md.
//
// It leaves out what only package cli knows: how a command begins and ends.
package verb

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"farflash/internal/spelling"
	"farflash/internal/term"
	"farflash/study"
)

// Exit codes.
const (
	ExitDone   = 0
	ExitFailed = 1
	ExitUsage  = 2
	ExitFailIf = 3
)

// Program is what a verb has of one invocation.
type Program struct {
	In   io.Reader
	Out  io.Writer // text for people; what is not fit to be shown is escaped
	Data io.Writer // the same place, for what must arrive byte by byte
	// Note writes a line to standard error.
	Note func(format string, args ...any)
	// Style is how standard output is coloured.
	Style func() term.Style
	// Keeping says that from now on a signal is to end the context alone: the verb writes what is done.
	Keeping func()
	// Progress is the one line on standard error while something long runs; ending says what a signal does to it.
	Progress func(label, unit string, quiet bool, ending string) *term.Progress
	// Cache keeps results of trials, in a folder or in the user's own if it is ""; nil if there is no place for it.
	Cache func(dir string, quiet bool) (*study.Cache, error)
	// Version is what the program was built from.
	Version string
	// Unfinished notes files by a pattern as not worth keeping, until whole is called.
	Unfinished func(pattern string) (whole func())
}

// JSON prints a document.
func (p *Program) JSON(doc any) error {
	w := json.NewEncoder(p.Data)
	w.SetIndent("", "  ")
	return Failed(w.Encode(doc))
}

// Error is an error with the exit code it leads to.
type Error struct {
	Code int
	Err  error
}

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap is the error without its code.
func (e *Error) Unwrap() error { return e.Err }

// BadInput marks an error as the user's: exit code 2.
func BadInput(err error) error {
	if err == nil {
		return nil
	}
	return &Error{ExitUsage, err}
}

// Usagef is an error of usage.
func Usagef(format string, args ...any) error {
	return &Error{ExitUsage, fmt.Errorf(format, args...)}
}

// Failed marks an error as a failed run: exit code 1. One that has a code of its own keeps it.
func Failed(err error) error {
	var coded *Error
	if err == nil || errors.As(err, &coded) {
		return err
	}
	return &Error{ExitFailed, err}
}

// Unknown reports an argument that is no verb.
func Unknown(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	if best := spelling.Nearest(args[0], names); best != "" {
		return Usagef("unknown verb %q; did you mean %s?", args[0], best)
	}
	return Usagef("unknown verb %q; there are %s", args[0], strings.Join(names, ", "))
}

// Name names a command without the program, which begins every message.
func Name(cmd *cobra.Command) string {
	return strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
}

// Arguments checks how many arguments a verb has been given; names say what they are.
func Arguments(least, most int, names string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || most >= 0 && len(args) > most {
			return Usagef("%s: give %s; got %d arguments", Name(cmd), names, len(args))
		}
		return nil
	}
}

// Must panics on an error that only a mistake in the program makes.
func Must(err error) {
	if err != nil {
		panic(err)
	}
}
