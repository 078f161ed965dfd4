package ssd

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"farflash/block"
	"farflash/model/ssd/nand"
	"farflash/numeric/units"
	"farflash/sim"

	"github.com/cockroachdb/datadriven"
)

// Step-by-step tests of parts of the drive. testdata holds the steps, the expected results and the reasons.

const us = units.Microsecond

// round returns a drive with round times: a command holds the channel for 1 us and a page of data for 2; the array
// reads in 10 us, programs in 100 and erases in 1000. A suspension takes just 1 us on the channel.
func round() Config {
	cfg := DefaultConfig()
	cfg.Mapping.Grain = 0
	each := func(d units.Duration) [4]units.Duration { return [4]units.Duration{d, d, d, d} }
	cfg.Geometry = nand.Geometry{Channels: 1, ChipsPerChannel: 1, DiesPerChip: 1, PlanesPerDie: 1,
		BlocksPerPlane: 128, PagesPerBlock: 16, PageSize: 8192}
	cfg.Timing = nand.Timing{
		Cell: nand.SLC, Read: each(10 * us), Program: each(100 * us), Erase: 1000 * us,
		TransferRate: 4_096_000_000, Width: 1, TCS: 1 * us,
	}
	cfg.Cache.Mode = CacheOff
	cfg.Mapping.Ideal = true
	return cfg
}

// count reads a numeric argument.
func count(t *testing.T, d *datadriven.TestData, key string, def int) int {
	t.Helper()
	v := def
	d.MaybeScanArgs(t, key, &v)
	return v
}

// bench is a scheduler that is fed transactions by hand. The layers above it take no part, so programs and erases need
// no translation layer.
type bench struct {
	t      *testing.T
	d      *Drive
	eng    *sim.Engine
	self   sim.Component
	target sim.Target
	nobody int32 // a dummy write that all others are paired with
	names  map[int32]string
	byName map[string]int32
	due    [][]int32 // transactions that enter at the same time
	out    strings.Builder
}

func newBench(t *testing.T, td *datadriven.TestData) *bench {
	t.Helper()
	cfg := round()
	cfg.Mapping.Allocation = AllocateStatic // so that pages have the flash's numbers
	cfg.Mapping.Grain = Grain(count(t, td, "grain", 0))
	cfg.Geometry.DiesPerChip, cfg.Geometry.PlanesPerDie = count(t, td, "dies", 1), count(t, td, "planes", 1)
	if td.HasArg("weights") {
		td.ScanArgs(t, "weights", &cfg.Host.Weights[0], &cfg.Host.Weights[1], &cfg.Host.Weights[2])
	}
	s := &cfg.Scheduling
	s.SuspendProgram, s.SuspendErase, s.SuspendEraseForWrite = td.HasArg("suspend-program"),
		td.HasArg("suspend-erase"), td.HasArg("suspend-erase-for-write")
	s.ProgramLeftForRead, s.EraseLeftForRead, s.EraseLeftForWrite = 20*us, 200*us, 300*us
	cfg.Timing.SuspendProgram = units.Duration(count(t, td, "program-stops", 0)) * us
	cfg.Timing.SuspendErase = units.Duration(count(t, td, "erase-stops", 0)) * us
	s.IndependentReads, s.ReadsInTurn = td.HasArg("independent-reads"), td.HasArg("reads-in-turn")
	cfg.Collection.Preemptible = !td.HasArg("gc-first")
	b := &bench{t: t, eng: sim.New(), names: map[int32]string{}, byName: map[string]int32{}}
	var err error
	if b.d, err = New(cfg, b.eng, &asker{}, 1, "ssd"); err != nil {
		t.Fatal(err)
	}
	if td.HasArg("gc-first") {
		b.d.lanes[0].collecting = 1
	}
	b.nobody, _ = b.d.newTransaction()
	b.self, b.target = b.eng.NewComponent(), b.eng.AddHandler(b)
	b.d.OnWork = func(w Work) {
		if w.Activity.OnBus() {
			return
		}
		l := &b.d.lanes[w.Number]
		var who []string
		for _, x := range l.txns[:l.n] {
			who = append(who, b.names[x])
		}
		again := ""
		if w.Resumed {
			again = " goes on"
		}
		fmt.Fprintf(&b.out, "%v to %v, die %d: %v %s%s\n", w.Begin, w.End, w.Number, w.Activity,
			strings.Join(who, ","), again)
	}
	b.d.OnSuspend = func(s Suspension) { fmt.Fprintf(&b.out, "%v, die %d: suspended\n", s.At, s.Number) }
	return b
}

