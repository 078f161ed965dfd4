package bench

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"net"
	"slices"
	"time"

	"farflash/flash/nbd"
	"farflash/flash/nbd/volume"
	"farflash/flash/nvme"
	"farflash/flash/nvme/host"
	"farflash/flash/nvme/initiator"
	nvmeserver "farflash/flash/nvme/server"
	"farflash/flash/nvme/wire"
	"farflash/flash/sendv"
)

const (
	subsystem = "nqn.2026-01.farflash:bench"
	namespace = 1
)

// share is how much of the pool's memory an NVMe/TCP connection may hold, in bytes: all together half of it, but each
// at least a task's.
func (c *Config) share() int {
	return min(nvme.DefaultLimits().Memory, max(nvme.Window, int(c.Memory)/2/c.Connections))
}

// needs is the memory of the pool that NVMe/TCP connections must be able to hold together, in bytes.
func (c *Config) needs() int { return c.Connections * min(c.underWay()*c.Block, nvme.Window) }

// listenNVMe serves the pool's range as a namespace, on the loops that serve verbs.
func (s *far) listenNVMe() error {
	cfg := nvme.DefaultConfig()
	cfg.Limits.Controllers, cfg.Limits.Queues, cfg.Limits.Entries = s.cfg.Connections, 1, 256
	cfg.Limits.Memory = s.cfg.share()
	cfg.Subsystems = []nvme.Subsystem{{Name: subsystem, Serial: "bench", Namespaces: []nvme.Namespace{{
		ID: namespace, UUID: [16]byte{1}, Size: uint64(s.cfg.Size),
		Open: func(string) (nbd.Export, error) {
			v, err := volume.New(s.pool, 0, uint64(s.cfg.Size))
			return nbd.Export{Volume: v}, err
		}}}}}
	target, err := nvme.New(cfg)
	if err != nil {
		return err
	}
	set := nvmeserver.DefaultConfig()
	set.Target, set.Loops, set.Most, set.Early = target, s.loops, 2*s.cfg.Connections, 2*s.cfg.Connections
	set.Failed = func(_ net.Addr, err error) {
		if over(err) != nil {
			s.mu.Lock()
			s.errs = append(s.errs, fmt.Errorf("%v: %w", NVMe, err))
			s.mu.Unlock()
		}
	}
	if s.nvme, err = nvmeserver.New(set); err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.listeners[NVMe] = l
	go serving(func() { // label goroutines started here as the servers'
		if err := s.nvme.Serve(l, 1); err != nil {
			set.Failed(l.Addr(), err)
		}
	})
	return nil
}

// left waits until the NVMe/TCP connections have ended, which the client side has closed.
func (s *far) left() {
	for s.nvme != nil {
		known, early := s.nvme.Connections()
		if known+early == 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// nvmeClient is an association with one I/O queue, whose state machine is driven by the thread, as the connections of
// the other systems are.
type nvmeClient struct {
	feed
	association *initiator.Association
	socket      *socket
	queue       *host.Queue
	shift       int // of the namespace's block
	commands    []host.Command
	memory      [][]byte // by slot
	ended       []int
	err         error // of a command
	vec         [][]byte
	send        sendv.Sender
}

func (b *bench) dialNVMe(depth int) (client, int, error) {
	cfg := initiator.DefaultConfig()
	cfg.Subsystem, cfg.Queues, cfg.Depth, cfg.KeepAlive = subsystem, 0, depth, 0
	cfg.Reconnect = initiator.Reconnect{} // figures contain no repetitions
	a, err := initiator.Dial(context.Background(), b.Addresses[NVMe], cfg)
	if err != nil {
		return nil, -1, err
	}
	k := &nvmeClient{association: a, commands: make([]host.Command, depth)}
	if err := k.join(b, depth); err != nil {
		return nil, -1, errors.Join(err, k.close())
	}
	return k, k.socket.fd, nil
}

// join makes the I/O queue.
func (k *nvmeClient) join(b *bench, depth int) error {
	n, err := k.association.Namespace(namespace)
	if err != nil {
		return err
	}
	k.shift = bits.TrailingZeros(uint(n.Block()))
	var connect *host.Command
	if k.queue, connect, err = k.association.NewQueue(1); err != nil {
		return err
	}
	nc, err := net.Dial("tcp", b.Addresses[NVMe])
	if err != nil {
		return err
	}
	if k.socket, err = newSocket(nc); err != nil {
		return err
	}
	k.feed = feed{from: k.socket, in: make([]byte, 64<<10+b.cfg.Block)}
	k.send.Prepare()
	joined := false
	connect.Done = func() { joined = true }
	for k.queue.Submit(connect); !joined; {
		if all, err := k.flush(); err != nil || !all {
			return errors.Join(errors.New("bench: the connection does not take a Connect"), err)
		}
		if err := k.receive(); err != nil {
			return err
		}
	}
	k.from = reader(k.socket.receive)
	for slot := range depth {
		k.memory = append(k.memory, make([]byte, b.cfg.Block))
		k.commands[slot].Done = func() { k.finished(slot) }
	}
	return connect.Status()
}

func (k *nvmeClient) finished(slot int) {
	if err := k.commands[slot].Status(); err != nil && k.err == nil {
		k.err = err
	}
	k.ended = append(k.ended, slot)
}

func (k *nvmeClient) start(slot int, write bool, offset uint64) error {
	c, p := &k.commands[slot], k.memory[slot]
	slba := offset >> k.shift
	c.Request = wire.Request{Opcode: wire.Read, NSID: namespace,
		Words: [6]uint32{uint32(slba), uint32(slba >> 32), uint32(len(p)>>k.shift - 1)}}
	if c.In, c.Out = p, nil; write {
		c.Opcode, c.In, c.Out = wire.Write, nil, p
	}
	k.queue.Submit(c)
	return k.err
}

func (k *nvmeClient) flush() (bool, error) {
	for k.err == nil {
		if k.vec = k.queue.Vectors(k.vec[:0], sendv.Most); len(k.vec) == 0 {
			return true, nil
		}
		n, err := k.send.Try(attempts(k.socket.fd), k.vec)
		if err != nil || n == 0 {
			return false, err
		}
		k.queue.Sent(n)
	}
	return false, k.err
}

// receive reads what has arrived, blocking only if from does.
func (k *nvmeClient) receive() error {
	if sink := k.queue.Sink(); k.end == k.feed.start && len(sink) >= direct {
		n, err := k.from.Read(sink)
		k.queue.Sunk(n)
		return err
	}
	if err := k.more(); err != nil {
		return err
	}
	k.feed.start += k.queue.Input(k.in[k.feed.start:k.end])
	return k.queue.Err()
}

// direct is from how many bytes on the rest of a PDU's data is received directly into its place.
const direct = 16 << 10

func (k *nvmeClient) take(ended []int) (int, error) {
	if err := k.receive(); err != nil || k.err != nil {
		return 0, errors.Join(err, k.err)
	}
	n := copy(ended, k.ended)
	k.ended = slices.Delete(k.ended, 0, n)
	return n, nil
}

func (k *nvmeClient) close() (err error) {
	if k.socket != nil {
		err = k.socket.Close()
	}
	return errors.Join(err, k.association.Close())
}
