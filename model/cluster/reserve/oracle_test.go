package reserve

import (
	"slices"
	"testing"

	"farflash/numeric/units"
	"farflash/sim"

	"pgregory.net/rapid"
)

// The oracles of this file are a second implementation of SURGE's rules, from their description: in whole nanoseconds,
// with lists rebuilt at each step, and independent of the rest of the package.

// rules are the durations that the oracles need.
type rules struct {
	control, trip, chunk, frame, window, accepted int64
	head                                          bool
}

func rulesOf(d *Durations) rules {
	n := func(t sim.Time) int64 { return int64(t / ns) }
	return rules{n(d.Control), n(d.Trip), n(d.Chunk), n(d.Frame), n(d.Window), n(d.Accepted), d.Rules == RulesHead}
}

// card is a bid of the oracles.
type card struct {
	chunk        uint64
	left, right  int64
	made, origin int64 // when it was made, and its left edge at that time
	state        byte  // tentative, accepted, canceled, rejected
}

// oracle is one server.
type oracle struct {
	rules
	kind  string
	cards []card
}

func (o *oracle) where(chunk uint64) int {
	return slices.IndexFunc(o.cards, func(c card) bool { return c.chunk == chunk && c.state != 'c' })
}

func (o *oracle) sort() {
	slices.SortStableFunc(o.cards, func(a, b card) int { return int(a.left - b.left) })
}

// sweep removes the bids that a Regular queue forgets.
func (o *oracle) sweep(now int64) {
	if o.kind != "regular" {
		return
	}
	for len(o.cards) > 0 && o.cards[len(o.cards)-1].state == 'c' {
		o.cards = o.cards[:len(o.cards)-1]
	}
	hear := now + o.control + o.trip
	o.cards = slices.DeleteFunc(o.cards, func(c card) bool {
		return c.state == 'c' && c.left < hear && c.right-hear < o.window
	})
}

func (o *oracle) request(now int64, chunk uint64, notBefore, delay int64) (int64, int64) {
	o.sweep(now)
	answer := now + 2*o.control + o.trip
	c := card{chunk: chunk, made: now, state: 't'}
	switch o.kind {
	case "regular":
		if delay == 0 && len(o.cards) <= 3 {
			for k := len(o.cards) - 1; k >= 0; k-- {
				if b := o.cards[k]; b.state == 'c' {
					if b.left < answer && b.right-answer < o.window {
						break
					}
					o.cards[k] = card{chunk, b.left, b.right, now, b.left, 't'}
					return b.left, b.right
				}
			}
		}
		c.left = answer
		if len(o.cards) > 0 {
			c.left = max(c.left, o.cards[len(o.cards)-1].right+o.trip)
		}
		c.left = max(c.left, now+delay)
		c.right = c.left + o.window
		if len(o.cards) == 0 && delay < o.chunk {
			c.right += 2 * o.chunk
		}
	case "double":
		if left, ok := o.second(now, notBefore, delay); ok {
			c.left, c.right, c.origin = left, left+o.window, left
			o.cards = append(o.cards, c)
			o.sort()
			return c.left, c.right
		}
		fallthrough
	default:
		// The first of the earliest possible start and the ends of bids that is far enough from all bids.
		at := []int64{max(answer, notBefore, now+delay)}
		keep := slices.DeleteFunc(slices.Clone(o.cards), func(b card) bool { return b.state == 'r' })
		for _, b := range keep {
			at = append(at, max(at[0], b.right+o.trip))
		}
		slices.Sort(at)
		c.left = at[slices.IndexFunc(at, func(left int64) bool {
			return !slices.ContainsFunc(keep,
				func(b card) bool { return b.right+o.trip > left && b.left-left < o.window })
		})]
		c.right = c.left + o.window
		if len(o.cards) == 0 && delay == 0 && o.head {
			c.right += 2 * o.trip
		}
	}
	c.origin = c.left
	o.cards = append(o.cards, c)
	o.sort()
	return c.left, c.right
}

