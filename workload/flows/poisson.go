package flows

import (
	"errors"
	"fmt"
	"io"

	"farflash/numeric/rng"
	"farflash/numeric/units"
)

// Poisson is flows between random hosts that start independently: one Poisson process for the whole network.
type Poisson struct {
	// Load is the share of the total capacity of all hosts' links that the flows use, without headers. Hosts are drawn
	// uniformly, regardless of their links.
	Load units.Fraction `yaml:"load"`
	// Sizes is the distribution of flow sizes: a published one such as websearch, one size, or points.
	Sizes Sizes `yaml:"sizes"`
	// Hosts are the senders and receivers; all hosts by default.
	Hosts []int `yaml:"hosts,omitempty"`
	// Duration is the time until which flows may start. 0 is no limit.
	Duration units.Duration `yaml:"duration,omitempty"`
	// Flows is the maximum number of flows. 0 is no limit.
	Flows int64 `yaml:"flows,omitempty"`
}

var errNoLinks = errors.New("the hosts' links have no rate, so load has no meaning")

// poisson draws the flows. Every quantity has its own random stream.
type poisson struct {
	name         string
	distribution *Distribution
	arrivals     rng.Stream
	sources      rng.Stream
	destinations rng.Stream
	sizes        rng.Stream

	hosts    []int32
	class    uint8
	begin    units.Duration // start of the process
	gap      float64        // mean, ps
	duration units.Duration
	left     int64          // remaining flows; negative: no limit
	now      units.Duration // relative to begin
	err      error
}

func newPoisson(cfg Config, network Network) (Source, error) {
	c := cfg.Poisson
	switch {
	case !(c.Load > 0 && c.Load <= 1):
		return nil, units.Wrong("load",
			"%v is not possible; it is a share of the hosts' links, above 0%% and at most 100%%", c.Load)
	case len(network.Links) < network.Hosts:
		return nil, errNoLinks
	case c.Duration < 0:
		return nil, units.Wrong("duration", "%v is negative", c.Duration)
	case c.Flows < 0:
		return nil, units.Wrong("flows", "%d is negative", c.Flows)
	case c.Duration == 0 && c.Flows == 0:
		return nil, errors.New("it never ends; set duration or flows")
	}
	hosts, err := hostsOf(c.Hosts, network)
	if err != nil {
		return nil, err
	}
	d, err := c.Sizes.Distribution()
	if err != nil {
		return nil, units.Within("sizes", err)
	}
	var all float64 // bits per second
	for _, h := range hosts {
		all += float64(network.Links[h])
	}
	if all <= 0 {
		return nil, errNoLinks
	}
	stream := func(of string) rng.Stream { return rng.NewStream(network.Seed, cfg.Name+"/poisson/"+of) }
	p := &poisson{
		distribution: d, arrivals: stream("arrivals"), sources: stream("sources"),
		destinations: stream("destinations"), sizes: stream("sizes"),
		name: cfg.Name, hosts: hosts, class: cfg.Class, begin: cfg.Start, duration: c.Duration, left: c.Flows,
	}
	if c.Flows == 0 {
		p.left = -1
	}
	perSecond := float64(float64(c.Load)*float64(all/float64(len(hosts)))) * float64(len(hosts)) / (8 * d.Mean())
	p.gap = float64(units.Second) / perSecond
	return p, nil
}

func (p *poisson) Next(f *Flow) error {
	if p.err != nil {
		return p.err
	}
	gap := float64(p.gap * p.arrivals.Exp())
	if p.left == 0 {
		p.err = io.EOF
		return p.err
	}
	if gap >= float64(units.Forever-p.begin-p.now) {
		if p.err = io.EOF; p.duration == 0 {
			p.err = fmt.Errorf("%s: a flow starts after 106 days, where the clock ends; use fewer flows, a larger "+
				"load, or a duration", p.name)
		}
		return p.err
	}
	if p.now += units.Duration(gap + 0.5); p.duration > 0 && p.now >= p.duration {
		p.err = io.EOF
		return p.err
	}
	if p.left > 0 {
		p.left--
	}
	n := int64(len(p.hosts))
	src, dst := p.sources.IntN(n), p.destinations.IntN(n-1)
	if dst >= src {
		dst++
	}
	*f = Flow{Src: p.hosts[src], Dst: p.hosts[dst], Class: p.class, Size: p.distribution.Quantile(p.sizes.Float64()),
		Start: p.begin + p.now}
	return nil
}
