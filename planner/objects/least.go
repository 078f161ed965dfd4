package objects

import (
	"fmt"
	"math"
	"strings"

	"farflash/model/cluster"
	"farflash/numeric/units"
	"farflash/sim"
)

// This file computes lower bounds on the number of nodes that follow from the configuration alone, without a
// simulation.

// Bound is the bottleneck of a design.
type Bound struct {
	Resource string
	Chunks   float64 // per second
}

// least is the smallest number of nodes that the bounds allow, with its bound. If there is none, why names the
// obstacle, and advice a sufficient change.
type least struct {
	nodes  int
	bound  Bound
	fewer  string // why fewer are not possible
	why    string
	advice Advice
}

// Advice is a change that would help an option to meet the need.
type Advice struct {
	Key   string  // key of the need to change
	Value float64 // the least value, or the highest for a rate; of several, the one with the smallest change counts
	Text  string
}

// look builds a cluster to compute its bounds, which do not depend on its contents.
func (n *Need) look(d Design) (*cluster.Cluster, error) {
	cfg := n.Config(d, n.Survive)
	cfg.Objects = 1
	return cluster.New(cfg, sim.New(), 1)
}

// bound is the bottleneck of a design with the nodes that may be down absent.
func (n *Need) bound(d Design) (Bound, error) {
	c, err := n.look(d)
	if err != nil {
		return Bound{}, err
	}
	out := Bound{Chunks: math.Inf(1)}
	for _, b := range c.BoundsWithout(n.Survive) {
		if b.Chunks < out.Chunks {
			out = Bound{b.Resource, b.Chunks}
		}
	}
	if n.Capacity > 0 {
		// A capacity shortfall counts as a bound on the rate.
		holds := float64(d.Nodes-n.Survive) * float64(n.Drives[d.Drive].Capacity) / n.expansion()
		if holds < float64(n.Capacity) {
			out = Bound{"capacity", n.Rate * holds / float64(n.Capacity)}
		}
	}
	return out, nil
}

// possible returns an error if a design is invalid, or becomes so with the permitted number of nodes down.
func (n *Need) possible(d Design) error {
	cfg := n.Config(d, n.Survive)
	if err := cfg.Validate(); err != nil {
		return err
	}
	if d.Group > 0 {
		asked := d.Group
		if d.Protocol.Several() {
			asked *= cfg.Groups
		}
		if asked-n.Survive < n.copies() {
			return fmt.Errorf("group: %d with %d down cannot keep %d parts of a chunk", asked, n.Survive, n.copies())
		}
		return nil
	}
	// Whether a placement has space for all copies is known only when it is built.
	left := n.Config(Design{d.Option, d.Nodes - n.Survive}, 0)
	left.Objects = 1
	if _, err := cluster.New(left, sim.New(), 1); err != nil {
		return fmt.Errorf("with %s left, %w", plural(d.Nodes-n.Survive, "node"), err)
	}
	return nil
}

// tries is the number of cluster sizes that are tried until one is valid for a protocol.
const tries = 64

// least finds the smallest number of nodes that is valid and satisfies the bounds. Both conditions hold for every
// larger number if they hold for one.
func (n *Need) least(o Option) least {
	step := o.step()
	at := func(k int) Design { return Design{o, k * step} }
	most := n.Search.Most / step
	first, fewer := 0, "no smaller cluster is possible"
	var err error
	begin := n.Survive/step + 1
	for k := begin; k <= min(most, begin+tries); k++ {
		if err = n.possible(at(k)); err == nil {
			first = k
			break
		}
		fewer = foremost(err)
	}
	switch {
	case first == 0 && err != nil:
		return least{why: "not possible: " + foremost(err)}
	case first == 0:
		return least{why: fmt.Sprintf("not possible with %s", plural(n.Search.Most, "node")), advice: n.moreNodes()}
	}
	c, err := n.look(at(first))
	if err != nil {
		return least{why: "not possible: " + foremost(err)}
	}
	if floor := c.Floor(); n.Reads < 1 && floor >= n.PutP99 {
		return least{why: fmt.Sprintf("a single chunk takes %v", inMicros(floor)),
			advice: longer("put_p99", float64(floor)/float64(units.Microsecond))}
	}
	enough := func(k int) (bool, Bound) {
		b, err := n.bound(at(k))
		return err == nil && b.Chunks >= n.Rate, b
	}
	low, high := first-1, first
	ok, bound := enough(high)
	for !ok {
		if high == most {
			return least{why: fmt.Sprintf("%s allow %.4g chunks/s with %s", resource(bound.Resource), bound.Chunks,
				plural(high*step, "node")), advice: n.relief(bound)}
		}
		low, high = high, min(2*high, most)
		ok, bound = enough(high)
	}
	for high-low > 1 {
		middle := (low + high) / 2
		if ok, b := enough(middle); ok {
			high, bound = middle, b
		} else {
			low = middle
		}
	}
	if high > first {
		_, b := enough(low)
		fewer = fmt.Sprintf("%s allow %.4g chunks/s", resource(b.Resource), b.Chunks)
	}
	return least{nodes: high * step, bound: bound, fewer: fewer}
}

// relief returns advice against a bound that more nodes do not change.
func (n *Need) relief(b Bound) Advice {
	if b.Resource == "gateways' links" && n.Gateways.Count > 0 {
		count := math.Ceil(float64(n.Gateways.Count) * n.Rate / b.Chunks)
		return Advice{"gateways.count", count, fmt.Sprintf("gateways.count: %.0f, or faster NICs", count)}
	}
	return n.moreNodes()
}

func (n *Need) moreNodes() Advice {
	return Advice{"search.most", float64(n.Search.Most),
		fmt.Sprintf("search.most above %d, or a lower rate", n.Search.Most)}
}

// longer advises a limit above the measured value.
func longer(key string, us float64) Advice {
	return Advice{key, us, "a " + key + " above " + micros(us)}
}

// resource names a bound's resource in a sentence.
func resource(name string) string {
	if name == "capacity" {
		return "the drives' capacities"
	}
	return "the " + name
}

// inMicros rounds a time up to a tenth of a microsecond.
func inMicros(t sim.Time) units.Duration {
	tenth := units.Microsecond / 10
	return (t + tenth - 1) / tenth * tenth
}

// foremost returns the first of several errors, without the advice for scenarios.
func foremost(err error) string {
	text, _, _ := strings.Cut(units.FieldErrors(err)[0].Error(), ";")
	return text
}
