// Package synth generates synthetic workloads.
//
// The main types are [Config], which specifies a workload in plain values, and [Generator], the [workload.Source] that
// generates it. Sizes and inter-arrival times are constant, exponential, gamma (Erlang), two-phase hyperexponential or
// a two-state Markov-modulated Poisson process, fitted in closed form to mean, squared coefficient of variation,
// skewness and lag-1 autocorrelation (see [Shape]); addresses are uniform, Zipf, Pareto, hot/cold or sequential, in
// runs of consecutive requests.
//
// Reads and writes arrive as two independent streams merged by time; or as one stream in which each request is a read
// with a given probability; or in a closed loop, where records carry time zero and the caller takes the next one when a
// request completes.
//
// Every quantity has its own random stream, named after it, so that changing one does not affect the others. The fits
// follow Whitt (1982) for the hyperexponential and Heffes and Lucantoni's MMPP(2) in the form of a sticky
// hyperexponential, with rho(k) = (1-1/SCV)/2 * gamma^k. The package leaves out correlation that decays slower than
// geometrically, dependence between size, time and address, and stack-distance models.
package synth

import (
	"errors"
	"fmt"
	"io"

	"farflash/block"
	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/workload"
)

// Interarrival is the distribution of inter-arrival times. A quantity alone, such as "10us", is a constant time.
type Interarrival struct {
	Mean  units.Duration `yaml:"mean"` // Mean is the mean time from one arrival to the next.
	Shape `yaml:",inline"`
}

// UnmarshalText parses a constant time.
func (i *Interarrival) UnmarshalText(text []byte) error {
	v, err := units.ParseDuration(string(text))
	if err == nil {
		*i = Interarrival{Mean: v}
	}
	return err
}

// Flow is the requests of one kind.
type Flow struct {
	Size Size `yaml:"size"` // Size is how large requests are.
	// Interarrival is the time between requests of this kind. Leave it out in a closed loop, and for a single stream of
	// reads and writes.
	Interarrival Interarrival `yaml:"interarrival,omitempty"`
	Addresses    Addresses    `yaml:"addresses"` // Addresses is where requests go.
}

// Config is a synthetic workload.
type Config struct {
	Reads  *Flow `yaml:"reads,omitempty"`  // Reads are the read requests; the default is none.
	Writes *Flow `yaml:"writes,omitempty"` // Writes are the write requests; the default is none.

	// Interarrival is the time between requests of a single stream of reads and writes, instead of one of each kind.
	Interarrival Interarrival `yaml:"interarrival,omitempty"`
	// ReadFraction is the share of reads in a single stream or a closed loop.
	ReadFraction units.Fraction `yaml:"read_fraction,omitempty"`
	// QueueDepth is the number of requests that a closed loop keeps outstanding; 0 is an open loop.
	QueueDepth int `yaml:"queue_depth,omitempty"`

	Requests int64 `yaml:"requests,omitempty"` // Requests is the number of requests; 0 is no limit.
	// Duration is the time after which no request arrives; 0 is no limit.
	Duration units.Duration `yaml:"duration,omitempty"`
	Volume   uint32         `yaml:"volume,omitempty"`
	Seed     uint64         `yaml:"seed,omitempty"`
	Name     string         `yaml:"name,omitempty"` // Name begins the random streams' names.
}

// DefaultConfig is three reads per write: Poisson arrivals, 4 KiB requests, uniform over 1 GiB.
func DefaultConfig() Config {
	flow := func(mean units.Duration) *Flow {
		return &Flow{
			Size:         Size{Mean: 4 * units.KiB},
			Interarrival: Interarrival{Mean: mean, Shape: Shape{Kind: Exponential}},
			Addresses:    Addresses{Space: units.GiB},
		}
	}
	return Config{Reads: flow(20 * units.Microsecond), Writes: flow(60 * units.Microsecond), Requests: 10000, Seed: 1}
}

// Generator generates the requests of a Config.
type Generator struct {
	cfg   Config
	flows [2]flow     // by block.Read, block.Write
	times [2]arrivals // of the flows; only the first if they share one stream
	mix   rng.Stream
	now   units.Duration
	made  int64
	err   error
}

// flow draws sizes and addresses.
type flow struct {
	used      bool
	sizes     sizes
	addresses addresses
}

// arrivals draws times.
type arrivals struct {
	sequence
	mean float64 // ps
	next units.Duration
}

// New returns a generator; its error names the invalid settings.
func New(cfg Config) (*Generator, error) {
	g := &Generator{cfg: cfg}
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	for i, f := range []*Flow{cfg.Reads, cfg.Writes} {
		if f == nil {
			continue
		}
		if err := g.addFlow(i, f); err != nil {
			return nil, units.Within(block.Op(i).String()+"s", err)
		}
	}
	if cfg.shared() {
		g.mix = rng.NewStream(cfg.Seed, cfg.Name+"/mix")
		if cfg.QueueDepth == 0 {
			var err error
			if g.times[0], err = newArrivals(cfg.Interarrival, cfg.Seed, cfg.Name); err != nil {
				return nil, units.Within("interarrival", err)
			}
		}
	}
	return g, nil
}

