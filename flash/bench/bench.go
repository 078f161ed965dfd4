// Package bench compares the real stack with its alternatives on one machine, in alternation. It is modelled on
// FlashNet's netperf.
//
// Run creates a file that holds a pool and serves it through several Systems over loopback, from a separate process
// (Serve) or from this one. Clients read or write random blocks of it, either in a closed loop (each connection keeps a
// fixed number of requests outstanding) or in an open loop (requests are due at times independent of responses, and
// latency is measured from the due time). Every round measures every system, one after the other. The comparison uses
// ratios within a round, so that unrelated load on the machine affects all systems alike. Report contains the median,
// minimum and maximum over the rounds.
//
// The systems: Verbs is one-sided reads and writes over flash/verbs on flash/ctl; Socket is a plain request protocol
// served with pread and pwrite, one goroutine per connection; SocketC is the same server in C, as a check of Socket;
// SocketRing is the same protocol on the rings of flash/uring, the fair baseline for one-sided access itself; Local
// uses those rings without a network, which is the upper bound; NVMe is NVMe/TCP on flash/ctl, by the front end of
// flash/nvme and the queues of flash/nvme/host, each client an association with one I/O queue. Clients run on one
// half of the processors and servers on the other (Config.Pinned), or both on all of them, the same for all systems.
// One client thread drives many connections, so that the servers are measured and not goroutines that wake each
// other.
//
// RunKV compares key-value stores in the same way: clients that run the table by one-sided operations, and servers that
// run it.
//
// Scale is Run for several numbers of connections, Processor attributes a system's processor time by profile, and
// Register measures the cost of registering a range of a file, or memory, for access by peers.
//
// The package does not cover other machines, third-party servers (flash/nbd/volume compares NBD servers), or dedicated
// drives: latencies here are those of the device underneath the file.
package bench

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"farflash/flash/ctl"
	"farflash/flash/pool"
	"farflash/flash/uring"
	"farflash/flash/verbs"
	"farflash/numeric/stats"
	"farflash/numeric/units"
)

// System is a system under test.
type System uint8

// The systems. SocketCached reads through the operating system's page cache. VerbsPolled is Verbs with a client that
// polls for completions instead of sleeping.
const (
	Verbs System = iota
	Socket
	SocketRing
	SocketCached
	SocketC
	Local
	VerbsPolled
	NVMe
	systems
)

var systemNames = units.Names[System]{"verbs", "socket", "socket+uring", "socket-cached", "socket-c", "local",
	"verbs-polled", "nvme-tcp"}

// Names returns the names of all systems.
func Names() []string { return slices.Clone(systemNames) }

// verbs reports whether a system uses one-sided access.
func (s System) verbs() bool { return s == Verbs || s == VerbsPolled }

// pooled reports whether a system reads through the flash controller.
func (s System) pooled() bool { return s.verbs() || s == NVMe }

// String is the system's name.
func (s System) String() string { return systemNames.Name(s) }

// MarshalText returns the system's name.
func (s System) MarshalText() ([]byte, error) { return systemNames.Marshal(s) }

// UnmarshalText parses a system's name.
func (s *System) UnmarshalText(b []byte) error { return systemNames.Unmarshal(b, s) }

// Config configures a measurement. DefaultConfig returns the defaults.
type Config struct {
	Dir    string // where the files are created; they are removed afterwards
	Size   int64  // bytes in the range that is read and written
	Memory int64  // bytes of memory for the pool's pages
	// Space is the space in the pool for the file, as a multiple of its size. At 1 the pool is full, and random writes
	// keep garbage collection running.
	Space       float64
	Systems     []System
	Connections int
	Depth       int // outstanding requests per connection
	Block       int // bytes per request
	Writes      float64
	Atomics     bool // all requests add to eight-byte words in the first MiB; only with Verbs and VerbsPolled
	Rounds      int
	Time        time.Duration // of one measurement
	// Load, if not zero, selects the open loop: the offered rate is this fraction of the closed-loop rate of Systems[1]
	// or, if there is only one system, of that one.
	Load float64
	Seed uint64
	// Threads is the number of threads for verbs connections and the pool's devices, where io_uring is available.
	Threads int
	// Spin is how long such a thread polls before it sleeps, as in uring.Loops.Spin.
	Spin time.Duration
	// Server, if set, is a command that calls Serve on its standard input and output; the servers then run in a
	// separate process, as in a deployment. Otherwise they run in this process, where Go's scheduler can hand over from
	// a client to its server without a thread switch.
	Server []string `json:"-"`
	// Pinned gives clients one half of the available processors and servers, if they are a separate process, the other,
	// to model separate machines. A single processor is shared.
	Pinned bool
	// Note, if set, receives a line about each measurement. Stop, if set, is called before each measurement; an error
	// from it ends the run.
	Note func(string) `json:"-"`
	Stop func() error `json:"-"`
}

