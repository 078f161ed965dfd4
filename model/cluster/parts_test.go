package cluster

import (
	"math"
	"testing"

	"farflash/block"
	"farflash/block/blocktest"
	"farflash/model/cluster/put"
	"farflash/model/cluster/reserve"
	"farflash/model/cluster/uses"
	"farflash/numeric/units"
	"farflash/sim"
)

// TestPlan verifies that the protocols' plan reflects the configuration.
func TestPlan(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Protocol, cfg.Gateways, cfg.Targets, cfg.Group, cfg.Groups, cfg.Choices, cfg.Overcommit = ReplicastH, 7, 20,
		5, 3, 1, 6
	cfg.Choosy, cfg.Acknowledge, cfg.Disk.Latency, cfg.Disk.Rate, cfg.Disk.Queue = true, WriteBack, LatencyGrows,
		500_000_000, 400_000
	cfg.Link = Link{Rate: 40 * units.Gbps, Overhead: 0.02, Frame: 4000, Trip: 3 * units.Microsecond}
	cfg.Control = Control{Unicast: 90, Replicast: 250, Share: 0.07, Queued: true}
	p, err := cfg.plan(77)
	if err != nil {
		t.Fatal(err)
	}
	d := p.Times
	if p.Seed != 77 || p.Gateways != 7 || p.Targets != 20 || p.Copies != 3 || p.Piece != cfg.Chunk || p.Coded ||
		p.Frame != 4000 || p.Trip != 3*units.Microsecond || p.GroupSize != 5 ||
		p.Candidates != 1 || !p.Spread || p.Choices != 1 || p.Overcommit != 6 || !p.Choosy || !p.Queued || p.Lossy ||
		!p.WriteBack || !p.Grows || p.Compat != CompatNone {
		t.Errorf("%+v", p)
	}
	// 40 Gbit/s less 2%, of which 7% is reserved: a chunk takes 262,144 ns on a disk.
	if d.Effective != 39_200_000_000 || d.DataRate != 36_456_000_000 || d.ControlSize != 250 ||
		d.DiskChunk != 262_144*units.Nanosecond || d.Trip != 3*units.Microsecond || d.FrameSize != 4000 ||
		d.Lead != 4*units.BitRate(39_200_000_000).TimeFor(250) {
		t.Errorf("%+v", d)
	}
	for name, x := range map[string]struct {
		change func(*Config)
		holds  func(p put.Plan, r reserve.Config) bool
	}{
		"a code": {func(c *Config) { c.Protocol, c.Code = ReplicastH, Code{3, 2} },
			func(p put.Plan, r reserve.Config) bool {
				return p.Coded && p.Copies == 5 && p.Piece == 43691 && r.Replicas == 5 && r.ChunkSize == 43691
			}},
		"losses": {func(c *Config) { c.Link.Loss = 0.1 },
			func(p put.Plan, _ reserve.Config) bool { return p.Lossy }},
		"failures": {func(c *Config) { c.Failures = []Failure{{}} },
			func(p put.Plan, _ reserve.Config) bool { return p.Lossy }},
		"several groups": {func(c *Config) { c.Protocol = Pull },
			func(p put.Plan, r reserve.Config) bool { return p.Candidates == 2 && r.ControlSize == 100 }},
		"no groups": {func(c *Config) { c.Protocol = Chain }, func(p put.Plan, r reserve.Config) bool {
			return p.Candidates == 0 && r.ControlSize == 100 && r.Group >= 3
		}},
		"a placement": {func(c *Config) { c.Protocol, c.Placement = Chain, PlaceRing },
			func(p put.Plan, _ reserve.Config) bool { return !p.Spread }},
		"more copies than groups": {func(c *Config) { c.Protocol, c.Replicas, c.Group = Chain, 12, 9 },
			func(_ put.Plan, r reserve.Config) bool { return r.Group == 12 }},
		"an order of SURGE's": {func(c *Config) { c.Compat, c.Control.Queued = CompatSURGE, false },
			func(p put.Plan, r reserve.Config) bool {
				return bool(r.Compat) && r.Rules != reserve.RulesHead && p.Times.MaxBidWait == surgeBidWait &&
					p.Times.Lead == 0
			}},
		"SURGE's last build": {func(c *Config) { c.Compat, c.Control.Queued = CompatSURGEHead, false },
			func(_ put.Plan, r reserve.Config) bool { return bool(r.Compat) && r.Rules == reserve.RulesHead }},
		"a protocol of it": {func(c *Config) { c.Protocol = ReplicastHDouble },
			func(p put.Plan, r reserve.Config) bool {
				return !bool(r.Compat) && r.Rules == reserve.RulesHead && p.Times.MaxBidWait != surgeBidWait
			}},
		"a protocol before": {func(c *Config) { c.Protocol = ReplicastH },
			func(_ put.Plan, r reserve.Config) bool { return !bool(r.Compat) && r.Rules != reserve.RulesHead }},
		"an offer ahead": {func(c *Config) { c.Ahead = 5 },
			func(p put.Plan, _ reserve.Config) bool { return p.Ahead == 5 }},
	} {
		cfg := DefaultConfig()
		x.change(&cfg)
		p, err := cfg.plan(1)
		if err != nil || !x.holds(p, cfg.durations()) {
			t.Errorf("%s: %v, %+v, %+v", name, err, p, cfg.durations())
		}
	}
	// Pull looks ahead until the last target of a lone chunk has it: two messages of 100 ns and a trip, 18 messages
	// received, the chunk, a trip, a frame and a trip for each further copy, and half a write; with a code, a piece for
	// each further copy instead.
	cfg = DefaultConfig()
	cfg.Protocol, cfg.Chunk, cfg.Disk.Rate = Pull, 2000, units.ByteRate(units.GB)
	cfg.Link = Link{Rate: 8 * units.Gbps, Frame: 1000, Trip: units.Microsecond}
	for code, want := range map[Code]units.Duration{{}: 2*1100 + 1800 + 2000 + 1000 + 2*2000 + 1000,
		{Data: 2, Parity: 1}: 2*1100 + 1800 + 1000 + 1000 + 2*1000} {
		cfg.Code = code
		if p, err = cfg.plan(1); err != nil || p.Ahead != want*units.Nanosecond {
			t.Errorf("%+v: %v ahead, not %v ns; %v", code, p.Ahead, int64(want), err)
		}
		// The hedging delay is twice the sum of the request's time, a disk's read of the chunk or piece, and its
		// transfer back with a trip.
		piece := units.Duration(2000)
		if code.Data > 0 {
			piece = 1000
		}
		if got := cfg.hedgeAfter(p.Times); got != 2*(2*1100+piece+piece)*units.Nanosecond {
			t.Errorf("%+v: a read is hedged after %v", code, got)
		}
	}
	if put.Nearest(91, 9) != 90 || put.Nearest(95, 9) != 99 || put.Nearest(3, 9) != 18 || put.Nearest(7, 0) != 7 ||
		put.Nearest(7, 1) != 7 {
		t.Errorf("%d, %d, %d", put.Nearest(91, 9), put.Nearest(95, 9), put.Nearest(3, 9))
	}
}

