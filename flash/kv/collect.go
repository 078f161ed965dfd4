package kv

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/cespare/xxhash/v2"
)

func (g *Geometry) member(i uint16) int64 { return membersAt + int64(i)*member }

// join makes the client a member, and counts the slots if that was not done since the server was started.
func (s *Store) join(ctx context.Context) error {
	for counted := false; ; counted = true {
		ok, err := s.enrol()
		if err != nil {
			return err
		}
		if ok {
			break
		}
		if counted {
			return fmt.Errorf("kv: the store has %d clients already", Members)
		}
		if err := s.collect(ctx, false); err != nil {
			return err
		}
	}
	now, err := s.word64(instanceAt)
	if err != nil || now == s.instance() {
		return err
	}
	return s.collect(ctx, true)
}

// instance is the server's instance as a number that is not 0.
func (s *Store) instance() uint64 { return max(xxhash.Sum64String(s.peers.Instance()), 1) }

// enrol takes a number among the members.
func (s *Store) enrol() (bool, error) {
	b := make([]byte, members*member)
	if _, err := s.m.ReadAt(b, membersAt); err != nil {
		return false, err
	}
	for i := 1; i < members; i++ {
		if le.Uint64(b[i*member:]) != 0 {
			continue
		}
		ok, _, err := s.settle(s.g.member(uint16(i)), 0, s.peers.Name())
		if ok {
			s.self = uint16(i)
		}
		if ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

// Close leaves the store, and returns the slots that the client has not used. Of what was changed it promises what the
// class does.
func (s *Store) Close() error {
	s.mu.Lock()
	was := s.closed
	s.closed = true
	s.mu.Unlock()
	if was {
		return ErrClosed
	}
	s.rest()
	t := &s.took
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.kept) > 0 {
		if err := s.release(); err != nil {
			return err
		}
	}
	free := map[uint32]uint64{}
	for _, slot := range t.free {
		free[slot/perChunk] |= 1 << (slot % perChunk)
	}
	for c := range t.owned {
		for mine := free[c]; mine != 0; {
			x, err := s.word64(s.g.chunk(c) + 8)
			if err != nil {
				return err
			}
			ok, unknown, err := s.swap(s.g.chunk(c)+8, x, uint64(hold(x).with(hold(x).used()&^mine)), false)
			if err != nil {
				return err
			}
			if ok || unknown { // at worst the next count frees them
				break
			}
		}
		if err := s.disown(c); err != nil {
			return err
		}
	}
	_, _, err := s.settle(s.g.member(s.self), s.peers.Name(), 0)
	return err
}

// Collect finds the slots and numbers that dead clients have left, and releases their locks. Clients do it by
// themselves when they find no slot. It reads all entries, and once more if there are such slots; changes that need no
// new chunk go on meanwhile.
func (s *Store) Collect(ctx context.Context) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.mu.RUnlock()
	s.took.mu.Lock()
	defer s.took.mu.Unlock()
	return s.recount(ctx)
}

// collect is Collect. anew: this is the first count since the server was started, so no word of a chunk can be trusted,
// and no other client uses the store yet. One at a time.
func (s *Store) collect(ctx context.Context, anew bool) error {
	release, waited, err := s.alone(ctx)
	if err != nil {
		return err
	}
	err = func() error {
		switch now, err := s.word64(instanceAt); {
		case err != nil:
			return err
		case anew && now == s.instance(), !anew && waited:
			return nil // another has just done it
		}
		dead, err := s.dead(ctx)
		if err != nil {
			return err
		}
		c := count{s: s, ctx: ctx, dead: dead, anew: anew, used: make([]uint64, s.g.chunks()), twice: map[uint32]bool{}}
		if err := c.run(ctx); err != nil {
			return err
		}
		for i := range dead {
			if dead[i] == 0 {
				continue
			}
			if _, _, err := s.settle(s.g.member(uint16(i)), dead[i], 0); err != nil {
				return err
			}
		}
		if !anew {
			return nil
		}
		var b [8]byte
		le.PutUint64(b[:], s.instance())
		return s.m.Write(b[:], instanceAt, true)
	}()
	return errors.Join(err, release())
}

