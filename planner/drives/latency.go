package drives

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"farflash/experiment"
	"farflash/experiment/trial"
	"farflash/numeric/rng"
	"farflash/planner/tco"
	"farflash/policy/ftl/waf"
	"farflash/result"
	"farflash/scenario"
	"farflash/scenario/shape"
)

// Cache stores results of trials across runs of the program.
type Cache interface {
	// Get returns a trial's result, or nil.
	Get(t trial.Trial) (*result.Result, error)
	// Put stores a trial's result.
	Put(t trial.Trial, r *result.Result) error
}

// simulations holds the results of the plan's simulations, each run once.
type simulations struct {
	cache  Cache // nil: results are kept in this struct only
	trials map[string]latencies
	waf    map[string][]waf.MixPoint
	// alone is the range of write amplification of a group's drives, each simulated with its own workloads.
	alone map[int][2]float64
}

// latencies are p99s in us of reads and writes. NaN: there are no such requests; infinite: the drive is overloaded.
type latencies struct{ read, write float64 }

// A simulated latency is interpolated between simulated mixes: by load, by the share of writes, by the size of an I/O
// and by the sequential share of writes. A mix is simulated when the workloads' mix first falls next to it.
var tailLoads = []float64{0.1, 0.3, 0.5, 0.7, 0.85, 0.95}

const (
	writeParts      = 8 // of the share of writes
	sizeFactor      = 2 // ratio of successive sizes, from 4 KiB on
	sequentialParts = 2
)

// tailRequests is the number of requests of a simulation, for sizes of up to tailSize KiB; larger requests are fewer,
// but at least leastTailRequests of reads and of writes: of fewer than 368 the 99th percentile is not known.
const (
	tailRequests      = 20000
	tailSize          = 64
	leastTailRequests = 500
)

// leastTailSize and mostTailSize are the smallest and the largest simulated I/O sizes, in KiB. Smaller ones take as
// long.
const (
	leastTailSize = 1
	mostTailSize  = 16 << 10
)

// node is a simulated mix: numbers of parts, and of size factors from 4 KiB.
type node struct{ writes, size, sequential int }

// simulatedTail is a tco.Tail computed by the drive model.
type simulatedTail struct {
	plan   *Plan
	ctx    context.Context // context of Solve; the Tail interface of the search has none
	src    shape.Source
	rate   func(writes float64) float64 // I/Os per second of the whole drive at a share of writes
	sign   []float64
	curves map[node][]latencies // by load
	err    error                // the first error
}

// Simulates reports whether the latency of any drive is simulated.
func (p *Plan) Simulates() bool {
	return slices.ContainsFunc(p.Drives, func(g Group) bool { return g.Latency != nil && g.Latency.Simulate != "" })
}

// tail returns the latency under load: points, or that of a preset's drive under the mix of its workloads, arriving as
// a Poisson process. rate is the number of I/Os per second of the group's drive at a share of writes.
func (p *Plan) tail(ctx context.Context, g *Group, rate func(writes float64) float64) (tco.Tail, error) {
	preset := g.Latency.Simulate
	if preset == "" {
		var points []tco.TailPoint
		for _, x := range g.Latency.Points {
			points = append(points, tco.TailPoint{Utilisation: float64(x.Load), P99: x.P99.Microseconds()})
		}
		t, err := tco.NewTailTable(points)
		if err != nil {
			return nil, err
		}
		return t, nil
	}
	src, err := scenario.Find(preset)
	if err != nil {
		return nil, err
	}
	s, err := scenario.Parse(src, nil)
	if err != nil {
		return nil, err
	}
	if s.SSD == nil || s.Fabric != nil {
		return nil, fmt.Errorf("%s is not a scenario of a single drive", preset)
	}
	t := &simulatedTail{plan: p, ctx: context.WithoutCancel(ctx), src: src, rate: rate, curves: map[node][]latencies{}}
	// The preset and the rates identify it.
	h := uint64(0)
	for _, c := range preset {
		h = rng.Mix(h ^ uint64(c))
	}
	t.sign = []float64{float64(h >> 12), rate(0), rate(0.5), rate(1)}
	// An error concerns the plan, so report it before the search.
	if c := t.curve(node{writes: writeParts / 2}); t.err == nil && len(c) == 0 {
		return nil, fmt.Errorf(
			"%s does not keep up with %.6g I/Os a second, a tenth of what the model is rated for; name a faster "+
				"preset, or state points", preset, float64(tailLoads[0]*rate(0.5)))
	}
	return t, t.err
}

