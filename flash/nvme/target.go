package nvme

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"farflash/flash/nbd"
	"farflash/flash/nvme/chap"
	"farflash/flash/nvme/wire"
)

// Target is the subsystems of a server and the associations with them. It is safe for concurrent use. Its lock may be
// taken while a queue's calls are serialized by the driver, but not the other way round: it calls a Peer only.
type Target struct {
	cfg Config

	mu         sync.Mutex
	subsystems []*subsystem
	generation uint64 // of the discovery log
	states     map[uint16]wire.State
	changes    uint64 // of the ANA log
	next       uint16 // controller identifier
	alive      map[uint16]*controller
	dying      []*controller // their queues are not settled yet
	held       []*Queue      // whose Connect waits for a dying controller
	later      []func()      // to call without the lock
}

// subsystem is a Subsystem with the counters of its queues that are closed.
type subsystem struct {
	Subsystem
	stats stats
}

// stats are counters of commands and bytes.
type stats struct{ reads, writes, read, written, failed uint64 }

// counters are the stats of a queue, which other goroutines read.
type counters struct{ reads, writes, read, written, failed atomic.Uint64 }

func (s *stats) add(c *counters) {
	s.reads += c.reads.Load()
	s.writes += c.writes.Load()
	s.read += c.read.Load()
	s.written += c.written.Load()
	s.failed += c.failed.Load()
}

// space is a namespace as one association uses it.
type space struct {
	Namespace
	host    string
	blocks  uint64
	once    sync.Once // of open
	export  nbd.Export
	err     error
	settled atomic.Bool  // export or err is set
	removed atomic.Bool  // no task starts any more
	left    atomic.Bool  // the export's Leave has been called
	refs    atomic.Int32 // outstanding commands, and one until the namespace is removed
}

// errRemoved is the error of opening a namespace that was removed.
var errRemoved = errors.New("nvme: the namespace is removed")

func newSpace(n Namespace, block int, host string) *space {
	s := &space{Namespace: n, host: host, blocks: n.Size / uint64(block)}
	s.refs.Store(1)
	return s
}

// hold keeps the export open, once it is, until release. It reports false if the last use has ended.
func (s *space) hold() bool {
	for {
		n := s.refs.Load()
		if n == 0 || s.refs.CompareAndSwap(n, n+1) {
			return n > 0
		}
	}
}

// open opens the export, or waits until it is open. The caller has acquired the namespace.
func (s *space) open() error {
	s.once.Do(func() {
		if s.err = errRemoved; !s.removed.Load() {
			s.export, s.err = s.Open(s.host)
		}
		if s.err == nil && s.export.Volume.Size() < s.Size {
			s.err = fmt.Errorf("nvme: namespace %d has %d bytes, its volume %d", s.ID, s.Size, s.export.Volume.Size())
			s.shut(s.export.Close)
			s.export = nbd.Export{}
		}
		s.settled.Store(true)
		if s.removed.Load() {
			s.leave()
		}
	})
	return s.err
}

// leave makes the export's queued tasks fail.
func (s *space) leave() {
	if s.settled.Load() && s.left.CompareAndSwap(false, true) {
		s.shut(s.export.Leave)
	}
}

func (s *space) shut(f func()) {
	if f != nil {
		f()
	}
}

// release ends a use of the export.
func (s *space) release() {
	if s.refs.Add(-1) == 0 {
		s.shut(s.export.Close)
	}
}

// remove makes the export's queued tasks fail, and closes it after the last one. It does not wait for the export to
// open.
func (s *space) remove() {
	s.hurry()
	s.release()
}

// hurry makes the export's queued tasks fail, if there are any, and lets no other start.
func (s *space) hurry() {
	if s.hold() {
		s.removed.Store(true)
		s.leave()
		s.release()
	}
}

// view is the namespaces of an association, by their identifiers.
type view struct{ spaces []*space }

func (v *view) find(id uint32) *space {
	if v == nil || uint64(id) >= uint64(len(v.spaces)) {
		return nil
	}
	return v.spaces[id]
}

// use acquires the namespace with an identifier, for a command. The one that it names may be replaced at the same time.
func (c *controller) use(id uint32) (*space, wire.Status) {
	for {
		x := c.view.Load().find(id)
		switch {
		case x == nil:
			return nil, wire.InvalidNamespace | wire.NoRetry
		case x.Inaccessible:
			return nil, wire.PathInaccessible
		}
		if x.hold() {
			return x, 0
		}
		if c.view.Load().find(id) == x { // the association ends
			return nil, wire.InvalidNamespace | wire.NoRetry
		}
	}
}

