package resp

import (
	"fmt"
	"math"
)

// definition is a command: what COMMAND says of it, and its function, which answers it or prepares the session's
// Command and returns true.
type definition struct {
	name  string
	args  int // their number with the name, or less than 0: the least
	flags string
	keys  [3]int // the first, the last and the step
	open  bool   // to clients that have not given the password
	does  func(*Session, [][]byte) bool
}

var (
	oneKey  = [3]int{1, 1, 1}
	allKeys = [3]int{1, -1, 1}
)

var table = [...]definition{
	{"append", 3, "write denyoom fast", oneKey, false, appendTo},
	{"auth", -2, "noscript fast", [3]int{}, true, auth},
	{"client", -2, "noscript", [3]int{}, false, client},
	{"command", -1, "loading stale", [3]int{}, false, commands},
	{"config", -2, "admin noscript", [3]int{}, false, config},
	{"dbsize", 1, "readonly", [3]int{}, false, kind(Size)},
	{"decr", 2, "write denyoom fast", oneKey, false, count1(-1)},
	{"decrby", 3, "write denyoom fast", oneKey, false, decrementBy},
	{"del", -2, "write", allKeys, false, remove},
	{"echo", 2, "fast", [3]int{}, false, echo},
	{"exists", -2, "readonly fast", allKeys, false, there},
	{"expire", -3, "write fast", oneKey, false, noExpiry},
	{"expireat", -3, "write fast", oneKey, false, noExpiry},
	{"flushall", -1, "write", [3]int{}, false, flush},
	{"flushdb", -1, "write", [3]int{}, false, flush},
	{"get", 2, "readonly fast", oneKey, false, read},
	{"getdel", 2, "write fast", oneKey, false, readRemove},
	{"getex", -2, "write fast", oneKey, false, noExpiry},
	{"getset", 3, "write denyoom fast", oneKey, false, readSet},
	{"hello", -1, "noscript fast", [3]int{}, true, hello},
	{"incr", 2, "write denyoom fast", oneKey, false, count1(1)},
	{"incrby", 3, "write denyoom fast", oneKey, false, incrementBy},
	{"info", -1, "loading stale", [3]int{}, false, kind(Info)},
	{"keys", 2, "readonly", [3]int{}, false, list},
	{"mget", -2, "readonly fast", allKeys, false, readAll},
	{"mset", -3, "write denyoom", [3]int{1, -1, 2}, false, setAll},
	{"pexpire", -3, "write fast", oneKey, false, noExpiry},
	{"pexpireat", -3, "write fast", oneKey, false, noExpiry},
	{"ping", -1, "fast", [3]int{}, false, ping},
	{"psetex", 4, "write denyoom", oneKey, false, noExpiry},
	{"pttl", 2, "readonly fast", oneKey, false, left},
	{"quit", -1, "noscript fast", [3]int{}, true, quit},
	{"reset", 1, "noscript fast", [3]int{}, true, reset},
	{"scan", -2, "readonly", [3]int{}, false, scan},
	{"select", 2, "loading stale fast", [3]int{}, false, choose},
	{"set", -3, "write denyoom", oneKey, false, setOne},
	{"setex", 4, "write denyoom", oneKey, false, noExpiry},
	{"setnx", 3, "write denyoom fast", oneKey, false, setNew},
	{"strlen", 2, "readonly fast", oneKey, false, measure},
	{"ttl", 2, "readonly fast", oneKey, false, left},
	{"type", 2, "readonly fast", oneKey, false, kindOf},
	{"unlink", -2, "write fast", allKeys, false, remove},
}

func kind(k Kind) func(*Session, [][]byte) bool {
	return func(s *Session, _ [][]byte) bool {
		s.command.Kind = k
		return true
	}
}

func noExpiry(s *Session, args [][]byte) bool {
	s.failed(fmt.Sprintf("ERR %s is not possible: keys of this store do not expire", lower(args[0])))
	return false
}

func okay(s *Session, _ *Command) { s.simple("OK") }

// old replies with the value that the key had.
func old(s *Session, c *Command) { s.value(c.results[0].value, c.results[0].there) }

func number(s *Session, c *Command) { s.integer(c.results[0].n) }

// times replies with the number of keys that had a value.
func times(s *Session, c *Command) {
	n := int64(0)
	for i := range c.results {
		if c.results[i].there {
			n++
		}
	}
	s.integer(n)
}

func read(s *Session, args [][]byte) bool { return s.command.on(reads, args[1:], 1, old) }

func readAll(s *Session, args [][]byte) bool {
	return s.command.on(reads, args[1:], 1, func(s *Session, c *Command) {
		s.array(len(c.results))
		for i := range c.results {
			s.value(c.results[i].value, c.results[i].there)
		}
	})
}

func measure(s *Session, args [][]byte) bool { return s.command.on(measures, args[1:], 1, number) }

