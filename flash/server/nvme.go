package server

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"farflash/flash/nbd"
	"farflash/flash/nvme"
	"farflash/flash/nvme/chap"
	nvmeserver "farflash/flash/nvme/server"
	"farflash/flash/nvme/wire"
	"farflash/flash/verbs"
	"farflash/policy/ratecontrol"
)

// spaces is the NVMe front: a subsystem whose namespaces are the files. A namespace has the number of its file as its
// identifier, and an UUID made from the pool's and from what the file keeps for ever, so that a host that comes back
// finds the same disk there, or another one, but never another one that it takes for the same.
type spaces struct {
	s         *Server
	target    *nvme.Target
	driver    *nvmeserver.Server
	listeners []net.Listener
	ended     sync.WaitGroup

	at    sync.Mutex // guards files; a leaf among locks
	files map[uint32]place

	mu      sync.Mutex // of refresh
	keys    map[string]chap.Keys
	served  map[uint32]nvme.Namespace
	noted   map[string]bool // messages
	again   *time.Timer     // refresh waits for hosts to disconnect
	closing bool
}

// place is where the file of a namespace is found.
type place struct{ name, identity string }

// checkNVMe validates the settings of the NVMe front.
func (c *Config) checkNVMe() error {
	if len(c.NVMe) == 0 {
		return nil
	}
	if c.Subsystem != "" && (!wire.ValidName(c.Subsystem) || c.Subsystem == wire.DiscoveryName) {
		return fault("nvme-subsystem",
			"%q is no name of an NVMe subsystem; give one such as nqn.2026-01.com.example:disks",
			c.Subsystem)
	}
	for i, h := range c.Hosts {
		if !wire.ValidName(h) {
			return &Fault{"nvme-host", i, notHost(h)}
		}
	}
	for _, h := range slices.Sorted(maps.Keys(c.Keys)) {
		if !wire.ValidName(h) {
			return &Fault{Setting: "nvme-keys", Err: notHost(h)}
		}
		if len(c.Hosts) > 0 && !slices.Contains(c.Hosts, h) {
			return fault("nvme-keys", "there is a key of %s, which is not one of the hosts that may connect", h)
		}
	}
	if c.Queues < 0 || c.Queues > mostQueues {
		return fault("nvme-queues", "%d I/O queues of an NVMe host; give 1 to %d, or 0 for what the memory allows",
			c.Queues,
			mostQueues)
	}
	for i, at := range c.NVMe {
		a, here, err := resolve(at)
		switch {
		case err != nil:
		case a.Network() != "tcp":
			err = fmt.Errorf("%s: NVMe/TCP needs HOST:PORT", at)
		case a.(*net.TCPAddr).IP == nil || a.(*net.TCPAddr).IP.IsUnspecified():
			err = fmt.Errorf("%s: hosts that discover the subsystem get its address; give the one that they reach", at)
		case !here && len(c.Keys) == 0:
			err = fmt.Errorf("%s is reachable from other machines, and NVMe/TCP is not encrypted; listen on "+
				"127.0.0.1, or "+
				"give the keys of hosts and listen in a tunnel", at)
		}
		if err != nil {
			return &Fault{settingNVMe, i, err}
		}
	}
	return nil
}

// notHost is the error for a text that is no name of a host.
func notHost(name string) error {
	return fmt.Errorf("%q is no name of an NVMe host; it is in /etc/nvme/hostnqn of that host", name)
}

const (
	usualQueues = 16
	mostQueues  = 128
)

// queues is the number of I/O queues of an NVMe host, that of connections, and the memory of each in bytes, in a pool
// with this many frames. The connections together can borrow a quarter of its memory. That is more than iWARP's windows
// and NBD leave; a read then waits until others are sent, or copied because their hosts do not read.
func (c *Config) queues(frames int) (queues, connections, memory int) {
	budget := frames * pageSize / 4
	connections = max(2, min(1088, budget/nvme.Window))
	if queues = c.Queues; queues == 0 {
		queues = max(1, min(usualQueues, connections/8-1))
	}
	connections = max(connections, queues+1)
	return queues, connections, max(nvme.Window, min(nvme.DefaultLimits().Memory, budget/connections))
}