// Handle makes the transactions of one time enter the scheduler.
func (b *bench) Handle(e sim.Event) {
	b.d.openBatch()
	for _, x := range b.due[e.Arg] {
		b.d.enqueue(x, b.d.txns.At(x))
	}
	b.d.closeBatch()
}

// kinds maps the words of the test files to queues; the host's have four each, by class.
var kinds = map[string]uint8{
	"read": queueHostRead, "write": queueHostWrite, "mapping-read": queueMappingRead,
	"mapping-write": queueMappingWrite,
	"move-read":     queueMoveRead, "move-write": queueMoveWrite, "erase": queueErase,
}

// add parses "TIME NAME KIND key=value...": die, plane, page, class, and after, the transaction that must complete
// first.
func (b *bench) add(line string) {
	b.t.Helper()
	words := strings.Fields(line)
	at, err := units.ParseDuration(words[0])
	kind, ok := kinds[words[2]]
	if err != nil || !ok {
		b.t.Fatalf("%q: %v", line, err)
	}
	t, x := b.d.newTransaction()
	b.names[t], b.byName[words[1]] = words[1], t
	x.origin, x.pair, x.queue, x.bytes = fromUpdate, b.nobody, kind, 8192
	class, die, plane, page := block.High, 0, 0, 0
	for _, w := range words[3:] {
		key, value, _ := strings.Cut(w, "=")
		switch key {
		case "class":
			err = class.UnmarshalText([]byte(value))
		case "after":
			x.waitsFor++
			b.d.txns.At(b.byName[value]).pair = t
		default:
			_, err = fmt.Sscan(value, map[string]*int{"die": &die, "plane": &plane, "page": &page}[key])
		}
		if err != nil {
			b.t.Fatalf("%q: %v", line, err)
		}
	}
	if words[2] == "read" || words[2] == "write" {
		x.queue += uint8(class)
	}
	g := &b.d.cfg.Geometry
	b.d.at(x, uint32(((die*g.PlanesPerDie+plane)*int(g.PagesPerPlane())+page)*int(b.d.grains)))
	if n := len(b.due); n == 0 || b.d.txns.At(b.due[n-1][0]).created != at {
		b.due = append(b.due, nil)
		b.eng.Schedule(b.self, b.target, at, 0, uint32(n))
	}
	x.created = at
	b.due[len(b.due)-1] = append(b.due[len(b.due)-1], t)
}

// TestScheduler verifies which command each die gets, and when.
func TestScheduler(t *testing.T) {
	datadriven.RunTest(t, "testdata/scheduler", func(t *testing.T, td *datadriven.TestData) string {
		b := newBench(t, td)
		for _, line := range strings.Split(strings.TrimSpace(td.Input), "\n") {
			b.add(line)
		}
		b.eng.Run(sim.Forever)
		for q, s := range b.d.queueStats {
			if s.Entered != s.Left {
				t.Errorf("%s: %d of %d never left their queue", queueNames[q], s.Entered-s.Left, s.Entered)
			}
		}
		return b.out.String()
	})
}

// asker submits requests and records the order in which they complete.
type asker struct {
	d    *Drive
	eng  *sim.Engine
	done []block.Completion
}

func (a *asker) Complete(c block.Completion) { a.done = append(a.done, c) }

