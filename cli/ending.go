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

// How a command ends: by itself, by a signal, or by a panic.
//
// The first SIGINT, SIGTERM or SIGHUP ends the context of a verb that keeps what is done (it has called keeping), and
// every other verb at once: it has nothing that is worth waiting for. The second one ends any verb. Either way
// nothing half written stays behind.

// ending is what the end of a command has to know.
type ending struct {
	mu         sync.Mutex
	keeps      bool
	unfinished map[string]bool // patterns of files and folders that go if the command is left in the middle
	progress   *term.Progress  // nil: none is shown
}

// keeping says that from now on a signal is to end the context alone: the verb writes what is done.
func (p *program) keeping() {
	p.ending.mu.Lock()
	defer p.ending.mu.Unlock()
	p.ending.keeps = true
}

// unfinished notes files by a pattern as not worth keeping, until whole is called.
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

// leave removes what is unfinished, as a command is left in the middle.
func (e *ending) leave() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.progress != nil {
		e.progress.Stop()
	}
	// The command goes on until the process ends, and may write into what is removed: then it is removed again.
	for range 5 {
		found := false
		for pattern := range e.unfinished {
			names, err := filepath.Glob(pattern)
			if err != nil {
				continue // no pattern of ours is malformed but for a name with [ in it, which then stays
			}
			for _, name := range names {
				found = true
				_ = os.RemoveAll(name) // what cannot be removed stays; there is nobody left to tell
			}
		}
		if !found {
			return
		}
	}
}

// errLeft is what a command ends with that a signal has ended with nothing to keep.
var errLeft = errors.New("interrupted")

// carry runs a command to one of its ends.
func (p *program) carry(command func(context.Context) error) error {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // as it is under nohup
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

// fault is the error of a panic. A panic has no trace for users; FARFLASH_DEBUG shows it.
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
