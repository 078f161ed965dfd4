package synth

import (
	"fmt"
	"math"

	"farflash/numeric/rng"
	"farflash/numeric/units"
)

// Pattern is the distribution of request addresses.
type Pattern uint8

const (
	Uniform Pattern = iota // all places are equally likely
	Zipf                   // the popularity of the k-th place falls as k^-theta; popular places are scattered
	// Pareto: self-similar: a fraction 1-h of the requests goes to a fraction h of the places, and so on within it;
	// popular places are scattered.
	Pareto
	HotCold // hot_requests of the requests go to hot_space of the space, at its start
	// Sequential: proceeds from the start of the space to its end, again and again; streams have a part of the space
	// each and take turns.
	Sequential
)

var patternNames = units.Names[Pattern]{"uniform", "zipf", "pareto", "hot-cold", "sequential"}

func (p Pattern) String() string { return patternNames.Name(p) }

func (p Pattern) MarshalText() ([]byte, error) { return patternNames.Marshal(p) }

func (p *Pattern) UnmarshalText(text []byte) error { return patternNames.Unmarshal(text, p) }

// Addresses determines where requests go: in runs of consecutive requests, each starting where the pattern says.
type Addresses struct {
	Pattern Pattern     `yaml:"pattern,omitempty"` // Pattern is the distribution of the starts of runs.
	Start   units.Bytes `yaml:"start,omitempty"`   // Start is the first byte of the volume that is used.
	Space   units.Bytes `yaml:"space"`             // Space is the size of the range that is used.
	Align   units.Bytes `yaml:"align,omitempty"`   // Align is the alignment of the start of a run; 0 is 4 KiB.
	Theta   float64     `yaml:"theta,omitempty"`   // Theta is the exponent of pattern zipf.
	H       float64     `yaml:"h,omitempty"`       // H is the parameter of pattern pareto, above 0 and below 1.
	// HotRequests is the share of requests that go to the hot part, for pattern hot-cold.
	HotRequests units.Fraction `yaml:"hot_requests,omitempty"`
	// HotSpace is the share of the space that is hot, for pattern hot-cold.
	HotSpace units.Fraction `yaml:"hot_space,omitempty"`
	// RunLength is the mean number of requests in a run, geometrically distributed; 0 or 1 is no runs.
	RunLength float64 `yaml:"run_length,omitempty"`
	// Streams is the number of concurrent runs; 0 is one. With pattern sequential it is the number of equal parts of
	// the space, to which requests go in turn.
	Streams int `yaml:"streams,omitempty"`
}

// addresses draws offsets.
type addresses struct {
	cfg     Addresses
	slots   int64 // places where a run may start
	hot     int64 // of these, in the hot part
	align   int64
	end     int64 // end of the space
	stream  rng.Stream
	zipf    Ranks
	scatter Scatter
	power   float64 // Pareto: log h / log(1-h)
	turn    int     // Sequential: the stream of the next request
	part    int64   // Sequential: size of a stream's part
	jump    float64 // probability that a request starts a new run
	runs    []int64 // next offset of each stream; -1 before its first request
}