// second returns the start of a double booking: the latest window that only one tentative bid has.
func (o *oracle) second(now, notBefore, delay int64) (int64, bool) {
	if delay > 0 {
		return 0, false
	}
	slots := map[int64][]card{}
	var origins []int64
	for _, c := range o.cards {
		if c.state == 'r' {
			continue
		}
		if len(slots[c.origin]) == 0 {
			origins = append(origins, c.origin)
		}
		slots[c.origin] = append(slots[c.origin], c)
	}
	slices.Sort(origins)
	slices.Reverse(origins)
	for _, at := range origins {
		if s := slots[at]; len(s) == 1 && s[0].state == 't' {
			age := now - s[0].made
			sure := max(notBefore, now+3*(o.control+o.trip)-age+2*o.trip)
			return at, age >= o.control && at >= sure
		}
	}
	return 0, false
}

func (o *oracle) cancel(now int64, chunk uint64) {
	o.sweep(now)
	k := o.where(chunk)
	if o.kind != "regular" {
		o.cards = slices.Delete(o.cards, k, k+1)
		return
	}
	o.cards[k].state = 'c'
	from, to := k, k // merge with its neighbours, but not them with theirs
	if k > 0 && o.cards[k-1].state == 'c' {
		from--
	}
	if k+1 < len(o.cards) && o.cards[k+1].state == 'c' {
		to++
	}
	o.cards[from].right = o.cards[to].right
	o.cards = slices.Delete(o.cards, from+1, to+1)
}

func (o *oracle) accept(now int64, chunk uint64, left, right int64) {
	o.sweep(now)
	k := o.where(chunk)
	if o.cards[k].state == 'r' {
		o.cards = slices.Delete(o.cards, k, k+1)
		return
	}
	o.cards[k].left, o.cards[k].right, o.cards[k].state = left, right, 'a'
	if o.kind == "regular" {
		if k+1 < len(o.cards) && o.cards[k+1].state == 'c' && o.cards[k+1].left-right > o.control {
			o.cards[k+1].left = right
		}
		if k > 0 && o.cards[k-1].state == 'c' && left-o.cards[k-1].right > o.control {
			o.cards[k-1].right = left
		}
		return
	}
	if o.kind == "double" {
		for i := range o.cards {
			if i != k && o.cards[i].origin == o.cards[k].origin && o.cards[i].state == 't' {
				o.cards[i].state = 'r'
			}
		}
	}
	o.sort()
}

