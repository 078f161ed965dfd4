package ratecontrol_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"farflash/block"
	"farflash/policy/ratecontrol"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"
)

// pushed is a command as recorded by the tests.
type pushed struct {
	op             block.Op
	space          uint8
	offset, length int64
	ticket         int32
	fetched, done  bool
	ahead          []int32 // those that overlap it and waited on its arrival
	queue          int
}

func (p *pushed) overlaps(o *pushed) bool {
	return p.space == o.space && p.offset < o.offset+o.length && o.offset < p.offset+p.length
}

// model is a reference that walks all commands.
type model struct {
	q        *ratecontrol.Queues
	depth    int
	commands []*pushed
	waiting  []int32
	inside   []int32
}

// kind returns the queue of an operation.
func kind(op block.Op) int {
	if op == block.Read {
		return ratecontrol.ReadQueue
	}
	return ratecontrol.WriteQueue
}

func (m *model) push(p *pushed) {
	id := int32(len(m.commands))
	p.queue = kind(p.op)
	for _, k := range m.waiting {
		if o := m.commands[k]; p.overlaps(o) {
			p.ahead = append(p.ahead, k)
			p.queue = o.queue // the latest is the last of them
		}
	}
	m.commands = append(m.commands, p)
	m.waiting = append(m.waiting, id)
	p.ticket = m.q.Push(id, p.op, p.space, p.offset, p.length)
}

// mixed reports whether the commands that a command overlapped waited in both queues.
func (m *model) mixed(p *pushed) bool {
	in := [2]bool{}
	for _, k := range p.ahead {
		in[m.commands[k].queue] = true
	}
	return in[0] && in[1]
}

// next fetches a command and compares it with the model.
func (m *model) next(t interface{ Fatalf(string, ...any) }) (id int32, ok bool) {
	id, queue, ok := m.q.Next()
	if !ok {
		return 0, false
	}
	p := m.commands[id]
	switch {
	case p.fetched:
		t.Fatalf("%d is fetched twice", id)
	case queue != p.queue:
		t.Fatalf("%d comes out of queue %d, not %d", id, queue, p.queue)
	case len(m.inside) >= m.depth:
		t.Fatalf("%d commands in a depth of %d", len(m.inside)+1, m.depth)
	}
	for _, k := range p.ahead {
		if o := m.commands[k]; !o.fetched || m.mixed(p) && !o.done {
			t.Fatalf("%d is fetched ahead of %d, which it overlaps", id, k)
		}
	}
	for i, k := range m.waiting {
		if k == id {
			m.waiting = append(m.waiting[:i:i], m.waiting[i+1:]...)
			break
		}
		if m.commands[k].queue == queue {
			t.Fatalf("%d is fetched ahead of %d in queue %d", id, k, queue)
		}
	}
	p.fetched = true
	m.inside = append(m.inside, id)
	return id, true
}

func (m *model) done(i int) {
	id := m.inside[i]
	m.inside = append(m.inside[:i:i], m.inside[i+1:]...)
	m.commands[id].done = true
	m.q.Done(m.commands[id].ticket)
}

// TestSharesOfTheDepth verifies that the depth is divided in proportion to the weights, rounded, with at least one
// place per queue; that while both wait, a freed place goes to the queue that had it, in any order of completion; and
// that when one queue is empty, the other has the whole depth.
func TestSharesOfTheDepth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		depth := rapid.IntRange(2, 40).Draw(t, "depth")
		read, write := rapid.IntRange(1, 12).Draw(t, "read"), rapid.IntRange(1, 12).Draw(t, "write")
		q := ratecontrol.NewQueues(depth)
		q.SetWeights(read, write)
		tickets := map[int32]int32{}
		const n = 200
		for id := range int32(2 * n) {
			op := block.Read
			if id >= n {
				op = block.Write
			}
			tickets[id] = q.Push(id, op, 0, int64(id)*4096, 4096)
		}
		var inside [2][]int32
		fill := func() {
			for {
				id, queue, ok := q.Next()
				if !ok {
					return
				}
				inside[queue] = append(inside[queue], id)
			}
		}
		fill()
		// Rounded half up; at least one each.
		reads := min(max((2*depth*read+read+write)/(2*(read+write)), 1), depth-1)
		for range 60 {
			if len(inside[0]) != reads || len(inside[1]) != depth-reads || q.Inside(0) != reads ||
				q.Inside(1) != depth-reads {
				t.Fatalf("%d reads and %d writes of %d at weights %d and %d, %d reads are their part", len(inside[0]),
					len(inside[1]), depth, read, write, reads)
			}
			k := rapid.IntRange(0, 1).Draw(t, "queue")
			i := rapid.IntRange(0, len(inside[k])-1).Draw(t, "which")
			q.Done(tickets[inside[k][i]])
			inside[k] = append(inside[k][:i], inside[k][i+1:]...)
			fill()
		}
		for q.Waiting(0) > 0 { // until no read waits
			q.Done(tickets[inside[0][0]])
			inside[0] = inside[0][1:]
			fill()
		}
		for len(inside[0]) > 0 {
			q.Done(tickets[inside[0][0]])
			inside[0] = inside[0][1:]
		}
		if fill(); q.Inside(1) != min(depth, len(inside[1])+q.Waiting(1)) {
			t.Errorf("%d writes are in a drive of %d, and %d wait", q.Inside(1), depth, q.Waiting(1))
		}
		if err := q.Check(); err != nil {
			t.Error(err)
		}
	})
}