// TestPort verifies that overlapping transfers count once toward a port's busy time.
func TestPort(t *testing.T) {
	var p port
	p.use(100, 50)
	p.use(120, 50) // until 170: adds 20
	p.use(130, 10) // already counted
	for at, want := range map[sim.Time]sim.Time{100: 0, 110: 10, 169: 69, 170: 70, 500: 70} {
		if got := p.until(at); got != want {
			t.Errorf("until %d: %d, not %d", at, got, want)
		}
	}
	p.use(200, 30)
	if p.until(300) != 100 || p.until(210) != 80 || p.ends != 230 {
		t.Errorf("%+v", p)
	}
}

// TestClock verifies the timeouts that follow from what gateways have learnt, before and after the data is sent.
func TestClock(t *testing.T) {
	c, err := New(DefaultConfig(), sim.New(), 1)
	if err != nil {
		t.Fatal(err)
	}
	floor := c.Floor()
	if g := &c.gateways[0].clock; g.mean != 4*floor || g.spread != 2*floor {
		t.Errorf("%+v of %v", g, floor)
	}
	c.gateways[3].clock, c.gateways[89].clock = clock{mean: 1000 * floor, spread: 10 * floor},
		clock{mean: floor / 8}
	c.fix.clock = clock{mean: 20 * floor, spread: 8 * floor} // of repairs
	for _, x := range []struct {
		gateway int32
		attempt int8
		want    sim.Time
	}{{0, 0, 20 * floor}, {3, 0, 1080 * floor}, {3, 2, 4320 * floor}, {89, 0, 2 * floor}, {89, 10, 2048 * floor},
		{89, 15, 2048 * floor}, {500, 0, 84 * floor}} {
		if got := c.limit(x.gateway, &task{attempt: x.attempt}); got != x.want {
			t.Errorf("attempt %d of gateway %d may take %v, not %v", x.attempt, x.gateway, got, x.want)
		}
	}
	c.gateways[3].late = clock{mean: 50 * floor, spread: 2 * floor}
	if got := c.limit(3, &task{due: 1}); got != 66*floor {
		t.Errorf("what is sent may be later by %v, not %v", got, 66*floor)
	}
	if c.gateways[3].late = (clock{mean: -floor}); c.limit(3, &task{due: 1, attempt: 1}) != 2*floor {
		t.Errorf("what has come sooner than said may be later by %v", c.limit(3, &task{due: 1, attempt: 1}))
	}
	c.cfg.RetryAfter = 7
	if got := c.limit(3, &task{attempt: 3}); got != 56 {
		t.Errorf("%v", got)
	}
}