// TestQueuesAgainstOracle compares the queues under SURGE's rules with the oracle, on realistic message sequences: a
// bid is answered within some tens of microseconds, and a window is used when its time comes.
func TestQueuesAgainstOracle(t *testing.T) {
	states := map[byte]State{'t': Tentative, 'a': Accepted, 'c': Canceled, 'r': Rejected}
	for _, k := range queueKinds {
		t.Run(k.name, rapid.MakeCheck(func(t *rapid.T) {
			chunk := rapid.SampledFrom([]units.Bytes{16 * units.KiB, 128 * units.KiB, units.MiB}).Draw(t, "chunk")
			d, err := New(surge(k.config(), chunk))
			if err != nil {
				t.Fatal(err)
			}
			q, o := k.make(d), &oracle{rules: rulesOf(d), kind: k.name}
			var now int64
			next := uint64(0)
			for range rapid.IntRange(1, 200).Draw(t, "steps") {
				now += rapid.Int64Range(0, 15000).Draw(t, "later")
				op := rapid.IntRange(0, 9).Draw(t, "op")
				which := 0
				if q.Len() > 0 {
					which = rapid.IntRange(0, q.Len()-1).Draw(t, "which")
				}
				switch {
				case op < 4 || q.Len() == 0:
					next++
					notBefore := rapid.Int64Range(0, 400000).Draw(t, "notBefore")
					if k.name == "regular" {
						notBefore = 0
					}
					delay := max(0, rapid.Int64Range(-100000, 200000).Draw(t, "delay"))
					w := q.Request(sim.Time(now)*ns, next, 0, sim.Time(notBefore)*ns, sim.Time(delay)*ns, nil)
					if left, right := o.request(now, next, notBefore, delay); w !=
						win(sim.Time(left), sim.Time(right)) {
						t.Fatalf("at %d, not before %d, delay %d: given %v, the oracle gives %d-%d", now, notBefore,
							delay, w, left, right)
					}
				case op < 6:
					if b := q.At(which); b.State == Tentative || b.State == Rejected {
						q.Cancel(sim.Time(now)*ns, b.Chunk)
						o.cancel(now, b.Chunk)
					}
				case op < 8:
					if b := q.At(which); b.State == Tentative || b.State == Rejected {
						slack := int64((b.Window.Width() - d.Accepted) / ns)
						left := int64(b.Window.Left/ns) + rapid.Int64Range(0, slack).Draw(t, "slack")
						right := left + int64(d.Accepted/ns)
						q.Accept(sim.Time(now)*ns, b.Chunk, win(sim.Time(left), sim.Time(right)))
						o.accept(now, b.Chunk, left, right)
					}
				default:
					if b := q.At(which); b.State == Accepted {
						q.Done(b.Chunk)
						i := o.where(b.Chunk)
						o.cards = slices.Delete(o.cards, i, i+1)
					}
				}
				if q.Len() != len(o.cards) {
					t.Fatalf("%d bids, the oracle has %d", q.Len(), len(o.cards))
				}
				for i, c := range o.cards {
					b := q.At(i)
					if b.State != states[c.state] || b.Window != win(sim.Time(c.left), sim.Time(c.right)) ||
						b.State != Canceled && b.Chunk != c.chunk {
						t.Fatalf("bid %d is %+v, the oracle has %+v", i, b, c)
					}
				}
			}
		}))
	}
}

// leaf is an offer of the oracles.
type leaf struct {
	server      int32
	left, right int64
}

// leaves returns offers in SURGE's order: of two that begin together, the later one is first in the paper's build, the
// earlier one in the last build.
func leaves(offers []leaf, head bool) []leaf {
	l := slices.Clone(offers)
	if !head {
		slices.Reverse(l)
	}
	slices.SortStableFunc(l, func(a, b leaf) int { return int(a.left - b.left) })
	return l
}

// drawOffers draws offers close to each other, as from the servers of a group.
func drawOffers(t *rapid.T, d *Durations, n int) []leaf {
	r := rulesOf(d)
	out := make([]leaf, n)
	for i := range out {
		left := rapid.Int64Range(0, 12).Draw(t, "slot")*r.window/6 +
			rapid.SampledFrom([]int64{0, 0, 1, 1000, 3000, 9000}).Draw(t, "jitter")
		wide := rapid.SampledFrom([]int64{0, 0, 0, 2 * r.chunk, 2 * r.trip}).Draw(t, "wide")
		out[i] = leaf{int32(i), left, left + r.window + wide}
	}
	return out
}

func fill(d *Durations, offers []leaf) *Offers {
	o := NewOffers(d)
	for _, f := range offers {
		o.Add(f.server, win(sim.Time(f.left), sim.Time(f.right)), nil)
	}
	return o
}

