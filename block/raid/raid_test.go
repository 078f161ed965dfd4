package raid_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"farflash/block"
	"farflash/block/blocktest"
	"farflash/block/raid"
	"farflash/numeric/units"
	"farflash/sim"
)

const chunk = 64 * units.KiB

func config(level int, change func(*raid.Config)) raid.Config {
	c := raid.DefaultConfig()
	c.Level = level
	if change != nil {
		change(&c)
	}
	return c
}

// volume returns a device on memory members.
func volume(t *testing.T, cfg raid.Config, members int, eng *sim.Engine, each int64, sink blocktest.Sink) *raid.Device {
	t.Helper()
	d := raid.NewDevice(sink)
	var list []block.Device
	for i := range members {
		c := blocktest.DefaultConfig()
		c.Capacity = []int64{each}
		m, err := blocktest.New(c, eng, d.Member(i).Complete)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, m)
	}
	if err := d.Attach(cfg, list); err != nil {
		t.Fatal(err)
	}
	return d
}

// TestConformance runs the block.Device conformance tests on volumes of all levels, intact and degraded.
func TestConformance(t *testing.T) {
	for _, c := range []struct {
		name    string
		members int
		cfg     raid.Config
	}{
		{"0", 3, config(0, nil)}, {"0 of one", 1, config(0, nil)}, {"1", 2, config(1, nil)}, {"10", 4,
			config(1, nil)}, {"1 thrice", 3, config(1, func(c *raid.Config) { c.Copies = 3 })},
		{"5", 4, config(5, nil)}, {"5 of three", 3, config(5, func(c *raid.Config) { c.Chunk = 4 * units.KiB })},
		{"6", 6, config(6, nil)},
		{"1 degraded", 2, config(1, func(c *raid.Config) { c.Failed = []int{0} })},
		{"5 degraded", 4, config(5, func(c *raid.Config) { c.Failed = []int{2} })},
		{"6 degraded", 5, config(6, func(c *raid.Config) { c.Failed, c.Chunk = []int{0, 3}, 8*units.KiB })},
		{"small commands", 4, config(5, func(c *raid.Config) { c.MaxTransfer = 4 * units.KiB })},
	} {
		t.Run(c.name, func(t *testing.T) {
			blocktest.Conform(t, func(t *testing.T, sink blocktest.Sink) blocktest.Subject {
				eng := sim.New()
				return blocktest.Subject{Device: volume(t, c.cfg, c.members, eng, 4<<20, sink),
					Step: func() bool { return eng.Run(sim.Forever) > 0 }}
			})
		})
	}
}

// bench drives a volume manually: commands are recorded and complete in the order that the test chooses.
type bench struct {
	t       *testing.T
	raid    *raid.Raid
	pending []command
	ended   []uint64
}

type command struct {
	member int
	block.Request
}

