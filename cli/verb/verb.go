// Package verb is shared by all verbs of the command line, whichever package implements them: errors with exit codes,
// checks of arguments, and the part of an invocation that a verb uses. The exit codes are documented in
// docs/reference/exit-codes.md.
//
// It leaves out how a command starts and ends, which belongs to package cli.
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

// Program is the part of one invocation that verbs use.
type Program struct {
	In   io.Reader
	Out  io.Writer // text for people; control characters are escaped
	Data io.Writer // same destination as Out, byte for byte
	// Note writes a line to standard error.
	Note func(format string, args ...any)
	// Style returns the colours of standard output.
	Style func() term.Style
	// Keeping declares that from now on the first signal only cancels the context: the verb then writes the completed
	// work.
	Keeping func()
	// Hangup makes SIGHUP call reload, on a goroutine of its own, instead of ending the command.
	Hangup func(reload func())
	// Progress starts the progress line on standard error; ending describes the effect of a signal.
	Progress func(label, unit string, quiet bool, ending string) *term.Progress
	// Cache opens the cache of trial results in dir, or in the user's cache folder if dir is "". It returns nil if no
	// cache can be used.
	Cache func(dir string, quiet bool) (*study.Cache, error)
	// Version is the version or revision that the program was built from.
	Version string
	// Unfinished registers a pattern of files that are removed if the command is cut short. whole unregisters it.
	Unfinished func(pattern string) (whole func())
}

// JSON prints a document as indented JSON.
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

// Usagef formats an error of usage: exit code 2.
func Usagef(format string, args ...any) error {
	return &Error{ExitUsage, fmt.Errorf(format, args...)}
}

// Failed marks an error as a failed run: exit code 1. An error that already has a code keeps it.
func Failed(err error) error {
	var coded *Error
	if err == nil || errors.As(err, &coded) {
		return err
	}
	return &Error{ExitFailed, err}
}

// Unknown rejects arguments that name no verb.
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
	return Usagef("unknown verb %q; the verbs are %s", args[0], strings.Join(names, ", "))
}

// Name returns a command's path without the program's name, the prefix of its messages.
func Name(cmd *cobra.Command) string {
	return strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
}

// Arguments checks the number of arguments of a verb; names describes them. A negative most means no limit.
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
