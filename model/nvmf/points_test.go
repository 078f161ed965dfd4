package nvmf_test

import (
	"strings"
	"testing"

	"farflash/block"
	"farflash/block/blocktest"
	"farflash/model/fabric"
	"farflash/model/nvmf"
	"farflash/model/nvmf/nvmftest"
	"farflash/numeric/units"
	"farflash/sim"
)

// small is a system with a number of initiators and targets over the network in memory, whose times are constant except
// for the bytes of a queue pair.
type small struct {
	*nvmf.System
	eng  *sim.Engine
	done []nvmf.Done
	next func(*nvmf.Done) // may submit
}

func (s *small) Ended(d *nvmf.Done) {
	s.done = append(s.done, *d)
	if s.next != nil {
		s.next(d)
	}
}

// newSmall returns a small system with a drive at each target. waited is the time that drives report to have worked for
// others.
func newSmall(t *testing.T, initiators, targets int, waited sim.Time, change func(*nvmf.Config)) *small {
	t.Helper()
	cfg := nvmf.DefaultConfig()
	free(&cfg)
	change(&cfg)
	s := &small{eng: sim.New()}
	var err error
	if s.System, err = nvmf.New(cfg, nvmf.NVMeoF, true, s.eng); err != nil {
		t.Fatal(err)
	}
	for i := range initiators {
		s.AddInitiator(int32(i))
	}
	for k := range targets {
		n := s.AddTarget(int32(initiators + k))
		d, err := blocktest.New(blocktest.DefaultConfig(), s.eng, func(c block.Completion) {
			c.Waited = waited
			s.Complete(c)
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.AddDrive(n, d); err != nil {
			t.Fatal(err)
		}
	}
	s.Connect(nvmftest.New(nvmftest.DefaultConfig(), s.eng, s.System), s)
	return s
}

// run runs until the system is idle, and checks the laws.
func (s *small) run(t *testing.T) {
	t.Helper()
	s.eng.Run(sim.Forever)
	if s.Err() != nil || s.Check() != nil {
		t.Fatal(s.Err(), s.Check())
	}
}

// TestPoints verifies that the timestamps of a command, its arrival at the target, its entry into and exit from the
// drive, and the start and end of its data transfer, coincide with the boundaries of its stages.
func TestPoints(t *testing.T) {
	for _, c := range []struct {
		op   block.Op
		size int64
	}{{block.Read, 8192}, {block.Write, 4096}, {block.Write, 8192}, {block.Flush, 0}} {
		s := newSmall(t, 1, 1, 0, func(c *nvmf.Config) {
			c.Initiator.Command, c.Target.Command = 2*us, 4*us
		})
		var messages []sim.Time
		s.OnMessage = func(nvmf.Message) { messages = append(messages, s.eng.Now()) }
		s.Submit(0, 0, block.Request{Op: block.Flush}) // moves the clock away from 0
		s.run(t)
		messages = messages[:0]
		s.Submit(0, 0, block.Request{Op: c.op, Length: c.size})
		begun := s.eng.Now()
		s.run(t)
		d := &s.done[1]
		at := &d.Stage
		sent := d.Submitted + us // half the software
		arrived := sent + 10*us + 15625*units.Nanosecond/1000
		fetched := c.op == block.Write && c.size > 4096
		want := nvmf.Done{Submitted: begun, Arrived: arrived, DriveIn: arrived + 2*us}
		switch {
		case fetched: // an RDMA Read of 16 bytes, and its answer
			want.NetIn = sent
			want.DriveIn = messages[2] + 12*us
			want.NetOut = want.DriveIn
		case c.op == block.Write: // 4096 bytes more take 1 us
			want.NetIn = sent
			want.Arrived += us
			want.DriveIn += us
			want.NetOut = want.Arrived
		}
		want.DriveOut = want.DriveIn + blocktest.DefaultConfig().Latency[c.op]
		if c.op == block.Read {
			want.NetIn = want.DriveOut + 2*us
			want.NetOut = want.NetIn + 12*us // the response follows the data
		}
		if d.Submitted != want.Submitted || d.Arrived != want.Arrived || d.DriveIn != want.DriveIn ||
			d.DriveOut != want.DriveOut || d.NetIn != want.NetIn || d.NetOut != want.NetOut {
			t.Errorf("%v of %d: %+v, not %+v", c.op, c.size, d, want)
		}
		if at[nvmf.AtInitiator] != 2*us || at[nvmf.AtTarget] != 2*us || at[nvmf.TXQ] != 2*us ||
			at[nvmf.Flash] != d.DriveOut-d.DriveIn || at[nvmf.DriveWait] != 0 {
			t.Errorf("%v of %d: stages %v", c.op, c.size, *at)
		}
	}
}

// TestDriveWait verifies that the time a drive reports to have worked for others is a stage of its own, bounded by the
// command's time in the drive.
func TestDriveWait(t *testing.T) {
	const all = 80 * us
	for waited, want := range map[sim.Time]sim.Time{0: 0, 30 * us: 30 * us, all: all, 500 * us: all} {
		s := newSmall(t, 1, 1, waited, func(*nvmf.Config) {})
		var visit nvmf.Visit
		s.OnVisit = func(v nvmf.Visit) { visit = v }
		s.eng.Run(7 * us)
		s.Submit(0, 0, block.Request{Op: block.Read, Tag: 9, Length: 4096})
		s.run(t)
		d := &s.done[0]
		if d.Stage[nvmf.DriveWait] != want || d.Stage[nvmf.Flash] != all-want ||
			s.Counters.Time[nvmf.DriveWait] != want {
			t.Errorf("of %v: %v, and %v in flash", waited, d.Stage[nvmf.DriveWait], d.Stage[nvmf.Flash])
		}
		if visit.Waited != want || visit.In != d.DriveIn || visit.Out != d.DriveOut || visit.Size != 4096 ||
			visit.Tag != 9 || visit.Op != block.Read {
			t.Errorf("of %v: %+v", waited, visit)
		}
	}
}

// TestExactFit verifies that a command that fits to the last byte or place does not wait, and that one less makes it
// wait.
func TestExactFit(t *testing.T) {
	const answer = 4096 + response
	for _, c := range []struct {
		name   string
		req    block.Request
		change func(*nvmf.Config, int)
		held   func(*nvmf.Counters) uint64
	}{
		{"two answers in a transmit queue", block.Request{Op: block.Read, Length: 4096},
			func(c *nvmf.Config, less int) { c.TXQ = units.Bytes(2*answer - less) },
			func(k *nvmf.Counters) uint64 { return k.HeldAtTXQ }},
		{"two writes in memory", block.Request{Op: block.Write, Length: 8192},
			func(c *nvmf.Config, less int) { c.WriteBuffers = units.Bytes(2*8192 - less) },
			func(k *nvmf.Counters) uint64 { return k.HeldForBuffers }},
		{"two RDMA Reads of a target", block.Request{Op: block.Write, Length: 8192},
			func(c *nvmf.Config, less int) { c.Reads.Target = 2 - less },
			func(k *nvmf.Counters) uint64 { return k.HeldForReads }},
		{"two RDMA Reads of an initiator", block.Request{Op: block.Write, Length: 8192},
			func(c *nvmf.Config, less int) { c.Reads.Initiator = 2 - less },
			func(k *nvmf.Counters) uint64 { return k.HeldForReads }},
		{"two commands in a drive", block.Request{Op: block.Read, Length: 4096},
			func(c *nvmf.Config, less int) { c.DriveDepth = 2 - less },
			func(k *nvmf.Counters) uint64 { return k.HeldAtTarget }},
		{"two commands on a queue pair", block.Request{Op: block.Read, Length: 4096},
			func(c *nvmf.Config, less int) { c.QueueDepth = 2 - less },
			func(k *nvmf.Counters) uint64 { return k.HeldAtInitiator }},
	} {
		for less := range 2 {
			s := newSmall(t, 1, 1, 0, func(cfg *nvmf.Config) { c.change(cfg, less) })
			s.Submit(0, 0, c.req)
			s.Submit(0, 0, c.req)
			s.run(t)
			if held := c.held(&s.Counters); held != uint64(less) || s.Counters.Ended != 2 {
				t.Errorf("%s, less %d: %d held", c.name, less, held)
			}
		}
	}
	// A capsule's data, to the last byte.
	for size, pulls := range map[int64]uint64{4096: 0, 4096 + 512: 1} {
		s := newSmall(t, 1, 1, 0, func(*nvmf.Config) {})
		s.Submit(0, 0, block.Request{Op: block.Write, Length: size})
		s.run(t)
		if s.Counters.Pulls != pulls {
			t.Errorf("a write of %d bytes is fetched %d times", size, s.Counters.Pulls)
		}
	}
}

// TestCores has two queue pairs of each of two initiators to each of two targets, with a simultaneous command on each.
// Each machine has four queue pairs. With four cores or more no command waits; a single core works on them one after
// another, and two on two each.
func TestCores(t *testing.T) {
	for cores, longest := range map[int]sim.Time{0: 1, 1: 4, 2: 2, 4: 1, 100: 1} {
		for _, at := range []nvmf.Stage{nvmf.AtInitiator, nvmf.AtTarget} {
			s := newSmall(t, 2, 2, 0, func(c *nvmf.Config) {
				c.QueuePairs = 2
				if at == nvmf.AtInitiator {
					c.Initiator.Command, c.Initiator.Cores = 4*us, cores
				} else {
					c.Target.Command, c.Target.Cores = 4*us, cores
				}
			})
			for k := range int32(8) {
				s.Submit(k/4, k/2%2, block.Request{Op: block.Read, Length: 4096})
			}
			s.run(t)
			// The forward path takes half of the work. On the way back commands do not wait at the initiator, because
			// they are as far apart as when they left.
			most := sim.Time(0)
			for _, d := range s.done {
				there := d.Arrived - d.Submitted - d.Stage[nvmf.NetworkOut]
				if at == nvmf.AtTarget {
					there = d.Stage[at]
				}
				most = max(most, there)
			}
			if most != 2*us*longest {
				t.Errorf("%v with %d cores: the last of four waits and is worked on for %v", at, cores, most)
			}
		}
	}
}

// TestSoftware verifies that halves that are not whole picoseconds add up to the whole, and that zero work takes no
// time.
func TestSoftware(t *testing.T) {
	for _, cost := range []sim.Time{0, 1, 2, 7} {
		s := newSmall(t, 1, 1, 0, func(c *nvmf.Config) {
			c.Initiator.Command, c.Target.Command = cost, cost
		})
		s.Submit(0, 0, block.Request{Op: block.Read, Length: 4096})
		s.run(t)
		if at := s.done[0].Stage; at[nvmf.AtInitiator] != cost || at[nvmf.AtTarget]+at[nvmf.TXQ] != cost ||
			at[nvmf.AtTarget] != cost/2 {
			t.Errorf("%v of software: %v", cost, at)
		}
	}
}

// TestOutstanding verifies that a queue pair never has more commands outstanding than its depth, when others wait and
// when more arrive later, and that it serves them in order.
func TestOutstanding(t *testing.T) {
	s := newSmall(t, 1, 1, 0, func(c *nvmf.Config) { c.QueueDepth = 2 })
	under, most := 0, 0
	var order []uint64
	s.OnMessage = func(m nvmf.Message) {
		if m.Kind == nvmf.Capsule {
			under++
			most = max(most, under)
			order = append(order, m.Tag)
		}
	}
	const all = 60
	given := uint64(0)
	give := func() {
		if given < all {
			s.Submit(0, 0, block.Request{Tag: given, Op: block.Read, Length: 4096})
			given++
		}
	}
	s.next = func(*nvmf.Done) {
		under--
		for range given%3 + 1 {
			give()
		}
	}
	for range 5 {
		give()
	}
	s.run(t)
	// A command's completion is reported after the next one has been sent.
	if len(s.done) != all || most != 3 || under != 0 {
		t.Errorf("%d ended, %d were under way at most", len(s.done), most)
	}
	for k, tag := range order {
		if tag != uint64(k) {
			t.Fatalf("commands leave in the order %v", order)
		}
	}
	if s.Counters.MostAtInitiator < 3 {
		t.Errorf("%d waited at most", s.Counters.MostAtInitiator)
	}
}

// TestRound verifies that the queue pairs of an initiator to a target are used in turn, independently for each target.
func TestRound(t *testing.T) {
	s := newSmall(t, 1, 2, 0, func(c *nvmf.Config) {
		c.QueuePairs, c.QueueDepth = 3, 1
	})
	for range 3 {
		s.Submit(0, 0, block.Request{Op: block.Read, Length: 4096})
		s.Submit(0, 1, block.Request{Op: block.Read, Length: 4096})
	}
	if s.Counters.HeldAtInitiator != 0 {
		t.Errorf("%d of three on three queue pairs wait", s.Counters.HeldAtInitiator)
	}
	s.Submit(0, 1, block.Request{Op: block.Read, Length: 4096})
	if s.Counters.HeldAtInitiator != 1 {
		t.Error("the fourth does not wait")
	}
	s.run(t)
}

// bare is a network that implements Fabric only.
type bare struct{ nvmf.Fabric }

// TestWrongNetworks verifies that a system reports the interfaces its network lacks, and the network's errors.
func TestWrongNetworks(t *testing.T) {
	for _, c := range []struct {
		protocol nvmf.Protocol
		own      bool
		want     string
	}{
		{nvmf.NVMeTCP, false, "TCP connections persist"},
		{nvmf.NVMeoF, true, "the network answers no RDMA Reads"},
		{nvmf.NVMeoF, false, "the network does not choose queue pairs"},
		{nvmf.NVMeTCP, true, ""},
	} {
		eng := sim.New()
		s, err := nvmf.New(nvmf.DefaultConfig(), c.protocol, c.own, eng)
		if err != nil {
			t.Fatal(err)
		}
		s.Connect(bare{}, &ender{})
		if err := s.Err(); (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.protocol, err, c.want)
		}
	}
	// An initiator and its target at the same node.
	eng := sim.New()
	s, err := nvmf.New(nvmf.DefaultConfig(), nvmf.NVMeoF, true, eng)
	if err != nil {
		t.Fatal(err)
	}
	s.AddInitiator(0)
	d, err := blocktest.New(blocktest.DefaultConfig(), eng, s.Complete)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.AddDrive(s.AddTarget(0), d); err != nil {
		t.Fatal(err)
	}
	s.Connect(nvmftest.New(nvmftest.DefaultConfig(), eng, s), &small{})
	s.Submit(0, 0, block.Request{Op: block.Read, Length: 4096})
	eng.Run(sim.Forever)
	if s.Err() == nil || !strings.HasPrefix(s.Err().Error(), "initiator 0 to target 0: ") {
		t.Errorf("error %v", s.Err())
	}
}

// TestBounds verifies that each key accepts its least and greatest value and rejects the values beyond.
func TestBounds(t *testing.T) {
	const day = 24 * 3600 * int64(units.Second)
	for _, c := range []struct {
		key         string
		set         func(*nvmf.Config, int64)
		least, most int64 // most 0: unbounded
		step        int64
	}{
		{"queue_pairs", func(c *nvmf.Config, n int64) { c.QueuePairs = int(n) }, 1, 128, 1},
		{"queue_depth", func(c *nvmf.Config, n int64) { c.QueueDepth = int(n) }, 1, 65536, 1},
		{"in_capsule", func(c *nvmf.Config, n int64) { c.InCapsule = units.Bytes(n) }, 0, int64(16 * units.MiB), 1},
		{"max_transfer", func(c *nvmf.Config, n int64) { c.MaxTransfer = units.Bytes(n) }, 512, int64(units.GiB), 512},
		{"txq", func(c *nvmf.Config, n int64) { c.TXQ = units.Bytes(n) }, 1, 0, 1},
		{"write_buffers", func(c *nvmf.Config, n int64) { c.WriteBuffers = units.Bytes(n) }, 1, 0, 1},
		{"reads.target", func(c *nvmf.Config, n int64) { c.Reads.Target = int(n) }, 1, 65535, 1},
		{"reads.initiator", func(c *nvmf.Config, n int64) { c.Reads.Initiator = int(n) }, 1, 65535, 1},
		{"drive_depth", func(c *nvmf.Config, n int64) { c.DriveDepth = int(n) }, 1, 65535, 1},
		{"class", func(c *nvmf.Config, n int64) { c.Class = uint8(n) }, 1, fabric.MaxClasses - 1, 1},
		{"tcp.max_host_data", func(c *nvmf.Config, n int64) { c.TCP.MaxHostData = units.Bytes(n) }, 4096,
			int64(units.GiB), 1},
		{"initiator.command", func(c *nvmf.Config, n int64) { c.Initiator.Command = units.Duration(n) }, 0,
			int64(units.Second), 1},
		{"target.command", func(c *nvmf.Config, n int64) { c.Target.Command = units.Duration(n) }, 0,
			int64(units.Second), 1},
		{"initiator.cores", func(c *nvmf.Config, n int64) { c.Initiator.Cores = int(n) }, 0, 4096, 1},
		{"target.cores", func(c *nvmf.Config, n int64) { c.Target.Cores = int(n) }, 0, 4096, 1},
		{"host.io_timeout", func(c *nvmf.Config, n int64) { c.Host.IOTimeout = units.Duration(n) }, 0, day, 1},
		{"host.keep_alive", func(c *nvmf.Config, n int64) { c.Host.KeepAlive = units.Duration(n) }, 0, day, 1},
		{"host.reconnect_delay", func(c *nvmf.Config, n int64) { c.Host.ReconnectDelay = units.Duration(n) },
			int64(units.Microsecond), day, 1},
		{"host.ctrl_loss", func(c *nvmf.Config, n int64) { c.Host.CtrlLoss = units.Duration(n) }, 0, day, 1},
		{"host.fast_io_fail", func(c *nvmf.Config, n int64) { c.Host.FastIOFail = units.Duration(n) }, 0,
			600 * int64(units.Second), 1}, // ctrl_loss
		{"host.rediscovery", func(c *nvmf.Config, n int64) { c.Host.Rediscovery = units.Duration(n) }, 0, day, 1},
		{"host.max_retries", func(c *nvmf.Config, n int64) { c.Host.MaxRetries = int(n) }, 0, 255, 1},
		{"limits.rw_ios", func(c *nvmf.Config, n int64) { c.Limits.IOs = n }, 0, 1e9, 1000},
		{"limits.rw_bytes", func(c *nvmf.Config, n int64) { c.Limits.Bytes = units.ByteRate(n) }, 1 << 20, 1 << 50, 1},
		{"limits.r_bytes", func(c *nvmf.Config, n int64) { c.Limits.ReadBytes = units.ByteRate(n) }, 1 << 20, 1 << 50, 1},
		{"limits.w_bytes", func(c *nvmf.Config, n int64) { c.Limits.WriteBytes = units.ByteRate(n) }, 1 << 20, 1 << 50,
			1},
	} {
		try := func(n int64, possible bool) {
			cfg := nvmf.DefaultConfig()
			c.set(&cfg, n)
			err := cfg.Validate()
			if (err == nil) != possible || err != nil && !strings.HasPrefix(err.Error(), c.key+": ") {
				t.Errorf("%s %d: %v", c.key, n, err)
			}
		}
		try(c.least, true)
		try(c.least-c.step, false)
		if c.most > 0 {
			try(c.most, true)
			try(c.most+c.step, false)
		}
	}
	cfg := nvmf.DefaultConfig()
	cfg.MaxTransfer = 1000
	if cfg.Validate() == nil {
		t.Error("transfers of 1000 bytes are possible")
	}
	cfg = nvmf.DefaultConfig()
	cfg.Limits.IOs = 1500
	if cfg.Validate() == nil {
		t.Error("1500 operations a second are possible")
	}
}

// TestLevels verifies that each report of a transmit queue or a drive's queue is a change by one command's share, and
// that both end empty.
func TestLevels(t *testing.T) {
	s := newSmall(t, 1, 1, 0, func(*nvmf.Config) {})
	level := map[int32]int64{}
	changes := map[int32]map[int64]int{-1: {}, 0: {}}
	s.OnLevel = func(l nvmf.Level) {
		if l.Target != 0 || l.At != s.eng.Now() {
			t.Errorf("%+v at %v", l, s.eng.Now())
		}
		changes[l.Drive][l.Value-level[l.Drive]]++
		level[l.Drive] = l.Value
	}
	for range 3 {
		s.Submit(0, 0, block.Request{Op: block.Read, Length: 4096})
		s.Submit(0, 0, block.Request{Op: block.Write, Length: 8192})
	}
	s.run(t)
	queue, txq := changes[0], changes[-1]
	if len(queue) != 2 || queue[1] != 6 || queue[-1] != 6 || level[0] != 0 {
		t.Errorf("a drive's queue changes by %v", queue)
	}
	if len(txq) != 4 || txq[4096] != 3 || txq[-4096] != 3 || txq[response] != 6 || txq[-response] != 6 ||
		level[-1] != 0 {
		t.Errorf("a transmit queue changes by %v", txq)
	}
}