// notices are the events of a controller, and the logs that explain them.
var notices = [...]struct {
	event  wire.Event
	enable uint32
}{{wire.NamespacesChanged, wire.EventNamespace}, {wire.ANAChanged, wire.EventANA},
	{wire.DiscoveryChanged, wire.EventDiscovery}}

// maxChanged is the number of entries in the log of changed namespaces; more are given as one of all ones.
const maxChanged = wire.IdentifySize / 4

// controller is one association.
type controller struct {
	id        uint16
	subsystem *subsystem // nil: the discovery subsystem
	port      uint16
	host      string
	hostID    [16]byte

	view    atomic.Pointer[view]
	state   atomic.Uint32 // wire.State
	enabled atomic.Bool   // I/O queues may be used
	heard   atomic.Bool   // a command has arrived since the last Tick
	proved  atomic.Bool   // the host need not prove any more who it is

	// The remaining fields are guarded by the target's mu.
	cc, csts   uint32
	keepAlive  uint32 // ms
	deadline   int64  // of the keep-alive timer; 0: not started
	events     uint32 // enabled
	pending    [len(notices)]bool
	masked     [len(notices)]bool // until its log is read
	requests   []uint16           // outstanding Asynchronous Event Requests
	changed    []uint32
	parting    []*space // replaced in the view, with commands outstanding
	granted    int      // I/O queues
	queues     []*Queue // by identifier
	dead       bool
	errors     [errorEntries]wire.ErrorEntry
	errorCount uint64
}

