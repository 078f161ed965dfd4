// Package mqsimgen generates the requests of the synthetic flows of the SSD simulator MQSim (Tavakkol et al., FAST'18;
// commit 7ec40e3), in the same order and with the same random numbers, so that both simulators can run on the same
// input.
//
// The main types are [Config], one flow's parameters in MQSim's own terms, and [Generator], a [workload.Source]. A
// closed loop (QueueDepth) has no arrival times: all its records carry time zero, and the caller takes the next one
// when a request completes. An open loop (Bandwidth) has MQSim's exponential inter-arrival times, truncated to
// nanoseconds as in MQSim.
//
// The package leaves out the division of a drive's sectors among flows (left to the drive's namespaces), trace flows
// (read by package trace), and negative draws of normal sizes, which MQSim turns into requests of some 2^32 sectors;
// here they are an error.
package mqsimgen

import (
	"errors"
	"fmt"
	"io"
	"math"

	"farflash/block"
	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/workload"
)

// Range is a flow's sectors, both ends included.
type Range struct {
	First, Last int64
}

// AddressDistribution is the distribution of request addresses.
type AddressDistribution uint8

// The address distributions, with MQSim's names.
const (
	Uniform   AddressDistribution = iota // RANDOM_UNIFORM
	Streaming                            // STREAMING
	HotCold                              // RANDOM_HOTCOLD
)

// SizeDistribution is the distribution of request sizes.
type SizeDistribution uint8

// The size distributions, with MQSim's names.
const (
	Fixed  SizeDistribution = iota // FIXED
	Normal                         // NORMAL
)

// Mode is the timing of requests.
type Mode uint8

// The modes, with MQSim's names.
const (
	QueueDepth Mode = iota // QUEUE_DEPTH: closed loop
	Bandwidth              // BANDWIDTH: open loop
)

// Config is one synthetic flow. Sizes and addresses are in 512-byte sectors, as in MQSim's files.
type Config struct {
	ReadFraction   float64 // Read_Percentage / 100
	Addresses      AddressDistribution
	HotFraction    float64 // Percentage_of_Hot_Region / 100; HotCold only
	Aligned        bool    // Generated_Aligned_Addresses
	Alignment      int64   // Address_Alignment_Unit
	Sizes          SizeDistribution
	MeanSize       int64   // Average_Request_Size
	SizeDeviation  int64   // Variance_Request_Size, which MQSim takes as the standard deviation
	Seed           int32   // Seed
	WorkingSet     float64 // Working_Set_Percentage / 100: the used fraction of the range
	Range          Range   // the flow's sectors
	Requests       int64   // Total_Requests_To_Generate; used when StopTime is 0
	StopTime       int64   // Stop_Time, in ns; requests arrive up to it, whatever their number; 0: none
	Mode           Mode
	BytesPerSecond int64 // Bandwidth; open loop only
	Volume         uint32
	Origin         int64 // the sector that the offsets of requests are relative to
	// Loose behaves as MQSim: requests that alignment moves before Origin are issued, and sizes wrap to 16 bits.
	// Otherwise both are errors.
	Loose bool
}

// Generator generates the requests of one flow.
type Generator struct {
	cfg      Config
	first    uint64 // the used range, both ends included
	last     uint64
	hotEnd   uint64
	kinds    rng.MQSim
	places   rng.MQSim
	hot      rng.MQSim
	hotCold  rng.MQSim
	sizes    rng.MQSim
	gaps     rng.MQSim
	spare    float64 // the second of a pair of normal numbers; 0: none
	next     uint64  // streaming: the next sector
	interval float64 // open loop: mean, ns
	now      int64   // ns
	made     int64
	err      error
}

// DefaultConfig returns a closed-loop flow of 4 KiB reads over a whole range, like most of MQSim's examples.
func DefaultConfig() Config {
	return Config{ReadFraction: 1, Aligned: true, Alignment: 8, MeanSize: 8, Seed: 798, WorkingSet: 1, Requests: 1000,
		Range: Range{0, 1<<21 - 1}}
}

// lastSeed leaves space for the seeds of six streams.
const lastSeed = math.MaxInt32 - 5

