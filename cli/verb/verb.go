// Package verb is shared by all verbs of the command line, in whichever package they are: errors with their exit codes,
// the validation of arguments, and a verb's access to its invocation. The exit codes are in
// docs/reference/exit-codes.md.
//
// It leaves out the start and the end of a command, which package cli handles.
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

// Program is a verb's access to one invocation.
type Program struct {
	In   io.Reader
	Out  io.Writer // text for people; unprintable characters are escaped
	Data io.Writer // the same destination, for data that must arrive unmodified
	// Note writes a line to standard error.
	Note func(format string, args ...any)
	// Style returns the colours of standard output.
	Style func() term.Style
	// Keeping makes a signal only cancel the context from now on: the verb saves partial results.
	Keeping func()
	// Progress shows a progress line on standard error during long work; ending describes the effect of a signal on it.
	Progress func(label, unit string, quiet bool, ending string) *term.Progress
	// Cache opens the cache of trial results, in a directory or, if it is "", in the user's default one; nil if there
	// is no directory for it.
	Cache func(dir string, quiet bool) (*study.Cache, error)
	// Version is the version of the program's sources.
	Version string
	// Unfinished registers a pattern of files that are removed if the command is aborted before it calls whole.
	Unfinished func(pattern string) (whole func())
}

// JSON prints a document.
func (p *Program) JSON(doc any) error {
	w := json.NewEncoder(p.Data)
	w.SetIndent("", "  ")
	return Failed(w.Encode(doc))
}

// Error is an error with its exit code.
type Error struct {
	Code int
	Err  error
}

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the error without its code.
func (e *Error) Unwrap() error { return e.Err }

// BadInput marks an error as the user's: exit code 2.
func BadInput(err error) error {
	if err == nil {
		return nil
	}
	return &Error{ExitUsage, err}
}

// Usagef returns a usage error.
func Usagef(format string, args ...any) error {
	return &Error{ExitUsage, fmt.Errorf(format, args...)}
}

// Failed marks an error as a failed run: exit code 1. An error with a code of its own keeps it.
func Failed(err error) error {
	var coded *Error
	if err == nil || errors.As(err, &coded) {
		return err
	}
	return &Error{ExitFailed, err}
}

// Unknown reports an argument that is not a verb.
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

// Name returns a command's name without the program, the prefix of every message.
func Name(cmd *cobra.Command) string {
	return strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
}

// Arguments validates the number of a verb's arguments; names describes them.
func Arguments(least, most int, names string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || most >= 0 && len(args) > most {
			return Usagef("%s: give %s; got %d arguments", Name(cmd), names, len(args))
		}
		return nil
	}
}

// Must panics on an error that only a bug in the program can cause.
func Must(err error) {
	if err != nil {
		panic(err)
	}
}