// TestNoReordering verifies under arbitrary arrivals, completions and weights that overlapping commands are fetched in
// order of arrival, that each queue is in order, that the depth is respected, and that every command comes out.
func TestNoReordering(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		depth := rapid.IntRange(1, 12).Draw(t, "depth")
		m := &model{q: ratecontrol.NewQueues(depth), depth: depth}
		m.q.SetPartition(rapid.SampledFrom([]ratecontrol.Partition{ratecontrol.WhileBothWait,
			ratecontrol.Always}).Draw(t, "partition"))
		places := rapid.SampledFrom([]int64{4, 40, 4000}).Draw(t, "places")
		check := func() {
			if err := m.q.Check(); err != nil {
				t.Fatalf("%v", err)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				for range rapid.IntRange(1, 8).Draw(t, "n") {
					p := &pushed{op: rapid.SampledFrom([]block.Op{block.Read, block.Write, block.Trim,
						block.Flush}).Draw(t, "op"), space: uint8(rapid.IntRange(0, 1).Draw(t, "space"))}
					if p.op != block.Flush {
						p.offset, p.length = rapid.Int64Range(0, places).Draw(t, "offset")*512,
							rapid.Int64Range(1, 4).Draw(t, "length")*512
					}
					m.push(p)
				}
			},
			"next": func(t *rapid.T) { m.next(t) },
			"done": func(t *rapid.T) {
				if len(m.inside) > 0 {
					m.done(rapid.IntRange(0, len(m.inside)-1).Draw(t, "which"))
				}
			},
			"weights": func(t *rapid.T) {
				m.q.SetWeights(rapid.IntRange(0, 5).Draw(t, "read"), rapid.IntRange(0, 20).Draw(t, "write"))
			},
			"": func(*rapid.T) { check() },
		})
		for len(m.waiting)+len(m.inside) > 0 {
			_, ok := m.next(t)
			if !ok && len(m.inside) == 0 {
				t.Fatalf("%d commands wait for nothing", len(m.waiting))
			}
			if !ok {
				m.done(0)
			}
			check()
		}
	})
}

// TestRounds verifies that while both queues have commands and places, each round fetches according to the weights,
// regardless of which commands follow others.
func TestRounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := ratecontrol.NewQueues(100000)
		read, write := rapid.IntRange(1, 6).Draw(t, "read"), rapid.IntRange(1, 40).Draw(t, "write")
		q.SetWeights(read, write)
		apart := rapid.Bool().Draw(t, "apart") // no overlaps
		at := rapid.Uint32().Draw(t, "seed")
		for i := range int64(2000) {
			place := i
			if !apart {
				at = at*1664525 + 1013904223
				place = int64(at>>8) % 3000
			}
			q.Push(int32(i), block.Op(i%2), 0, place*512, 512)
		}
		var paid [2]int
		for q.Waiting(0) > write && q.Waiting(1) > write {
			r, w := q.Tokens()
			id, _, ok := q.Next()
			if !ok {
				break // the heads of both queues wait for others to complete
			}
			nr, nw := q.Tokens()
			over := nr == read && nw == write && (r != nr || w != nw) // it was the last of its round
			switch {
			case nr == r && nw == w:
				continue // one of the queues has no command that may be fetched
			case !over && (nr > r || nw > w):
				paid = [2]int{} // a new round starts with it
			}
			paid[id%2]++
			if paid[0] > read || paid[1] > write {
				t.Fatalf("%v reads and writes in a round of %d and %d", paid, read, write)
			}
			if over && apart && paid != [2]int{read, write} {
				t.Fatalf("a round of %v, not %d and %d", paid, read, write)
			}
			if over {
				paid = [2]int{}
			}
		}
	})
}

