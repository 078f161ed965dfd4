package flows

import (
	"errors"
	"fmt"
	"io"

	"farflash/numeric/rng"
	"farflash/numeric/units"
)

// Incast is many hosts sending to one at the same time, in one or several rounds. The senders of each round are drawn
// at random.
type Incast struct {
	// Fan is the number of senders in a round.
	Fan int `yaml:"fan"`
	// Size is the amount of data that each of them sends.
	Size units.Bytes `yaml:"size"`
	// Rounds is the number of rounds. 0 is one.
	Rounds int `yaml:"rounds,omitempty"`
	// Every is the time from the start of one round to the start of the next.
	Every units.Duration `yaml:"every,omitempty"`
	// Target is the host that receives.
	Target int `yaml:"target,omitempty"`
	// Rotating makes the next host the target of the next round.
	Rotating bool `yaml:"rotating,omitempty"`
}

// AllToAll is every host sending to every other at the same time.
type AllToAll struct {
	// Size is the amount of data from each host to each other.
	Size units.Bytes `yaml:"size"`
	// Hosts are the participants; all hosts by default.
	Hosts []int `yaml:"hosts,omitempty"`
}

// Permutation is every host sending to one host and receiving from another at the same time, in a ring of random order.
type Permutation struct {
	// Size is the amount of data that each host sends.
	Size units.Bytes `yaml:"size"`
	// Hosts are the participants; all hosts by default.
	Hosts []int `yaml:"hosts,omitempty"`
}

// hostsOf validates the participants, two or more; if none is named, all participate.
func hostsOf(named []int, network Network) ([]int32, error) {
	if len(named) == 0 {
		hosts := make([]int32, network.Hosts)
		for i := range hosts {
			hosts[i] = int32(i)
		}
		return hosts, nil
	}
	hosts := make([]int32, len(named))
	seen := make(map[int]bool, len(named))
	for i, h := range named {
		key := fmt.Sprintf("hosts[%d]", i)
		switch {
		case h < 0 || h >= network.Hosts:
			return nil, units.Wrong(key, "no host %d; the network has 0 to %d", h, network.Hosts-1)
		case seen[h]:
			return nil, units.Wrong(key, "host %d is named twice", h)
		}
		seen[h] = true
		hosts[i] = int32(h)
	}
	if len(hosts) < 2 {
		return nil, units.Wrong("hosts", "only host %d takes part; flows need two", hosts[0])
	}
	return hosts, nil
}

func checkSize(size units.Bytes) error {
	if size <= 0 {
		return units.Wrong("size", "%d bytes are not possible; a flow has at least one", int64(size))
	}
	return nil
}

func newList(cfg Config, network Network) (Source, error) {
	if len(cfg.List) == 0 {
		return nil, errors.New("it has no flow")
	}
	flows, waits := make([]Flow, 0, len(cfg.List)), false
	for i, e := range cfg.List {
		at := fmt.Sprintf("[%d]", i)
		switch {
		case e.Src < 0 || e.Src >= network.Hosts:
			return nil, units.Wrong(at+".src", "no host %d; the network has 0 to %d", e.Src, network.Hosts-1)
		case e.Dst < 0 || e.Dst >= network.Hosts:
			return nil, units.Wrong(at+".dst", "no host %d; the network has 0 to %d", e.Dst, network.Hosts-1)
		case e.Src == e.Dst:
			return nil, units.Wrong(at+".dst", "host %d sends to itself", e.Dst)
		case e.Class >= classes:
			return nil, units.Wrong(at+".class", "%d is not possible; classes are 0 to %d", e.Class, classes-1)
		case e.Start < 0 || e.Start > units.Forever-cfg.Start:
			return nil, units.Wrong(at+".start", "%v is not possible", e.Start)
		}
		if err := checkSize(e.Size); err != nil {
			return nil, units.Within(at, err)
		}
		flows = append(flows, Flow{int32(e.Src), int32(e.Dst), e.Class, e.Size, cfg.Start + e.Start, 0, 0})
		waits = waits || len(e.After) > 0
	}
	if waits {
		return newSequel(cfg.List, flows)
	}
	Sort(flows)
	return Slice(flows), nil
}

// incast yields the rounds.
type incast struct {
	cfg     Incast
	senders rng.Stream
	hosts   []int32 // a permutation; the first sent ones were drawn in this round
	sent    int
	round   int
	flow    Flow // template for this round
}

