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

// Part is what processor time is spent on.
type Part uint8

// The parts. What the kernel does within a system call counts as the call's: a process' profile does not see into it.
const (
	Network Part = iota // system calls on connections
	// system calls on files and rings; what a ring receives from connections is among it, as one call does both
	Storage
	Scheduling // goroutines and threads that wait and are woken, by Go's runtime and by the kernel
	Requests   // what is done with requests: protocols, checksums, the controller
	Other      // the collector and what is none of these
	Parts
)

var partNames = [Parts]string{"network", "storage", "scheduling", "requests", "other"}

func (p Part) String() string { return partNames[p] }

// Costs is where a system's processor time goes.
type Costs struct {
	System  System         `json:"system"`
	Samples int64          `json:"samples"` // of the profile, without the clients'
	Shares  [Parts]float64 `json:"shares"`  // of them, by Part; they add up to 1
}

// ends is the label of what servers do, in profiles.
const ends = "bench"

// serving does something as a server: what goroutines it starts are servers', too.
func serving(do func()) {
	pprof.Do(context.Background(), pprof.Labels(ends, "server"), func(context.Context) { do() })
}

// asking does something as a client.
func asking(do func()) {
	pprof.Do(context.Background(), pprof.Labels(ends, "client"), func(context.Context) { do() })
}

// Processor measures each system once, for Config.Time, and says where processor time goes. What clients do is left
// out, as far as it is theirs alone: when Go's scheduler works it is for nobody, so what it needs is both ends'.
func Processor(c Config) (out []Costs, err error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	for _, s := range c.Systems {
		if s == SocketC || s == Local {
			return nil, fmt.Errorf("bench: %v has no profile that compares", s)
		}
	}
	c.Server = nil // one profile sees one process
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

// rules say by its functions' names, the innermost first, what a sample is of: the first rule with a part of any name
// decides, from the first rule to the last.
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
	// those of rings are called by no other name
	{Storage, []string{"syscall.Syscall", "syscall.RawSyscall", "internal/runtime/syscall"}},
	{Requests, []string{"farflash/"}},
}

// part is what a sample is of, by the names of its stack.
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

// costs adds up a profile's samples by part, those of clients left out.
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
		return c, errors.New("it has no sample of a server")
	}
	for i, n := range all {
		c.Shares[i] = float64(n) / float64(c.Samples)
	}
	return c, nil
}