func newBench(t *testing.T, cfg raid.Config, members int, each int64) *bench {
	t.Helper()
	b := &bench{t: t}
	var err error
	b.raid, err = raid.New(cfg, members, each,
		func(m int, part block.Request) { b.pending = append(b.pending, command{m, part}) },
		func(tag uint64, status block.Status) {
			if status != block.OK {
				t.Errorf("request %d: %v", tag, status)
			}
			b.ended = append(b.ended, tag)
		})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// step completes all outstanding commands and returns them.
func (b *bench) step() []command {
	now := b.pending
	b.pending = nil
	for _, c := range now {
		b.raid.Ended(c.Tag, block.OK)
	}
	return now
}

// all executes one request and returns its steps.
func (b *bench) all(op block.Op, offset, length int64) (steps [][]command) {
	b.t.Helper()
	n := len(b.ended)
	b.raid.Begin(block.Request{Tag: 7, Op: op, Offset: offset, Length: length})
	for len(b.pending) > 0 {
		steps = append(steps, b.step())
	}
	if len(b.ended) != n+1 || b.raid.Inside() != 0 {
		b.t.Fatalf("%v of %d at %d: %d requests ended", op, length, offset, len(b.ended)-n)
	}
	return steps
}

func count(steps [][]command) (reads, writes int, bytes int64) {
	for _, s := range steps {
		for _, c := range s {
			bytes += c.Length
			if c.Op == block.Read {
				reads++
			} else {
				writes++
			}
		}
	}
	return reads, writes, bytes
}

// TestCosts compares the cost of requests with closed forms: a small write takes 4 commands with one parity and 6 with
// two, a whole row the writes of its members without reads, and mirrors one command per copy.
func TestCosts(t *testing.T) {
	const each = 1 << 26
	k := int64(chunk)
	gone := func(m ...int) func(*raid.Config) { return func(c *raid.Config) { c.Failed = m } }
	for _, c := range []struct {
		name           string
		cfg            raid.Config
		members        int
		op             block.Op
		offset, length int64
		reads, writes  int
		bytes          int64
	}{
		{"0: small write", config(0, nil), 4, block.Write, 4096, 4096, 0, 1, 4096},
		{"0: a row", config(0, nil), 4, block.Write, 0, 4 * k, 0, 4, 4 * k},
		{"1: small write", config(1, nil), 2, block.Write, 4096, 4096, 0, 2, 2 * 4096},
		{"10: across chunks", config(1, nil), 4, block.Write, k - 4096, 8192, 0, 4, 4 * 4096},
		{"1: read", config(1, nil), 2, block.Read, 4096, 4096, 1, 0, 4096},
		{"5: small write", config(5, nil), 5, block.Write, 4096, 4096, 2, 2, 4 * 4096},
		{"6: small write", config(6, nil), 8, block.Write, 4096, 4096, 3, 3, 6 * 4096},
		{"5 of three: the other data is nearer than data and parity", config(5, nil), 3, block.Write, 4096, 4096, 1,
			2, 3 * 4096},
		{"5: a row", config(5, nil), 5, block.Write, 4 * k, 4 * k, 0, 5, 5 * k},
		{"6: two rows", config(6, nil), 6, block.Write, 0, 8 * k, 0, 12, 12 * k},
		{"5: three of four chunks", config(5, nil), 5, block.Write, 0, 3 * k, 1, 4, 5 * k},
		{"5: one of four chunks", config(5, nil), 5, block.Write, 0, k, 2, 2, 4 * k},
		{"5: read of a row", config(5, nil), 5, block.Read, 0, 4 * k, 4, 0, 4 * k},
		// Row 0 has its parity on the last member and its first data on the first.
		{"5 degraded: read of what is gone", config(5, gone(0)), 5, block.Read, 0, 4096, 4, 0, 4 * 4096},
		{"5 degraded: read of what is there", config(5, gone(0)), 5, block.Read, k, 4096, 1, 0, 4096},
		{"5 degraded: read of a row", config(5, gone(0)), 5, block.Read, 0, 4 * k, 4, 0, 4 * k},
		{"5 degraded: small write of what is gone", config(5, gone(0)), 5, block.Write, 0, 4096, 3, 1, 4 * 4096},
		{"5 degraded: small write beside it", config(5, gone(0)), 5, block.Write, k, 4096, 2, 2, 4 * 4096},
		{"5 degraded: without its parity", config(5, gone(4)), 5, block.Write, k, 4096, 0, 1, 4096},
		{"5 degraded: a row", config(5, gone(0)), 5, block.Write, 0, 4 * k, 0, 4, 4 * k},
		// Row 0 of six members has P on the last member and Q on the first, followed by the data.
		{"6 degraded twice: read of what is gone", config(6, gone(1, 2)), 6, block.Read, 0, 4096, 4, 0, 4 * 4096},
		{"6 degraded twice: small write of what is gone", config(6, gone(1, 2)), 6, block.Write, 0, 4096, 4, 2,
			6 * 4096},
		{"6 without Q: small write", config(6, gone(0)), 6, block.Write, 0, 4096, 2, 2, 4 * 4096},
		{"1 degraded: write", config(1, gone(1)), 2, block.Write, 0, 4096, 0, 1, 4096},
		{"5: a trim of a row and a half", config(5, nil), 5, block.Trim, 0, 6 * k, 0, 5, 5 * k},
	} {
		b := newBench(t, c.cfg, c.members, each)
		steps := b.all(c.op, c.offset, c.length)
		if r, w, n := count(steps); r != c.reads || w != c.writes || n != c.bytes {
			t.Errorf("%s: %d reads, %d writes, %d bytes; %d, %d and %d were to be", c.name, r, w, n, c.reads,
				c.writes, c.bytes)
		}
		if len(steps) != 1 && (c.reads == 0 || c.writes == 0) || len(steps) != 2 && c.reads > 0 && c.writes > 0 {
			t.Errorf("%s: %d steps", c.name, len(steps))
		}
		n := uint64(0)
		for _, v := range b.raid.Counters.Bytes {
			n += v
		}
		if n != uint64(c.bytes) {
			t.Errorf("%s: %d bytes are counted", c.name, n)
		}
	}
}

// layout finds the members of a row's data and parities from the commands of whole-row and single-chunk writes.
func layout(t *testing.T, level, members, row int) (data, parities []int) {
	d := members - level + 4
	b := newBench(t, config(level, nil), members, 1<<24)
	for j := range d {
		steps := b.all(block.Read, int64(row*d+j)*int64(chunk), int64(chunk))
		if len(steps) != 1 || len(steps[0]) != 1 || steps[0][0].Offset != int64(row)*int64(chunk) {
			t.Fatalf("level %d: chunk %d of row %d: %+v", level, j, row, steps)
		}
		data = append(data, steps[0][0].member)
	}
	in := map[int]bool{}
	for _, m := range data {
		in[m] = true
	}
	for m := range members {
		if !in[m] {
			parities = append(parities, m)
		}
	}
	return data, parities
}

// TestLayout verifies that the data of a row are on distinct members, that parities rotate, and that consecutive chunks
// visit all members in turn, as in left-symmetric layouts.
func TestLayout(t *testing.T) {
	for _, c := range []struct{ level, members int }{{5, 4}, {5, 7}, {6, 5}, {6, 8}} {
		turns := make([]int, c.members)
		var order []int
		for row := range c.members {
			data, parities := layout(t, c.level, c.members, row)
			if len(parities) != c.level-4 {
				t.Errorf("level %d: row %d has data on %v", c.level, row, data)
			}
			for _, m := range parities {
				turns[m]++
			}
			order = append(order, data...)
		}
		for m, n := range turns {
			if n != c.level-4 {
				t.Errorf("level %d: member %d has %d parities in as many rows as members", c.level, m, n)
			}
		}
		if c.level == 5 {
			for i := range order[1:] {
				if order[i+1] != (order[i]+1)%c.members {
					t.Fatalf("chunk %d is on member %d, behind one on %d", i+1, order[i+1], order[i])
				}
			}
		}
	}
}

// TestEnough verifies, for random writes on intact and degraded volumes and byte by byte, that the reads before a write
// suffice to compute the parities written: all of the row's data, or the old data and that parity, or as many members
// as there are data. Failed members are neither read nor written, and all new data is written or covered by a parity.
func TestEnough(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const k = 4096
	for n := range 3000 {
		level := 5 + n%2
		members := level - 2 + r.IntN(5)
		cfg := config(level, func(c *raid.Config) {
			c.Chunk = k
			c.Failed = append(c.Failed, r.Perm(members)[:r.IntN(level-3)]...)
		})
		d := members - level + 4
		b := newBench(t, cfg, members, 1<<20)
		row := r.IntN(20)
		from := r.IntN(d*k/512) * 512
		to := from + 512*(1+r.IntN((d*k-from)/512))
		steps := b.all(block.Write, int64(row*d*k+from), int64(to-from))
		data, parities := layoutOf(level, members, row)
		failed := map[int]bool{}
		for _, m := range cfg.Failed {
			failed[m] = true
		}
		has := func(op block.Op, m, at int) bool {
			for _, s := range steps {
				for _, c := range s {
					if c.Op == op && c.member == m && int(c.Offset)-row*k <= at && at < int(c.Offset+c.Length)-row*k {
						return true
					}
				}
			}
			return false
		}
		for _, s := range steps {
			for _, c := range s {
				if failed[c.member] {
					t.Fatalf("%+v of a member that has failed: %+v", c, cfg)
				}
			}
		}
		for at := 0; at < k; at += 512 {
			whole, old, read, touched, lost := true, true, 0, false, false
			for j, m := range data {
				in := from <= j*k+at && j*k+at < to
				touched = touched || in
				if in != has(block.Write, m, at) && !failed[m] {
					t.Fatalf("member %d is written at %d, and that is new: %v", m, at, in)
				}
				lost = lost || in && failed[m]
				whole = whole && (in || has(block.Read, m, at))
				old = old && (!in || has(block.Read, m, at))
				if has(block.Read, m, at) {
					read++
				}
			}
			for _, m := range parities {
				if has(block.Read, m, at) {
					read++
				}
			}
			left := 0
			for _, m := range parities {
				if !has(block.Write, m, at) {
					if touched && !failed[m] {
						t.Fatalf("a parity of new data is not written: %+v, %d to %d of row %d", cfg, from, to, row)
					}
					continue
				}
				left++
				if touched && !whole && !(old && has(block.Read, m, at)) && read < d {
					t.Fatalf("parity %d at %d is not known from what was read: %+v, %d to %d of row %d: %+v", m, at,
						cfg, from, to, row, steps)
				}
			}
			if lost && left == 0 {
				t.Fatalf("new data of a failed member is nowhere: %+v", cfg)
			}
		}
	}
}

// layoutOf returns the members of a row in Linux' left-symmetric layouts: parities descend from the last member, and
// the data follow them.
func layoutOf(level, members, row int) (data, parities []int) {
	p := members - 1 - row%members
	for i := range members {
		if m := (p + i) % members; i < level-4 {
			parities = append(parities, m)
		} else {
			data = append(data, m)
		}
	}
	return data, parities
}

// TestRows verifies that writes of one row are serialised, and writes of different rows are not.
func TestRows(t *testing.T) {
	b := newBench(t, config(5, nil), 5, 1<<24)
	begin := func(tag uint64, offset int64) {
		b.raid.Begin(block.Request{Tag: tag, Op: block.Write, Offset: offset, Length: 4096})
	}
	begin(1, 0)
	begin(2, 8192)
	begin(3, 4*int64(chunk))
	begin(4, 4096)
	if len(b.pending) != 4 || b.raid.Counters.Waited != 2 {
		t.Fatalf("%d commands, %d rows wait", len(b.pending), b.raid.Counters.Waited)
	}
	b.step() // the reads of 1 and 3
	b.step() // their writes
	if fmt.Sprint(b.ended) != "[1 3]" || len(b.pending) != 2 {
		t.Fatalf("%v ended, %d commands follow", b.ended, len(b.pending))
	}
	for len(b.pending) > 0 {
		b.step()
	}
	if fmt.Sprint(b.ended) != "[1 3 2 4]" {
		t.Errorf("they ended as %v", b.ended)
	}
}

// TestBalance verifies that reads of mirrors go to the member with the fewest commands, evenly.
func TestBalance(t *testing.T) {
	b := newBench(t, config(1, nil), 2, 1<<24)
	for i := range 10 {
		b.raid.Begin(block.Request{Tag: uint64(i), Op: block.Read, Length: 4096})
	}
	n := 0
	for _, c := range b.pending {
		n += c.member
	}
	if n != 5 {
		t.Errorf("%d of 10 reads go to the second of two copies", n)
	}
	// The first member completes all of its commands, so the next five go to it.
	left := b.pending[:0:0]
	for _, c := range b.pending {
		if c.member == 0 {
			b.raid.Ended(c.Tag, block.OK)
		} else {
			left = append(left, c)
		}
	}
	b.pending = left
	for i := range 5 {
		b.raid.Begin(block.Request{Tag: uint64(20 + i), Op: block.Read, Length: 4096})
	}
	for _, c := range b.pending[5:] {
		if c.member != 0 {
			t.Error("a read goes to the copy that has more to do")
		}
	}
}

// TestRebuild verifies that a rebuild reads as many members as a row has data and writes one, at its rate and no
// faster, concurrently with requests; that rebuilt rows are no longer degraded, and at the end no row is.
func TestRebuild(t *testing.T) {
	const each, rate = 4 << 20, 100 * 1000 * 1000
	for _, c := range []struct{ level, members, data int }{{1, 2, 1}, {5, 4, 3}, {6, 6, 4}} {
		cfg := config(c.level, func(x *raid.Config) { x.Failed, x.Rebuild = []int{1}, rate })
		eng := sim.New()
		ended := 0
		d := volume(t, cfg, c.members, eng, each, func(x block.Completion) {
			if x.Status != block.OK {
				t.Errorf("%v", x.Status)
			}
			ended++
		})
		q, err := d.Open(block.QueueConfig{Depth: 32, Weight: 1})
		if err != nil {
			t.Fatal(err)
		}
		clock := &clock{eng: eng, raid: d}
		clock.self, clock.target = eng.NewComponent(), eng.AddHandler(clock)
		eng.Schedule(clock.self, clock.target, 0, 0, 0)
		for eng.Pending() > 0 {
			eng.Run(eng.Next())
			if ended < 20 && d.Raid().Rebuilt() > 0.5 && d.Raid().Rebuilt() < 0.6 && d.Raid().Inside() == 0 {
				// The first row is rebuilt: reading it needs no reconstruction, and a write of it reaches all the
				// members that it must.
				before := d.Raid().Counters
				d.Submit(q, block.Request{Op: block.Read, Length: 4096})
				d.Submit(q, block.Request{Op: block.Write, Length: d.Capacity(0) / (each / int64(chunk))})
				if after := d.Raid().Counters; after.Degraded != before.Degraded {
					t.Errorf("level %d: a row that is rebuilt is degraded", c.level)
				} else if n := after.Commands[block.Write] - before.Commands[block.Write]; n != uint64(c.members) {
					t.Errorf("level %d: a row that is rebuilt is written with %d commands", c.level, n)
				}
			}
		}
		x := d.Raid().Counters
		rows := uint64(each / int64(chunk))
		own := d.Capacity(0) / (each / int64(chunk))
		if x.RebuiltRows != rows || d.Raid().Rebuilt() != 1 || d.Raid().Rebuilding() {
			t.Errorf("level %d: %d of %d rows", c.level, x.RebuiltRows, rows)
		}
		reads := rows * uint64(c.data) * uint64(chunk)
		if c.level == 1 {
			reads = rows * uint64(chunk)
		}
		writes := rows * uint64(chunk)
		requests := uint64(ended) / 2
		if got := x.Bytes[block.Read] - requests*4096; got != reads {
			t.Errorf("level %d: the rebuild reads %d bytes, and should read %d", c.level, got, reads)
		}
		if got := x.Bytes[block.Write] - requests*uint64(own)*uint64(c.members)/uint64(c.data); got != writes {
			t.Errorf("level %d: the rebuild writes %d bytes, and should write %d", c.level, got, writes)
		}
		took := clock.last.Seconds()
		if want := float64(each-int64(chunk)) / rate; took < want || took > want*1.1 {
			t.Errorf("level %d: it took %v s, and should take %v s", c.level, took, want)
		}
		if requests == 0 {
			t.Error("nothing was asked of it meanwhile")
		}
	}
}

// clock drives a rebuild.
type clock struct {
	eng    *sim.Engine
	raid   *raid.Device
	self   sim.Component
	target sim.Target
	last   sim.Time
}

func (c *clock) Handle(sim.Event) {
	if next, more := c.raid.Rebuild(c.eng.Now()); more {
		c.last = c.eng.Now()
		c.eng.Schedule(c.self, c.target, next, 0, 0)
	}
}

// TestValidate verifies which configurations are refused, and the messages.
func TestValidate(t *testing.T) {
	for want, c := range map[string]struct {
		members int
		cfg     raid.Config
	}{
		"level: 4 is not possible":                       {4, config(4, nil)},
		"level: 2 members are not possible with level 5": {2, config(5, nil)},
		"copies: 2 copies do not divide 3 members":       {3, config(1, nil)},
		"failed: 2 members have failed, but level 5 survives only 1; list fewer": {4,
			config(5, func(c *raid.Config) { c.Failed = []int{0, 1} })},
		"failed: 1 members have failed, but level 0 survives only 0; list fewer": {4,
			config(0, func(c *raid.Config) { c.Failed = []int{0} })},
		"failed: members 2 to 3 hold all copies": {4,
			config(1, func(c *raid.Config) { c.Failed = []int{2, 3} })},
		"failed[1]: 1 is not possible": {5,
			config(6, func(c *raid.Config) { c.Failed = []int{1, 1} })},
		"rebuild: no member has failed": {4,
			config(5, func(c *raid.Config) { c.Rebuild = 1 })},
		"chunk: 700B is not possible; use a multiple of 512B": {4,
			config(5, func(c *raid.Config) { c.Chunk = 700 })},
	} {
		if err := c.cfg.Validate(c.members); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, wanted %s", err, want)
		}
	}
	if _, err := raid.New(config(5, nil), 4, 4096, nil, nil); err == nil ||
		!strings.Contains(err.Error(), "smaller than a chunk") {
		t.Error(err)
	}
}