// DefaultConfig returns a configuration for 4 KiB random reads by sixteen connections with two requests each, over 512
// MiB with a hundredth of that in memory.
func DefaultConfig() Config {
	return Config{
		Dir: ".", Size: 512 << 20, Memory: 5 << 20, Space: 1, Systems: []System{Verbs, Socket, SocketRing},
		Connections: 16, Depth: 2, Block: 4096,
		Rounds: 5, Time: 2 * time.Second, Seed: 1, Spin: uring.DefaultSpin, Pinned: true,
	}
}

// Validate returns the first error in c.
func (c *Config) Validate() error {
	seen := map[System]bool{}
	for _, s := range c.Systems {
		if s >= systems || seen[s] {
			return fmt.Errorf("bench: system %v is unknown or listed twice", s)
		}
		seen[s] = true
		if c.Atomics && !s.verbs() {
			return fmt.Errorf("bench: %v has no atomics; measure only %v", s, Verbs)
		}
	}
	switch {
	case c.Atomics && c.Writes != 0:
		return errors.New("bench: atomics and writes cannot be measured together")
	case len(c.Systems) == 0:
		return errors.New("bench: no system to measure")
	case c.Block < 4096 || c.Block > 1<<20 || c.Block%4096 != 0:
		return fmt.Errorf("bench: blocks of %d bytes; use a multiple of 4096, up to 1 MiB", c.Block)
	case c.Size < 1<<20 || c.Size > 1<<40 || c.Size < int64(c.Block)*16:
		return fmt.Errorf("bench: size of %d bytes; use 1 MiB to 1 TiB", c.Size)
	case c.Memory < 1<<20 || c.Memory > 1<<38:
		return fmt.Errorf("bench: %d bytes of memory; use 1 MiB or more", c.Memory)
	case c.Connections >= 1 && c.Depth >= 1 && c.window(c.underWay()) == 0:
		return fmt.Errorf("bench: %v of memory is too little for %d connections with %d requests of %v each; use %v "+
			"or more, or fewer connections or requests",
			units.Bytes(c.Memory), c.Connections, c.underWay(), units.Bytes(c.Block),
			units.Bytes(c.Connections*(c.underWay()+1)*ctl.Page/3*4+ctl.Page))
	case slices.Contains(c.Systems, NVMe) && c.Connections >= 1 && c.Depth >= 1 && c.needs() > int(c.Memory)/4*3:
		return fmt.Errorf("bench: %v of memory is too little for %d NVMe/TCP connections with %d requests of %v each; "+
			"use %v or more, or fewer connections or requests", units.Bytes(c.Memory), c.Connections, c.underWay(),
			units.Bytes(c.Block), units.Bytes(c.needs()/3*4))
	case !(c.Space >= 1 && c.Space <= 100):
		return fmt.Errorf("bench: space for %v files; use 1 to 100", c.Space)
	case c.Connections < 1 || c.Connections > 4096 || c.Depth < 1 || c.Depth > 128:
		return fmt.Errorf("bench: %d connections with %d requests each; use 1 to 4096 connections and 1 to 128 requests", c.Connections,
			c.Depth)
	case !(c.Writes >= 0 && c.Writes <= 1) || !(c.Load >= 0 && c.Load < 10):
		return fmt.Errorf("bench: share of writes %v and load %v; use a share from 0 to 1 and a load from 0 to below 10", c.Writes, c.Load)
	case c.Spin < 0 || c.Spin > time.Second:
		return fmt.Errorf("bench: spin time %v; use 0s to 1s", c.Spin)
	case c.Threads < 0 || c.Threads > pool.MaxThreads:
		return fmt.Errorf("bench: %d threads; use 1 to %d, or 0 for half as many as processors", c.Threads,
			pool.MaxThreads)
	case c.Rounds < 1 || c.Rounds > 1000 || c.Time < time.Millisecond || c.Time > time.Hour:
		return fmt.Errorf("bench: %d rounds of %v; use 1 to 1000 rounds of 1ms to 1h", c.Rounds, c.Time)
	}
	return nil
}