// nothing is a source that yields no chunks.
type nothing struct{}

func (nothing) Next(*Arrival) bool { return false }

// withDrives returns a small cluster whose targets have in-memory drives that take 20 us for a write and 80 us for a
// read, any number at once.
func withDrives(t *testing.T, change func(*Config)) (*Cluster, *sim.Engine) {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Protocol, cfg.Placement = Chain, PlaceHRW
	cfg.Gateways, cfg.Targets, cfg.Replicas, cfg.Chunk, cfg.Reads, cfg.Objects, cfg.Outstanding = 2, 4, 2, 6000, 0.3,
		50, 3
	cfg.Disk.Model, cfg.Disk.Depth = ModelSSD, 2
	change(&cfg)
	eng := sim.New()
	c, err := New(cfg, eng, 1)
	if err != nil {
		t.Fatal(err)
	}
	for k := range c.targets {
		d, err := blocktest.New(blocktest.DefaultConfig(), eng, c.Sink(k).Complete)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Attach(k, d, Ceiling{Write: 300_000_000, Read: 75_000_000}); err != nil {
			t.Fatal(err)
		}
	}
	return c, eng
}

// TestDrives verifies that a cluster of drives keeps its laws, that each drive has the configured number of commands
// outstanding, and that drives are busy while they have work.
func TestDrives(t *testing.T) {
	for _, failures := range [][]Failure{nil, {{Target: 1, At: 3 * units.Millisecond, Back: 12 * units.Millisecond}}} {
		c, eng := withDrives(t, func(x *Config) { x.Failures, x.Repair.Detect = failures, units.Millisecond })
		most := 0
		c.OnDisk = func(w *Work) {
			takes := 20 * units.Microsecond
			if w.Read {
				takes = 80 * units.Microsecond
			}
			if w.To-w.From != takes || w.From < w.At || w.To != eng.Now() {
				t.Errorf("%+v at %v", w, eng.Now())
			}
		}
		c.Start()
		for at := sim.Time(0); at <= 20*units.Millisecond; at += 10 * units.Microsecond {
			eng.Run(at)
			for k := range c.targets {
				most = max(most, len(c.disks[k].drive.inside))
			}
			if err := c.Check(); err != nil {
				t.Fatal(err)
			}
			if err := c.walk(); err != nil {
				t.Fatal(err)
			}
		}
		if c.Err() != nil || most != 2 || c.Counters.Done < 100 || c.Counters.Gets.Done < 50 ||
			failures != nil && c.Counters.Repaired == 0 {
			t.Errorf("%v: at most %d in a drive, %+v", c.Err(), most, c.Counters)
		}
		disks, _, _ := c.Busy(20 * units.Millisecond)
		spent, _ := c.Spent(20 * units.Millisecond)
		for k, busy := range disks {
			if used := spent[k][uses.Work] + spent[k][uses.Repair]; busy <= 0 || busy > 20*units.Millisecond ||
				failures == nil && used != busy {
				t.Errorf("drive %d was busy for %v, used for %v", k, busy, used)
			}
		}
		if c.Binding() != "disks" {
			t.Errorf("%s bind", c.Binding())
		}
	}
}