func (g *Generator) addFlow(i int, f *Flow) error {
	name := g.cfg.Name + "/" + block.Op(i).String()
	var err error
	g.flows[i].used = true
	if g.flows[i].addresses, err = newAddresses(f.Addresses, g.cfg.Seed, name); err != nil {
		return units.Within("addresses", err)
	}
	if g.flows[i].sizes, err = newSizes(f.Size.withDefaults(f.Addresses.Space), g.cfg.Seed, name); err != nil {
		return units.Within("size", err)
	}
	largest := units.Bytes(g.flows[i].sizes.largest())
	if f.Addresses.Space < largest {
		return units.Wrong("addresses", "a space of %v cannot hold requests of up to %v", f.Addresses.Space, largest)
	}
	if n := g.flows[i].addresses.part; n > 0 && f.Addresses.Streams > 1 && units.Bytes(n) < largest {
		return units.Wrong("addresses", "%d streams in %v have %v each, which cannot hold requests of up to %v",
			f.Addresses.Streams, f.Addresses.Space, units.Bytes(n), largest)
	}
	if !g.cfg.shared() {
		if g.times[i], err = newArrivals(f.Interarrival, g.cfg.Seed, name); err != nil {
			return units.Within("interarrival", err)
		}
	}
	return nil
}

// largest returns the largest size that can be drawn.
func (s *sizes) largest() int64 {
	if s.mix != nil {
		return s.mix.largest
	}
	if s.kind == Constant {
		down := int64(s.scale/s.granule) * int64(s.granule)
		if float64(down) == s.scale {
			return down
		}
		return down + int64(s.granule)
	}
	return int64(s.max)
}

func newArrivals(cfg Interarrival, seed uint64, name string) (arrivals, error) {
	if cfg.Mean <= 0 {
		return arrivals{}, fmt.Errorf(
			"its mean is %v, so arrivals are undefined; give one, such as 10us, or a number of requests "+
				"outstanding, such as closed: 16", cfg.Mean)
	}
	fitted, err := cfg.fit()
	if err != nil {
		return arrivals{}, err
	}
	a := arrivals{sequence: newSequence(fitted, seed, name+"/arrivals"), mean: float64(cfg.Mean)}
	a.advance()
	return a, nil
}

// advance draws the next arrival. A draw beyond the range of a Duration saturates at Forever.
func (a *arrivals) advance() {
	gap := float64(a.mean * a.sequence.next())
	if gap >= float64(units.Forever-a.next) {
		a.next = units.Forever
		return
	}
	a.next += units.Duration(gap + 0.5)
}

// shared reports whether reads and writes are drawn from one stream.
func (c *Config) shared() bool { return c.QueueDepth > 0 || c.Interarrival.Mean != 0 }

func (c *Config) validate() error {
	both := c.Reads != nil && c.Writes != nil
	switch {
	case c.Reads == nil && c.Writes == nil:
		return errors.New("neither reads nor writes")
	case c.QueueDepth < 0:
		return units.Wrong("queue_depth", "%d is not possible; it must not be negative", c.QueueDepth)
	case c.Requests < 0 || c.Duration < 0:
		return fmt.Errorf("%d requests within %v; neither may be negative", c.Requests, c.Duration)
	case c.QueueDepth > 0 && c.Interarrival.Mean != 0:
		return units.Wrong("interarrival", "a closed loop (queue_depth) has none")
	case !(c.ReadFraction >= 0 && c.ReadFraction <= 1):
		return units.Wrong("read_fraction", "%v is not possible; it must be from 0%% to 100%%", c.ReadFraction)
	case c.ReadFraction != 0 && !both:
		return units.Wrong("read_fraction", "it needs both reads and writes")
	case c.ReadFraction != 0 && !c.shared():
		return units.Wrong("read_fraction",
			"it needs one stream of both: a common interarrival, or a queue depth")
	}
	if !c.shared() {
		return nil
	}
	for i, f := range []*Flow{c.Reads, c.Writes} {
		if f != nil && f.Interarrival != (Interarrival{}) {
			return units.Wrong(block.Op(i).String()+"s.interarrival",
				"a common one or a queue depth is set as well; leave out one of them")
		}
	}
	return nil
}

// closed reports whether the workload is a closed loop, whose records have no arrival times.
func (g *Generator) closed() bool { return g.cfg.QueueDepth > 0 }

// Sizes returns the moments of sizes after rounding and clamping.
func (g *Generator) Sizes(op block.Op) Achieved { return g.flows[op].sizes.achieved }

// Next generates the next request; see [workload.Source].
func (g *Generator) Next(r *workload.Record) error {
	if g.err != nil {
		return g.err
	}
	if g.cfg.Requests > 0 && g.made >= g.cfg.Requests {
		g.err = io.EOF
		return g.err
	}
	op := g.pick()
	if g.cfg.Duration > 0 && g.now > g.cfg.Duration {
		g.err = io.EOF
		return g.err
	}
	if g.now == units.Forever {
		g.err = fmt.Errorf("request %d arrives more than 106 days after the start, where the clock ends; use fewer "+
			"requests, or a duration", g.made+1)
		return g.err
	}
	f := &g.flows[op]
	size := f.sizes.next()
	*r = workload.Record{
		Time: g.now, Response: workload.NoResponse,
		Offset: f.addresses.next(size), Size: size,
		Volume: g.cfg.Volume, Op: op,
	}
	g.made++
	return nil
}

// pick chooses the operation of the next request, and its time.
func (g *Generator) pick() block.Op {
	if g.cfg.shared() {
		if g.cfg.QueueDepth == 0 {
			g.now = g.times[0].next
			g.times[0].advance()
		}
		switch {
		case !g.flows[block.Write].used:
			return block.Read
		case !g.flows[block.Read].used:
			return block.Write
		case g.mix.Float64() < float64(g.cfg.ReadFraction):
			return block.Read
		}
		return block.Write
	}
	op := block.Read
	if !g.flows[block.Read].used || g.flows[block.Write].used && g.times[block.Write].next < g.times[block.Read].next {
		op = block.Write
	}
	g.now = g.times[op].next
	g.times[op].advance()
	return op
}
