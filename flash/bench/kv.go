package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"farflash/flash/kv"
	"farflash/flash/pool"
	"farflash/numeric/stats"
	"farflash/numeric/units"
)

// KVSystem is a key-value store under test. The table is that of package kv in all of them.
type KVSystem uint8

// The systems. KVVerbs is clients that run the table by one-sided operations on a file of the pool. In KVSocket and
// KVSocketRing the server runs it, on a file with as much memory for pages, and clients send requests over plain
// connections: a goroutine a connection with pread and pwrite, or any number over io_uring.
const (
	KVVerbs KVSystem = iota
	KVSocket
	KVSocketRing
	kvSystems
)

var kvNames = units.Names[KVSystem]{"verbs", "socket", "socket+uring"}

// KVNames returns the names of all systems.
func KVNames() []string { return slices.Clone(kvNames) }

// String is the system's name.
func (s KVSystem) String() string { return kvNames.Name(s) }

// MarshalText returns the system's name.
func (s KVSystem) MarshalText() ([]byte, error) { return kvNames.Marshal(s) }

// UnmarshalText parses a system's name.
func (s *KVSystem) UnmarshalText(b []byte) error { return kvNames.Unmarshal(b, s) }

// Mix is shares of operations, which add up to 1.
type Mix struct {
	Get, Put, Insert, Scan, Modify float64 // Modify is a get and then a put
}

// Keys is how keys are chosen.
type Keys uint8

// The distributions. Latest is zipf's from the key inserted last.
const (
	Uniform Keys = iota
	Zipf
	Latest
)

var keyNames = units.Names[Keys]{"uniform", "zipf", "latest"}

// String is the distribution's name.
func (k Keys) String() string { return keyNames.Name(k) }

// MarshalText returns the distribution's name.
func (k Keys) MarshalText() ([]byte, error) { return keyNames.Marshal(k) }

// UnmarshalText parses a distribution's name.
func (k *Keys) UnmarshalText(b []byte) error { return keyNames.Unmarshal(b, k) }

// Workload is what clients do.
type Workload struct {
	Mix  Mix
	Keys Keys
}

// YCSB returns a core workload of YCSB, A to F (Cooper et al., SoCC 2010, table 2, with the parameters of its files). A
// hash table has no order: E's scans read keys that are stored beside each other.
func YCSB(letter string) (Workload, error) {
	switch letter {
	case "a":
		return Workload{Mix{Get: 0.5, Put: 0.5}, Zipf}, nil
	case "b":
		return Workload{Mix{Get: 0.95, Put: 0.05}, Zipf}, nil
	case "c":
		return Workload{Mix{Get: 1}, Zipf}, nil
	case "d":
		return Workload{Mix{Get: 0.95, Insert: 0.05}, Latest}, nil
	case "e":
		return Workload{Mix{Scan: 0.95, Insert: 0.05}, Zipf}, nil
	case "f":
		return Workload{Mix{Get: 0.5, Modify: 0.5}, Zipf}, nil
	}
	return Workload{}, fmt.Errorf("%q is no workload of YCSB; use a, b, c, d, e or f", letter)
}

// zipfTheta is the exponent of YCSB's distribution, and longestScan the most keys of its scans.
const (
	zipfTheta   = 0.99
	longestScan = 100
)

// KVConfig configures a measurement of key-value stores. DefaultKVConfig returns the defaults.
type KVConfig struct {
	Dir      string
	Keys     int64 // that are loaded
	Space    int64 // for keys that are inserted. Then they begin anew, as changes of existing ones
	Value    int   // bytes
	Memory   int64 // bytes of memory for pages, of each system
	Class    kv.Class
	Systems  []KVSystem
	Clients  int // connections
	Depth    int // operations of each at a time
	Workload Workload
	Misses   float64 // share of gets that ask for keys that are not there
	Rounds   int
	Time     time.Duration // of one measurement
	Seed     uint64
	Threads  int
	Spin     time.Duration
	Server   []string `json:"-"` // as in Config, for ServeKV
	Pinned   bool
	Note     func(string) `json:"-"`
	Stop     func() error `json:"-"`
}

// DefaultKVConfig returns a configuration for gets of 4 KB by sixteen clients, with a tenth of the values in memory.
func DefaultKVConfig() KVConfig {
	c := DefaultConfig()
	return KVConfig{Dir: ".", Keys: 20000, Space: 20000, Value: 4000, Memory: 8 << 20, Class: kv.Async,
		Systems: []KVSystem{KVVerbs, KVSocket, KVSocketRing}, Clients: 16, Depth: 1,
		Workload: Workload{Mix: Mix{Get: 1}}, Rounds: c.Rounds, Time: c.Time, Seed: 1, Spin: c.Spin, Pinned: true}
}