// alone makes the client the only one that collects. waited: another has collected meanwhile.
func (s *Store) alone(ctx context.Context) (release func() error, waited bool, err error) {
	at, self := s.g.member(0), s.peers.Name()
	for n := 0; ; n++ {
		now, err := s.word64(at)
		if err != nil {
			return nil, false, err
		}
		if now != 0 && now != self {
			switch err := s.peers.Fence(ctx, now, s.opt.Patience); {
			case errors.Is(err, ErrAlive):
				waited = true
				if err := s.pause(ctx, n); err != nil {
					return nil, false, err
				}
				continue
			case err != nil:
				return nil, false, err
			}
			waited = false // it did not end
		}
		ok, _, err := s.settle(at, now, self)
		if err != nil {
			return nil, false, err
		}
		if ok {
			return func() error {
				_, _, err := s.settle(at, self, 0)
				return err
			}, waited, nil
		}
	}
}

// dead returns the names of members that are dead, by number.
func (s *Store) dead(ctx context.Context) ([]uint64, error) {
	b := make([]byte, members*member)
	if _, err := s.m.ReadAt(b, membersAt); err != nil {
		return nil, err
	}
	dead := make([]uint64, members)
	for i := 1; i < members; i++ {
		name := le.Uint64(b[i*member:])
		if name == 0 || name == s.peers.Name() {
			continue
		}
		switch err := s.peers.Fence(ctx, name, s.opt.Patience); {
		case err == nil:
			dead[i] = name
		case !errors.Is(err, ErrAlive):
			return nil, err
		}
	}
	return dead, nil
}

// count counts which slots are in use.
type count struct {
	s     *Store
	ctx   context.Context
	dead  []uint64 // names of dead members, by number
	anew  bool
	mine  []counted
	used  []uint64        // slots that entries refer to, by chunk
	twice map[uint32]bool // slots that several entries refer to, after a crash
	away  []spilled       // entries outside of their homes that have not been counted
}

// counted is a chunk that a count looks at, with its owner and word.
type counted struct {
	i     uint32
	owner uint64
	word  hold
}

func (c *count) run(ctx context.Context) error {
	s := c.s
	if c.anew {
		if err := s.scan(ctx, 0, s.g.Buckets, c.bucket); err != nil {
			return err
		}
		if err := c.spilled(); err != nil {
			return err
		}
		if len(c.twice) > 0 {
			if err := s.scan(ctx, 0, s.g.Buckets, c.owner); err != nil {
				return err
			}
		}
		return c.write(ctx)
	}
	// Most chunks have no slot to be found: what was in use in one before all entries were read, and is after, while
	// none of them refers to it, may be. Only for those chunks the entries are read once more, between two epochs.
	before := make([]uint64, s.g.chunks())
	if err := s.eachChunk(ctx, func(i uint32, _ uint64, w hold) error {
		before[i] = w.used()
		return nil
	}); err != nil {
		return err
	}
	if err := s.scan(ctx, 0, s.g.Buckets, c.bucket); err != nil {
		return err
	}
	if err := s.eachChunk(ctx, func(i uint32, owner uint64, w hold) error {
		free := owner == 0 && before[i]&w.used()&^c.used[i] != 0
		left := owner != 0 && owner < members && c.dead[owner] != 0 || owner == uint64(s.self) && s.reserved(i)
		if free || left {
			c.mine = append(c.mine, counted{i, owner, w})
		}
		return nil
	}); err != nil || len(c.mine) == 0 {
		return err
	}
	if err := c.claim(ctx); err != nil {
		return err
	}
	clear(c.used)
	if err := s.scan(ctx, 0, s.g.Buckets, func(_ uint64, b []byte) error {
		for k := 1; k <= entries; k++ {
			w := word(le.Uint64(b[k*int(s.g.Entry):]))
			if w.state() == full && uint64(w.slot()) < s.g.Slots {
				c.used[w.slot()/perChunk] |= 1 << (w.slot() % perChunk)
			}
		}
		return nil
	}); err != nil {
		return err
	}
	return c.release(ctx)
}

// left reports whether a member is dead, or never was.
func (c *count) left(member uint16) bool {
	return int(member) >= len(c.dead) || c.dead[member] != 0 || c.anew
}