func there(s *Session, args [][]byte) bool { return s.command.on(looks, args[1:], 1, times) }

func kindOf(s *Session, args [][]byte) bool {
	return s.command.on(looks, args[1:], 1, func(s *Session, c *Command) {
		if c.results[0].there {
			s.simple("string")
			return
		}
		s.simple("none")
	})
}

// left answers TTL and PTTL: a key has no end, or is not there.
func left(s *Session, args [][]byte) bool {
	return s.command.on(looks, args[1:], 1, func(s *Session, c *Command) {
		if c.results[0].there {
			s.integer(-1)
			return
		}
		s.integer(-2)
	})
}

func remove(s *Session, args [][]byte) bool { return s.command.on(removes, args[1:], 1, times) }

func readRemove(s *Session, args [][]byte) bool {
	s.command.get = true
	return s.command.on(removes, args[1:], 1, old)
}

func setOne(s *Session, args [][]byte) bool {
	c := &s.command
	c.value = args[2]
	for _, a := range args[3:] {
		switch {
		case is(a, "nx"):
			c.nx = true
		case is(a, "xx"):
			c.xx = true
		case is(a, "get"):
			c.get = true
		case is(a, "keepttl"):
		case is(a, "ex"), is(a, "px"), is(a, "exat"), is(a, "pxat"):
			s.failed(fmt.Sprintf("ERR SET with %s is not possible: keys of this store do not expire", lower(a)))
			return false
		default:
			return s.syntax()
		}
	}
	if c.nx && c.xx {
		return s.syntax()
	}
	return c.on(sets, args[1:2], 1, func(s *Session, c *Command) {
		switch {
		case c.get:
			old(s, c)
		case c.results[0].done:
			s.simple("OK")
		default:
			s.null()
		}
	})
}

func setNew(s *Session, args [][]byte) bool {
	s.command.value, s.command.nx = args[2], true
	return s.command.on(sets, args[1:2], 1, func(s *Session, c *Command) {
		if c.results[0].done {
			s.integer(1)
			return
		}
		s.integer(0)
	})
}

func readSet(s *Session, args [][]byte) bool {
	s.command.value, s.command.get = args[2], true
	return s.command.on(sets, args[1:2], 1, old)
}

func setAll(s *Session, args [][]byte) bool {
	if len(args)%2 == 0 {
		s.arity("mset")
		return false
	}
	return s.command.on(sets, args[1:], 2, okay)
}

func appendTo(s *Session, args [][]byte) bool {
	s.command.value = args[2]
	return s.command.on(appends, args[1:2], 1, number)
}

func count1(by int64) func(*Session, [][]byte) bool {
	return func(s *Session, args [][]byte) bool { return s.add(args[1], by) }
}

func (s *Session) add(key []byte, by int64) bool {
	s.command.delta = by
	s.command.key[0] = key
	return s.command.on(adds, s.command.key[:], 1, number)
}

func incrementBy(s *Session, args [][]byte) bool {
	n, ok := integer(args[2])
	if !ok {
		s.failed("ERR value is not an integer or out of range")
		return false
	}
	return s.add(args[1], n)
}

func decrementBy(s *Session, args [][]byte) bool {
	n, ok := integer(args[2])
	switch {
	case !ok:
		s.failed("ERR value is not an integer or out of range")
	case n == math.MinInt64:
		s.failed("ERR decrement would overflow")
	default:
		return s.add(args[1], -n)
	}
	return false
}

func list(s *Session, args [][]byte) bool {
	s.command.Kind, s.command.pattern = All, args[1]
	return true
}

func flush(s *Session, args [][]byte) bool {
	if len(args) > 2 || len(args) == 2 && !is(args[1], "sync") && !is(args[1], "async") {
		return s.syntax()
	}
	s.command.Kind = Flush
	s.command.Whole = is(args[0], "flushall")
	return true
}

func scan(s *Session, args [][]byte) bool {
	c := &s.command
	n, ok := integer(args[1])
	if !ok || n < 0 {
		s.failed("ERR invalid cursor")
		return false
	}
	if len(args)%2 != 0 {
		return s.syntax()
	}
	c.Kind, c.Cursor = Scan, uint64(n)
	want := int64(10)
	for i := 2; i < len(args); i += 2 {
		switch a := args[i+1]; {
		case is(args[i], "match"):
			c.pattern = a
		case is(args[i], "count"):
			if want, ok = integer(a); !ok {
				s.failed("ERR value is not an integer or out of range")
				return false
			}
			if want < 1 {
				return s.syntax()
			}
		case is(args[i], "type"):
			c.only = lower(a)
		default:
			return s.syntax()
		}
	}
	// A bucket has ten keys if the store is as full as it was made for.
	c.Buckets = int(min((want+9)/10, mostBuckets))
	return true
}

// mostBuckets bounds one SCAN, so that it takes no longer than other commands by much.
const mostBuckets = 4096