// TestShares verifies that with both queues full, each has its share of the depth in the drive, at least one command; a
// single one has all of it.
func TestShares(t *testing.T) {
	for _, x := range []struct{ depth, read, write, reads, writes int }{
		{128, 1, 1, 64, 64}, {128, 1, 3, 32, 96}, {128, 1, 1000, 1, 127}, {10, 1, 2, 3, 7}, {2, 5, 1, 1, 1},
		{128, 1000, 1, 127, 1}, {1, 1, 1, 1, 0},
	} {
		q := ratecontrol.NewQueues(x.depth)
		q.SetWeights(x.read, x.write)
		for i := range int32(400) {
			q.Push(i, block.Op(i%2), 0, int64(i)*4096, 4096)
		}
		for {
			if _, _, ok := q.Next(); !ok {
				break
			}
		}
		if q.Inside(0) != x.reads || q.Inside(1) != x.writes {
			t.Errorf("depth %d, weights %d to %d: %d reads and %d writes, not %d and %d", x.depth, x.read, x.write,
				q.Inside(0), q.Inside(1), x.reads, x.writes)
		}
		alone := ratecontrol.NewQueues(x.depth)
		alone.SetWeights(x.read, x.write)
		for i := range int32(400) {
			alone.Push(i, block.Read, 0, int64(i)*4096, 4096)
		}
		for {
			if _, _, ok := alone.Next(); !ok {
				break
			}
		}
		if r, w := alone.Tokens(); alone.Inside(0) != x.depth || w != x.write || r != x.read {
			t.Errorf("depth %d: reads alone have %d places, tokens %d and %d", x.depth, alone.Inside(0), r, w)
		}
	}
}

// TestPartition verifies the closed form of a partition that always binds: a queue has its part of the depth and no
// more, whether the other has commands, has none, or is held; and with a drive that takes the same time for each
// command the rate of the reads is that part over the time (Little's law), whatever the writes are.
func TestPartition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		depth := rapid.IntRange(2, 64).Draw(t, "depth")
		read, write := rapid.IntRange(1, 12).Draw(t, "read"), rapid.IntRange(1, 40).Draw(t, "write")
		reads := min(max((2*depth*read+read+write)/(2*(read+write)), 1), depth-1) // rounded half up; at least one each
		part := [2]int{reads, depth - reads}
		q := ratecontrol.NewQueues(depth)
		q.SetPartition(ratecontrol.Always)
		q.SetWeights(read, write)
		// Writes may be as many as reads, few, or none. Each command is in the drive for took ticks.
		writes := rapid.IntRange(0, 2).Draw(t, "writes")
		held := rapid.Bool().Draw(t, "held")
		q.Hold(ratecontrol.WriteQueue, held)
		const took, rounds = 7, 20
		type inside struct {
			ticket int32
			until  int
		}
		var in []inside
		var tickets []int32
		push := func(op block.Op) {
			id := int32(len(tickets))
			tickets = append(tickets, q.Push(id, op, 0, int64(id)*4096, 4096))
		}
		done := [2]int{}
		for now := range took * rounds {
			for q.Waiting(ratecontrol.ReadQueue) < depth {
				push(block.Read)
			}
			for range writes {
				push(block.Write)
			}
			var left []inside
			for _, x := range in {
				if x.until == now {
					q.Done(x.ticket)
				} else {
					left = append(left, x)
				}
			}
			in = left
			for {
				id, k, ok := q.Next()
				if !ok {
					break
				}
				in = append(in, inside{tickets[id], now + took})
				done[k]++
			}
			for k, n := range part {
				if q.Inside(k) > n {
					t.Fatalf("queue %d has %d of %d places, and %d are its part", k, q.Inside(k), depth, n)
				}
			}
			if q.Inside(ratecontrol.ReadQueue) != reads {
				t.Fatalf("%d reads are in the drive; their part of %d is %d", q.Inside(0), depth, reads)
			}
			if err := q.Check(); err != nil {
				t.Fatal(err)
			}
		}
		if done[0] != reads*rounds || held && done[1] > 0 {
			t.Errorf("%d reads in the time of %d commands, with %d places; %d writes, held %v", done[0], rounds, reads,
				done[1], held)
		}
	})
}