// underWay is the maximum number of outstanding requests per connection.
func (c *Config) underWay() int {
	if c.Load > 0 {
		return max(c.Depth, openDepth)
	}
	return c.Depth
}

// window is the part of a read that the verbs server holds in the pool's memory at a time, with this many requests
// outstanding per connection. If the default window covers a whole read, it is that. Otherwise three quarters of the
// memory must suffice for all reads plus one window per connection, or the first reads would wait forever for memory
// held by later ones; 0 if that is less than a page.
func (c *Config) window(depth int) int {
	most := verbs.DefaultConfig().Window
	if c.Block <= most {
		return most
	}
	pages := int(c.Memory) / ctl.Page / 4 * 3 / (c.Connections * (depth + 1))
	return min(most, pages*ctl.Page)
}

// Measured is the result of one system in one round.
type Measured struct {
	Rate  float64 `json:"iops"`
	P50   float64 `json:"p50_us"`
	P99   float64 `json:"p99_us"`
	Reads float64 `json:"device_reads_per_request"` // by the pool, if there is one
	CPU   float64 `json:"cpu_us_per_request"`       // of clients and servers
}

// Outcome is the result of one system over all rounds.
type Outcome struct {
	System System     `json:"system"`
	Rounds []Measured `json:"rounds"`
	Rate   Spread     `json:"iops"`
	P50    Spread     `json:"p50_us"`
	P99    Spread     `json:"p99_us"`
	Reads  Spread     `json:"device_reads_per_request"`
	CPU    Spread     `json:"cpu_us_per_request"`
}

// Spread is the median over the rounds, with the minimum and maximum.
type Spread struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
}

// Ratio compares two systems, by ratios within rounds.
type Ratio struct {
	A    System `json:"a"`
	B    System `json:"b"`
	Rate Spread `json:"iops"`
	P50  Spread `json:"p50"`
	P99  Spread `json:"p99"`
	CPU  Spread `json:"cpu"`
}

// Report is the result of a measurement.
type Report struct {
	Connections int       `json:"connections"`
	Block       int       `json:"block"` // bytes per request
	Outcomes    []Outcome `json:"systems"`
	Ratios      []Ratio   `json:"ratios"` // of the first system to each of the others
	// Confidence is the probability that the true median lies between minimum and maximum, if rounds are independent: 1
	// - 2^(1-n).
	Confidence float64 `json:"confidence"`
	Offered    float64 `json:"offered_iops,omitempty"` // open loop only
	// Clients and Servers are the processors available to each.
	Clients []int  `json:"client_processors"`
	Servers []int  `json:"server_processors"`
	Skipped []Skip `json:"skipped,omitempty"`
}

// Skip is a requested system that cannot be measured on this machine.
type Skip struct {
	System System `json:"system"`
	Why    string `json:"why"`
}

// Find returns the outcome of a system, or nil if it was not measured.
func (r *Report) Find(s System) *Outcome {
	for i := range r.Outcomes {
		if r.Outcomes[i].System == s {
			return &r.Outcomes[i]
		}
	}
	return nil
}

// Gbps converts a request rate of this report to Gbit/s of payload.
func (r *Report) Gbps(rate float64) float64 { return rate * float64(r.Block) * 8 / 1e9 }

func spread(xs []float64) Spread {
	s := slices.Clone(xs)
	slices.Sort(s)
	n := len(s)
	return Spread{Median: (s[(n-1)/2] + s[n/2]) / 2, Low: s[0], High: s[n-1]}
}

