package nvmf

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"farflash/numeric/units"
	"farflash/sim"
)

// Several paths from an initiator to a target, each a controller of its own, as in Linux' multipath of NVMe
// (drivers/nvme/host/multipath.c). A path is a pair of network cards. All drives of a target share its paths. Commands
// of a path that is lost go to the others at once, however often they were sent before; while no path can take them
// they wait, as long as one lives or may return. The drives execute a write twice whose answer was lost with its path.

// mostPaths is the largest number of paths between an initiator and a target.
const mostPaths = 16

// mostAttempts is how often a command with several paths is sent before the run ends with an error. Linux goes on for
// ever where no command ends within its time limit.
const mostAttempts = 200

// MostControllers is the largest number of controllers of all initiators at all targets.
const MostControllers = 1 << 24

// Multipath is the paths from an initiator to a target. Each is a controller over a pair of network cards
// (place.initiator_nics, place.target_nics): path k is over the k-th ones of both, from the first one on again on
// the side with fewer. Paths beyond the larger number are over the other pairs.
type Multipath struct {
	Paths int // Paths is their number. 0: the network cards of the side with more.
	// Policy is how an initiator chooses among optimized paths, or without any among the others.
	Policy PathPolicy
	// Throughput lists the paths' relative throughputs for service-time; without a list they are equal.
	Throughput []int
	// ANA lists changes of states (asymmetric namespace access). Paths are optimized at first.
	ANA []PathChange
}

// PathPolicy is how an initiator chooses a path.
type PathPolicy uint8

const (
	NUMA           PathPolicy = iota // the first one, as Linux' default does on one node
	TurnPaths                        // in turn, for each drive
	FewestCommands                   // the one with the fewest commands (Linux 6.11)
	ServiceTime                      // the one with the least data over its throughput (dm-multipath)
)

var pathPolicies = units.Names[PathPolicy]{"numa", "round-robin", "queue-depth", "service-time"}

func (p PathPolicy) String() string { return pathPolicies.Name(p) }

func (p PathPolicy) MarshalText() ([]byte, error) { return pathPolicies.Marshal(p) }

func (p *PathPolicy) UnmarshalText(text []byte) error { return pathPolicies.Unmarshal(text, p) }

// PathChange is a new state of a path at a target.
type PathChange struct {
	Path    int            // Path is its number.
	Targets []int          // Targets lists targets by number; without a list, all.
	At      units.Duration // At is when its state changes.
	State   PathState      // State is the new one.
}

// PathState is the state of a path's group (NVM Express 2.0, 8.1).
type PathState uint8

const (
	Optimized    PathState = iota // used first
	NonOptimized                  // used if none is optimized
	Inaccessible                  // the target refuses commands
)

var pathStates = units.Names[PathState]{"optimized", "non-optimized", "inaccessible"}

func (p PathState) String() string { return pathStates.Name(p) }

func (p PathState) MarshalText() ([]byte, error) { return pathStates.Marshal(p) }

func (p *PathState) UnmarshalText(text []byte) error { return pathStates.Unmarshal(text, p) }

func (m *Multipath) validate() error {
	var bad units.Faults
	bad.Hold(m.Paths >= 0 && m.Paths <= mostPaths, "paths",
		"%d is not possible; use 1 to %d, or 0 for one a network card", m.Paths, mostPaths)
	for i, x := range m.Throughput {
		bad.Hold(x >= 1 && x <= 100, fmt.Sprintf("throughput[%d]", i), "%d is not possible; use 1 to 100", x)
	}
	for i, c := range m.ANA {
		at := fmt.Sprintf("ana[%d]", i)
		bad.Hold(c.Path >= 0 && c.Path < mostPaths, at+".path", "%d is not possible; use 0 to %d", c.Path, mostPaths-1)
		bad.Hold(c.At >= 0, at+".at", "%v is not possible; use 0s or later", c.At)
	}
	return bad.Err()
}

