package nvme

import (
	"encoding/hex"
	"slices"

	"farflash/flash/nvme/wire"
)

// admitFabrics validates a Fabrics command with n bytes of data.
func (q *Queue) admitFabrics(c *command, n uint32) wire.Status {
	k := c.sqe.FabricsType()
	if k == wire.Connect {
		switch {
		case q.state != joining:
			return wire.SequenceError | wire.NoRetry
		case n != wire.ConnectSize:
			return wire.WrongSGLLength | wire.NoRetry
		}
		c.gather, c.length = true, n
		return 0
	}
	switch {
	case k == wire.AuthSend || k == wire.AuthReceive:
		return q.admitProof(c, n)
	case q.state == proving:
		return wire.AuthRequired | wire.NoRetry
	case q.state != serving:
		return wire.SequenceError
	case k == wire.Disconnect && q.id != 0:
		return 0
	case k == wire.PropertyGet || k == wire.PropertySet:
		if q.id != 0 {
			return wire.InvalidField | wire.NoRetry
		}
		return 0
	}
	return wire.InvalidOpcode | wire.NoRetry
}

// fabrics executes a Fabrics command.
func (q *Queue) fabrics(c *command) {
	s := c.sqe
	switch s.FabricsType() {
	case wire.Connect:
		q.connect(c)
		return
	case wire.AuthSend:
		q.hear(c)
		return
	case wire.AuthReceive:
		q.say(c)
		return
	case wire.Disconnect:
		q.leaving = true
	case wire.PropertyGet:
		p, ok := s.Property()
		if ok {
			c.result, ok = q.target.property(q.controller, p)
		}
		if !ok {
			c.status = wire.InvalidField | wire.NoRetry
		}
	default:
		if p, ok := s.Property(); ok && !p.Wide && p.Offset == wire.PropCC {
			q.target.configure(q.controller, uint32(p.Value))
		} else {
			c.status = wire.InvalidField | wire.NoRetry
		}
	}
	q.respond(c)
}

// connect executes a Connect, or leaves it to Turn if an earlier association of the host must end first.
func (q *Queue) connect(c *command) {
	i, at, ok := wire.DecodeIdentity(c.data.B)
	x := c.sqe.Connection()
	wait := false
	if ok {
		c.result, c.status, wait = q.target.connect(q, x, i)
	} else {
		c.result, c.status = offset(at, true), wire.ConnectParameters|wire.NoRetry
	}
	if wait {
		q.held = c
		return
	}
	if c.status == 0 {
		q.state = serving
		if q.auth != nil {
			q.state = proving
		}
		q.resize(int(x.Size) + 1)
		q.head = 1
		q.unbounded = x.Attribs&wire.NoFlowControl != 0
	}
	q.respond(c)
}

// admin executes a command of the admin queue.
func (q *Queue) admin(c *command) {
	s := c.sqe
	switch s.Opcode() {
	case wire.Identify:
		q.identify(c)
		return
	case wire.GetLogPage:
		q.page(c)
		return
	case wire.SetFeatures, wire.GetFeatures:
		q.feature(c)
	case wire.AsyncEvent:
		q.await(c)
		return
	case wire.Abort:
		c.result = 1 // not aborted: a command either waits for its data or is with its volume
	case wire.KeepAlive:
	default:
		c.status = wire.InvalidOpcode | wire.NoRetry
	}
	q.respond(c)
}

// refuse answers a command with an error.
func (q *Queue) refuse(c *command, s wire.Status) {
	c.status = s
	q.respond(c)
}

// identify answers Identify (Base 5.17).
func (q *Queue) identify(c *command) {
	s, x := c.sqe, q.controller
	n := int(min(s.SGL().Length, maxTransfer+1))
	if n < 1 || n > maxTransfer {
		q.refuse(c, wire.WrongSGLLength|wire.NoRetry)
		return
	}
	cns, set := wire.CNS(s[40]), s[47]
	v := x.view.Load()
	var b []byte
	switch {
	case cns == wire.CNSController:
		b = q.target.describe(x)
	case x.subsystem == nil:
		q.refuse(c, wire.InvalidField|wire.NoRetry)
		return
	case cns == wire.CNSActive, cns == wire.CNSSetActive && set == 0:
		if s.NSID() >= 0xfffffffe {
			q.refuse(c, wire.InvalidNamespace|wire.NoRetry)
			return
		}
		var ids []uint32
		for _, x := range v.spaces {
			if x != nil {
				ids = append(ids, x.ID)
			}
		}
		b = wire.AppendList(nil, s.NSID(), ids)
	case cns == wire.CNSSetController && set == 0:
		b = wire.SetLimits{Zeroes: 13}.Append(nil) // 32 MiB
	case cns == wire.CNSNamespace, cns == wire.CNSDescriptors, cns == wire.CNSSetNamespace && set == 0:
		y := v.find(s.NSID())
		if y == nil {
			q.refuse(c, wire.InvalidNamespace|wire.NoRetry)
			return
		}
		switch cns {
		case wire.CNSNamespace:
			b = q.namespace(y).Append(nil)
		case wire.CNSDescriptors:
			b = wire.AppendDescriptors(nil, nguid(y.UUID), y.UUID)
		default: // no protection information
			b = make([]byte, wire.IdentifySize)
		}
	default:
		q.refuse(c, wire.InvalidField|wire.NoRetry)
		return
	}
	q.give(c, b, n)
}

