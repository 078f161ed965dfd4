// Package bench measures the real stack against what it replaces, on one machine, in one process, in turns: FlashNet's netperf, in our words.
//
// Run is its function: it makes a file that holds a pool, serves it by several Systems over loopback, and has clients read or write random blocks of it, in a
// closed loop (each of so many connections has so many requests under way) or an open one (requests are due at times that do not
// depend on answers, and latency counts from when a request was due). Every round measures every system, one after the other; what is compared are the
// ratios of one round, so that a machine that is busy with something else is as busy for all. Report has medians, and the least and the
// largest of the rounds.
//
// The systems: Verbs, one-sided reads and writes over flash/verbs on flash/ctl; Socket, a plain protocol of requests served by pread and pwrite, a goroutine a
// connection; SocketRing, the same protocol over the rings of flash/uring, which is what one-sided access itself has to be compared with. Clients run on the same
// processors as servers, for all systems alike.
//
// It leaves out other machines, other people's servers (flash/nbd/volume compares NBD's), and what a drive of one's own would show: latencies here are those
// of whatever the file lies on.
package bench

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"farflash/stats"
	"farflash/units"
)

// System is what is measured.
type System uint8

// The systems. SocketCached reads through the operating system's page cache.
const (
	Verbs System = iota
	Socket
	SocketRing
	SocketCached
	systems
)

var systemNames = units.Names[System]{"verbs", "socket", "socket+uring", "socket-cached"}

// String is the system's name.
func (s System) String() string { return systemNames.Name(s) }

// MarshalText writes a system's name, UnmarshalText reads one.
func (s System) MarshalText() ([]byte, error) { return systemNames.Marshal(s) }

// UnmarshalText reads a system's name.
func (s *System) UnmarshalText(b []byte) error { return systemNames.Unmarshal(b, s) }

// Config is what is measured. DefaultConfig has the defaults.
type Config struct {
	Dir         string // where the files are made, and removed afterwards
	Size        int64  // bytes that are read and written
	Memory      int64  // bytes of the pool's pages
	Systems     []System
	Connections int
	Depth       int // requests of a connection under way at once
	Block       int // bytes of a request
	Writes      float64
	Rounds      int
	Time        time.Duration // of one measurement
	// Load, if not zero, opens the loop: requests are due at this share of the most that Systems[1], or else the only system, does in the closed one.
	Load float64
	Seed uint64
	// Note, if set, is told of each measurement.
	Note func(string)
}

// DefaultConfig is 4 KiB random reads by sixteen connections with two requests each, of 512 MiB with a hundredth of that in memory.
func DefaultConfig() Config {
	return Config{
		Dir: ".", Size: 512 << 20, Memory: 5 << 20, Systems: []System{Verbs, Socket, SocketRing}, Connections: 16, Depth: 2, Block: 4096,
		Rounds: 5, Time: 2 * time.Second, Seed: 1,
	}
}

// Validate says what is wrong with c.
func (c *Config) Validate() error {
	seen := map[System]bool{}
	for _, s := range c.Systems {
		if s >= systems || seen[s] {
			return fmt.Errorf("bench: system %v is there twice, or is none", s)
		}
		seen[s] = true
	}
	switch {
	case len(c.Systems) == 0:
		return errors.New("bench: no system to measure")
	case c.Block < 4096 || c.Block > 1<<20 || c.Block%4096 != 0:
		return fmt.Errorf("bench: blocks of %d bytes; use a multiple of 4096, up to 1 MiB", c.Block)
	case c.Size < 1<<20 || c.Size > 1<<40 || c.Size < int64(c.Block)*16:
		return fmt.Errorf("bench: %d bytes; use 1 MiB to 1 TiB", c.Size)
	case c.Memory < 1<<20 || c.Memory > 1<<38:
		return fmt.Errorf("bench: %d bytes of memory; use 1 MiB or more", c.Memory)
	case c.Connections < 1 || c.Connections > 4096 || c.Depth < 1 || c.Depth > 128:
		return fmt.Errorf("bench: %d connections with %d requests each; use 1 to 4096, and 1 to 128", c.Connections, c.Depth)
	case !(c.Writes >= 0 && c.Writes <= 1) || !(c.Load >= 0 && c.Load < 10):
		return fmt.Errorf("bench: a share of writes of %v and a load of %v", c.Writes, c.Load)
	case c.Rounds < 1 || c.Rounds > 1000 || c.Time < time.Millisecond || c.Time > time.Hour:
		return fmt.Errorf("bench: %d rounds of %v", c.Rounds, c.Time)
	}
	return nil
}