// TestDriveRate verifies that a drive's predicted rate is disk.rate at first and follows the last 64 or so pieces, that
// a piece occupies whole sectors, and that a drive's error ends the run.
func TestDriveRate(t *testing.T) {
	c, eng := withDrives(t, func(x *Config) { x.Disk.Rate, x.Reads = 100_000_000, 0 })
	c.Replay(nothing{})
	c.Start()
	d := &c.disks[2]
	v := d.drive
	// 6000 B at 100 MB/s take 60 us; they occupy two sectors of 4 KiB, of 1 GiB.
	if c.takes(2, 6000) != 60*units.Microsecond || c.takes(2, 3000) != 30*units.Microsecond || v.extent != 8192 ||
		v.slots != 1<<17 || d.backlog(0) != 0 {
		t.Errorf("%v, %d of %d", c.takes(2, 6000), v.extent, v.slots)
	}
	// After one write of 20 us the estimate is 16 times 60 us, less a 64th, plus 20 us.
	c.work(job{disk: 2, size: 6000, acked: true})
	if d.backlog(0) != 60*units.Microsecond || len(v.inside) != 1 || d.used(0) != 0 {
		t.Errorf("%v before it, %d inside", d.backlog(0), len(v.inside))
	}
	eng.Run(units.Millisecond)
	moved, during := 16*6000*63.0/64+6000, 16*60e6*63.0/64+20e6
	if want := 6000 * during / moved; math.Abs(float64(c.takes(2, 6000))-want) > 1 || d.backlog(0) != 0 ||
		d.used(eng.Now()) != 20*units.Microsecond || v.bytes != 0 {
		t.Errorf("%v for a piece, not %v; busy for %v", c.takes(2, 6000), want, d.used(eng.Now()))
	}
	// With four jobs, two are outstanding at the drive; one that waits is canceled.
	var jobs []int32
	for range 4 {
		jobs = append(jobs, c.work(job{disk: 2, size: 6000, read: false, acked: true}))
	}
	c.takeBack(jobs[3])
	c.takeBack(jobs[3]) // a second time has no effect
	c.takeBack(jobs[0]) // it has begun, so it is not canceled
	if len(v.inside) != 2 || v.bytes != 18000 {
		t.Errorf("%d inside, %v in all", len(v.inside), v.bytes)
	}
	before := c.Counters.Written
	eng.Run(2 * units.Millisecond)
	if c.Counters.Written != before+3 || v.bytes != 0 || d.used(eng.Now()) != 60*units.Microsecond ||
		c.jobs.Used() != 0 {
		t.Errorf("%d were written, %v are left, busy for %v", c.Counters.Written-before, v.bytes, d.used(eng.Now()))
	}
	c.Sink(1).c.work(job{disk: 1, size: 6000, acked: true})
	i := c.disks[1].drive.inside[0]
	c.Sink(1).Complete(block.Completion{Tag: uint64(i), Status: block.WriteFault})
	if c.Err() == nil || c.Err().Error() != "the drive of target 1 reports: write fault" {
		t.Errorf("%v", c.Err())
	}
	tiny := blocktest.DefaultConfig()
	tiny.Capacity = []int64{4096}
	dev, err := blocktest.New(tiny, eng, func(block.Completion) {})
	if err != nil || c.Attach(0, dev, Ceiling{}) == nil {
		t.Errorf("a drive without room for a piece was taken: %v", err)
	}
	// The ceiling of four drives: 300 MB/s each, two pieces of 6000 B per chunk.
	for _, b := range c.Bounds() {
		if b.Resource == "disks" || b.Resource == "drives" && math.Abs(b.Chunks-4*300e6/12000) > 1 {
			t.Errorf("%+v", b)
		}
	}
}