// claim takes the chunks to be looked at. From then on a free that was prepared under the old epoch fails, and its slot
// stays in use.
func (c *count) claim(ctx context.Context) error {
	s := c.s
	taken := make([]bool, len(c.mine))
	err := s.side(ctx, len(c.mine), func(k int) error {
		x := &c.mine[k]
		if !s.reserve(x.i) {
			return nil
		}
		ok, _, err := s.settle(s.g.chunk(x.i), x.owner, uint64(s.self))
		if err != nil || !ok {
			s.unreserve(x.i)
			return err
		}
		taken[k] = true
		return s.reword(x, func(hold) uint64 { return allUsed })
	})
	rest := c.mine[:0]
	for k, x := range c.mine {
		if taken[k] {
			rest = append(rest, x)
		}
	}
	c.mine = rest
	return err
}

// reserve keeps a chunk from this client's other goroutines, which would take its number in the chunk for theirs. It
// reports false if they own the chunk.
func (s *Store) reserve(i uint32) bool {
	t := &s.took
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, own := t.owned[i]; own {
		return false
	}
	t.counted[i] = true
	return true
}

// reserved reports whether a count that failed has left a chunk to the next one.
func (s *Store) reserved(i uint32) bool {
	s.took.mu.Lock()
	defer s.took.mu.Unlock()
	return s.took.counted[i]
}

func (s *Store) unreserve(i uint32) {
	s.took.mu.Lock()
	delete(s.took.counted, i)
	s.took.mu.Unlock()
}

// reword begins another epoch of a chunk that the count owns.
func (s *Store) reword(x *counted, used func(hold) uint64) error {
	at := s.g.chunk(x.i) + 8
	for {
		w := x.word.counted(used(x.word))
		ok, _, err := s.settle(at, uint64(x.word), uint64(w))
		if err != nil {
			return err
		}
		if ok {
			s.took.epochs[x.i].Store(uint32(w.epoch()) + 1)
			x.word = w
			return nil
		}
		now, err := s.word64(at)
		if err != nil {
			return err
		}
		x.word = hold(now)
	}
}

// eachChunk calls f for all chunks.
func (s *Store) eachChunk(ctx context.Context, f func(i uint32, owner uint64, w hold) error) error {
	b := make([]byte, 16*page)
	all := uint32(s.g.chunks())
	for i := uint32(0); i < all; {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		n := min(uint32(len(b)/chunk), all-i)
		if _, err := s.m.ReadAt(b[:n*chunk], s.g.chunk(i)); err != nil {
			return err
		}
		for k := range n {
			if err := f(i+k, le.Uint64(b[k*chunk:]), hold(le.Uint64(b[k*chunk+8:]))); err != nil {
				return err
			}
		}
		i += n
	}
	return nil
}

// bucket counts the slots of a bucket, releases what dead members hold in it, and empties entries that a crash has
// damaged.
func (c *count) bucket(i uint64, b []byte) error {
	s := c.s
	if h := lock(le.Uint64(b)); h.held() && c.left(h.owner()) {
		if _, _, err := s.swap(s.g.bucket(i), uint64(h), uint64(h.after()), false); err != nil {
			return err
		}
		s.counters.repairs.Add(1)
	}
	for k := 1; k <= entries; k++ {
		e, at := b[k*int(s.g.Entry):][:s.g.Entry], s.g.entry(i, k)
		w := word(le.Uint64(e))
		switch {
		case w.state() == busy && c.left(w.marker()):
			if err := s.empty(at, w); err != nil {
				return err
			}
		case w.state() == full && uint64(w.slot()) < s.g.Slots:
			if c.anew {
				key, ok := keyOf(e, at)
				if !ok || c.again(i, b[:k*int(s.g.Entry)], key) {
					if err := s.empty(at, w); err != nil {
						return err
					}
					continue
				}
				if home, _ := s.g.places(key); home != i {
					c.away = append(c.away, spilled{spot{at, w}, bytes.Clone(key), home, false})
					continue
				}
			}
			c.refers(w)
		case w.state() == full && c.anew:
			if err := s.empty(at, w); err != nil {
				return err
			}
		}
	}
	if len(c.away) >= mostAway {
		return c.spilled()
	}
	return nil
}