// TestAloneTakesNoTokens verifies that commands fetched while the other queue has none neither take tokens nor move
// the turn: a mix that is fetched with such phases in between has the same order as without them.
func TestAloneTakesNoTokens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		read, write := rapid.IntRange(1, 6).Draw(t, "read"), rapid.IntRange(1, 6).Draw(t, "write")
		fetched := func(phases []int) (order []int) {
			q := ratecontrol.NewQueues(1 << 20)
			q.SetWeights(read, write)
			next, apart := int32(0), map[int32]bool{} // fetched in a phase
			push := func(op block.Op) { q.Push(next, op, 0, int64(next)*4096, 4096); next++ }
			for _, n := range phases {
				for i := range abs(n) { // alone: reads if n is positive, otherwise writes
					apart[next] = true
					push(map[bool]block.Op{true: block.Read, false: block.Write}[n > 0])
					r, w := q.Tokens()
					if _, _, ok := q.Next(); !ok {
						t.Fatalf("command %d of a phase is not fetched", i)
					}
					if nr, nw := q.Tokens(); nr != r || nw != w {
						t.Fatalf("a command fetched alone leaves tokens %d, %d of %d, %d", nr, nw, r, w)
					}
				}
				push(block.Read)
				push(block.Write)
				for q.Waiting(0) > 0 && q.Waiting(1) > 0 {
					_, k, _ := q.Next()
					order = append(order, k)
				}
				for range q.Waiting(0) + q.Waiting(1) {
					q.Next()
				}
			}
			return order
		}
		phases := rapid.SliceOfN(rapid.IntRange(-5, 5), 1, 20).Draw(t, "phases")
		if got, want := fetched(phases), fetched(make([]int, len(phases))); !slices.Equal(got, want) {
			t.Errorf("with phases %v the order is %v, without %v", phases, got, want)
		}
	})
}

func abs(n int) int { return max(n, -n) }

// TestActed verifies that queues report whether weights or a hold decided anything: not while commands of one kind, or
// of both one at a time, find a place or wait for one; and once a share, a turn or a hold kept a command from a place.
func TestActed(t *testing.T) {
	for _, x := range []struct {
		name  string
		depth int
		ops   []block.Op
		held  bool
		p     ratecontrol.Partition
		want  bool
	}{
		{"reads alone", 4, []block.Op{block.Read, block.Read, block.Read, block.Read, block.Read}, false,
			ratecontrol.WhileBothWait, false},
		{"reads alone, beyond their share", 4, []block.Op{block.Read, block.Read, block.Read}, false,
			ratecontrol.Always, true},
		{"reads alone, within it", 4, []block.Op{block.Read, block.Read}, false, ratecontrol.Always, false},
		{"both, with places", 4, []block.Op{block.Read, block.Write, block.Read, block.Write}, false,
			ratecontrol.WhileBothWait, false},
		{"both wait", 1, []block.Op{block.Read, block.Read, block.Write}, false, ratecontrol.WhileBothWait, true},
		{"held", 4, []block.Op{block.Read}, true, ratecontrol.WhileBothWait, true},
		{"held, without a read", 4, []block.Op{block.Write}, true, ratecontrol.WhileBothWait, false},
	} {
		q := ratecontrol.NewQueues(x.depth)
		q.SetPartition(x.p)
		q.Hold(ratecontrol.ReadQueue, x.held)
		var first int32
		for i, op := range x.ops {
			ticket := q.Push(int32(i), op, 0, int64(i)*4096, 4096)
			if _, _, ok := q.Next(); ok && i == 0 {
				first = ticket
			}
		}
		if first != 0 {
			q.Done(first)
			q.Next()
		}
		if q.Acted() != x.want {
			t.Errorf("%s: acted is %v", x.name, q.Acted())
		}
	}
}