// Measures implements tco.Tail.
func (t *simulatedTail) Measures() []float64 { return t.sign }

// P99 implements tco.Tail.
func (t *simulatedTail) P99(x tco.Traffic) (read, write float64) {
	axis := func(v float64, most int) (below int, share float64) {
		v = min(max(v, 0), float64(most))
		below = min(int(v), most-1)
		return below, v - float64(below)
	}
	at := [3]int{}
	share := [3]float64{}
	at[0], share[0] = axis(float64(x.Writes*writeParts), writeParts)
	size := rng.Log(max(x.Size, leastTailSize)/tco.DefaultIOSize) / rng.Log(sizeFactor)
	at[1] = int(math.Floor(size))
	share[1] = size - float64(at[1])
	at[2], share[2] = axis(float64(x.Sequential*sequentialParts), sequentialParts)
	for corner := range 8 {
		weight, n := 1.0, [3]int{}
		for i := range n {
			up := corner >> i & 1
			n[i] = at[i] + up
			if up == 1 {
				weight = float64(weight * share[i])
			} else {
				weight = float64(weight * (1 - share[i]))
			}
		}
		if weight < 1e-9 {
			continue
		}
		v := t.at(node{n[0], n[1], n[2]}, x.Load)
		read, write = read+float64(weight*v.read), write+float64(weight*v.write)
	}
	return read, write
}

// at interpolates a simulated mix's latency by load. The latency of reads in a mix without reads is that of the
// neighbouring mix, and likewise for writes.
func (t *simulatedTail) at(n node, load float64) latencies {
	v := between(t.curve(n), load)
	switch n.writes {
	case 0:
		v.write = between(t.curve(node{1, n.size, n.sequential}), load).write
	case writeParts:
		v.read = between(t.curve(node{writeParts - 1, n.size, n.sequential}), load).read
	}
	return v
}

// between interpolates a curve. Beyond its last load it is infinite: that was not simulated, or the drive is
// overloaded.
func between(curve []latencies, load float64) latencies {
	for i := range curve {
		switch {
		case load > tailLoads[i]:
			continue
		case i == 0:
			return curve[0]
		}
		a, b := curve[i-1], curve[i]
		share := (load - tailLoads[i-1]) / (tailLoads[i] - tailLoads[i-1])
		return latencies{a.read + float64(share*(b.read-a.read)), a.write + float64(share*(b.write-a.write))}
	}
	return latencies{math.Inf(1), math.Inf(1)}
}

// curve is a mix's latency by load, up to the load at which the drive is saturated.
func (t *simulatedTail) curve(n node) []latencies {
	if c, ok := t.curves[n]; ok {
		return c
	}
	if n.sequential > 0 && n.writes == 0 { // no workload writes
		n.sequential = 0
		return t.curve(n)
	}
	curve := []latencies{}
	most := latencies{}
	for _, load := range tailLoads {
		writes := float64(n.writes) / writeParts
		v, err := t.plan.simulatedLatency(t.ctx, t.src,
			mixed{rate: float64(load * t.rate(writes)), writes: writes,
				kib:        tco.DefaultIOSize * rng.Pow(sizeFactor, float64(n.size)),
				sequential: float64(n.sequential) / sequentialParts})
		if err != nil {
			if t.err == nil {
				t.err = err
			}
			break
		}
		if math.IsInf(v.read, 1) || math.IsInf(v.write, 1) {
			break
		}
		// Latency cannot fall with load; an apparent fall is sampling noise.
		most = latencies{max(most.read, v.read), max(most.write, v.write)}
		curve = append(curve, most)
	}
	t.curves[n] = curve
	return curve
}