// Fits returns the number of paths with the given numbers of network cards, or an error with its key if the settings do
// not fit them and the number of targets.
func (m *Multipath) Fits(initiatorNICs, targetNICs, targets int) (paths int, err error) {
	var bad units.Faults
	if paths = m.Paths; paths == 0 {
		paths = max(initiatorNICs, targetNICs)
	}
	bad.Hold(paths <= initiatorNICs*targetNICs, "paths",
		"%d is not possible with initiator_nics %d times target_nics %d; use up to %d, or more place.target_nics", paths,
		initiatorNICs, targetNICs, initiatorNICs*targetNICs)
	bad.Hold(paths <= mostPaths, "paths", "%d network cards would have a path each; use paths: %d", paths, mostPaths)
	bad.Hold(len(m.Throughput) == 0 || len(m.Throughput) == paths, "throughput",
		"%d values for %d paths; use one for each", len(m.Throughput), paths)
	bad.Hold(len(m.Throughput) == 0 || m.Policy == ServiceTime, "throughput",
		"only policy service-time uses it, and the policy is %v; leave it out", m.Policy)
	for i, c := range m.ANA {
		at := fmt.Sprintf("ana[%d]", i)
		bad.Hold(c.Path < paths, at+".path", "there is no path %d; use 0 to %d", c.Path, paths-1)
		for k, t := range c.Targets {
			bad.Hold(t >= 0 && t < targets, fmt.Sprintf("%s.targets[%d]", at, k),
				"there is no target %d; use 0 to %d", t, targets-1)
		}
	}
	return paths, bad.Err()
}

// Strands returns a target that has no path in the end, and the change that takes its last one; -1 if there is none.
// Commands to it then wait for ever, as those of Linux do while a controller is there.
func (m *Multipath) Strands(paths, targets int) (change, target int) {
	order := make([]int, len(m.ANA))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(m.ANA[a].At, m.ANA[b].At) })
	for t := range targets {
		last, open := -1, make([]bool, paths)
		for k := range open {
			open[k] = true
		}
		for _, i := range order {
			if c := &m.ANA[i]; len(c.Targets) == 0 || slices.Contains(c.Targets, t) {
				if open[c.Path] && c.State == Inaccessible {
					last = i
				}
				open[c.Path] = c.State != Inaccessible
			}
		}
		if !slices.Contains(open, true) {
			return last, t
		}
	}
	return -1, -1
}

// head is what an initiator knows of the paths to a target together.
type head struct {
	waiting list // commands that no path can take
	kicked  bool // evKick is due
	begun   bool // some command was submitted
}

// route is a path as its initiator sees it.
type route struct {
	state   PathState // as of the log read last
	seen    PathState // in the log that is being read
	doubted bool      // a command was refused since
	reading bool      // the log is being read
	again   bool      // and is to be read again
	timed   bool      // the timer exists
	late    sim.Timer // the limit of reading it
	active  int32     // commands in flight or waiting for a queue pair's place
	bytes   int64     // their data
	used    uint64    // when it was chosen last
	totals  PathTotals
}

// PathTotals counts a path's commands.
type PathTotals struct {
	Commands  uint64 // Commands counts those sent to the path, or waiting for a place in its queue pairs.
	Failovers uint64 // Failovers counts those that left it, because it was lost.
	Refused   uint64 // Refused counts those that a target refused because of the path's state.
	Losses    uint64 // Losses counts how often initiators lost it.
}

// settle allocates the tables of connections, whose sizes the machines decide. No machine can be added then.
func (s *System) settle() {
	if s.conns != nil {
		return
	}
	pairs := len(s.initiators) * len(s.targets)
	s.settlePaths(pairs)
	s.conns = make([]connection, pairs*int(s.paths)*s.cfg.QueuePairs)
	s.turns = make([]uint16, pairs*int(s.paths))
	s.ctrls = make([]controller, pairs*int(s.paths))
	if s.cfg.KeepAliveTimer != NoTimer && s.abandoner != nil {
		s.vigils = make([]vigil, len(s.ctrls))
	}
	s.makeGates()
	many := int(s.paths) * s.cfg.QueuePairs
	for i := range s.initiators {
		s.makeCores(&s.initiators[i], int32(i), false, s.cfg.Initiator.Cores, len(s.targets)*many)
	}
	for i := range s.targets {
		s.makeCores(&s.targets[i].machine, int32(i), true, s.cfg.Target.Cores, len(s.initiators)*many)
	}
	s.initiating = makeSide(&s.cfg.Initiator, s.initiators[0].many)
	s.serving = makeSide(&s.cfg.Target, s.targets[0].many)
}