// listenNVMe opens the sockets of the NVMe front and starts it. After an error, no socket is open.
func (s *Server) listenNVMe() (n *spaces, err error) {
	n = &spaces{s: s, keys: s.cfg.Keys, files: map[uint32]place{}, noted: map[string]bool{}}
	cfg := nvme.DefaultConfig()
	for i, at := range s.cfg.NVMe {
		l, err := net.Listen("tcp", at)
		if err != nil {
			return nil, errors.Join(&Fault{settingNVMe, i, err}, n.shut())
		}
		n.listeners = append(n.listeners, l)
		a := l.Addr().(*net.TCPAddr)
		cfg.Ports = append(cfg.Ports, nvme.Port{ID: uint16(i + 1), Address: a.IP.String(), Service: fmt.Sprint(a.Port),
			IPv6: a.IP.To4() == nil})
	}
	var first [2]byte
	if _, err := rand.Read(first[:]); err != nil {
		return nil, errors.Join(err, n.shut())
	}
	cfg.First = binary.LittleEndian.Uint16(first[:])
	queues, connections, memory := s.cfg.queues(s.cfg.Pool.Frames())
	cfg.Limits.Queues, cfg.Limits.Memory = queues, memory
	cfg.Limits.Queued = s.cfg.RateControl != ratecontrol.None
	cfg.Limits.Controllers = connections / (queues + 1)
	cfg.Health, cfg.Random, cfg.Clock = n.health, rand.Reader, s.meter.Now
	if n.target, err = nvme.New(cfg); err != nil {
		return nil, errors.Join(err, n.shut())
	}
	if err := n.refresh(); err != nil {
		return nil, errors.Join(err, n.shut())
	}
	c := nvmeserver.DefaultConfig()
	c.Target, c.Loops, c.Most, c.Early = n.target, s.cfg.Loops, connections, s.cfg.Handshakes
	c.Far, c.Unsent = len(s.cfg.Keys) > 0, s.cfg.unsent()
	c.Handshake, c.Progress = s.cfg.Handshake+time.Duration(cfg.Grace), s.cfg.Progress
	log := s.log.With("protocol", "nvme")
	c.Failed = func(a net.Addr, err error) { log.Warn("connection ended", "peer", a.String(), "error", err) }
	if n.driver, err = nvmeserver.New(c); err != nil {
		return nil, errors.Join(err, n.shut())
	}
	for i, l := range n.listeners {
		n.ended.Go(func() {
			if err := n.driver.Serve(l, uint16(i+1)); err != nil {
				log.Error("no more connections are accepted", "error", err)
			}
		})
	}
	return n, nil
}

func (n *spaces) shut() (err error) {
	for _, l := range n.listeners {
		err = errors.Join(err, l.Close())
	}
	return err
}

// drain ends the front.
func (n *spaces) drain(within time.Duration) error {
	n.mu.Lock()
	n.closing = true
	if n.again != nil {
		n.again.Stop()
	}
	n.mu.Unlock()
	err := n.driver.Drain(within)
	n.ended.Wait()
	return err
}

// health completes the SMART log.
func (n *spaces) health(h *wire.Health) {
	p := n.s.cfg.Pool
	h.MediaErrors, h.PowerCycles = uint64(p.Stats().Damaged), p.Found().Session
	if p.ReadOnly() != nil {
		h.Warning |= wire.WarnReadOnly
	}
}

// Subsystem returns the name of the NVMe subsystem, and "" if NVMe is not served.
func (s *Server) Subsystem() string {
	switch {
	case len(s.cfg.NVMe) == 0:
		return ""
	case s.cfg.Subsystem != "":
		return s.cfg.Subsystem
	}
	return fmt.Sprintf("nqn.2014-08.org.nvmexpress:uuid:%v", s.cfg.Pool.Shape().UUID)
}

// Paths returns the addresses of the NVMe front.
func (s *Server) Paths() (all []*net.TCPAddr) {
	if s.spaces != nil {
		for _, l := range s.spaces.listeners {
			all = append(all, l.Addr().(*net.TCPAddr))
		}
	}
	return all
}

// Refresh makes the changes of the files known to NVMe hosts: files that were created, removed, resized or renamed
// since. The other protocols look for a file when a client asks for it.
func (s *Server) Refresh() {
	if s.spaces == nil {
		return
	}
	if err := s.spaces.refresh(); err != nil {
		s.log.Error("NVMe hosts do not learn of changed files", "protocol", "nvme", "error", err)
	}
}