// mixed is the load on a drive: I/Os per second, share of writes, I/O size, sequential share of the writes.
type mixed struct{ rate, writes, kib, sequential float64 }

// requests is the number of requests to simulate.
func (m *mixed) requests() float64 {
	least := float64(leastTailRequests)
	for _, share := range []float64{m.writes, 1 - m.writes} {
		if share > 0 {
			least = max(least, leastTailRequests/share)
		}
	}
	return max(least, tailRequests*min(1, tailSize/m.kib))
}

// workload returns the load as the workload of a scenario.
func (m *mixed) workload() string {
	var items []string
	flow := func(kind string, share float64, more string) string {
		if share == 0 {
			return ""
		}
		return fmt.Sprintf("%s: {size: %dB, interarrival: {mean: %.6gus}%s}, ", kind, int64(m.kib*1024),
			1e6/float64(m.rate*share), more)
	}
	item := func(flows string) {
		if flows != "" {
			items = append(items, fmt.Sprintf("{synthetic: {%sduration: %.6gus}}", flows, float64(1e6*m.requests())/m.rate))
		}
	}
	item(flow("reads", 1-m.writes, "") + flow("writes", float64(m.writes*(1-m.sequential)), ""))
	item(flow("writes", float64(m.writes*m.sequential), ", addresses: {run_length: 1000000}"))
	return "[" + strings.Join(items, ", ") + "]"
}

// lateShare is the part of the arrival time by which a simulation may outlast its arrivals, in addition to lateTime. A
// drive that takes longer is overloaded, and its latency would grow with the length of the run.
const (
	lateShare = 0.05
	lateTime  = 0.02 // seconds
)

// simulatedLatency runs a preset's drive. An overloaded drive has infinite latencies.
func (p *Plan) simulatedLatency(ctx context.Context, src shape.Source, m mixed) (latencies, error) {
	fail := func(err error) (latencies, error) {
		return latencies{}, fmt.Errorf(
			"%.6g I/Os a second of %.4g KiB, %.3g %% of them writes, cannot be simulated on %s: %w; state points "+
				"instead", m.rate, m.kib, 100*m.writes, src.File, err)
	}
	s, err := scenario.Parse(src, []shape.Change{{Path: "workload", Value: m.workload(), Flag: "latency"}})
	if err != nil {
		return fail(err)
	}
	digest, err := s.Digest()
	if err != nil {
		return fail(err)
	}
	t := trial.Trial{Scenario: s, Digest: digest, Seed: p.Search.Seed}
	if v, ok := p.simulated.trials[t.Name()]; ok {
		return v, nil
	}
	r, err := p.kept(ctx, t)
	if err != nil {
		return fail(err)
	}
	v := latencies{math.NaN(), math.NaN()}
	for _, x := range r.Metrics {
		switch x.Name {
		case "read.latency.p99":
			v.read = x.Value
		case "write.latency.p99":
			v.write = x.Value
		}
	}
	if took, came := r.SimulatedS, m.requests()/m.rate; took > float64(came*(1+lateShare))+lateTime {
		v = latencies{math.Inf(1), math.Inf(1)}
	}
	if m.writes < 1 && math.IsNaN(v.read) || m.writes > 0 && math.IsNaN(v.write) {
		return fail(fmt.Errorf("too few requests were served for a p99"))
	}
	p.simulated.trials[t.Name()] = v
	return v, nil
}

// kept returns a trial's result from the cache, or simulates it.
func (p *Plan) kept(ctx context.Context, t trial.Trial) (*result.Result, error) {
	cache := p.simulated.cache
	if cache != nil {
		if r, err := cache.Get(t); err == nil && r != nil {
			return r, nil
		}
	}
	out, err := trial.Run(ctx, t.Scenario, experiment.Options{Seed: t.Seed})
	if err != nil {
		return nil, err
	}
	if cache != nil {
		_ = cache.Put(t, out.Result) // if it fails, the next run simulates again
	}
	return out.Result, nil
}