// New returns the generator of a flow.
func New(cfg Config) (*Generator, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	g := &Generator{cfg: cfg}
	g.first = uint64(cfg.Range.First)
	g.last = uint64(float64(cfg.Range.First) + float64(float64(cfg.Range.Last-cfg.Range.First)*cfg.WorkingSet))
	// Seeds are assigned in this order, to the generators that the flow needs.
	seed := cfg.Seed
	take := func() rng.MQSim {
		made := rng.NewMQSim(seed)
		seed++
		return made
	}
	g.kinds = take()
	g.places = take()
	if cfg.Addresses == HotCold {
		g.hot = take()
		g.hotCold = take()
		g.hotEnd = g.first + uint64(float64(g.last-g.first)*cfg.HotFraction)
	}
	if cfg.Sizes == Normal {
		g.sizes = take()
	}
	if cfg.Mode == Bandwidth {
		g.gaps = take()
		g.interval = float64(1000000000 / (cfg.BytesPerSecond / int64(units.Sector) / cfg.MeanSize))
	}
	if cfg.Addresses == Streaming {
		g.next = g.places.Between(g.first, g.last)
		if cfg.Aligned {
			g.next -= g.next % uint64(cfg.Alignment)
		}
	}
	if cfg.Mode == Bandwidth {
		g.now = g.gap()
	}
	return g, nil
}

func (c *Config) validate() error {
	switch {
	case !(c.ReadFraction >= 0 && c.ReadFraction <= 1):
		return fmt.Errorf("read fraction is %v; it must be from 0 to 1", c.ReadFraction)
	case !(c.WorkingSet > 0 && c.WorkingSet <= 1):
		return fmt.Errorf("working set is %v of the range; it must be above 0 and at most 1", c.WorkingSet)
	case c.Addresses > HotCold:
		return fmt.Errorf("unknown address distribution %d", c.Addresses)
	case c.Addresses == HotCold && !(c.HotFraction >= 0 && c.HotFraction < 1):
		return fmt.Errorf("hot region is %v of the working set; it must be at least 0 and below 1", c.HotFraction)
	case c.Aligned && c.Alignment <= 0:
		return fmt.Errorf("alignment of %d sectors; it must be positive", c.Alignment)
	case c.Sizes > Normal:
		return fmt.Errorf("unknown size distribution %d", c.Sizes)
	case c.MeanSize <= 0 || c.MeanSize > 65535:
		return fmt.Errorf("mean size of %d sectors; it must be from 1 to 65535", c.MeanSize)
	case c.SizeDeviation < 0 || c.SizeDeviation > 65535:
		return fmt.Errorf("size deviation of %d sectors; it must be from 0 to 65535", c.SizeDeviation)
	case c.Seed < 0 || c.Seed > lastSeed:
		return fmt.Errorf("seed %d; it must be from 0 to %d, since a flow's streams use this seed and the five "+
			"after it", c.Seed, lastSeed)
	case c.Range.First < 0 || c.Range.Last < c.Range.First || c.Range.Last >= 1<<53:
		return fmt.Errorf("range of sectors %d to %d is empty", c.Range.First, c.Range.Last)
	case c.StopTime < 0:
		return fmt.Errorf("stop time of %d ns; it must not be negative", c.StopTime)
	case c.StopTime == 0 && c.Requests <= 0:
		return errors.New("neither a stop time nor a number of requests")
	case c.Mode > Bandwidth:
		return fmt.Errorf("unknown mode %d", c.Mode)
	case c.Mode == Bandwidth && c.BytesPerSecond/int64(units.Sector)/c.MeanSize <= 0:
		return fmt.Errorf("bandwidth of %d B/s makes less than one request of %d sectors per second, for which MQSim "+
			"divides by zero", c.BytesPerSecond, c.MeanSize)
	}
	return nil
}

// Last is the last sector that the flow uses.
func (g *Generator) Last() int64 { return int64(g.last) }

// closed reports whether the flow is a closed loop, whose records have no arrival times.
func (g *Generator) closed() bool { return g.cfg.Mode == QueueDepth }

// Next generates the next request; see [workload.Source].
func (g *Generator) Next(r *workload.Record) error {
	if g.err != nil || g.cfg.StopTime > 0 || g.made >= g.cfg.Requests {
		if g.end(); g.err != nil {
			return g.err
		}
	}
	// Numbers lie in (0, 1) and this stream has no other use, so it need not be drawn from if all requests are of one
	// kind.
	op := block.Write
	if f := g.cfg.ReadFraction; f >= 1 || f > 0 && g.kinds.Next() <= f {
		op = block.Read
	}
	size := uint64(g.cfg.MeanSize)
	if g.cfg.Sizes != Fixed {
		var err error
		if size, err = g.size(); err != nil {
			g.err = err
			return err
		}
	}
	place := int64(g.place(size)) - g.cfg.Origin
	if place < 0 && !g.cfg.Loose {
		return g.before(-place)
	}
	if g.cfg.Loose {
		size &= 0xffff // width of the field in MQSim's command
	}
	*r = workload.Record{
		Time:     units.Duration(g.now) * units.Nanosecond,
		Response: workload.NoResponse,
		Offset:   place * int64(units.Sector),
		Size:     int64(size) * int64(units.Sector),
		Volume:   g.cfg.Volume,
		Op:       op,
	}
	g.made++
	if g.cfg.Mode == Bandwidth {
		g.now += g.gap()
	}
	return nil
}

