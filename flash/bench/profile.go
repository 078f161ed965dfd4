package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/pprof"
	"strings"

	"github.com/google/pprof/profile"
)

// Part is a category of processor time.
type Part uint8

// The parts. Kernel time within a system call counts as the call's, because a process's profile does not see inside it.
const (
	Network Part = iota // system calls on connections
	// system calls on files and rings, including receives by rings, because one call does both
	Storage
	Scheduling // blocking and waking of goroutines and threads, by Go's runtime and the kernel
	Requests   // request processing: protocols, checksums, the controller
	Other      // garbage collection and everything else
	Parts
)

var partNames = [Parts]string{"network", "storage", "scheduling", "requests", "other"}

func (p Part) String() string { return partNames[p] }

// Costs is the breakdown of a system's processor time.
type Costs struct {
	System  System         `json:"system"`
	Samples int64          `json:"samples"` // in the profile, without the clients'
	Shares  [Parts]float64 `json:"shares"`  // fraction by Part; they add up to 1
}

// ends is the profile label that separates servers from clients.
const ends = "bench"

// serving runs a function with the servers' label, which its goroutines inherit.
func serving(do func()) {
	pprof.Do(context.Background(), pprof.Labels(ends, "server"), func(context.Context) { do() })
}

// asking runs a function with the clients' label.
func asking(do func()) {
	pprof.Do(context.Background(), pprof.Labels(ends, "client"), func(context.Context) { do() })
}

// Processor measures each system once, for Config.Time, and breaks down its processor time. Samples labelled as clients
// are left out; the Go scheduler runs without a label, so its time includes that of both ends.
func Processor(c Config) (out []Costs, err error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	for _, s := range c.Systems {
		if s == SocketC || s == Local {
			return nil, fmt.Errorf("bench: %v has no comparable profile", s)
		}
	}
	c.Server = nil // one profile covers one process
	b, err := start(&c)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	for _, s := range c.Systems {
		if c.Stop != nil && c.Stop() != nil {
			return nil, c.Stop()
		}
		var text bytes.Buffer
		if err := pprof.StartCPUProfile(&text); err != nil {
			return nil, fmt.Errorf("bench: %w", err)
		}
		_, err := b.measure(s, 0)
		pprof.StopCPUProfile()
		if err != nil {
			return nil, fmt.Errorf("%v: %w", s, err)
		}
		costs, err := costs(&text)
		if err != nil {
			return nil, fmt.Errorf("bench: the profile: %w", err)
		}
		costs.System = s
		out = append(out, costs)
		if c.Note != nil {
			c.Note(fmt.Sprintf("%v: %d samples", s, costs.Samples))
		}
	}
	return out, nil
}

// rules classify a sample by the function names in its stack. The first rule with a name that occurs in any frame
// decides; rules are tried in order.
var rules = []struct {
	part  Part
	names []string
}{
	{Other, []string{"runtime.gcBgMarkWorker", "runtime.gcAssistAlloc", "runtime.bgsweep", "runtime.bgscavenge",
		"runtime.GC"}},
	{Scheduling, []string{"runtime.schedule", "runtime.findRunnable", "runtime.park_m", "runtime.goschedImpl",
		"runtime.futex", "runtime.netpoll", "runtime.usleep", "runtime.osyield", "runtime.mstart1",
		"runtime.ready", "runtime.goready", "runtime.entersyscall", "runtime.exitsyscall", "runtime.sysmon",
		"runtime.wakep", "runtime.gopark", "runtime.chansend", "runtime.chanrecv", "runtime.selectgo",
		"sync.(*Mutex).lockSlow", "internal/sync.(*Mutex).lockSlow", "runtime.semacquire", "runtime.semrelease"}},
	{Storage, []string{"syscall.Pread", "syscall.Pwrite", "syscall.pread", "syscall.pwrite",
		"internal/poll.(*FD).Pread", "internal/poll.(*FD).Pwrite", "flash/uring.(*ring).enter",
		"flash/uring.(*Ring).enter"}},
	{Network, []string{"syscall.Read", "syscall.Write", "syscall.read", "syscall.write", "internal/poll.(*FD).Read",
		"internal/poll.(*FD).Write", "internal/poll.(*FD).writev", "net.(*conn)", "flash/uring.(*Socket).Send"}},
	// calls of rings have no other wrapper
	{Storage, []string{"syscall.Syscall", "syscall.RawSyscall", "internal/runtime/syscall"}},
	{Requests, []string{"farflash/"}},
}

// part classifies a sample by its stack.
func part(stack []string) Part {
	for _, r := range rules {
		for _, f := range stack {
			for _, n := range r.names {
				if strings.Contains(f, n) {
					return r.part
				}
			}
		}
	}
	return Other
}

// costs sums a profile's samples by part, without the clients'.
func costs(r io.Reader) (c Costs, err error) {
	p, err := profile.Parse(r)
	if err != nil {
		return c, err
	}
	var all [Parts]int64
	var stack []string
	for _, s := range p.Sample {
		if s.HasLabel(ends, "client") {
			continue
		}
		stack = stack[:0]
		for _, l := range s.Location {
			for _, line := range l.Line {
				if line.Function != nil {
					stack = append(stack, line.Function.Name)
				}
			}
		}
		all[part(stack)] += s.Value[0]
		c.Samples += s.Value[0]
	}
	if c.Samples == 0 {
		return c, errors.New("no samples of a server")
	}
	for i, n := range all {
		c.Shares[i] = float64(n) / float64(c.Samples)
	}
	return c, nil
}
