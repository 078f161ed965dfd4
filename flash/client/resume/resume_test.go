package resume_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"farflash/flash/client/resume"
)

// TestBackoff draws outages and verifies that the first attempt is due at once, that pauses double up to their cap,
// less at most one half, that no attempt is due after the limit, and that the same seed gives the same times.
func TestBackoff(t *testing.T) {
	draw := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		first := 1 + draw.Int64N(50e6)
		times := resume.Times{First: first, Cap: first + draw.Int64N(2e9), Limit: 1 + draw.Int64N(60e9),
			Seed: draw.Uint64()}
		a, b := resume.NewBackoff(times), resume.NewBackoff(times)
		now := draw.Int64N(3600e9)
		for range 3 { // outages
			began := now
			a.Missed(now)
			b.Missed(now)
			for k := 0; ; k++ {
				at, until, ok := a.Next()
				if x, y, z := b.Next(); x != at || y != until || z != ok {
					t.Fatalf("%+v: the same seed gives %v and %v", times, at, x)
				}
				if until != began+times.Limit || ok != (at < until) {
					t.Fatalf("%+v: attempt at %v, until %v, %v", times, at-began, until-began, ok)
				}
				pause := times.Cap
				if k > 0 && k < 30 && times.First<<(k-1) < times.Cap {
					pause = times.First << (k - 1)
				}
				if k == 0 && at != now || k > 0 && (at-now > pause || at-now < pause/2) {
					t.Fatalf("%+v: pause %d is %v, not %v to %v", times, k, at-now, pause/2, pause)
				}
				if !ok {
					break
				}
				now = at + draw.Int64N(1e9)
				if draw.IntN(3) == 0 { // a connection that ends before it has answered: the same outage
					a.Missed(now)
					b.Missed(now)
					continue
				}
				a.Failed(now)
				b.Failed(now)
				if draw.IntN(20) == 0 {
					break
				}
			}
			a.Answered()
			b.Answered()
		}
	}
}

// message is an operation on a connection of TestLedger.
type message struct {
	slot   int // -1: a kept write
	number uint64
	kind   resume.Kind
	keep   bool // sent without a request for an answer
	at     int
	value  uint64
	data   []byte
}

// world is a client with a ledger, and a server with some registers, between which connections break.
type world struct {
	t      *testing.T
	draw   *rand.Rand
	ledger *resume.Ledger[string]
	slots  []*message // in progress, by slot
	wire   []message  // sent and not executed
	did    []message  // executed and not answered

	server  [8]uint64 // registers
	tells   bool      // it reports its progress on a connection
	link    uint32
	count   uint64         // messages executed on it
	writes  map[uint64]int // how often each write was executed
	newest  [8]uint64      // the last write that was begun
	sure    [8]uint64      // the last write known to have been executed
	value   uint64
	adds    map[uint64]int // how often each atomic was executed
	unknown map[uint64]bool
}

const budget = 4096

func (w *world) begin() {
	slot := slices.Index(w.slots, nil)
	if slot < 0 {
		return
	}
	w.value++
	m := &message{slot: slot, kind: resume.Reading, at: w.draw.IntN(len(w.server)), value: w.value}
	write := false
	switch w.draw.IntN(4) {
	case 0:
		m.kind = resume.Once
	case 1: // a read
		m.value = 0
	default:
		write = true
		m.kind = resume.Writing
	}
	m.number = w.ledger.Begin(slot, m.kind)
	if write {
		w.newest[m.at] = m.value
		m.data = slices.Repeat([]byte{byte(m.value)}, 1+w.draw.IntN(budget/3))
		if w.draw.IntN(2) == 0 {
			sent := slices.Clone(m.data)
			if m.keep = w.ledger.Keep(slot, fmt.Sprint(m.at, " ", m.value), int64(m.value), sent); m.keep {
				clear(sent) // the caller uses its buffer for something else
			}
		}
	}
	w.slots[slot] = m
	w.ledger.Posted(m.messages())
	if w.draw.IntN(30) == 0 {
		w.ledger.Unsent(slot)
		w.lose()
		return
	}
	w.wire = append(w.wire, *m)
}

