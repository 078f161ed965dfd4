package resp

import (
	"math"
	"slices"
	"strconv"
)

// Kind is what a Command needs of a store.
type Kind uint8

// The kinds.
const (
	Change  Kind = iota // Apply, for each key
	Scan                // keys from Cursor on, of Buckets buckets
	All                 // all keys
	Flush               // removal of all keys
	Size                // the number of keys
	Info                // the number of keys of each database, and what the server knows
	Clients             // a line for each client
)

// Action is what Apply decides: no change, another value, or removal.
type Action uint8

// The actions.
const (
	Keep Action = iota
	Set
	Remove
)

// Command is a command for a store. It is valid until Session.Answer.
type Command struct {
	Kind    Kind
	DB      int // the database
	Cursor  uint64
	Buckets int
	Whole   bool // of Flush: of all databases

	verb    verb
	reply   func(*Session, *Command)
	keys    [][]byte // or, with step 2, keys and values
	key     [1][]byte
	step    int
	value   []byte
	delta   int64
	nx, xx  bool
	get     bool   // the old value is the reply
	only    string // the type of keys that a scan is for
	pattern []byte

	results []result // by key
	found   [][]byte
	bytes   int // of found, or of values in results
	memory  []byte
}

// result is what a key had, or has now.
type result struct {
	value []byte
	there bool
	done  bool // the key was changed
	n     int64
	err   string
}

// mostResults is the number of results whose memory is used again.
const mostResults = 16

// verb is what Apply does.
type verb uint8

const (
	reads verb = iota
	sets
	removes
	looks
	measures
	adds
	appends
)

func (c *Command) reset(db int) {
	results := c.results[:0]
	if cap(results) > mostResults {
		results = nil
	}
	for i := range results[:cap(results)] {
		if cap(results[:i+1][i].value) > mostKept {
			results[:i+1][i] = result{}
		}
	}
	*c = Command{DB: db, step: 1, results: results}
}

// on begins a Change of keys.
func (c *Command) on(v verb, keys [][]byte, step int, reply func(*Session, *Command)) bool {
	c.verb, c.keys, c.step, c.reply = v, keys, step, reply
	if n := len(keys) / step; n > mostResults {
		c.results = make([]result, n)
	} else {
		c.results = slices.Grow(c.results, n)[:n]
	}
	for i := range c.results {
		c.results[i] = result{value: c.results[i].value[:0]}
	}
	return true
}

// Keys is the number of keys of a Change.
func (c *Command) Keys() int { return len(c.keys) / c.step }

// Key is one of them.
func (c *Command) Key(i int) []byte { return c.keys[i*c.step] }

// Same reports that a key is also one of those that follow, up to but not including end, and gets the value of that.
func (c *Command) Same(i, end int) bool {
	if c.step == 1 {
		return false
	}
	for k := i + 1; k < end; k++ {
		if string(c.Key(k)) == string(c.Key(i)) {
			return true
		}
	}
	return false
}

// Changes reports that the command can change a store, so that its outcome can be unknown.
func (c *Command) Changes() bool {
	switch c.Kind {
	case Change:
		return c.verb == sets || c.verb == removes || c.verb == adds || c.verb == appends
	case Flush:
		return true
	}
	return false
}

// Blind reports that the i-th key is set to a value whatever it had, or removed. Apply need not be called then, but
// Done.
func (c *Command) Blind(i int) (value []byte, action Action) {
	switch {
	case c.verb == sets && !c.nx && !c.xx && !c.get:
		return c.to(i), Set
	case c.verb == removes && !c.get:
		return nil, Remove
	}
	return nil, Keep
}

// to is what the i-th key is set to.
func (c *Command) to(i int) []byte {
	if c.step == 2 {
		return c.keys[2*i+1]
	}
	return c.value
}

// Done notes that the i-th key was changed as Blind says; there: it had a value.
func (c *Command) Done(i int, there bool) { c.results[i].there, c.results[i].done = there, true }

// Apply decides what happens to the i-th key, which has a value or not. It may be called several times, and by several
// goroutines for different keys; the last decision counts. The result is valid until the next call for this key.
func (c *Command) Apply(i int, old []byte, there bool) (value []byte, action Action) {
	r := &c.results[i]
	*r = result{value: r.value[:0], there: there}
	switch c.verb {
	case reads:
		r.keep(old)
	case looks:
	case measures:
		r.n = int64(len(old))
	case sets:
		if c.get {
			r.keep(old)
		}
		if c.nx && there || c.xx && !there {
			return nil, Keep
		}
		r.done = true
		return c.to(i), Set
	case removes:
		if c.get {
			r.keep(old)
		}
		r.done = there
		return nil, Remove
	case adds:
		return c.add(r, old)
	case appends:
		r.done = true
		r.keep(old)
		r.value = append(r.value, c.value...)
		r.n = int64(len(r.value))
		return r.value, Set
	}
	return nil, Keep
}

// keep copies a value, which is valid only during Apply.
func (r *result) keep(value []byte) { r.value = append(r.value, value...) }

func (c *Command) add(r *result, old []byte) ([]byte, Action) {
	n := int64(0)
	if r.there {
		var ok bool
		if n, ok = integer(old); !ok {
			r.err = "ERR value is not an integer or out of range"
			return nil, Keep
		}
	}
	if c.delta > 0 && n > math.MaxInt64-c.delta || c.delta < 0 && n < math.MinInt64-c.delta {
		r.err = "ERR increment or decrement would overflow"
		return nil, Keep
	}
	r.n, r.done = n+c.delta, true
	r.value = strconv.AppendInt(r.value, r.n, 10)
	return r.value, Set
}

// Held is the number of bytes that the i-th key's result holds.
func (c *Command) Held(i int) int { return len(c.results[i].value) }

// Found notes a key of a scan, if the command is for it. It reports false if the reply has become too large.
func (c *Command) Found(key []byte, most int) bool {
	if c.only != "" && c.only != "string" || c.pattern != nil && !matches(c.pattern, key) {
		return true
	}
	if c.bytes += len(key) + 24; c.bytes > most {
		return false
	}
	at := len(c.memory) // keys before keep the memory from which this grows
	c.memory = append(c.memory, key...)
	c.found = append(c.found, c.memory[at:len(c.memory):len(c.memory)])
	return true
}

// Outcome is what a server knows after a command.
type Outcome struct {
	Err    string // in one line, with its kind in capitals first; empty: none
	Cursor uint64 // of Scan: where to go on; 0: at its end
	N      uint64 // of Size: the number of keys
	Text   string // of Info and Clients
}

// Answer replies to a command.
func (s *Session) Answer(c *Command, o *Outcome) {
	switch {
	case o.Err != "":
		s.failed(o.Err)
	case c.Kind == Scan:
		s.array(2)
		s.text(strconv.FormatUint(o.Cursor, 10))
		s.keys(c.found)
	case c.Kind == All:
		s.keys(c.found)
	case c.Kind == Flush:
		s.simple("OK")
	case c.Kind == Size:
		s.integer(int64(o.N))
	case c.Kind == Info || c.Kind == Clients:
		s.verbatim(o.Text)
	default:
		for i := range c.results {
			if e := c.results[i].err; e != "" {
				s.failed(e)
				return
			}
		}
		c.reply(s, c)
	}
}

func (s *Session) keys(all [][]byte) {
	s.array(len(all))
	for _, k := range all {
		s.bulk(k)
	}
}