// kvKey is the length of keys: a number in digits.
const kvKey = 16

// Geometry is the shape of the store.
func (c *KVConfig) geometry() (kv.Geometry, error) {
	return kv.NewGeometry(uint64(c.Keys+c.Space), kvKey, c.Value, c.Class, c.Seed)
}

// Validate returns the first error in c.
func (c *KVConfig) Validate() error {
	seen := map[KVSystem]bool{}
	for _, s := range c.Systems {
		if s >= kvSystems || seen[s] {
			return fmt.Errorf("bench: system %v is unknown or listed twice", s)
		}
		seen[s] = true
	}
	m := c.Workload.Mix
	sum := 0.0
	for _, x := range []float64{m.Get, m.Put, m.Insert, m.Scan, m.Modify} {
		if !(x >= 0) {
			return fmt.Errorf("bench: a share of operations of %v", x)
		}
		sum += x
	}
	switch {
	case len(c.Systems) == 0:
		return errors.New("bench: no system to measure")
	case math.Abs(sum-1) > 1e-9:
		return fmt.Errorf("bench: the shares of operations add up to %v, not to 1", sum)
	case c.Keys < 16 || c.Keys > 1<<23 || c.Space < 1 || c.Space > 1<<23:
		return fmt.Errorf("bench: %d keys and space for %d; use 16 to %d keys", c.Keys, c.Space, 1<<23)
	case c.Value < 1 || c.Value > 1<<20:
		return fmt.Errorf("bench: values of %d bytes; use 1 to %d", c.Value, 1<<20)
	case c.Memory < 1<<20 || c.Memory > 1<<38:
		return fmt.Errorf("bench: %v of memory; use 1MiB or more", units.Bytes(c.Memory))
	case c.Clients < 1 || c.Clients > kv.Members-1 || c.Depth < 1 || c.Depth > 16:
		return fmt.Errorf("bench: %d clients with %d operations each; use 1 to %d clients and 1 to 16 operations",
			c.Clients, c.Depth, kv.Members-1)
	case !(c.Misses >= 0 && c.Misses <= 1):
		return fmt.Errorf("bench: a share of misses of %v; use 0 to 1", c.Misses)
	case c.Spin < 0 || c.Spin > time.Second:
		return fmt.Errorf("bench: spin time %v; use 0s to 1s", c.Spin)
	case c.Threads < 0 || c.Threads > pool.MaxThreads:
		return fmt.Errorf("bench: %d threads; use 1 to %d, or 0 for half as many as processors", c.Threads,
			pool.MaxThreads)
	case c.Rounds < 1 || c.Rounds > 1000 || c.Time < time.Millisecond || c.Time > time.Hour:
		return fmt.Errorf("bench: %d rounds of %v; use 1 to 1000 rounds of 1ms to 1h", c.Rounds, c.Time)
	}
	_, err := c.geometry()
	return err
}

// Latencies are those of one kind of operation in one round, in us.
type Latencies struct {
	Count int64   `json:"count"`
	P50   float64 `json:"p50_us"`
	P99   float64 `json:"p99_us"`
	P999  float64 `json:"p99_9_us"`
}

// KVMeasured is the result of one system in one round.
type KVMeasured struct {
	Rate float64 `json:"operations_per_s"`
	P50  float64 `json:"p50_us"` // of all operations
	P99  float64 `json:"p99_us"`
	CPU  float64 `json:"cpu_us_per_operation"` // of clients and servers
	// Network is requests to the server, and Reads those of the server's device, for each operation.
	Network float64 `json:"network_operations_per_operation"`
	Reads   float64 `json:"device_reads_per_operation"`
	// Kinds are the latencies by kind: hit and miss (gets that found a value, and others), put, insert, scan, modify.
	Kinds map[string]Latencies `json:"kinds"`
}

// KVOutcome is the result of one system over all rounds.
type KVOutcome struct {
	System  KVSystem     `json:"system"`
	Rounds  []KVMeasured `json:"rounds"`
	Rate    Spread       `json:"operations_per_s"`
	P50     Spread       `json:"p50_us"`
	P99     Spread       `json:"p99_us"`
	CPU     Spread       `json:"cpu_us_per_operation"`
	Network Spread       `json:"network_operations_per_operation"`
	Reads   Spread       `json:"device_reads_per_operation"`
}

// KVApart is the latencies of one kind of operation over the rounds that have it.
type KVApart struct {
	Name           string
	P50, P99, P999 Spread
}