// New returns a target.
func New(cfg Config) (*Target, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	t := &Target{cfg: cfg, generation: 1, states: map[uint16]wire.State{}, next: cfg.First,
		alive: map[uint16]*controller{}}
	for _, s := range cfg.Subsystems {
		if err := t.Set(s); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// unlock releases the lock and runs what must be called without it.
func (t *Target) unlock() {
	later := t.later
	t.later = nil
	t.mu.Unlock()
	for _, f := range later {
		f()
	}
}

// Set adds a subsystem, or changes that of the same name. Hosts that are connected learn which namespaces were added,
// removed, resized or inaccessible. A namespace whose size, UUID or right changes is opened again; commands on the
// earlier one complete, unless it is removed. A namespace of a connected host cannot become smaller: the host would not
// protect the data beyond.
func (t *Target) Set(s Subsystem) error {
	if err := t.cfg.checkSubsystem(&s); err != nil {
		return err
	}
	s.Namespaces, s.Hosts = slices.Clone(s.Namespaces), slices.Clone(s.Hosts)
	t.mu.Lock()
	defer t.unlock()
	old := t.find(s.Name)
	if old == nil {
		t.subsystems = append(t.subsystems, &subsystem{Subsystem: s})
		t.discovered()
		return nil
	}
	connected := slices.ContainsFunc(t.sorted(), func(c *controller) bool { return c.subsystem == old })
	for i := range s.Namespaces {
		n := &s.Namespaces[i]
		for j := range old.Namespaces {
			if o := &old.Namespaces[j]; connected && o.ID == n.ID && o.UUID == n.UUID && n.Size < o.Size {
				return fmt.Errorf("nvme: namespace %d of %s has %d bytes and cannot shrink to %d while a host is "+
					"connected; "+
					"disconnect it first", n.ID, s.Name, o.Size, n.Size)
			}
		}
	}
	old.Subsystem = s
	moved := false
	for _, c := range t.sorted() {
		if c.subsystem == old {
			changed, regrouped := t.look(c)
			if len(changed) > 0 {
				c.changed = merge(c.changed, changed)
				t.notice(c, 0)
			}
			if regrouped {
				moved = true
				t.notice(c, 1)
			}
		}
	}
	if moved {
		t.changes++
	}
	return nil
}

// Remove removes a subsystem, and ends the associations with it.
func (t *Target) Remove(name string) {
	t.mu.Lock()
	defer t.unlock()
	t.subsystems = slices.DeleteFunc(t.subsystems, func(s *subsystem) bool { return s.Name == name })
	for _, c := range t.sorted() {
		if c.subsystem != nil && c.subsystem.Name == name {
			t.kill(c, errors.New("nvme: the subsystem is removed"))
		}
	}
	t.discovered()
}

// SetState changes the state of all namespaces on a port. Hosts that are connected through it get an event.
func (t *Target) SetState(port uint16, state wire.State) {
	t.mu.Lock()
	defer t.unlock()
	t.states[port] = state
	t.changes++
	for _, c := range t.sorted() {
		if c.port == port && c.subsystem != nil {
			c.state.Store(uint32(state))
			t.notice(c, 1)
		}
	}
}

func (t *Target) stateOf(port uint16) wire.State {
	if s, ok := t.states[port]; ok {
		return s
	}
	return wire.Optimized
}

// discovered notifies discovery controllers of a change of the subsystems.
func (t *Target) discovered() {
	t.generation++
	for _, c := range t.sorted() {
		if c.subsystem == nil {
			t.notice(c, 2)
		}
	}
}

func (t *Target) find(name string) *subsystem {
	for _, s := range t.subsystems {
		if s.Name == name {
			return s
		}
	}
	return nil
}

// sorted returns the live controllers by identifier.
func (t *Target) sorted() []*controller {
	all := make([]*controller, 0, len(t.alive))
	for _, c := range t.alive {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *controller) int { return int(a.id) - int(b.id) })
	return all
}

// merge adds identifiers to a log of changed namespaces.
func merge(log, ids []uint32) []uint32 {
	if len(log) == 1 && log[0] == 0xffffffff {
		return log
	}
	for _, id := range ids {
		if !slices.Contains(log, id) {
			log = append(log, id)
		}
	}
	if slices.Sort(log); len(log) > maxChanged {
		return []uint32{0xffffffff}
	}
	return log
}

// look updates a controller's view of the namespaces. It returns the identifiers of those that differ, and whether the
// ANA group of one has changed, which is an event of its own.
func (t *Target) look(c *controller) (changed []uint32, regrouped bool) {
	old := c.view.Load()
	now := &view{}
	highest := uint32(0)
	for i := range c.subsystem.Namespaces {
		highest = max(highest, c.subsystem.Namespaces[i].ID)
	}
	now.spaces = make([]*space, highest+1)
	for _, n := range c.subsystem.Namespaces {
		x := old.find(n.ID)
		same := x != nil && x.Size == n.Size && x.UUID == n.UUID && x.ReadOnly == n.ReadOnly
		if same && x.Inaccessible == n.Inaccessible {
			now.spaces[n.ID] = x
			continue
		}
		now.spaces[n.ID] = newSpace(n, t.cfg.Block, c.host)
		if !same {
			changed = append(changed, n.ID)
		}
		regrouped = regrouped || x != nil && x.UUID == n.UUID && x.Inaccessible != n.Inaccessible
	}
	c.view.Store(now)
	if old == nil {
		return nil, false
	}
	c.parting = slices.DeleteFunc(c.parting, func(x *space) bool { return x.refs.Load() == 0 })
	for id, x := range old.spaces {
		switch y := now.find(uint32(id)); {
		case x == nil || x == y:
		case y != nil && x.UUID == y.UUID:
			c.parting = append(c.parting, x)
			t.later = append(t.later, x.release) // when the last command has ended
		default:
			t.later = append(t.later, x.remove)
			changed = append(changed, uint32(id))
		}
	}
	return changed, regrouped
}

// notice makes an event pending, and wakes the admin queue to report it.
func (t *Target) notice(c *controller, i int) {
	if c.events&notices[i].enable != 0 && !c.masked[i] {
		c.pending[i] = true
		if q := c.queues[0]; q != nil {
			q.peer.Wake()
		}
	}
}

// kill ends an association. Its queues are closed, and settle when their tasks are done.
func (t *Target) kill(c *controller, why error) {
	if c.dead {
		return
	}
	c.dead = true
	c.enabled.Store(false)
	delete(t.alive, c.id)
	t.dying = append(t.dying, c)
	for _, q := range c.queues {
		if q != nil {
			q.kill(why)
		}
	}
	if v := c.view.Load(); v != nil {
		for _, x := range v.spaces {
			if x != nil {
				t.later = append(t.later, x.remove)
			}
		}
	}
	for _, x := range c.parting {
		t.later = append(t.later, x.hurry)
	}
	t.settle(c)
}

// settle forgets a dead association without queues, and resumes the Connects that wait for it. With live ones, it
// completes a reset or shutdown once the I/O queues are gone.
func (t *Target) settle(c *controller) {
	io, all := false, c.queues[0] != nil
	for _, q := range c.queues[1:] {
		io = io || q != nil
	}
	if all = all || io; !io {
		if c.cc&wire.CCShutdown != 0 {
			c.csts = c.csts&^wire.CSTSShutdown | wire.CSTSShutdownOK
		}
		if c.cc&wire.CCEnable == 0 {
			c.csts &^= wire.CSTSReady
		}
	}
	if all || !c.dead {
		return
	}
	t.dying = slices.DeleteFunc(t.dying, func(x *controller) bool { return x == c })
	for _, q := range t.held {
		q.peer.Wake()
	}
}

// ended is called when a queue's connection has failed or was closed.
func (t *Target) ended(q *Queue) {
	t.mu.Lock()
	defer t.unlock()
	if c := q.controller; c != nil && q.id == 0 {
		t.kill(c, ErrEnded)
	}
}

// settled is called when a queue has no tasks any more.
func (t *Target) settled(q *Queue) {
	t.mu.Lock()
	defer t.unlock()
	t.held = slices.DeleteFunc(t.held, func(x *Queue) bool { return x == q })
	c := q.controller
	if c == nil {
		return
	}
	c.queues[q.id] = nil
	if c.subsystem != nil {
		c.subsystem.stats.add(&q.counters)
	}
	t.settle(c)
}

// Associations is the number of live associations, and of those whose commands have not finished yet.
func (t *Target) Associations() (alive, dying int) {
	t.mu.Lock()
	defer t.unlock()
	return len(t.alive), len(t.dying)
}

// Tick ends the associations whose host was not heard for its keep-alive timeout, and refuses Connects that have waited
// too long. A driver calls it about every half second, with the time in nanoseconds.
func (t *Target) Tick(now int64) {
	t.mu.Lock()
	defer t.unlock()
	for _, c := range t.sorted() {
		switch {
		case c.keepAlive == 0 || c.cc&wire.CCEnable == 0:
			c.deadline = 0
		case c.heard.Swap(false) || c.deadline == 0:
			c.deadline = now + int64(c.keepAlive)*1e6 + t.cfg.Grace
		case now > c.deadline:
			t.kill(c, fmt.Errorf("nvme: host %s was not heard for its keep-alive timeout of %d ms", c.host,
				c.keepAlive))
		}
	}
	for _, q := range t.held {
		if q.patience == 0 {
			q.patience = now + t.cfg.Grace
		} else if now > q.patience {
			q.late.Store(true)
			q.peer.Wake()
		}
	}
}

// offset encodes the place of a wrong parameter of Connect, in its data or in the command (Base 6.3).
func offset(at int, data bool) uint64 {
	if data {
		return uint64(at) | 1<<16
	}
	return uint64(at)
}

// connect makes a queue part of an association. With wait set, an earlier association of the host has not ended yet.
func (t *Target) connect(q *Queue, x wire.Connection, i wire.Identity) (result uint64, s wire.Status, wait bool) {
	t.mu.Lock()
	defer t.unlock()
	const wrong = wire.ConnectParameters | wire.NoRetry
	switch {
	case x.Format != 0:
		return 0, wire.ConnectFormat | wire.NoRetry, false
	case x.Size < 1 || int(x.Size) >= t.cfg.Limits.Entries:
		return offset(wire.ConnectSizeAt, false), wrong, false
	}
	if x.Queue != 0 {
		return t.join(q, x, i)
	}
	sub := t.find(i.Subsystem)
	switch {
	case sub == nil && i.Subsystem != wire.DiscoveryName:
		return offset(wire.ConnectSubsystemAt, true), wrong, false
	case i.Controller != wire.AnyController:
		return offset(wire.ConnectControllerAt, true), wrong, false
	case sub != nil && len(sub.Hosts) > 0 && !slices.Contains(sub.Hosts, i.Host):
		return offset(wire.ConnectHostAt, true), wire.InvalidHost | wire.NoRetry, false
	}
	var keys chap.Keys
	if sub != nil && sub.Keys != nil {
		if keys = sub.Keys[i.Host]; keys.Host.Zero() {
			return offset(wire.ConnectHostAt, true), wire.InvalidHost | wire.NoRetry, false
		}
	}
	if sub != nil && t.fenced(sub, i) {
		if q.late.Swap(false) {
			t.held = slices.DeleteFunc(t.held, func(x *Queue) bool { return x == q })
			q.patience = 0
			return 0, wire.ControllerBusy, false
		}
		if !slices.Contains(t.held, q) {
			t.held = append(t.held, q)
		}
		return 0, 0, true
	}
	if t.admitted() >= t.cfg.Limits.Controllers {
		return 0, wire.ControllerBusy, false
	}
	c := &controller{id: t.identifier(), subsystem: sub, port: q.port, host: i.Host, hostID: i.HostID,
		keepAlive: x.KeepAlive, granted: t.cfg.Limits.Queues, queues: make([]*Queue, t.cfg.Limits.Queues+1)}
	c.state.Store(uint32(t.stateOf(q.port)))
	if sub != nil {
		t.look(c)
	}
	t.alive[c.id] = c
	t.enter(q, c, x)
	if keys.Host.Zero() {
		c.proved.Store(true)
		return uint64(c.id), 0, false
	}
	t.proves(q, keys, i)
	return uint64(c.id) | wire.ConnectProve, 0, false
}

// admitted is the number of associations that count towards the limit: not those whose hosts have yet to prove who they
// are, so that strangers cannot keep hosts out.
func (t *Target) admitted() int {
	n := len(t.dying)
	for _, c := range t.alive {
		if c.proved.Load() {
			n++
		}
	}
	return n
}

// fenced reports whether an earlier association of a host has not ended. One whose host has closed a connection ends
// now, although what was sent on it may not be read yet.
func (t *Target) fenced(sub *subsystem, i wire.Identity) bool {
	for _, c := range t.sorted() {
		if c.subsystem != sub || c.host != i.Host || c.hostID != i.HostID {
			continue
		}
		for _, q := range c.queues {
			if q != nil && q.peer.Gone() {
				t.kill(c, errors.New("nvme: the host has closed a connection and begins another association"))
				break
			}
		}
	}
	for _, c := range t.dying {
		if c.subsystem == sub && c.host == i.Host && c.hostID == i.HostID {
			return true
		}
	}
	return false
}

// identifier returns an unused controller identifier, from 1 to 0xffef.
func (t *Target) identifier() uint16 {
	for {
		id := t.next
		if t.next++; id < 1 || id > 0xffef {
			t.next = 1
			continue
		}
		busy := t.alive[id] != nil || slices.ContainsFunc(t.dying, func(c *controller) bool { return c.id == id })
		if !busy {
			return id
		}
	}
}

// join adds an I/O queue to an association.
func (t *Target) join(q *Queue, x wire.Connection, i wire.Identity) (result uint64, s wire.Status, wait bool) {
	c := t.alive[i.Controller]
	switch {
	case c == nil || c.subsystem == nil || c.subsystem.Name != i.Subsystem:
		// It may have ended just now, so the host may retry.
		return offset(wire.ConnectControllerAt, true), wire.ConnectParameters, false
	case c.host != i.Host || c.hostID != i.HostID:
		return offset(wire.ConnectHostAt, true), wire.ConnectParameters | wire.NoRetry, false
	case int(x.Queue) > c.granted:
		return offset(wire.ConnectQueueAt, false), wire.ConnectParameters | wire.NoRetry, false
	case !c.proved.Load():
		return 0, wire.AuthRequired | wire.NoRetry, false
	case !c.enabled.Load():
		return 0, wire.SequenceError, false
	case c.queues[x.Queue] != nil:
		return 0, wire.ControllerBusy, false
	}
	t.enter(q, c, x)
	return uint64(c.id), 0, false
}

// enter completes a Connect.
func (t *Target) enter(q *Queue, c *controller, x wire.Connection) {
	c.queues[x.Queue] = q
	c.heard.Store(true)
	q.controller, q.id = c, x.Queue
	t.held = slices.DeleteFunc(t.held, func(x *Queue) bool { return x == q })
}

// property returns a controller's property.
func (t *Target) property(c *controller, p wire.Property) (v uint64, ok bool) {
	t.mu.Lock()
	defer t.unlock()
	switch {
	case p.Offset == wire.PropCAP && p.Wide:
		return wire.CAP(t.cfg.Limits.Entries), true
	case p.Wide:
		return 0, false
	case p.Offset == wire.PropVS:
		return wire.Version14, true
	case p.Offset == wire.PropCC:
		return uint64(c.cc), true
	case p.Offset == wire.PropCSTS:
		return uint64(c.csts), true
	}
	return 0, false
}

// configure sets CC. A reset or a shutdown ends the I/O queues; CSTS shows the result once their tasks are done, so
// that a host that waits for it can repeat its writes.
func (t *Target) configure(c *controller, cc uint32) {
	t.mu.Lock()
	defer t.unlock()
	c.cc = cc
	stop := cc&wire.CCShutdown != 0
	if stop {
		c.csts = c.csts&^wire.CSTSShutdown | 1<<2 // in progress
	}
	if cc&wire.CCEnable != 0 && !stop {
		c.csts = c.csts&^wire.CSTSShutdown | wire.CSTSReady
		c.enabled.Store(true)
		return
	}
	c.enabled.Store(false)
	for _, q := range c.queues[1:] {
		if q != nil {
			q.kill(errors.New("nvme: the host has reset or shut down the controller"))
		}
	}
	t.settle(c)
}

// log notes an error for the error log.
func (t *Target) log(c *controller, e wire.ErrorEntry) {
	t.mu.Lock()
	defer t.unlock()
	c.errorCount++
	e.Count, e.Field = c.errorCount, 0xffff
	c.errors[c.errorCount%errorEntries] = e
}
