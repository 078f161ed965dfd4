package durability

import (
	"fmt"
	"math"

	"farflash/internal/heap"
	"farflash/numeric/rng"
	"farflash/numeric/stats"
)

// Simulation simulates individual failures and rebuilds of drives until data is lost, repeatedly. It makes fewer
// assumptions than the chain: lifetimes may age, rebuilds may take a fixed time, and groups may share drives.
type Simulation struct {
	Config
	// Drives is the number of drives; 0 is a single group.
	Drives int
	// Groups are the copysets, each of Width drives numbered from 0; nil is one group of the first Width drives. With
	// Serial repair one rebuild at a time runs in the whole fleet.
	Groups [][]int32
	// Shape is the shape of the drives' Weibull lifetimes, whose mean is MTTF: 1 is exponential, less is infant
	// mortality, more is wear. Drives are new initially and after a rebuild.
	Shape float64
	// Fixed makes every rebuild take its mean time. Otherwise rebuild times are exponential.
	Fixed bool
	// Runs is the number of data losses to simulate.
	Runs int
	// MostEvents is the number of events after which the simulation gives up, because losses are too rare.
	MostEvents uint64
}

// DefaultSimulation is a thousand runs of a group, with the chain's assumptions.
func DefaultSimulation(cfg Config) Simulation {
	return Simulation{Config: cfg, Shape: 1, Runs: 1000, MostEvents: 1 << 30}
}

// Outcome is the result of a simulation.
type Outcome struct {
	MTTDL  stats.Interval // in hours, with its interval at the requested level
	Events uint64         // failures and rebuilds
	Times  []Hours        // time to data loss of each run
}

// pending is the next event of a drive.
type pending struct {
	at    float64
	drive int32
}

// Before implements heap.Item: by time, then drive.
func (a *pending) Before(b *pending) bool { return a.at < b.at || a.at == b.at && a.drive < b.drive }

// player is the state of one run.
type player struct {
	Simulation
	stream  *rng.Stream
	scale   float64   // of the Weibull distribution
	member  [][]int32 // the groups of each drive
	lost    []int     // failed drives of each group
	down    []bool
	queue   heap.Heap[pending, *pending]
	waiting []int32 // failed drives whose serial rebuild has not begun
	busy    bool
}

// Simulate performs the runs with random numbers from the stream. It returns the mean time to data loss with its
// interval at a confidence level such as 0.95.
func Simulate(s Simulation, stream *rng.Stream, level float64) (Outcome, error) {
	p, err := newPlayer(s, stream)
	if err != nil {
		return Outcome{}, err
	}
	var out Outcome
	times := make([]float64, 0, s.Runs)
	for range s.Runs {
		t, events := p.run(s.MostEvents - out.Events)
		out.Events += events
		if math.IsNaN(t) {
			return out, fmt.Errorf(
				"%d events led to %d losses of %d; losses are too rare to simulate; use the chain's mean", out.Events, len(times), s.Runs)
		}
		times = append(times, t)
		out.Times = append(out.Times, Hours(t))
	}
	out.MTTDL, err = stats.Replicates(times, level)
	return out, err
}

func newPlayer(s Simulation, stream *rng.Stream) (*player, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	w := s.Scheme.Width()
	if s.Drives == 0 {
		s.Drives = w
	}
	if s.Groups == nil {
		one := make([]int32, w)
		for i := range one {
			one[i] = int32(i)
		}
		s.Groups = [][]int32{one}
	}
	switch {
	case !(s.Shape >= 0.1 && s.Shape <= 100):
		return nil, fmt.Errorf("invalid Weibull shape, %v; it must be 0.1 to 100", s.Shape)
	case s.Runs < 2:
		return nil, fmt.Errorf("%d runs have no interval; use at least 2", s.Runs)
	case s.Drives < w:
		return nil, fmt.Errorf("%d drives cannot hold %d shards", s.Drives, w)
	}
	p := &player{Simulation: s, stream: stream, scale: float64(s.MTTF) / gamma(1+1/s.Shape)}
	p.member, p.down, p.lost = make([][]int32, s.Drives), make([]bool, s.Drives), make([]int, len(s.Groups))
	for g, drives := range s.Groups {
		if len(drives) != w {
			return nil, fmt.Errorf("group %d has %d drives; the scheme needs %d", g, len(drives), w)
		}
		for _, d := range drives {
			if d < 0 || int(d) >= s.Drives {
				return nil, fmt.Errorf("group %d has drive %d; there are %d", g, d, s.Drives)
			}
			if k := len(p.member[d]); k > 0 && p.member[d][k-1] == int32(g) {
				return nil, fmt.Errorf("group %d has drive %d twice", g, d)
			}
			p.member[d] = append(p.member[d], int32(g))
		}
	}
	return p, nil
}

// run simulates until data is lost and returns that time, or NaN if it takes too many events.
func (p *player) run(most uint64) (float64, uint64) {
	clear(p.down)
	clear(p.lost)
	p.queue.Clear()
	p.waiting, p.busy = p.waiting[:0], false
	for d := range p.down {
		p.queue.Push(pending{p.lifetime(), int32(d)})
	}
	for events := uint64(1); events <= most && p.queue.Len() > 0; events++ {
		ev := p.queue.Pop()
		if p.down[ev.drive] {
			p.mended(ev)
		} else if p.failed(ev) {
			return ev.at, events
		}
	}
	return math.NaN(), most
}

// failed takes a drive out of service and reports whether data is lost.
func (p *player) failed(ev pending) bool {
	p.down[ev.drive] = true
	for _, g := range p.member[ev.drive] {
		if p.lost[g]++; p.lost[g] > p.Scheme.Parity {
			return true
		}
	}
	if p.Repair == Serial && p.busy {
		p.waiting = append(p.waiting, ev.drive)
	} else {
		p.begin(ev.at, ev.drive)
	}
	return false
}

// begin starts a drive's rebuild.
func (p *player) begin(now float64, drive int32) {
	p.busy = true
	took := float64(p.Rebuild)
	if !p.Fixed {
		took = float64(took * p.stream.Exp())
	}
	if !math.IsInf(took, 0) && !math.IsNaN(took) {
		p.queue.Push(pending{now + took, drive})
	}
}

// mended puts a new drive with the rebuilt content into service.
func (p *player) mended(ev pending) {
	p.down[ev.drive] = false
	for _, g := range p.member[ev.drive] {
		p.lost[g]--
	}
	p.queue.Push(pending{ev.at + p.lifetime(), ev.drive})
	p.busy = false
	if len(p.waiting) > 0 {
		next := p.waiting[0]
		p.waiting = append(p.waiting[:0], p.waiting[1:]...)
		p.begin(ev.at, next)
	}
}

func (p *player) lifetime() float64 {
	x := p.stream.Exp()
	if p.Shape != 1 {
		x = rng.Pow(x, 1/p.Shape)
	}
	return float64(x * p.scale)
}

// gamma is the gamma function for x >= 1, by Lanczos' approximation (g = 7, nine terms). Its bits are the same on every
// machine.
func gamma(x float64) float64 {
	c := [...]float64{0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313,
		-176.61502916214059,
		12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7}
	x--
	sum := c[0]
	for i := 1; i < len(c); i++ {
		sum += c[i] / (x + float64(i))
	}
	t := x + 7.5
	return math.Sqrt(2*math.Pi) * rng.Exp(float64((x+0.5)*rng.Log(t))-t) * sum
}