// settlePaths allocates the tables of paths, if there are several or their states change.
func (s *System) settlePaths(pairs int) {
	s.paths = 1
	if len(s.initiators) == 0 || len(s.targets) == 0 {
		return
	}
	a, b := s.initiators[0].nics(), s.targets[0].nics()
	for i := range s.initiators {
		if s.initiators[i].nics() != a {
			s.fail(fmt.Errorf("nvmf: initiator %d has %d network cards, and initiator 0 has %d", i,
				s.initiators[i].nics(), a))
			return
		}
	}
	for i := range s.targets {
		if s.targets[i].nics() != b {
			s.fail(fmt.Errorf("nvmf: target %d has %d network cards, and target 0 has %d", i, s.targets[i].nics(), b))
			return
		}
	}
	n, err := s.cfg.Multipath.Fits(a, b, len(s.targets))
	switch {
	case err != nil:
		s.fail(fmt.Errorf("nvmf: multipath: %w", err))
		return
	case n == 1 && len(s.cfg.Multipath.ANA) == 0:
		return
	case pairs*n > MostControllers:
		s.fail(fmt.Errorf("nvmf: %d controllers are not possible; use %d at most", pairs*n, MostControllers))
		return
	case !s.own || !s.protocol.Capsules() || s.abandoner == nil:
		s.fail(errors.New("nvmf: several paths need persistent queue pairs that can end"))
		return
	}
	s.paths = int32(n)
	s.heads = make([]head, pairs)
	s.routes = make([]route, pairs*n)
	s.access = make([]PathState, len(s.targets)*n)
	if s.cfg.Multipath.Policy == TurnPaths {
		s.current = make([]int8, len(s.initiators)*len(s.drives))
		for i := range s.current {
			s.current[i] = -1
		}
	}
}

// ends returns the initiator and the target of a controller.
func (s *System) ends(n int32) (initiator, target int32) {
	pair := n / s.paths
	return pair / int32(len(s.targets)), pair % int32(len(s.targets))
}

// nodes returns the network cards of a controller: both sides' of the path's number, from the first one on again. After
// all pairs that this makes, those one further at the target follow.
func (s *System) nodes(n int32) (from, to int32) {
	initiator, target := s.ends(n)
	i, t, k := &s.initiators[initiator], &s.targets[target].machine, int(n%s.paths)
	a, b := i.nics(), t.nics()
	turn := a
	for turn%b != 0 {
		turn += a
	}
	return i.nic(k % a), t.nic((k + k/turn) % b)
}

// InitiatorNICs returns the nodes of an initiator's network cards.
func (s *System) InitiatorNICs(i int32) []int32 {
	exists("initiator", i, len(s.initiators))
	return append([]int32{s.initiators[i].node}, s.initiators[i].more...)
}

// TargetNICs returns the nodes of a target's network cards.
func (s *System) TargetNICs(i int32) []int32 {
	exists("target", i, len(s.targets))
	return append([]int32{s.targets[i].node}, s.targets[i].more...)
}

// Paths returns the number of paths from an initiator to a target, once a command was submitted.
func (s *System) Paths() int { return max(int(s.paths), 1) }

// PathNodes returns the nodes of a path from an initiator to a target, which must exist.
func (s *System) PathNodes(initiator, target int32, path int) (from, to int32) {
	exists("initiator", initiator, len(s.initiators))
	exists("target", target, len(s.targets))
	exists("path", int32(path), s.Paths())
	if s.paths == 0 {
		return s.initiators[initiator].node, s.targets[target].node
	}
	return s.nodes(s.pair(initiator, target)*s.paths + int32(path))
}

// PathTotals returns the totals of a path over all initiators and targets; false if there is only one.
func (s *System) PathTotals(path int) (PathTotals, bool) {
	var sum PathTotals
	if s.heads == nil {
		return sum, false
	}
	exists("path", int32(path), s.Paths())
	for i := path; i < len(s.routes); i += int(s.paths) {
		t := &s.routes[i].totals
		sum.Commands += t.Commands
		sum.Failovers += t.Failovers
		sum.Refused += t.Refused
		sum.Losses += t.Losses
	}
	return sum, true
}

