// Package flows generates the traffic of an RDMA network: messages from one host to another, each with a size and a
// start time.
//
// The main types are [Flow], the [Source] that yields flows in order of time, and [Config], which selects in plain
// values a list, Poisson arrivals with a published size distribution ([Sizes]), incast, all-to-all, a permutation or a
// collective. [New] returns a Source for it, [Slice] one for existing flows, and [Merge] one for several sources.
//
// Random numbers come from streams named after their use, so the same seed gives the same flows, and a change of the
// load does not change any destination. The size distributions are those of DCTCP (Alizadeh et al., SIGCOMM 2010),
// Facebook's Hadoop clusters (Roy et al., SIGCOMM 2015) and HPCC (Li et al., SIGCOMM 2019), with the points in the
// latter's repository.
//
// Flows that wait for others come from a [Reactive] source: a list whose entries name others, or a [Chorus], a
// collective operation in steps.
//
// The package leaves out sizes that depend on the sender, and the network itself.
package flows

import (
	"fmt"
	"io"

	"farflash/numeric/units"
)

// Flow is one message.
type Flow struct {
	Src, Dst int32 // hosts, from 0
	Class    uint8 // priority group, 0 to 7
	Size     units.Bytes
	Start    units.Duration // relative to the source's start
	ID       uint32         // identifies the flow to its Reactive
	Group    uint16         // index of the source, from 0, if InGroup set it
}

// Source yields flows in order of their starts.
//
// Next fills in all fields of the caller's flow and returns nil, or returns an error and leaves the flow undefined;
// io.EOF means that there are no more. After an error, every further call returns the same error.
type Source interface {
	Next(*Flow) error
}

// classes is the number of priority groups.
const classes = 8

// Network describes the network to the generators.
type Network struct {
	Hosts int
	Links []units.BitRate // by host, the sum of its links
	Seed  uint64
}

// Config is the traffic of a network, of exactly one kind.
type Config struct {
	// Name begins the names of the random streams. Sources with different names are independent.
	Name string `yaml:"name,omitempty"`
	// Class is the priority group of all flows, 0 to 7. Flows of a list have their own.
	Class uint8 `yaml:"class,omitempty"`
	// Start is the earliest start of a flow. The times of all kinds are relative to it.
	Start units.Duration `yaml:"start,omitempty"`

	// List specifies every flow.
	List []Entry `yaml:"list,omitempty"`
	// Poisson makes flows between random hosts, at a given load of their links.
	Poisson *Poisson `yaml:"poisson,omitempty"`
	// Incast makes many hosts send to one at the same time.
	Incast *Incast `yaml:"incast,omitempty"`
	// AllToAll makes every host send to every other at the same time.
	AllToAll *AllToAll `yaml:"all_to_all,omitempty"`
	// Permutation makes every host send to one host and receive from another.
	Permutation *Permutation `yaml:"permutation,omitempty"`
	// Collective makes hosts perform a collective operation in steps, such as an all-reduce.
	Collective *Collective `yaml:"collective,omitempty"`
}

// Entry is one flow of a list.
type Entry struct {
	// Src is the host that sends, from 0.
	Src int `yaml:"src"`
	// Dst is the host that receives, from 0.
	Dst int `yaml:"dst"`
	// Class is the priority group, 0 to 7.
	Class uint8 `yaml:"class,omitempty"`
	// Size is the length of the message.
	Size units.Bytes `yaml:"size"`
	// Start is when the flow starts. With after, it is relative to the end of those flows.
	Start units.Duration `yaml:"start,omitempty"`
	// Name is the name by which other flows refer to it in after.
	Name string `yaml:"name,omitempty"`
	// After names flows of the list that must end before this flow starts.
	After []string `yaml:"after,omitempty"`
	// Upon selects which end of those flows counts.
	Upon Upon `yaml:"upon,omitempty"`
}

// DefaultConfig returns a web search's traffic at 30 % of the hosts' links, for 10 ms.
func DefaultConfig() Config {
	return Config{Poisson: &Poisson{Load: 0.3, Sizes: Sizes{Name: WebSearch}, Duration: 10 * units.Millisecond}}
}

// New returns the source for a configuration, or an error that names the invalid key.
func New(cfg Config, network Network) (Source, error) {
	kinds := 0
	for _, is := range []bool{cfg.List != nil, cfg.Poisson != nil, cfg.Incast != nil, cfg.AllToAll != nil,
		cfg.Permutation != nil, cfg.Collective != nil} {
		if is {
			kinds++
		}
	}
	switch {
	case kinds != 1:
		return nil, fmt.Errorf("%d of list, poisson, incast, all_to_all, permutation and collective are set; set one",
			kinds)
	case network.Hosts < 2 || network.Hosts > 1<<31-1:
		return nil, fmt.Errorf("a network of %d hosts; flows need two", network.Hosts)
	case cfg.Class >= classes:
		return nil, units.Wrong("class", "%d is not possible; classes are 0 to %d", cfg.Class, classes-1)
	case cfg.Start < 0:
		return nil, units.Wrong("start", "%v is negative", cfg.Start)
	}
	var src Source
	var err error
	key := "list"
	switch {
	case cfg.List != nil:
		src, err = newList(cfg, network)
	case cfg.Poisson != nil:
		key = "poisson"
		src, err = newPoisson(cfg, network)
	case cfg.Incast != nil:
		key = "incast"
		src, err = newIncast(cfg, network)
	case cfg.AllToAll != nil:
		key = "all_to_all"
		src, err = newAllToAll(cfg, network)
	case cfg.Collective != nil:
		key = "collective"
		src, err = newCollective(cfg, network)
	default:
		key = "permutation"
		src, err = newPermutation(cfg, network)
	}
	if err != nil {
		return nil, units.Within(key, err)
	}
	return src, nil
}

// sliceSource yields the flows of a slice.
type sliceSource struct {
	flows []Flow
}

// Slice returns a Source of the given flows, which it does not copy. They must be in order of their starts; see [Sort].
func Slice(flows []Flow) Source { return &sliceSource{flows} }

func (s *sliceSource) Next(f *Flow) error {
	if len(s.flows) == 0 {
		return io.EOF
	}
	*f = s.flows[0]
	s.flows = s.flows[1:]
	return nil
}

// Count returns the number of flows of this configuration on that many hosts, and whether it is known in advance.
func (c *Config) Count(hosts int) (n int, known bool) {
	part := func(named []int) int {
		if len(named) > 0 {
			return len(named)
		}
		return hosts
	}
	switch {
	case c.List != nil:
		return len(c.List), true
	case c.Incast != nil:
		return c.Incast.Fan * max(c.Incast.Rounds, 1), true
	case c.AllToAll != nil:
		k := part(c.AllToAll.Hosts)
		return k * (k - 1), true
	case c.Permutation != nil:
		return part(c.Permutation.Hosts), true
	case c.Collective != nil:
		if src, err := newCollective(*c, Network{Hosts: hosts}); err == nil {
			return src.(*Chorus).flows(), true
		}
	}
	return 0, false
}

// Collect reads src to its end into memory.
func Collect(src Source) ([]Flow, error) {
	var flows []Flow
	var f Flow
	for {
		switch err := src.Next(&f); err {
		case nil:
			flows = append(flows, f)
		case io.EOF:
			return flows, nil
		default:
			return flows, err
		}
	}
}
