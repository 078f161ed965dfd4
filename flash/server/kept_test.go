package server

import (
	"errors"
	"log/slog"
	"maps"
	"strings"
	"testing"

	"farflash/flash/qos"
	"farflash/internal/patience"
)

// shelf is a Keeper.
type shelf struct {
	kept []byte
	full error
}

func (s *shelf) Kept() []byte { return s.kept }

func (s *shelf) Keep(b []byte) error {
	if s.full == nil {
		s.kept = b
	}
	return s.full
}

// book is a log.
type book struct{ text string }

func (b *book) Write(line []byte) (int, error) {
	b.text += string(line)
	return len(line), nil
}

// TestKeptLimits verifies which limit of an export is in force when an operator has set one and the configuration has
// one, before and after restarts and changes of the configuration, and that the log says so at the start.
func TestKeptLimits(t *testing.T) {
	type config = map[string]qos.Limit
	mb := func(n int64) qos.Limit { return qos.Limit{Bytes: n << 20, Burst: qos.DefaultBurst} }
	none := qos.Limit{}
	pool := &shelf{}
	var l *limits
	var log *book
	start := func(c config) {
		t.Helper()
		g, err := newGates(c, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(g.close)
		log = &book{}
		if l, err = newLimits(g, pool, slog.New(slog.NewTextHandler(log, nil))); err != nil {
			t.Fatal(err)
		}
	}
	are := func(when string, want config) {
		t.Helper()
		if got := l.gates.limits(); !maps.Equal(got, want) {
			t.Errorf("%s: %v, not %v", when, got, want)
		}
	}
	set := func(name string, to qos.Limit) {
		t.Helper()
		if brief, err := l.change(name, to, nil); brief != nil || err != nil {
			t.Fatal(brief, err)
		}
	}
	base := config{"//db/": mb(20), "logs": mb(5)}
	start(base)
	are("the configuration", config{"db": mb(20), "logs": mb(5)})
	if pool.kept != nil || log.text != "" {
		t.Errorf("%q is kept, and the log says %s", pool.kept, log.text)
	}
	set("db", mb(40))
	set("free", mb(1))
	now := config{"db": mb(40), "logs": mb(5), "free": mb(1)}
	are("set", now)
	start(base)
	are("after a restart", now)
	for _, want := range []string{"export=db limit=40MiB/s configured=20MiB/s", "export=free limit=1MiB/s configured=none"} {
		if !strings.Contains(log.text, want) {
			t.Errorf("no %q in the log: %s", want, log.text)
		}
	}
	if err := l.renew(config{"db": mb(20), "logs": mb(6)}); err != nil {
		t.Fatal(err)
	}
	are("another limit of logs, by a reload", config{"db": mb(40), "logs": mb(6), "free": mb(1)})

	start(config{"db": mb(30), "logs": mb(6)})
	are("another limit of db, by a restart", config{"db": mb(30), "logs": mb(6), "free": mb(1)})
	if want := "export=db limit=30MiB/s was=40MiB/s"; !strings.Contains(log.text, want) {
		t.Errorf("no %q in the log: %s", want, log.text)
	}
	start(config{"db": mb(20)})
	are("the configuration of before does not bring back what has ended", config{"db": mb(20), "free": mb(1)})

	set("db", none)
	set("free", none)
	are("none", config{})
	start(config{"db": mb(20)})
	are("none after a restart", config{})
	set("db", mb(20))
	if pool.kept != nil {
		t.Errorf("%q is kept of a limit that the configuration has", pool.kept)
	}
	set("db", mb(7))
	if err := l.renew(config{}); err != nil {
		t.Fatal(err)
	}
	are("the limit of the configuration is gone", config{})
	if pool.kept != nil {
		t.Errorf("%q is kept", pool.kept)
	}

	pool.full = errors.New("no space")
	if brief, err := l.change("db", mb(9), nil); !errors.Is(brief, pool.full) || err != nil {
		t.Errorf("%v, %v", brief, err)
	}
	are("it acts although it is not kept", config{"db": mb(9)})
	if _, err := l.change("db", qos.Limit{Bytes: -1}, nil); err == nil {
		t.Error("a negative rate is a limit")
	}
	are("after a mistake", config{"db": mb(9)})
	gone := errors.New("no such export")
	if _, err := l.change("db", mb(1), gone); !errors.Is(err, gone) {
		t.Errorf("a file that is gone gets a limit: %v", err)
	}
	if _, err := l.change("db", none, gone); err != nil {
		t.Errorf("a file that is gone keeps its limit: %v", err)
	}

	pool.full, pool.kept = nil, []byte{keptVersion + 1, 1}
	start(config{"db": mb(20)})
	are("what is kept is of another version", config{"db": mb(20)})
	if brief, err := l.change("db", mb(9), nil); brief == nil || err != nil || len(pool.kept) != 2 {
		t.Errorf("%v, %v, and it keeps %q", brief, err, pool.kept)
	}
	if !strings.Contains(log.text, "version 2") {
		t.Errorf("the log says %s", log.text)
	}
}

// FuzzKeptLimits verifies that decoding kept limits never fails otherwise than by an error, and that accepted input is
// what encoding produces.
func FuzzKeptLimits(f *testing.F) {
	f.Add([]byte{})
	f.Add(encodeLimits(map[string]replaced{"a/db": {qos.Limit{Bytes: 1 << 40, Burst: 1e8}, qos.Limit{Class: qos.Latency}},
		"x": {qos.Limit{Operations: 1}, qos.Limit{}}}))
	f.Add([]byte{keptVersion, 200, 1})
	f.Add([]byte{keptVersion, 1, 'a', 0x80, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		defer patience.Limit()()
		all, err := decodeLimits(b)
		if err != nil {
			return
		}
		for name, x := range all {
			if err := errors.Join(x.limit.Validate(), x.configured.Validate()); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if got := string(encodeLimits(all)); got != string(b) {
			t.Errorf("%q comes back as %q", b, got)
		}
	})
}