func newAsker(t *testing.T, cfg Config) *asker {
	t.Helper()
	a := &asker{eng: sim.New()}
	var err error
	if a.d, err = New(cfg, a.eng, a, 1, "ssd"); err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *asker) open(t *testing.T, c block.QueueConfig) block.QueueID {
	t.Helper()
	q, err := a.d.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// TestMappingTable verifies the contents of the cached mapping table: each page is read or written separately, with the
// drive idle in between.
func TestMappingTable(t *testing.T) {
	var a *asker
	var q block.QueueID
	datadriven.RunTest(t, "testdata/mapping", func(t *testing.T, td *datadriven.TestData) string {
		if td.Cmd == "table" {
			cfg := round()
			cfg.Mapping.Ideal = false
			cfg.Geometry.BlocksPerPlane = 1024 // whose map takes several pages
			cfg.Quirks.WriteBackUses = td.HasArg("write-back-uses")
			a = newAsker(t, cfg)
			a.d.tables[0].most = count(t, td, "entries", 4)
			q = a.open(t, block.QueueConfig{Depth: 8, Weight: 1})
			return fmt.Sprintf("%d entries to a mapping page\n", a.d.entriesPerPage)
		}
		var out strings.Builder
		op := map[string]block.Op{"read": block.Read, "write": block.Write}[td.Cmd]
		for _, arg := range td.CmdArgs {
			var page int64
			if _, err := fmt.Sscan(arg.Key, &page); err != nil {
				t.Fatal(err)
			}
			was := a.d.Stats()
			a.d.Submit(q, block.Request{Op: op, Offset: page * 8192, Length: 8192})
			a.eng.Run(sim.Forever)
			s := a.d.Stats()
			what := "miss"
			if s.MapHits > was.MapHits {
				what = "hit"
			}
			fmt.Fprintf(&out, "%d: %s, %d mapping reads, %d mapping programs; kept", page, what,
				s.MappingReads-was.MappingReads, s.MappingPrograms-was.MappingPrograms)
			c := &a.d.tables[0]
			for e := c.front; e != 0; e = c.entries[e].next {
				dirty := ""
				if c.entries[e].dirty {
					dirty = "*"
				}
				fmt.Fprintf(&out, " %d%s", c.entries[e].logical, dirty)
			}
			out.WriteString("\n")
		}
		return out.String()
	})
}

// TestArbitrationSteps verifies the order in which the controller fetches from queues that all wait, with one command
// in it at a time.
func TestArbitrationSteps(t *testing.T) {
	datadriven.RunTest(t, "testdata/arbitration", func(t *testing.T, td *datadriven.TestData) string {
		cfg := round()
		cfg.Host.Commands, cfg.Host.Burst = 1, count(t, td, "burst", 1)
		td.MaybeScanArgs(t, "weights", &cfg.Host.Weights[0], &cfg.Host.Weights[1], &cfg.Host.Weights[2])
		a := newAsker(t, cfg)
		var names []string
		var counts []int
		for _, line := range strings.Split(strings.TrimSpace(td.Input), "\n") {
			var name, class string
			var weight, n int
			if _, err := fmt.Sscanf(line, "%s class=%s weight=%d n=%d", &name, &class, &weight, &n); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			c := block.QueueConfig{Depth: 64, Weight: weight}
			if err := c.Class.UnmarshalText([]byte(class)); err != nil {
				t.Fatal(err)
			}
			a.open(t, c)
			names, counts = append(names, name), append(counts, n)
		}
		// The first command of the first queue takes the only place; all others are waiting before it completes.
		for most := slices.Max(counts); most > 0; most-- {
			for q, n := range counts {
				if n > 0 {
					counts[q]--
					a.d.Submit(block.QueueID(q), block.Request{Op: block.Read, Length: 8192})
				}
			}
		}
		a.eng.Run(sim.Forever)
		var out strings.Builder
		for _, c := range a.done {
			out.WriteString(names[c.Queue])
		}
		return out.String() + "\n"
	})
}