// Measured is one system in one round.
type Measured struct {
	Rate  float64 `json:"iops"`
	P50   float64 `json:"p50_us"`
	P99   float64 `json:"p99_us"`
	Reads float64 `json:"device_reads_per_request"` // of the pool, if there is one
	CPU   float64 `json:"cpu_us_per_request"`       // of this process, clients included
}

// Outcome is one system in all rounds.
type Outcome struct {
	System System     `json:"system"`
	Rounds []Measured `json:"rounds"`
	Rate   Spread     `json:"iops"`
	P50    Spread     `json:"p50_us"`
	P99    Spread     `json:"p99_us"`
	Reads  Spread     `json:"device_reads_per_request"`
	CPU    Spread     `json:"cpu_us_per_request"`
}

// Spread is the median of the rounds, with the least and the largest.
type Spread struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
}

// Ratio compares two systems, round by round.
type Ratio struct {
	A    System `json:"a"`
	B    System `json:"b"`
	Rate Spread `json:"iops"`
	P50  Spread `json:"p50"`
	P99  Spread `json:"p99"`
	CPU  Spread `json:"cpu"`
}

// Report is what came out.
type Report struct {
	Outcomes []Outcome `json:"systems"`
	Ratios   []Ratio   `json:"ratios"` // of the first system over each of the others
	// Confidence is that of the medians' lying between least and largest, if rounds are independent: 1 - 2^(1-n).
	Confidence float64 `json:"confidence"`
	Offered    float64 `json:"offered_iops,omitempty"` // of an open loop
}

func spread(xs []float64) Spread {
	s := slices.Clone(xs)
	slices.Sort(s)
	n := len(s)
	return Spread{Median: (s[(n-1)/2] + s[n/2]) / 2, Low: s[0], High: s[n-1]}
}

// each is a figure of all rounds.
func each(rounds []Measured, f func(*Measured) float64) []float64 {
	out := make([]float64, len(rounds))
	for i := range rounds {
		out[i] = f(&rounds[i])
	}
	return out
}

// Run measures.
func Run(c Config) (r *Report, err error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	b, err := setUp(&c)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	r = &Report{Confidence: 1 - stats.AllAlike(c.Rounds), Outcomes: make([]Outcome, len(c.Systems))}
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
			// Each round begins with another system, so that none is always behind the same one.
			i := (k + round) % len(c.Systems)
			m, err := b.measure(c.Systems[i], r.Offered)
			if err != nil {
				return nil, fmt.Errorf("%v: %w", c.Systems[i], err)
			}
			r.Outcomes[i].Rounds = append(r.Outcomes[i].Rounds, m)
			if c.Note != nil {
				c.Note(fmt.Sprintf("round %d: %-13v %8.0f a second, p50 %6.0f us, p99 %6.0f us", round+1, c.Systems[i], m.Rate, m.P50, m.P99))
			}
		}
	}
	rate, p50, p99 := func(m *Measured) float64 { return m.Rate }, func(m *Measured) float64 { return m.P50 }, func(m *Measured) float64 { return m.P99 }
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
		r.Ratios = append(r.Ratios, Ratio{A: first.System, B: o.System, Rate: over(rate), P50: over(p50), P99: over(p99), CPU: over(cpu)})
	}
	return r, nil
}