// TestWalkNotices verifies that walk reports violated laws of links, disks and chunks, and no others.
func TestWalkNotices(t *testing.T) {
	for name, x := range map[string]struct {
		change func(c *Cluster, at int32)
		holds  bool
	}{
		"as it is": {func(*Cluster, int32) {}, true},
		"a message nobody sends": {func(c *Cluster, _ int32) { c.out[0].busy = false; c.out[0].control.Push(0) },
			false},
		"a frame nobody sends": {func(c *Cluster, _ int32) { c.out[0].busy = false; c.out[0].data.Push(0) },
			false},
		"a message nobody takes": {func(c *Cluster, _ int32) { c.in[0].busy = false; c.in[0].control.Push(0) },
			false},
		"a parcel that leaves twice": {func(c *Cluster,
			_ int32) {
			c.out[1].busy = true
			c.out[1].data.Push(0)
			c.out[1].control.Push(0)
		}, false},
		"a frame that is for nobody": {func(c *Cluster, _ int32) {
			p := &c.parcels.Items[0]
			p.data, p.left = true, 0
			c.in[1].busy = true
			c.in[1].data.Push(0)
		}, false},
		"a frame that is a message": {func(c *Cluster, _ int32) {
			p := &c.parcels.Items[0]
			p.data, p.left = false, 1
			c.in[1].busy = true
			c.in[1].data.Push(0)
		}, false},
		"a frame that is for one": {func(c *Cluster, _ int32) {
			p := &c.parcels.Items[0]
			p.data, p.left = true, 1
			c.in[1].busy = true
			c.in[1].data.Push(0)
		}, true},
		"more waits than a disk says": {func(c *Cluster, at int32) { c.disks[at].waiting-- }, false},
		"less waits than a disk says": {func(c *Cluster, at int32) { c.disks[at].waiting++ }, false},
		"an idle disk with work": {func(c *Cluster, at int32) {
			d := &c.disks[at]
			d.queue.Push(d.current)
			d.waiting += c.jobs.Items[d.current].takes
			d.current = -1
		}, false},
		"a disk that is late":          {func(c *Cluster, at int32) { c.disks[at].ends = c.eng.Now() - 1 }, false},
		"a disk that is done just now": {func(c *Cluster, at int32) { c.disks[at].ends = c.eng.Now() }, true},
		"a job at no disk":             {func(c *Cluster, _ int32) { c.jobs.Take() }, false},
		"a disk that forgot its job":   {func(c *Cluster, at int32) { c.disks[at].current = -1 }, false},
		"a chunk that is over":         {func(c *Cluster, _ int32) { c.tasks.Items[0].live = false }, false},
		"a chunk without a number":     {func(c *Cluster, _ int32) { c.bus.Chunks[0].ID = 0 }, false},
		"a chunk of another attempt":   {func(c *Cluster, _ int32) { c.bus.Chunks[0].ID = c.attempts + 1 }, false},
		"a chunk twice": {func(c *Cluster, _ int32) { c.bus.Chunks[0].ID = c.bus.Chunks[1].ID },
			false},
		"a chunk that is done":        {func(c *Cluster, _ int32) { c.bus.Chunks[0].Acked = 2 }, false},
		"a chunk that is nearly done": {func(c *Cluster, _ int32) { c.bus.Chunks[0].Acked = 1 }, true},
		"a target twice": {func(c *Cluster,
			_ int32) {
			x := &c.bus.Chunks[0]
			x.Targets[1] = x.Targets[0]
		}, false},
		"a target beyond the last":       {func(c *Cluster, _ int32) { c.bus.Chunks[0].Targets[1] = 4 }, false},
		"a target below the first":       {func(c *Cluster, _ int32) { c.bus.Chunks[0].Targets[1] = -1 }, false},
		"a gateway with one chunk more":  {func(c *Cluster, _ int32) { c.books.under[0]++ }, false},
		"a gateway with too many chunks": {func(c *Cluster, _ int32) { c.cfg.Outstanding = 2 }, false},
		"a chunk that nobody began":      {func(c *Cluster, _ int32) { c.Counters.Done++ }, false},
		"a chunk that nobody gave up":    {func(c *Cluster, _ int32) { c.Counters.Dropped++ }, false},
		"a chunk that did not fail":      {func(c *Cluster, _ int32) { c.Counters.Failed++ }, false},
	} {
		cfg := DefaultConfig()
		cfg.Protocol, cfg.Placement = Chain, PlaceHRW
		cfg.Gateways, cfg.Targets, cfg.Replicas, cfg.Chunk, cfg.Outstanding = 2, 4, 2, 2000, 3
		cfg.Disk.Rate = units.ByteRate(units.MB)
		eng := sim.New()
		c, err := New(cfg, eng, 1)
		if err != nil {
			t.Fatal(err)
		}
		c.Start()
		eng.Run(units.Millisecond) // a disk takes 2 ms for a piece
		at := int32(-1)
		for k := range c.targets {
			if d := &c.disks[k]; d.current >= 0 {
				at = int32(k)
			}
		}
		if at < 0 || c.Check() != nil || c.walk() != nil {
			t.Fatal(at, c.Check(), c.walk())
		}
		x.change(c, at)
		if err := c.Check(); err == nil {
			err = c.walk()
			if (err == nil) != x.holds {
				t.Errorf("%s: %v", name, err)
			}
		} else if x.holds {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestWaiting verifies that Waiting lists the frames of puts that are queued at a target, and that frames of reads and
// of stale chunks only add to the time.
func TestWaiting(t *testing.T) {
	c, err := New(DefaultConfig(), sim.New(), 1)
	if err != nil {
		t.Fatal(err)
	}
	c.bus.Chunks = []put.Chunk{{ID: 5}}
	for _, p := range []parcel{
		{takes: 10, arg: 1, message: put.Message{ID: 5}},
		{takes: 20, arg: 2 | readFrame, message: put.Message{ID: 5}}, {takes: 40, arg: 3, message: put.Message{ID: 4}},
		{takes: 80, arg: 4, message: put.Message{ID: 5}}, {takes: 160, arg: 5, message: put.Message{ID: 5}},
	} {
		i := c.parcels.Take()
		c.parcels.Items[i] = p
		c.in[c.nodeOfTarget(7)].data.Push(i)
	}
	got := frames{c}.Waiting(7, []put.WaitingFrame{{Arg: 9, Takes: 9}})
	want := []put.WaitingFrame{{Arg: 9, Takes: 9}, {Arg: 1, Takes: 10}, {Arg: 4, Takes: 140}, {Arg: 5, Takes: 160}}
	for k := range want {
		if k >= len(got) || got[k] != want[k] {
			t.Errorf("%v wait, not %v", got, want)
			break
		}
	}
	if got := (frames{c}).Waiting(8, nil); len(got) != 0 {
		t.Errorf("%v wait before another", got)
	}
}

// TestCopysets verifies that with copysets a target shares chunks with at most four times (copies-1) others, and with
// more than half of that.
func TestCopysets(t *testing.T) {
	for copies, bounds := range map[int][2]int{3: {5, 8}, 5: {9, 16}, 2: {3, 4}} {
		cfg := DefaultConfig()
		cfg.Protocol, cfg.Placement, cfg.Replicas, cfg.Targets, cfg.Gateways = Chain, PlaceCopysets, copies, 45, 5
		c, err := New(cfg, sim.New(), 1)
		if err != nil {
			t.Fatal(copies, err)
		}
		with := make([]map[int32]bool, cfg.Targets)
		for id := range uint64(20_000) {
			set := c.bus.Places.Place(id, copies, nil)
			if len(set) != copies {
				t.Fatalf("%d copies are at %v", copies, set)
			}
			for _, a := range set {
				for _, b := range set {
					if with[a] == nil {
						with[a] = map[int32]bool{}
					}
					if a != b {
						with[a][b] = true
					}
				}
			}
		}
		least, most := 1000, 0
		for _, others := range with {
			least, most = min(least, len(others)), max(most, len(others))
		}
		if least < bounds[0] || most > bounds[1] {
			t.Errorf("%d copies: a target shares with %d to %d others", copies, least, most)
		}
	}
}