// TestQueueSteps follows commands one by one; the result of each fetch can be derived by hand.
func TestQueueSteps(t *testing.T) {
	var q *ratecontrol.Queues
	var names []string
	tickets := map[string]int32{}
	datadriven.RunTest(t, "testdata/queues", func(t *testing.T, d *datadriven.TestData) string {
		var out strings.Builder
		if d.Cmd == "new" {
			depth, partition := 100, "waiting"
			d.MaybeScanArgs(t, "depth", &depth)
			d.MaybeScanArgs(t, "partition", &partition)
			q, names = ratecontrol.NewQueues(depth), nil
			var p ratecontrol.Partition
			if err := p.UnmarshalText([]byte(partition)); err != nil {
				t.Fatal(err)
			}
			q.SetPartition(p)
			clear(tickets)
		}
		for line := range strings.Lines(d.Input) {
			w := strings.Fields(line)
			switch w[0] {
			case "weights":
				var r, x int
				scan(t, &r, w[1])
				scan(t, &x, w[2])
				q.SetWeights(r, x)
			case "read", "write", "flush":
				var from, to int64
				if len(w) > 2 {
					if _, err := fmt.Sscanf(w[2], "%d-%d", &from, &to); err != nil {
						t.Fatal(err)
					}
				}
				op := map[string]block.Op{"read": block.Read, "write": block.Write, "flush": block.Flush}[w[0]]
				before := q.Waiting(0)
				tickets[w[1]] = q.Push(int32(len(names)), op, 0, from, to-from)
				names = append(names, w[1])
				fmt.Fprintf(&out, "%s waits in %s\n", w[1], queueName(q.Waiting(0) == before))
			case "fetch":
				n := 1
				if len(w) > 1 {
					scan(t, &n, w[1])
				}
				for range n {
					id, from, ok := q.Next()
					r, x := q.Tokens()
					if !ok {
						fmt.Fprintf(&out, "nothing; tokens %d, %d\n", r, x)
						break
					}
					fmt.Fprintf(&out, "%s from %s; tokens %d, %d\n", names[id], queueName(from == 1), r, x)
				}
			case "done":
				q.Done(tickets[w[1]])
			case "hold", "release":
				q.Hold(map[string]int{"RSQ": 0, "WSQ": 1}[w[1]], w[0] == "hold")
			default:
				t.Fatalf("no such step: %s", line)
			}
			if err := q.Check(); err != nil {
				t.Fatal(err)
			}
		}
		return out.String()
	})
}

func queueName(write bool) string {
	if write {
		return "WSQ"
	}
	return "RSQ"
}

func scan(t *testing.T, to *int, text string) {
	t.Helper()
	if _, err := fmt.Sscan(text, to); err != nil {
		t.Fatal(err)
	}
}

// TestNothingAllocated verifies that queues do not allocate once they have held as many commands.
func TestNothingAllocated(t *testing.T) {
	q := ratecontrol.NewQueues(64)
	tickets := make([]int32, 1<<16)
	run := func() {
		for i := range int32(2000) {
			place := int64(uint32(i)*2654435761>>8) % 6000
			tickets[i] = q.Push(i, block.Op(i&1), 0, place*4096, 8192)
		}
		for {
			id, _, ok := q.Next()
			if !ok {
				return
			}
			q.Done(tickets[id])
		}
	}
	run()
	several := func() { // since what grows doubles, it does not in each run
		for range 5 {
			run()
		}
	}
	if n := testing.AllocsPerRun(1, several); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkPush pushes and fetches a command with n commands waiting: the time must not grow with n as a linear scan
// would.
func BenchmarkPush(b *testing.B) {
	for _, n := range []int32{100, 1000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			q := ratecontrol.NewQueues(64)
			tickets := make([]int32, n)
			at := uint32(1)
			push := func(id int32) {
				at = at*1664525 + 1013904223
				tickets[id] = q.Push(id, block.Op(at>>30&1), 0, int64(at>>4)%(int64(n)*16)*4096, 8192)
			}
			for i := range n {
				push(i)
			}
			for b.Loop() {
				id, _, _ := q.Next()
				q.Done(tickets[id])
				push(id)
			}
		})
	}
}

func ExampleQueues() {
	q := ratecontrol.NewQueues(8)
	q.SetWeights(1, 2)
	for i := range int32(6) {
		q.Push(i, block.Op(i%2), 0, int64(i)*4096, 4096)
	}
	for {
		id, _, ok := q.Next()
		if !ok {
			break
		}
		fmt.Print(id, " ")
	}
	// Output: 0 1 3 2 5 4
}