// Stranded returns the number of commands that no path can take.
func (s *System) Stranded() int {
	n := 0
	for i := range s.heads {
		n += int(s.heads[i].waiting.n)
	}
	return n
}

// standing is a path's state if it is usable.
func (s *System) standing(n int32) (PathState, bool) {
	r := &s.routes[n]
	return r.state, s.ctrls[n].state == live && !r.doubted && r.state != Inaccessible
}

// choose returns the path for a command, -1 if none is usable.
func (s *System) choose(pair int32, x *command) int32 {
	switch s.cfg.Multipath.Policy {
	case TurnPaths:
		now := &s.current[int(x.initiator)*len(s.drives)+int(x.drive)]
		if *now = s.nextInTurn(pair, *now); *now >= 0 {
			return int32(*now)
		}
		return -1
	case FewestCommands, ServiceTime:
		return s.leastLoaded(pair, x.req.Length)
	}
	return s.firstPath(pair)
}

// firstPath returns the first optimized path, or the first usable one.
func (s *System) firstPath(pair int32) int32 {
	found := int32(-1)
	for p := range s.paths {
		switch state, ok := s.standing(pair*s.paths + p); {
		case ok && state == Optimized:
			return p
		case ok && found < 0:
			found = p
		}
	}
	return found
}

// nextInTurn returns the optimized path that follows one; without any, as Linux does, the last of the others in this
// order, which is a turn as well.
func (s *System) nextInTurn(pair int32, old int8) int8 {
	if old < 0 {
		return int8(s.firstPath(pair))
	}
	found := int8(-1)
	for k := int32(1); k < s.paths; k++ {
		p := (int32(old) + k) % s.paths
		switch state, ok := s.standing(pair*s.paths + p); {
		case ok && state == Optimized:
			return int8(p)
		case ok:
			found = int8(p)
		}
	}
	if state, ok := s.standing(pair*s.paths + int32(old)); ok && (state == Optimized || found < 0) {
		return old
	}
	return found
}

// leastLoaded returns the path that carries least, for a command with a number of bytes.
func (s *System) leastLoaded(pair int32, size int64) int32 {
	best, better := int32(-1), Inaccessible
	for p := range s.paths {
		state, ok := s.standing(pair*s.paths + p)
		if ok && (best < 0 || state < better || state == better && s.lighter(pair, p, best, size)) {
			best, better = p, state
		}
	}
	return best
}

// lighter reports whether a path carries less than another for a command with a number of bytes.
func (s *System) lighter(pair, p, than int32, size int64) bool {
	a, b := &s.routes[pair*s.paths+p], &s.routes[pair*s.paths+than]
	if s.cfg.Multipath.Policy == FewestCommands {
		return a.active < b.active
	}
	fast, other := int64(1), int64(1)
	if list := s.cfg.Multipath.Throughput; len(list) > 0 {
		fast, other = int64(list[p]), int64(list[than])
	}
	if x, y := (a.bytes+size)*other, (b.bytes+size)*fast; x != y {
		return x < y
	}
	return fast > other || fast == other && a.used < b.used
}

// route sends a command along a path, or has it wait for one. With no hope of a path it fails.
func (s *System) route(c int32) {
	x := s.commands.At(c)
	pair := s.pair(x.initiator, x.target)
	h := &s.heads[pair]
	if !h.begun {
		h.begun = true
		for n := pair * s.paths; n < (pair+1)*s.paths; n++ {
			s.routes[n].state = s.stateOf(n)
			s.begins(n)
		}
	}
	if x.retries >= mostAttempts {
		s.fail(units.Wrong("host.io_timeout", "%v is too short: initiator %d has sent a command to target %d %d times, and "+
			"lost the path each time; use more", s.cfg.Host.IOTimeout, x.initiator, x.target, x.retries))
		return
	}
	p := s.choose(pair, x)
	if p < 0 {
		x.conn = pair * s.paths * int32(s.cfg.QueuePairs) // whose core fails it
		if !s.hopeful(pair) {
			s.failSoon(c)
			return
		}
		s.push(&h.waiting, c)
		if !x.parked {
			x.parked = true
			s.Counters.HeldForPath++
		}
		return
	}
	n := pair*s.paths + p
	conn, err := s.nextConn(n)
	if err != nil {
		s.fail(fmt.Errorf("initiator %d to target %d, path %d: %w", x.initiator, x.target, p, err))
		return
	}
	r := &s.routes[n]
	s.chosen++
	r.used = s.chosen
	r.active++
	r.bytes += x.req.Length
	r.totals.Commands++
	x.conn, x.routed = conn, true
	s.place(c)
}