func newAddresses(cfg Addresses, seed uint64, name string) (addresses, error) {
	if cfg.Align == 0 {
		cfg.Align = 4 * units.KiB
	}
	if cfg.Streams == 0 {
		cfg.Streams = 1
	}
	if cfg.RunLength == 0 {
		cfg.RunLength = 1
	}
	a := addresses{cfg: cfg, align: int64(cfg.Align), end: int64(cfg.Start + cfg.Space)}
	switch {
	case cfg.Align < 0 || cfg.Align%units.Sector != 0:
		return a, fmt.Errorf("alignment is %v; it must be a multiple of 512B", cfg.Align)
	case cfg.Start < 0 || cfg.Start%units.Sector != 0:
		return a, fmt.Errorf("start is %v; it must be a multiple of 512B", cfg.Start)
	case cfg.Space < cfg.Align:
		return a, fmt.Errorf("space is %v; it must hold at least one aligned place of %v", cfg.Space, cfg.Align)
	case cfg.Space > math.MaxInt64-cfg.Start:
		return a, fmt.Errorf("a space of %v from %v on exceeds any volume", cfg.Space, cfg.Start)
	case int(cfg.Pattern) >= len(patternNames):
		return a, fmt.Errorf("%v is not an address pattern", cfg.Pattern)
	case !(cfg.RunLength >= 1 && cfg.RunLength <= 1e12):
		return a, fmt.Errorf("mean run length is %v; it must be at least 1", cfg.RunLength)
	case cfg.Streams < 0 || cfg.Streams > 1<<20:
		return a, fmt.Errorf("%d streams; there must be from 1 to %d", cfg.Streams, 1<<20)
	}
	a.slots = int64(cfg.Space / cfg.Align)
	a.stream = rng.NewStream(seed, name+"/address")
	a.jump = 1 / cfg.RunLength
	a.runs = make([]int64, cfg.Streams)
	for i := range a.runs {
		a.runs[i] = -1
	}
	switch cfg.Pattern {
	case Zipf:
		if !(cfg.Theta > 0 && cfg.Theta <= 10) {
			return a, fmt.Errorf("zipf's theta is %v; it must be above 0 and at most 10", cfg.Theta)
		}
		a.zipf = NewRanks(a.slots, cfg.Theta)
		a.scatter = NewScatter(a.slots, seed, name+"/address/scatter")
	case Pareto:
		// Closer to 0 or 1, log(1-h) or log(h) would round to 0.
		if !(cfg.H >= leastH && cfg.H <= 1-leastH) {
			return a, fmt.Errorf("pareto's h is %v; it must be above 0 and below 1, by %v at least", cfg.H, leastH)
		}
		a.power = rng.Log(cfg.H) / rng.Log(1-cfg.H)
		a.scatter = NewScatter(a.slots, seed, name+"/address/scatter")
	case Sequential:
		if cfg.RunLength != 1 {
			return a, fmt.Errorf("sequential addresses are endless runs; leave run_length out")
		}
		a.part = int64(cfg.Space) / int64(cfg.Streams)
		a.part -= a.part % int64(cfg.Align)
		if a.part == 0 {
			return a, fmt.Errorf("%d streams in %v leave less than %v to each", cfg.Streams, cfg.Space, cfg.Align)
		}
		for i := range a.runs {
			a.runs[i] = int64(cfg.Start) + int64(i)*a.part
		}
	case HotCold:
		if !(cfg.HotRequests >= 0 && cfg.HotRequests <= 1 && cfg.HotSpace > 0 && cfg.HotSpace < 1) {
			return a, fmt.Errorf(
				"hot-cold sends %v of the requests to %v of the space; both must be fractions, and the space between "+
					"0 and 1", cfg.HotRequests, cfg.HotSpace)
		}
		a.hot = int64(math.Round(float64(cfg.HotSpace) * float64(a.slots)))
		if a.hot == 0 || a.hot == a.slots {
			return a, fmt.Errorf("a hot part of %v of %v leaves one of the parts empty at an alignment of %v",
				cfg.HotSpace, cfg.Space, cfg.Align)
		}
	}
	return a, nil
}

// leastH keeps pareto's h away from 0 and 1.
const leastH = 1e-12

// next draws the offset of a request of the given size, which must fit into the space.
func (a *addresses) next(size int64) int64 {
	if a.cfg.Pattern == Sequential {
		i := a.turn
		a.turn = (i + 1) % len(a.runs)
		first := int64(a.cfg.Start) + int64(i)*a.part
		last := first + a.part
		if len(a.runs) == 1 {
			last = a.end
		}
		at := a.runs[i]
		if at > last-size {
			at = first
		}
		a.runs[i] = at + size
		return at
	}
	if len(a.runs) == 1 && a.jump == 1 {
		return a.begin(size)
	}
	run := &a.runs[0]
	if len(a.runs) > 1 {
		run = &a.runs[a.stream.IntN(int64(len(a.runs)))]
	}
	at := *run
	if at < 0 || a.stream.Float64() < a.jump || at > a.end-size {
		at = a.begin(size)
	}
	*run = at + size
	return at
}

// begin draws the start of a run. Places too close to the end for the size are replaced by the last one that fits.
func (a *addresses) begin(size int64) int64 {
	var slot int64
	switch a.cfg.Pattern {
	case Uniform:
		slot = a.stream.IntN(a.slots)
	case Zipf:
		slot = a.scatter.At(a.zipf.Next(&a.stream) - 1)
	case Pareto:
		rank := int64(float64(a.slots) * rng.Exp(a.power*rng.Log(1-a.stream.Float64())))
		slot = a.scatter.At(min(rank, a.slots-1))
	case HotCold:
		if a.stream.Float64() < float64(a.cfg.HotRequests) {
			slot = a.stream.IntN(a.hot)
		} else {
			slot = a.hot + a.stream.IntN(a.slots-a.hot)
		}
	}
	start := int64(a.cfg.Start)
	return min(start+slot*a.align, start+(a.end-start-size)/a.align*a.align)
}