func newIncast(cfg Config, network Network) (Source, error) {
	c := *cfg.Incast
	switch {
	case c.Fan < 1:
		return nil, units.Wrong("fan", "%d is not possible; at least one host sends", c.Fan)
	case c.Fan > network.Hosts-1:
		return nil, units.Wrong("fan", "%d is not possible; of %d hosts, at most %d can send to one", c.Fan,
			network.Hosts, network.Hosts-1)
	case c.Rounds < 0:
		return nil, units.Wrong("rounds", "%d is negative", c.Rounds)
	case c.Every < 0:
		return nil, units.Wrong("every", "%v is negative", c.Every)
	case c.Rounds > 1 && c.Every == 0:
		return nil, units.Wrong("every", "%d rounds would be at the same time; set every, the time between them",
			c.Rounds)
	case c.Rounds > 1 && c.Every > (units.Forever-cfg.Start)/units.Duration(c.Rounds):
		return nil, units.Wrong("every", "%d rounds of %v end past the end of the clock", c.Rounds, c.Every)
	case c.Target < 0 || c.Target >= network.Hosts:
		return nil, units.Wrong("target", "no host %d; the network has 0 to %d", c.Target, network.Hosts-1)
	}
	if err := checkSize(c.Size); err != nil {
		return nil, err
	}
	c.Rounds = max(c.Rounds, 1)
	hosts, err := hostsOf(nil, network)
	if err != nil {
		return nil, err
	}
	return &incast{
		cfg: c, hosts: hosts, senders: rng.NewStream(network.Seed, cfg.Name+"/incast/senders"),
		flow: Flow{Dst: int32(c.Target), Class: cfg.Class, Size: c.Size, Start: cfg.Start},
	}, nil
}

func (s *incast) Next(f *Flow) error {
	if s.sent == s.cfg.Fan {
		s.sent = 0
		s.round++
		if s.round < s.cfg.Rounds {
			s.flow.Start += s.cfg.Every
			if s.cfg.Rotating {
				s.flow.Dst = int32((int(s.flow.Dst) + 1) % len(s.hosts))
			}
		}
	}
	if s.round >= s.cfg.Rounds {
		return io.EOF
	}
	if s.sent == 0 {
		s.setTargetLast()
	}
	last := len(s.hosts) - 1
	i := s.sent + int(s.senders.IntN(int64(last-s.sent)))
	s.hosts[i], s.hosts[s.sent] = s.hosts[s.sent], s.hosts[i]
	*f = s.flow
	f.Src = s.hosts[s.sent]
	s.sent++
	return nil
}

// setTargetLast moves the target to the end of the hosts, where it is not drawn.
func (s *incast) setTargetLast() {
	last := len(s.hosts) - 1
	for i, h := range s.hosts {
		if h == s.flow.Dst {
			s.hosts[i], s.hosts[last] = s.hosts[last], s.hosts[i]
			return
		}
	}
}

// allToAll yields the flows shift by shift: first from every host to the next, then to the one after that, and so on.
type allToAll struct {
	hosts []int32
	flow  Flow
	i     int
	shift int
}

func newAllToAll(cfg Config, network Network) (Source, error) {
	if err := checkSize(cfg.AllToAll.Size); err != nil {
		return nil, err
	}
	hosts, err := hostsOf(cfg.AllToAll.Hosts, network)
	if err != nil {
		return nil, err
	}
	return &allToAll{hosts: hosts, shift: 1, flow: Flow{Class: cfg.Class, Size: cfg.AllToAll.Size, Start: cfg.Start}},
		nil
}

func (s *allToAll) Next(f *Flow) error {
	n := len(s.hosts)
	if s.i == n {
		s.i = 0
		s.shift++
	}
	if s.shift >= n {
		return io.EOF
	}
	*f = s.flow
	f.Src, f.Dst = s.hosts[s.i], s.hosts[(s.i+s.shift)%n]
	s.i++
	return nil
}

// newPermutation draws a ring (Sattolo's shuffle), so that no host sends to itself.
func newPermutation(cfg Config, network Network) (Source, error) {
	if err := checkSize(cfg.Permutation.Size); err != nil {
		return nil, err
	}
	hosts, err := hostsOf(cfg.Permutation.Hosts, network)
	if err != nil {
		return nil, err
	}
	stream := rng.NewStream(network.Seed, cfg.Name+"/permutation")
	to := make([]int32, len(hosts))
	copy(to, hosts)
	for i := len(to) - 1; i > 0; i-- {
		j := int(stream.IntN(int64(i)))
		to[i], to[j] = to[j], to[i]
	}
	flows := make([]Flow, len(hosts))
	for i, h := range hosts {
		flows[i] = Flow{h, to[i], cfg.Class, cfg.Permutation.Size, cfg.Start, 0, 0}
	}
	return Slice(flows), nil
}