// unroute takes a command off its path.
func (s *System) unroute(x *command) {
	if x.routed {
		x.routed = false
		r := &s.routes[x.conn/int32(s.cfg.QueuePairs)]
		r.active--
		r.bytes -= x.req.Length
	}
}

// hopeful reports whether a path lives, or may return before its commands fail (nvme_available_path).
func (s *System) hopeful(pair int32) bool {
	for n := pair * s.paths; n < (pair+1)*s.paths; n++ {
		if k := &s.ctrls[n]; !k.gone && !k.failing {
			return true
		}
	}
	return false
}

// abandonPath sends a lost path's commands elsewhere: gone are those sent again, in their order, which those follow
// that waited for a place.
func (s *System) abandonPath(n int32) {
	h := &s.heads[n/s.paths]
	r := &s.routes[n]
	r.totals.Losses++
	if r.reading {
		r.reading = false
		s.eng.Disarm(r.late)
	}
	first := n * int32(s.cfg.QueuePairs)
	for i := first; i < first+int32(s.cfg.QueuePairs); i++ {
		for q := &s.conns[i]; q.waiting.n > 0; {
			c := s.pop(&q.waiting)
			s.unroute(s.commands.At(c))
			r.totals.Failovers++
			s.push(&h.waiting, c)
		}
	}
	initiator, target := s.ends(n)
	if s.current != nil {
		for _, d := range s.targets[target].drives {
			s.notCurrent(initiator, d, n%s.paths)
		}
	}
	s.kick(n)
}

// notCurrent makes the turns of a drive's paths begin anew if a path was the last one.
func (s *System) notCurrent(initiator, drive, path int32) {
	if s.current == nil {
		return
	}
	if now := &s.current[int(initiator)*len(s.drives)+int(drive)]; int32(*now) == path {
		*now = -1
	}
}

// kick has the commands that wait for a path of a controller's target look for one again, which Linux does in a thread
// of its own.
func (s *System) kick(n int32) {
	pair := n / s.paths
	if h := &s.heads[pair]; !h.kicked && h.waiting.n > 0 {
		h.kicked = true
		s.eng.Schedule(s.self, s.target, s.eng.Now(), evKick, uint32(pair))
	}
}

// kickNow routes the commands that wait for a path.
func (s *System) kickNow(pair int32) {
	h := &s.heads[pair]
	h.kicked = false
	old := h.waiting
	h.waiting = list{}
	for old.n > 0 {
		s.route(s.pop(&old))
	}
}

// checkPaths reports wrong counts of commands by path, or commands that wait although a path is usable.
func (s *System) checkPaths() error {
	if s.heads == nil {
		return nil
	}
	sum := make([]route, len(s.routes))
	s.commands.Each(func(_ int32, x *command) {
		if x.routed {
			r := &sum[x.conn/int32(s.cfg.QueuePairs)]
			r.active++
			r.bytes += x.req.Length
		}
	})
	for n := range s.routes {
		if a, b := &s.routes[n], &sum[n]; a.active != b.active || a.bytes != b.bytes {
			return fmt.Errorf("path %d: %d commands with %d bytes, but %d and %d are counted", n, b.active, b.bytes,
				a.active, a.bytes)
		}
	}
	for i := range s.heads {
		if h := &s.heads[i]; h.waiting.n > 0 && !h.kicked && s.firstPath(int32(i)) >= 0 {
			return fmt.Errorf("%d commands wait for a path, and path %d is usable", h.waiting.n, s.firstPath(int32(i)))
		}
	}
	return nil
}

// nics returns the number of a machine's network cards.
func (m *machine) nics() int { return 1 + len(m.more) }

// nic returns the node of one.
func (m *machine) nic(k int) int32 {
	if k == 0 {
		return m.node
	}
	return m.more[k-1]
}