// nguid derives a namespace's NGUID from its UUID, which is unique as well. An NGUID's last eight bytes are an EUI-64,
// so they must not be zero.
func nguid(uuid [16]byte) [16]byte {
	uuid[8] |= 1
	return uuid
}

// group is the ANA group of a namespace.
func group(x *space) uint32 {
	if x.Inaccessible {
		return wire.GroupHeld
	}
	return wire.GroupServed
}

// namespace describes a namespace.
func (q *Queue) namespace(x *space) wire.Namespace {
	block := q.target.cfg.Block
	n := wire.Namespace{Blocks: x.blocks, Used: x.blocks, Grain: uint16(page / block), Group: group(x),
		ReadOnly: x.ReadOnly,
		NGUID:    nguid(x.UUID), Shift: 9}
	if block == page {
		n.Shift = 12
	}
	if x.Used != nil {
		n.Used = min(n.Used, x.Used()/uint64(block))
	}
	return n
}

// options are the optional commands.
const options = wire.OptionCompare | wire.OptionDataset | wire.OptionWriteZeroes | wire.OptionVerify

// describe returns the Identify Controller structure.
func (t *Target) describe(c *controller) []byte {
	w := wire.Controller{Model: t.cfg.Model, Firmware: t.cfg.Firmware, ID: c.id, Version: wire.Version14,
		Transfer: transfer, Entries: uint16(t.cfg.Limits.Entries), KeepAlive: 10, InCapsule: t.cfg.Limits.InCapsule}
	if c.subsystem == nil {
		w.Discovery, w.Events, w.Subsystem = true, wire.EventDiscovery, wire.DiscoveryName
		return w.Append(nil)
	}
	t.mu.Lock()
	w.Serial, w.Subsystem = c.subsystem.Serial, c.subsystem.Name
	t.mu.Unlock()
	w.Events, w.Namespaces, w.Options = wire.EventNamespace|wire.EventANA, MaxNamespace, options
	w.VolatileCache, w.ANA = true, true
	return w.Append(nil)
}

// page answers Get Log Page (Base 5.16). Bytes beyond its end are zeros, which nvme-cli relies on.
func (q *Queue) page(c *command) {
	r := c.sqe.LogRequest()
	if r.Length != uint64(c.sqe.SGL().Length) || r.Length > maxTransfer {
		q.refuse(c, wire.WrongSGLLength|wire.NoRetry)
		return
	}
	b, ok := q.target.page(q.controller, r)
	if !ok {
		q.refuse(c, wire.InvalidLog|wire.NoRetry)
		return
	}
	q.give(c, b[min(r.Offset, uint64(len(b))):], int(r.Length))
}

// page returns a log page.
func (t *Target) page(c *controller, r wire.LogRequest) (b []byte, ok bool) {
	t.mu.Lock()
	defer t.unlock()
	if (c.subsystem == nil) != (r.Log == wire.LogDiscovery) && r.Log != wire.LogCommands && r.Log != wire.LogErrors {
		return nil, false
	}
	switch r.Log {
	case wire.LogErrors:
		for i := range min(c.errorCount, errorEntries) {
			b = c.errors[(c.errorCount-i)%errorEntries].Append(b)
		}
		for len(b) < errorEntries*wire.ErrorSize {
			b = append(b, 0)
		}
	case wire.LogHealth:
		b = t.health(c.subsystem).Append(nil)
	case wire.LogFirmware:
		b = wire.AppendFirmware(nil, t.cfg.Firmware)
	case wire.LogNamespaces:
		b = wire.AppendList(nil, 0, c.changed)
		if !r.Retain {
			c.changed = nil
		}
	case wire.LogCommands:
		b = wire.AppendCommands(nil, options)
	case wire.LogANA:
		groups := []wire.Group{{ID: wire.GroupServed, Changes: t.changes, State: t.stateOf(c.port)},
			{ID: wire.GroupHeld, Changes: t.changes, State: wire.Inaccessible}}
		for _, x := range c.view.Load().spaces {
			if x != nil {
				g := &groups[group(x)-1]
				g.Namespaces = append(g.Namespaces, x.ID)
			}
		}
		if len(groups[1].Namespaces) == 0 { // groups without namespaces are not listed
			groups = groups[:1]
		}
		b = wire.AppendANA(nil, t.changes, groups)
	case wire.LogDiscovery:
		b = t.discovery(c)
	default:
		return nil, false
	}
	if !r.Retain {
		for i := range notices {
			if notices[i].event.Log() == r.Log {
				c.masked[i] = false
			}
		}
	}
	return b, true
}