// Apart returns the latencies by kind.
func (o *KVOutcome) Apart() (all []KVApart) {
	for _, name := range kindNames {
		var rounds []Latencies
		for i := range o.Rounds {
			if l, ok := o.Rounds[i].Kinds[name]; ok {
				rounds = append(rounds, l)
			}
		}
		if len(rounds) == 0 {
			continue
		}
		over := func(f func(l *Latencies) float64) Spread {
			var xs []float64
			for i := range rounds {
				xs = append(xs, f(&rounds[i]))
			}
			return spread(xs)
		}
		all = append(all, KVApart{name, over(func(l *Latencies) float64 { return l.P50 }),
			over(func(l *Latencies) float64 { return l.P99 }), over(func(l *Latencies) float64 { return l.P999 })})
	}
	return all
}

// KVRatio compares two systems, by ratios within rounds.
type KVRatio struct {
	A    KVSystem `json:"a"`
	B    KVSystem `json:"b"`
	Rate Spread   `json:"operations_per_s"`
	P50  Spread   `json:"p50"`
	P99  Spread   `json:"p99"`
	CPU  Spread   `json:"cpu"`
}

// KVReport is the result of a measurement.
type KVReport struct {
	Clients    int         `json:"clients"`
	Depth      int         `json:"depth"`
	Class      string      `json:"class"`
	Outcomes   []KVOutcome `json:"systems"`
	Ratios     []KVRatio   `json:"ratios"` // of the first system to each of the others
	Confidence float64     `json:"confidence"`
	Processors [2][]int    `json:"processors"` // of clients, and of servers
}

// RunKV measures key-value stores.
func RunKV(c KVConfig) (r *KVReport, err error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	b, err := startKV(&c)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.end()) }()
	r = &KVReport{Clients: c.Clients, Depth: c.Depth, Class: c.Class.String(), Confidence: 1 - stats.AllAlike(c.Rounds),
		Outcomes: make([]KVOutcome, len(c.Systems)), Processors: [2][]int{b.clients, b.Processors}}
	for i, s := range c.Systems {
		r.Outcomes[i].System = s
		if c.Note != nil {
			c.Note(fmt.Sprintf("loading %d keys: %v", c.Keys, s))
		}
		if err := b.load(s); err != nil {
			return nil, fmt.Errorf("%v: %w", s, err)
		}
	}
	for round := range c.Rounds {
		for k := range c.Systems {
			i := (k + round) % len(c.Systems) // so that no system always follows the same one
			if c.Stop != nil && c.Stop() != nil {
				return nil, c.Stop()
			}
			m, err := b.measure(c.Systems[i], round)
			if err != nil {
				return nil, fmt.Errorf("%v: %w", c.Systems[i], err)
			}
			r.Outcomes[i].Rounds = append(r.Outcomes[i].Rounds, m)
			if c.Note != nil {
				c.Note(fmt.Sprintf("round %d: %-12v %8.0f a second, p50 %6.0f us, p99 %6.0f us", round+1, c.Systems[i],
					m.Rate, m.P50, m.P99))
			}
		}
	}
	r.summarize()
	return r, nil
}

// summarize computes spreads and ratios.
func (r *KVReport) summarize() {
	over := func(o *KVOutcome, f func(*KVMeasured) float64) (xs []float64) {
		for i := range o.Rounds {
			xs = append(xs, f(&o.Rounds[i]))
		}
		return xs
	}
	rate, p50 := func(m *KVMeasured) float64 { return m.Rate }, func(m *KVMeasured) float64 { return m.P50 }
	p99, cpu := func(m *KVMeasured) float64 { return m.P99 }, func(m *KVMeasured) float64 { return m.CPU }
	first := &r.Outcomes[0]
	for i := range r.Outcomes {
		o := &r.Outcomes[i]
		o.Rate, o.CPU = spread(over(o, rate)), spread(over(o, cpu))
		o.P50, o.P99 = spread(over(o, p50)), spread(over(o, p99))
		o.Network = spread(over(o, func(m *KVMeasured) float64 { return m.Network }))
		o.Reads = spread(over(o, func(m *KVMeasured) float64 { return m.Reads }))
		if i == 0 {
			continue
		}
		ratio := func(f func(*KVMeasured) float64) Spread {
			a, b := over(first, f), over(o, f)
			for i := range a {
				a[i] /= b[i]
			}
			return spread(a)
		}
		r.Ratios = append(r.Ratios, KVRatio{A: first.System, B: o.System, Rate: ratio(rate), P50: ratio(p50),
			P99: ratio(p99), CPU: ratio(cpu)})
	}
}

// kvBench is the client side.
type kvBench struct {
	cfg *KVConfig
	kvGreeting
	ask     *json.Encoder
	told    *json.Decoder
	end     func() error
	all     []int // processors
	clients []int
	made    int       // connections to servers that run the table
	newest  []inserts // by system
}