// TestIntersectAgainstOracle verifies the choice of a common window under SURGE's rules.
func TestIntersectAgainstOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := surge(DefaultConfig(),
			rapid.SampledFrom([]units.Bytes{16 * units.KiB, 128 * units.KiB, units.MiB}).Draw(t, "chunk"))
		c.Rules = rapid.SampledFrom([]Rules{RulesPaper, RulesHead}).Draw(t, "rules")
		d, _ := New(c)
		r := rulesOf(d)
		offers := drawOffers(t, d, 9)
		now := rapid.Int64Range(0, 2*r.window).Draw(t, "now")
		picks, ok := d.Intersect(sim.Time(now)*ns, fill(d, offers), 3, nil)
		l := leaves(offers, r.head)
		for k := 0; k < 6; k++ { // the seventh triple is never considered
			begin := max(l[k+2].left, now+r.control)
			end := min(l[k].right, l[k+1].right, l[k+2].right)
			if end-begin < r.accepted {
				continue
			}
			if !ok {
				t.Fatalf("nothing chosen, the oracle begins at %d", begin)
			}
			for i, p := range picks {
				if p.Server != l[k+i].server || p.Window != win(sim.Time(begin), sim.Time(begin+r.accepted)) {
					t.Fatalf("picks %v, the oracle takes %v from %d", picks, l[k:k+3], begin)
				}
			}
			return
		}
		if ok {
			t.Fatalf("picks %v, the oracle takes nothing", picks)
		}
	})
}

// sequence returns the choice of SURGE's gateway of Replicast-H, and the offers as it leaves them.
func (r rules) sequence(l []leaf, most int) (picks []leaf, after map[int32]leaf) {
	after = map[int32]leaf{}
	for _, f := range l {
		after[f.server] = f
	}
	reach := max(3*r.control, r.frame)
	if r.head {
		reach = r.control + r.trip
	}
	untrimmed := l[0].right - l[0].left
	first := leaf{l[0].server, l[0].left, l[0].left + r.accepted}
	picks = []leaf{first}
	rest := slices.Clone(l[1:])
	for len(picks) < most {
		end := picks[len(picks)-1].right
		k := slices.IndexFunc(rest, func(f leaf) bool { return f.left-end > reach || f.right-r.accepted >= end })
		if k < 0 || rest[k].left-end > reach {
			break
		}
		from := max(rest[k].left, end)
		picks = append(picks, leaf{rest[k].server, from, from + r.accepted})
		rest = slices.Delete(rest, k, k+1)
	}
	if !r.head {
		after[first.server] = first
	}
	switch {
	case len(picks) > 1:
	case r.head:
		for _, f := range l[1:] {
			if f.right-f.left > untrimmed && f.left-first.left < 2*reach {
				picks[0] = leaf{f.server, f.left, f.left + r.accepted}
				break
			}
		}
	case len(l) > 2:
		for _, f := range l[1:3] {
			if f.left-picks[0].left < r.frame && f.right-f.left > r.accepted+r.frame {
				picks[0] = f
			}
		}
	}
	for _, p := range picks {
		after[p.server] = p
	}
	return picks, after
}

// TestSequenceAgainstOracle verifies the choice of a sequence under SURGE's rules, and the windows that targets see.
func TestSequenceAgainstOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := surge(HybridConfig(),
			rapid.SampledFrom([]units.Bytes{16 * units.KiB, 128 * units.KiB, units.MiB}).Draw(t, "chunk"))
		c.Rules = rapid.SampledFrom([]Rules{RulesPaper, RulesHead}).Draw(t, "rules")
		d, _ := New(c)
		r := rulesOf(d)
		missing := rapid.IntRange(1, 3).Draw(t, "missing")
		offers := drawOffers(t, d, 6+missing)
		o := fill(d, offers)
		picks := newSequence(d).Choose(0, o, missing, nil)
		want, after := r.sequence(leaves(offers, r.head), missing)
		if len(picks) != len(want) {
			t.Fatalf("picks %v, the oracle takes %v", picks, want)
		}
		for i, w := range want {
			if picks[i].Server != w.server || picks[i].Window != win(sim.Time(w.left), sim.Time(w.right)) {
				t.Fatalf("picks %v, the oracle takes %v", picks, want)
			}
		}
		for i := range o.Len() {
			f := o.At(i)
			if a := after[f.Server]; f.Window != win(sim.Time(a.left), sim.Time(a.right)) {
				t.Fatalf("the offer of %d is left as %v, the oracle leaves %v", f.Server, f.Window, a)
			}
		}
	})
}
