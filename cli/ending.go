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

// The ways in which a command ends: normally, by a signal, or by a panic.
//
// The first SIGINT, SIGTERM or SIGHUP cancels the context of a verb that saves partial results (it has called keeping),
// and terminates every other verb immediately, because it has no results to save. The second one terminates any verb.
// In both cases no incomplete file remains.

// ending is the state that the end of a command needs.
type ending struct {
	mu         sync.Mutex
	keeps      bool
	unfinished map[string]bool // patterns of files and directories that are removed if the command is aborted
	progress   *term.Progress  // nil: none is shown
}

// keeping makes a signal only cancel the context from now on: the verb saves partial results.
func (p *program) keeping() {
	p.ending.mu.Lock()
	defer p.ending.mu.Unlock()
	p.ending.keeps = true
}

// unfinished registers a pattern of files that are removed if the command is aborted before it calls whole.
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

// leave removes unfinished files when a command is aborted.
func (e *ending) leave() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.progress != nil {
		e.progress.Stop()
	}
	// The command continues until the process exits, and may write files while they are removed: they are removed
	// again.
	for range 5 {
		found := false
		for pattern := range e.unfinished {
			names, err := filepath.Glob(pattern)
			if err != nil {
				continue // only a name with [ in it makes our patterns malformed; such files remain
			}
			for _, name := range names {
				found = true
				_ = os.RemoveAll(name) // errors cannot be reported at this point
			}
		}
		if !found {
			return
		}
	}
}

// errLeft is the error of a command that a signal has terminated without results to save.
var errLeft = errors.New("interrupted")

// carry runs a command until it completes, is aborted or panics.
func (p *program) carry(command func(context.Context) error) error {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // as under nohup
		signal.Notify(signals, syscall.SIGHUP)
	}
	defer signal.Stop(signals)
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
			p.note("interrupted; what is done is kept as soon as the models come to a place where they can stop. A " +
				"second signal ends the program at once and keeps nothing")
		case <-signals:
			p.ending.mu.Lock()
			wait := p.ending.keeps && ctx.Err() == nil
			p.ending.mu.Unlock()
			cancel()
			if !wait {
				p.ending.leave()
				return verb.Failed(errLeft)
			}
			patience = time.After(3 * time.Second)
		}
	}
}

// fault returns the error of a panic. Users see no stack trace; FARFLASH_DEBUG shows it.
func fault(x any, stack []byte) error {
	if elsewhere, ok := x.(interface{ Stack() []byte }); ok {
		stack = elsewhere.Stack()
	}
	if os.Getenv("FARFLASH_DEBUG") != "" {
		return fmt.Errorf("panic: %v\n%s", x, stack)
	}
	return fmt.Errorf("panic: %v; this is a fault of the program and not of your files: please report it with the "+
		"command, the files that it reads, the output of farflash version,"+
		" and what the command prints with FARFLASH_DEBUG=1", strings.TrimPrefix(fmt.Sprint(x), "panic: "))
}
