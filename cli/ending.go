package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"time"

	"farflash/cli/verb"
	"farflash/internal/term"
)

// How a command ends: normally, by a signal, or by a panic.
//
// SIGHUP makes a verb that has called hangup read its files again, and go on. The first SIGINT, SIGTERM or other
// SIGHUP cancels the context of a verb that has called keeping, so that it saves the completed work. Any other verb
// has no work to save and ends at once. The second signal ends every verb at once. In either case no partially
// written file stays behind.

// ending is the state that is needed to end a command cleanly. mu guards all fields.
type ending struct {
	mu         sync.Mutex
	keeps      bool
	reload     func() // called for SIGHUP
	signals    chan os.Signal
	unfinished map[string]bool // glob patterns of files and directories that leave removes
	progress   *term.Progress  // nil: none is shown
}

// keeping declares that from now on the first signal only cancels the context: the verb then writes the completed work.
func (p *program) keeping() {
	p.ending.mu.Lock()
	defer p.ending.mu.Unlock()
	p.ending.keeps = true
}

// hangup makes SIGHUP call reload instead of ending the command, also under nohup.
func (p *program) hangup(reload func()) {
	p.ending.mu.Lock()
	defer p.ending.mu.Unlock()
	p.ending.reload = reload
	signal.Notify(p.ending.signals, syscall.SIGHUP)
}

// unfinished registers a pattern of files that are removed if the command is cut short. whole unregisters it.
func (p *program) unfinished(pattern string) (whole func()) {
	e := &p.ending
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.unfinished == nil {
		e.unfinished = map[string]bool{}
	}
	e.unfinished[pattern] = true
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.unfinished, pattern)
	}
}

// leave removes the unfinished files of a command that is cut short.
func (e *ending) leave() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.progress != nil {
		e.progress.Stop()
	}
	// The command keeps running until the process exits and may recreate the files, so try several times.
	for range 5 {
		found := false
		for pattern := range e.unfinished {
			names, err := filepath.Glob(pattern)
			if err != nil {
				continue // only a name with a [ in it makes a malformed pattern; such a file stays
			}
			for _, name := range names {
				found = true
				_ = os.RemoveAll(name) // best effort: the process is about to exit
			}
		}
		if !found {
			return
		}
	}
}

// errLeft is the error of a command that a signal ended at once, without saving anything.
var errLeft = errors.New("interrupted")

// carry runs a command until it returns, panics, or is ended by a signal.
func (p *program) carry(command func(context.Context) error) error {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // ignored under nohup
		signal.Notify(signals, syscall.SIGHUP)
	}
	defer signal.Stop(signals)
	p.ending.mu.Lock()
	p.ending.signals = signals
	p.ending.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		defer func() {
			if x := recover(); x != nil {
				done <- verb.Failed(fault(x, debug.Stack()))
			}
		}()
		done <- command(ctx)
	}()
	var patience <-chan time.Time
	for {
		select {
		case err := <-done:
			return err
		case <-patience:
			p.note("interrupted; results are saved when the models reach a point where they can stop. A " +
				"second signal ends the program at once and saves nothing")
		case s := <-signals:
			p.ending.mu.Lock()
			wait, reload := p.ending.keeps && ctx.Err() == nil, p.ending.reload
			p.ending.mu.Unlock()
			if s == syscall.SIGHUP && reload != nil {
				go reload() // it may wait for a device, and the next signal must be heard
				continue
			}
			cancel()
			if !wait {
				p.ending.leave()
				return verb.Failed(errLeft)
			}
			patience = time.After(3 * time.Second)
		}
	}
}

// fault turns a panic into an error. The stack trace is shown only if FARFLASH_DEBUG is set.
func fault(x any, stack []byte) error {
	if elsewhere, ok := x.(interface{ Stack() []byte }); ok {
		stack = elsewhere.Stack()
	}
	if os.Getenv("FARFLASH_DEBUG") != "" {
		return fmt.Errorf("panic: %v\n%s", x, stack)
	}
	return fmt.Errorf("panic: %v; this is a bug in farflash, not in your files: please report it with the "+
		"command, its input files, the output of farflash version,"+
		" and the output of the command with FARFLASH_DEBUG=1", strings.TrimPrefix(fmt.Sprint(x), "panic: "))
}