// refers counts the slot of an entry.
func (c *count) refers(w word) {
	bit := uint64(1) << (w.slot() % perChunk)
	if u := &c.used[w.slot()/perChunk]; *u&bit != 0 && c.anew {
		c.twice[w.slot()] = true
	} else {
		*u |= bit
	}
}

// spilled is an entry outside of its key's home.
type spilled struct {
	spot
	key   []byte
	home  uint64
	again bool // its home has the key too
}

// mostAway bounds those that wait to be counted.
const mostAway = 1024

// spilled counts the entries that wait for it, after a look into their homes.
func (c *count) spilled() error {
	s := c.s
	if err := s.side(c.ctx, len(c.away), func(i int) error {
		x := &c.away[i]
		y, err := s.look(x.home, x.key)
		x.again = y.there
		return err
	}); err != nil {
		return err
	}
	for i := range c.away {
		x := &c.away[i]
		if !x.again {
			c.refers(x.word)
			continue
		}
		if err := s.empty(x.at, x.word); err != nil {
			return err
		}
	}
	c.away = c.away[:0]
	return nil
}

// again reports whether a key of bucket i has another entry in the bytes before it. A crash can bring an entry back
// from which the key had been removed before it was inserted elsewhere.
func (c *count) again(i uint64, before, key []byte) bool {
	s := c.s
	for k := 1; k*int(s.g.Entry) < len(before); k++ {
		e := before[k*int(s.g.Entry):][:s.g.Entry]
		if word(le.Uint64(e)).state() != full {
			continue
		}
		if other, ok := keyOf(e, s.g.entry(i, k)); ok && bytes.Equal(other, key) {
			return true
		}
	}
	return false
}

// empty empties an entry whose content cannot become valid any more.
func (s *Store) empty(at int64, w word) error {
	_, _, err := s.swap(at, uint64(w), uint64(w.next(empty, s.mark())), false)
	return err
}

// owner empties the entries that refer to a slot which holds another's value.
func (c *count) owner(i uint64, b []byte) error {
	s := c.s
	p := s.slots.Get().(*[]byte)
	defer s.slots.Put(p)
	for k := 1; k <= entries; k++ {
		e, at := b[k*int(s.g.Entry):][:s.g.Entry], s.g.entry(i, k)
		w := word(le.Uint64(e))
		key, ok := keyOf(e, at)
		if w.state() != full || !ok || !c.twice[w.slot()] {
			continue
		}
		_, sound, err := s.value(spot{at, w}, key, *p)
		if err != nil {
			return err
		}
		if !sound {
			if err := s.empty(at, w); err != nil {
				return err
			}
		}
	}
	return nil
}

// release frees the slots of the chunks that were claimed to which nothing refers, and gives the chunks up.
func (c *count) release(ctx context.Context) error {
	s := c.s
	if s.g.Class != Async {
		// A crash brings back what entries on flash refer to.
		if err := s.m.Flush(); err != nil {
			return err
		}
	}
	return s.side(ctx, len(c.mine), func(k int) error {
		x, found := &c.mine[k], 0
		if err := s.reword(x, func(w hold) uint64 {
			now := w.used() & c.used[x.i]
			found = perChunk - w.with(now).inUse()
			return now
		}); err != nil {
			return err
		}
		s.counters.collected.Add(uint64(found))
		if _, _, err := s.settle(s.g.chunk(x.i), uint64(s.self), 0); err != nil {
			return err
		}
		s.unreserve(x.i)
		return nil
	})
}

// write writes all chunks anew.
func (c *count) write(ctx context.Context) error {
	s := c.s
	b := make([]byte, 0, 16*page)
	from := uint32(0)
	return s.eachChunk(ctx, func(i uint32, _ uint64, w hold) error {
		w = w.counted(c.used[i])
		b = le.AppendUint64(le.AppendUint64(b, 0), uint64(w))
		if len(b) < cap(b) && uint64(i+1) < s.g.chunks() {
			return nil
		}
		err := s.m.Write(b, s.g.chunk(from), false)
		b, from = b[:0], i+1
		return err
	})
}