// each extracts a figure from all rounds.
func each(rounds []Measured, f func(*Measured) float64) []float64 {
	out := make([]float64, len(rounds))
	for i := range rounds {
		out[i] = f(&rounds[i])
	}
	return out
}

// Run measures with c.Connections.
func Run(c Config) (*Report, error) {
	all, err := Scale(c, []int{c.Connections})
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// Scale measures with each number of connections, on the same files.
func Scale(c Config, connections []int) (all []*Report, err error) {
	most := 0
	for _, n := range connections {
		c.Connections = n
		if err := c.Validate(); err != nil {
			return nil, err
		}
		most = max(most, n)
	}
	if most == 0 {
		return nil, errors.New("bench: no connection counts")
	}
	var skipped []Skip
	if i := slices.Index(c.Systems, SocketC); i >= 0 {
		if _, why := compiler(); why != "" {
			skipped = append(skipped, Skip{SocketC, why})
			if c.Systems = slices.Delete(slices.Clone(c.Systems), i, i+1); len(c.Systems) == 0 {
				return nil, fmt.Errorf("bench: %v: %s", SocketC, why)
			}
		}
	}
	c.Connections = most
	b, err := start(&c)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	for _, n := range connections {
		c.Connections = n
		r, err := b.run()
		if err != nil {
			return nil, err
		}
		r.Skipped = skipped
		all = append(all, r)
	}
	return all, nil
}

// run measures all systems with c.Connections.
func (b *bench) run() (r *Report, err error) {
	c := b.cfg
	r = &Report{Connections: c.Connections, Block: c.Block, Confidence: 1 - stats.AllAlike(c.Rounds),
		Outcomes: make([]Outcome, len(c.Systems)), Clients: b.clients, Servers: b.Processors}
	if c.Atomics {
		r.Block = 8
	}
	for i, s := range c.Systems {
		r.Outcomes[i].System = s
	}
	if c.Load > 0 {
		reference := c.Systems[min(1, len(c.Systems)-1)]
		var peaks []float64
		for range min(3, c.Rounds) {
			m, err := b.measure(reference, 0)
			if err != nil {
				return nil, err
			}
			peaks = append(peaks, m.Rate)
		}
		r.Offered = c.Load * spread(peaks).Median
	}
	for round := range c.Rounds {
		for k := range c.Systems {
			// Rounds rotate the order, so that no system always follows the same one.
			i := (k + round) % len(c.Systems)
			if c.Stop != nil && c.Stop() != nil {
				return nil, c.Stop()
			}
			m, err := b.measure(c.Systems[i], r.Offered)
			if err != nil {
				return nil, fmt.Errorf("%v: %w", c.Systems[i], err)
			}
			r.Outcomes[i].Rounds = append(r.Outcomes[i].Rounds, m)
			if c.Note != nil {
				c.Note(fmt.Sprintf("%d connections, round %d: %-13v %8.0f a second, p50 %6.0f us, p99 %6.0f us",
					c.Connections, round+1, c.Systems[i], m.Rate, m.P50, m.P99))
			}
		}
	}
	rate, p50, p99 := func(m *Measured) float64 { return m.Rate }, func(m *Measured) float64 { return m.P50 },
		func(m *Measured) float64 { return m.P99 }
	for i := range r.Outcomes {
		o := &r.Outcomes[i]
		o.Rate, o.P50, o.P99 = spread(each(o.Rounds, rate)), spread(each(o.Rounds, p50)), spread(each(o.Rounds, p99))
		o.Reads = spread(each(o.Rounds, func(m *Measured) float64 { return m.Reads }))
		cpu := func(m *Measured) float64 { return m.CPU }
		o.CPU = spread(each(o.Rounds, cpu))
		if i == 0 {
			continue
		}
		first := &r.Outcomes[0]
		over := func(f func(*Measured) float64) Spread {
			a, b := each(first.Rounds, f), each(o.Rounds, f)
			for i := range a {
				if a[i] /= b[i]; math.IsNaN(a[i]) {
					a[i] = 0
				}
			}
			return spread(a)
		}
		r.Ratios = append(r.Ratios,
			Ratio{A: first.System, B: o.System, Rate: over(rate), P50: over(p50), P99: over(p99), CPU: over(cpu)})
	}
	return r, nil
}