// open opens the file of a namespace.
func (n *spaces) open(id uint32, host string) (nbd.Export, error) {
	n.at.Lock()
	at, ok := n.files[id]
	n.at.Unlock()
	if !ok {
		return nbd.Export{}, fs.ErrNotExist
	}
	return n.s.export(at.name, User{"nvme", host}, at.identity)
}

// has reports whether a file is a namespace.
func (n *spaces) has(name string) bool {
	n.at.Lock()
	defer n.at.Unlock()
	for _, x := range n.files {
		if x.name == name {
			return true
		}
	}
	return false
}

// rekey replaces the keys of hosts.
func (n *spaces) rekey(keys map[string]chap.Keys) error {
	n.mu.Lock()
	n.keys = keys
	n.mu.Unlock()
	return n.refresh()
}

// refresh looks at the files and changes the subsystem accordingly. A disk that has become smaller stays as it is while
// hosts are connected.
func (n *spaces) refresh() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closing {
		return nil
	}
	if n.again != nil {
		n.again.Stop() // one at a time
	}
	now, files := map[uint32]nvme.Namespace{}, map[uint32]place{}
	for name, err := range n.s.cfg.Files.List() {
		if err != nil {
			return err
		}
		if err := n.look(name, now, files); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	smaller := ""
	if alive, dying := n.target.Associations(); alive+dying > 0 {
		for id, x := range now {
			if old := n.served[id]; old.UUID == x.UUID && old.Size > x.Size {
				smaller, x.Size = files[id].name, old.Size
				now[id] = x
			}
		}
	}
	// First, because hosts may ask for a namespace as soon as they know it. A file that is open is not opened again.
	n.at.Lock()
	n.files = files
	n.at.Unlock()
	sub := nvme.Subsystem{Name: n.s.Subsystem(), Hosts: n.s.cfg.Hosts, Keys: n.keys,
		Serial: serial(n.s.cfg.Pool.Shape().UUID)}
	for _, id := range slices.Sorted(maps.Keys(now)) {
		sub.Namespaces = append(sub.Namespaces, now[id])
	}
	if err := n.target.Set(sub); err != nil { // a host has connected in between
		smaller = cmp.Or(smaller, "a disk")
	} else {
		n.served = now
	}
	if smaller != "" {
		n.note(smaller, "a file is smaller now; hosts see it when all of them have disconnected")
		n.again = time.AfterFunc(time.Second, n.s.Refresh)
	}
	return nil
}

// note logs a message about a file once.
func (n *spaces) note(name, text string) {
	if !n.noted[name+text] {
		n.noted[name+text] = true
		n.s.log.Warn(text, "protocol", "nvme", "export", name)
	}
}

// look adds the namespace of a file, if it can be one.
func (n *spaces) look(name string, now map[uint32]nvme.Namespace, files map[uint32]place) error {
	f, err := n.s.readable(name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	switch {
	case f.Number < 1 || f.Number > nvme.MaxNamespace:
		n.note(name, fmt.Sprintf("a file is not served: its number in the file system is %d, and namespaces have 1 "+
			"to %d",
			f.Number, nvme.MaxNamespace))
		return nil
	case f.Size < uint64(nvme.DefaultConfig().Block):
		return nil // no block
	}
	id := f.Number
	files[id] = place{name, f.Identity}
	now[id] = nvme.Namespace{ID: id, UUID: n.uuid(f), Size: f.Size, ReadOnly: f.Rights&verbs.RemoteWrite == 0,
		Inaccessible: f.Drained,
		Open:         func(host string) (nbd.Export, error) { return n.open(id, host) }}
	return nil
}

// uuid names a file for ever (RFC 9562, version 8).
func (n *spaces) uuid(f File) (u [16]byte) {
	pool := n.s.cfg.Pool.Shape().UUID
	sum := sha256.Sum256(fmt.Appendf(nil, "farflash namespace %v %s", pool, f.Lasting))
	copy(u[:], sum[:])
	u[6], u[8] = u[6]&0x0f|0x80, u[8]&0x3f|0x80
	return u
}

// serial is the serial number of a pool: as much of its UUID as fits.
func serial(u fmt.Stringer) string { return strings.ReplaceAll(u.String(), "-", "")[:20] }