// messages is the number of messages of an operation: a write whose caller waits has a request for an answer.
func (m *message) messages() int {
	if m.kind == resume.Writing && !m.keep {
		return 2
	}
	return 1
}

// sent hands writes that need no answer to the network.
func (w *world) sent() {
	for i, m := range w.slots {
		if m != nil && m.keep {
			w.ledger.End(i)
			w.slots[i] = nil
		}
	}
}

func (w *world) execute() {
	if len(w.wire) == 0 {
		return
	}
	m := w.wire[0]
	w.wire = w.wire[1:]
	w.count += uint64(m.messages())
	switch {
	case m.kind == resume.Once:
		w.adds[m.number]++
	case m.value > 0:
		w.server[m.at] = m.value
		w.writes[m.value]++
	}
	w.did = append(w.did, m)
}

func (w *world) answer() {
	if len(w.did) == 0 {
		return
	}
	m := w.did[0]
	w.did = w.did[1:]
	if m.slot < 0 || m.keep {
		return
	}
	if m.value == 0 && w.server[m.at] < w.sure[m.at] {
		w.t.Fatalf("register %d went back from write %d to %d", m.at, w.sure[m.at], w.server[m.at])
	}
	if m.kind != resume.Once {
		w.sure[m.at] = max(w.sure[m.at], m.value)
	}
	w.ledger.Answered(m.slot)
	w.slots[m.slot] = nil
}

// lose ends the connection: some of what was sent is executed, and no more is answered.
func (w *world) lose() {
	for range w.draw.IntN(len(w.wire) + 1) {
		w.execute()
	}
	if len(w.wire) > 0 && w.wire[0].messages() == 2 && w.draw.IntN(4) == 0 { // the write without its request
		w.execute()
		w.count--
	}
	w.wire, w.did = nil, nil
	for i, m := range w.slots {
		switch fate := w.ledger.Fate(i); {
		case (m == nil) != (fate == resume.Idle):
			w.t.Fatalf("slot %d: fate %d of %+v", i, fate, m)
		case fate == resume.Done:
			if !m.keep {
				w.t.Fatalf("%+v is done without an answer", m)
			}
			w.ledger.End(i)
			w.slots[i] = nil
		case fate == resume.Unknown:
			if m.kind != resume.Once || w.unknown[m.number] {
				w.t.Fatalf("%+v is unknown", m)
			}
			w.unknown[m.number] = true
			w.ledger.End(i)
			w.slots[i] = nil
		}
	}
	if w.tells {
		w.ledger.Executed(w.link, w.count)
		for i, m := range w.slots {
			if m != nil && w.ledger.Fate(i) == resume.Done {
				if w.writes[m.value] == 0 {
					w.t.Fatalf("%+v is done and was not executed", m)
				}
				w.ledger.End(i)
				w.slots[i] = nil
			}
		}
	}
	w.link++
	greeting := uint64(w.draw.IntN(4))
	w.count = greeting
	w.ledger.Connected(w.link, greeting)
	for _, x := range w.ledger.Again(nil) {
		m := message{slot: x.Slot, keep: true, kind: resume.Kept}
		w.ledger.Sent(x)
		if x.Slot >= 0 {
			m = *w.slots[x.Slot]
		} else {
			m.value = uint64(x.Offset)
			if _, err := fmt.Sscan(x.File, &m.at); err != nil || x.File != fmt.Sprint(m.at, " ", m.value) ||
				slices.ContainsFunc(x.Data, func(b byte) bool { return b != byte(m.value) }) || len(x.Data) == 0 {
				w.t.Fatalf("write %d to %s comes back as %v", m.value, x.File, x.Data)
			}
		}
		w.wire = append(w.wire, m)
		w.ledger.Posted(m.messages())
		if w.draw.IntN(20) == 0 { // the next connection is lost at once
			w.lose()
			return
		}
	}
	if w.draw.IntN(2) == 0 {
		return
	}
	for len(w.wire) > 0 {
		w.execute()
	}
	if w.server != w.newest {
		w.t.Fatalf("after everything was sent again: %v, want %v", w.server, w.newest)
	}
}