// Foresee generates up to most requests, or those before until in an open loop (0 is no limit), without consuming them,
// and returns the first error of the generator or of wrong.
func (g *Generator) Foresee(most int64, until units.Duration, wrong func(*workload.Record) error) error {
	if g.closed() && g.cfg.StopTime > 0 {
		return nil // their number is known only at run time
	}
	ahead := *g
	var r workload.Record
	for range most {
		err := ahead.Next(&r)
		if err == nil && (until == 0 || g.closed() || r.Time < until) {
			err = wrong(&r)
		} else if err == nil || errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Plain reports whether no request can be invalid: all have the same size and lie within the flow's sectors.
func (g *Generator) Plain() bool {
	c := &g.cfg
	return c.Sizes == Fixed && c.Addresses != HotCold && c.MeanSize <= int64(g.last-g.first) &&
		(!c.Aligned || c.Origin%c.Alignment == 0)
}

// end checks whether the flow has ended.
//
//go:noinline
func (g *Generator) end() {
	switch {
	case g.err != nil:
	case g.cfg.StopTime == 0 || g.cfg.Mode == Bandwidth && g.now > g.cfg.StopTime:
		g.err = io.EOF
	}
}

// before ends the flow because of a request that lies this many sectors before its first one.
//
//go:noinline
func (g *Generator) before(sectors int64) error {
	g.err = fmt.Errorf("MQSim's alignment moves a request to %d bytes before its flow's first sector, and only its "+
		"own drive folds that (compat: mqsim); use an alignment that divides %d",
		sectors*int64(units.Sector), g.cfg.Origin*int64(units.Sector))
	return g.err
}

// size draws the next size in sectors, if sizes vary.
func (g *Generator) size() (uint64, error) {
	v := math.Ceil(float64(g.cfg.MeanSize) + float64(g.normal()*float64(g.cfg.SizeDeviation)))
	switch {
	case v < 0 && g.cfg.Loose:
		return uint64(uint32(int64(v))), nil
	case v < 0:
		return 0, fmt.Errorf(
			"request %d has a normal size of %v sectors, which MQSim reads as %d; use a smaller deviation than %d",
			g.made+1, v, uint32(int64(v)), g.cfg.SizeDeviation)
	case v < 1:
		return 1, nil
	}
	return uint64(v), nil
}

// place draws the first sector of a request of this size.
func (g *Generator) place(size uint64) uint64 {
	var at uint64
	switch g.cfg.Addresses {
	case Streaming:
		return g.stream(size)
	case HotCold:
		at = g.hotOrCold()
	case Uniform:
		at = g.places.Between(g.first, g.last)
		if at+size > g.last {
			at = g.first
		}
	}
	if g.cfg.Aligned {
		if unit := uint64(g.cfg.Alignment); unit&(unit-1) == 0 {
			at &^= unit - 1
		} else {
			at -= at % unit
		}
	}
	return at
}

// hotOrCold draws the first sector of a request to one of two regions.
//
//go:noinline
func (g *Generator) hotOrCold() uint64 {
	// The request goes to the cold region with a probability of HotFraction. As in MQSim, it may extend past the end.
	if g.hotCold.Next() < g.cfg.HotFraction {
		return g.hot.Between(g.hotEnd+1, g.last)
	}
	return g.hot.Between(g.first, g.hotEnd)
}

// stream returns the next sector of a stream and advances it, wrapping to the first sector.
//
//go:noinline
func (g *Generator) stream(size uint64) uint64 {
	at, unit := g.next, uint64(g.cfg.Alignment)
	if at+size > g.last {
		at = g.first
	}
	g.next += size
	if g.next > g.last {
		g.next = g.first
	}
	if g.cfg.Aligned {
		if rest := g.next % unit; rest != 0 {
			g.next += unit - rest
		}
		at -= at % unit
	}
	return at
}

// gap draws an inter-arrival time in ns.
func (g *Generator) gap() int64 {
	return int64(-g.interval * rng.Log(g.gaps.Next()))
}

// normal draws a standard normal number with Marsaglia's polar method, keeping the second of each pair.
func (g *Generator) normal() float64 {
	if g.spare != 0 {
		v := g.spare
		g.spare = 0
		return v
	}
	for {
		a := 2*g.sizes.Next() - 1
		b := 2*g.sizes.Next() - 1
		w := float64(a*a) + float64(b*b)
		if w >= 1 {
			continue
		}
		w = math.Sqrt(-2 * rng.Log(w) / w)
		g.spare = b * w
		return a * w
	}
}