// health is the SMART log of a subsystem.
func (t *Target) health(s *subsystem) wire.Health {
	sum := s.stats
	for _, c := range append(t.sorted(), t.dying...) {
		if c.subsystem != s {
			continue
		}
		for _, q := range c.queues {
			if q != nil {
				sum.add(&q.counters)
			}
		}
	}
	h := wire.Health{Kelvin: 300, Spare: 100, Threshold: 10, Read: sum.read, Written: sum.written, Reads: sum.reads,
		Writes: sum.writes, Entries: sum.failed}
	if t.cfg.Health != nil {
		t.cfg.Health(&h)
	}
	return h
}

// discovery returns the discovery log for a host: the subsystems that it may use, on every port.
func (t *Target) discovery(c *controller) []byte {
	var entries []wire.Entry
	for _, s := range t.subsystems {
		if len(s.Hosts) > 0 && !slices.Contains(s.Hosts, c.host) {
			continue
		}
		for _, p := range t.cfg.Ports {
			entries = append(entries, wire.Entry{IPv6: p.IPv6, Port: p.ID, Address: p.Address, Service: p.Service,
				Subsystem: s.Name})
		}
	}
	return wire.AppendDiscovery(nil, t.generation, entries)
}

// feature executes Get Features or Set Features (Base 5.15, 5.27).
func (q *Queue) feature(c *command) {
	t, x, s := q.target, q.controller, c.sqe
	set := s.Opcode() == wire.SetFeatures
	w, v := s.Word(10), s.Word(11)
	if set && w>>31 != 0 {
		c.status = wire.NotSaveable | wire.NoRetry
		return
	}
	if !set && w>>8&7 != 0 { // defaults, saved values and capabilities
		c.status = wire.InvalidField | wire.NoRetry
		return
	}
	t.mu.Lock()
	defer t.unlock()
	switch f := wire.Feature(w); {
	case f == wire.FeatureQueues && x.subsystem != nil:
		if set {
			for _, y := range x.queues[1:] {
				if y != nil {
					c.status = wire.SequenceError | wire.NoRetry
					return
				}
			}
			x.granted = min(wire.DecodeQueues(v), t.cfg.Limits.Queues)
		}
		c.result = uint64(wire.Queues(x.granted))
	case f == wire.FeatureEvents:
		if set {
			x.events = v
		}
		c.result = uint64(x.events)
	case f == wire.FeatureKeepAlive:
		if set {
			x.keepAlive, x.deadline = v, 0
		}
		c.result = uint64(x.keepAlive)
	case f == wire.FeatureVolatileCache && x.subsystem != nil:
		if set && v&1 == 0 {
			c.status = wire.NotChangeable | wire.NoRetry
			return
		}
		c.result = 1
	case f == wire.FeaturePower && !set, f == wire.FeatureArbitration && !set:
	default:
		c.status = wire.InvalidField | wire.NoRetry
	}
}

// await keeps an Asynchronous Event Request until there is an event.
func (q *Queue) await(c *command) {
	t, x := q.target, q.controller
	t.mu.Lock()
	many := len(x.requests) >= wire.EventLimit
	if !many {
		x.requests = append(x.requests, c.slot)
	}
	t.unlock()
	if many {
		q.refuse(c, wire.TooManyEvents|wire.NoRetry)
		return
	}
	q.parked++
	q.report()
}

// report answers Asynchronous Event Requests with the events that are pending.
func (q *Queue) report() {
	t, x := q.target, q.controller
	for i := range notices {
		t.mu.Lock()
		ready := x.pending[i] && len(x.requests) > 0
		var slot uint16
		if ready {
			slot = x.requests[0]
			x.requests = append(x.requests[:0], x.requests[1:]...)
			x.pending[i], x.masked[i] = false, true
		}
		t.unlock()
		if ready {
			c := q.slots[slot]
			c.result = uint64(notices[i].event)
			q.parked--
			q.respond(c)
		}
	}
}

// Name is how messages name the connection: its host and queue.
func (q *Queue) Name() string {
	c := q.controller
	if c == nil {
		return "before Connect"
	}
	kind := "discovery"
	if c.subsystem != nil {
		kind = "I/O"
		if q.id == 0 {
			kind = "admin"
		}
	}
	return kind + " queue of host " + c.host + " (" + hex.EncodeToString(c.hostID[:]) + ")"
}