// TestLedger loses connections at random and verifies that every write lands, none after a later one to the same place,
// once everything was sent again; that kept data is intact; that an atomic is executed at most once, and is unknown or
// answered; and that kept writes stay within their budget. If the server reports its progress on a connection, no
// write is executed twice.
func TestLedger(t *testing.T) {
	for seed := range uint64(600) {
		w := &world{t: t, draw: rand.New(rand.NewPCG(seed, 0)), ledger: resume.NewLedger[string](5, budget),
			slots: make([]*message, 5), adds: map[uint64]int{}, unknown: map[uint64]bool{},
			writes: map[uint64]int{}, tells: seed%2 == 1, link: 1}
		w.ledger.Connected(1, 0)
		for range 400 {
			switch k := w.draw.IntN(100); {
			case k < 40:
				w.begin()
			case k < 55:
				w.sent()
			case k < 75:
				w.execute()
			case k < 95:
				w.answer()
			default:
				w.lose()
			}
		}
		w.sent()
		for len(w.wire) > 0 || len(w.did) > 0 {
			w.execute()
			w.answer()
		}
		if w.server != w.newest {
			t.Errorf("seed %d: at the end: %v, want %v", seed, w.server, w.newest)
		}
		for value, n := range w.writes {
			if n > 1 && w.tells {
				t.Errorf("seed %d: write %d was executed %d times", seed, value, n)
			}
		}
		for number, n := range w.adds {
			if n > 1 {
				t.Errorf("seed %d: atomic %d was executed %d times", seed, number, n)
			}
		}
	}
}

// TestKeep verifies the limits of the kept writes, and that they are forgotten when answered and dropped with their
// file.
func TestKeep(t *testing.T) {
	l, data := resume.NewLedger[string](1, 1000), make([]byte, 1000)
	keep := func(n int) bool {
		l.Begin(0, resume.Writing)
		ok := l.Keep(0, "f", 0, data[:n])
		if want := map[bool]resume.Fate{false: resume.Again, true: resume.Done}[ok]; l.Fate(0) != want {
			t.Errorf("fate %d, want %d", l.Fate(0), want)
		}
		l.End(0)
		return ok
	}
	if keep(251) || !keep(250) || !keep(250) || l.Full() || !keep(250) || !l.Full() || !keep(250) || keep(1) {
		t.Error("not four writes of a quarter of the budget are kept")
	}
	if l.Kept() != 4 {
		t.Errorf("%d are kept", l.Kept())
	}
	l.Drop(func(f string) bool { return f == "g" })
	if got := l.Again(nil); len(got) != 4 {
		t.Errorf("%d are sent again", len(got))
	}
	l.Drop(func(f string) bool { return f == "f" })
	if got := l.Again(nil); len(got) != 0 {
		t.Errorf("%d are sent again after the file is gone", len(got))
	}
	l.Confirm(l.Last() - 3)
	if l.Kept() != 2 || !keep(100) {
		t.Errorf("%d are kept", l.Kept())
	}
	l.Confirm(l.Last())
	if l.Kept() != 0 || l.Full() {
		t.Errorf("%d are kept", l.Kept())
	}
	for range 5000 {
		for keep(w) {
		}
		l.Confirm(l.Last())
	}
	if n := testing.AllocsPerRun(1000, func() {
		keep(w)
		l.Confirm(l.Last())
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
	none := resume.NewLedger[string](1, 0)
	none.Begin(0, resume.Writing)
	if none.Keep(0, "f", 0, make([]byte, 1)) || none.Kept() != 0 || none.Again(nil)[0].Slot != 0 {
		t.Error("a ledger without a budget keeps something")
	}
}

const w = 90
