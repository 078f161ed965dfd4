package flashcli

import (
	"bytes"
	"log/slog"
	"maps"
	"strings"
	"testing"

	"farflash/flash/qos"
	"farflash/flash/server"
	"farflash/numeric/units"
	"farflash/scenario/shape"
)

// TestRelimit verifies that a config that is read again changes the limits that differ from those it had, and no
// others: not those that flash ctl has set meanwhile. A mistake changes nothing and is named with its place.
func TestRelimit(t *testing.T) {
	pool, tree := files(t)
	f := serveFlags{cfg: server.DefaultConfig()}
	f.cfg.Pool, f.cfg.Files, f.cfg.Address = pool, server.Tree(tree, super), "127.0.0.1:0"
	f.cfg.Connections, f.cfg.Reads = 1, 1
	c := config{exports: []export{{name: "db", size: units.MiB}, {name: "logs", size: units.MiB},
		{name: "more", size: units.MiB}}}
	if err := c.make(tree, slog.New(slog.NewTextHandler(new(bytes.Buffer), nil))); err != nil {
		t.Fatal(err)
	}
	read := func(texts ...string) (all limits) {
		for i, text := range texts {
			l, err := parseLimit(text)
			if err != nil {
				t.Fatal(err)
			}
			l.at = shape.Position{File: "c.yaml", Line: i + 1, Column: 1}
			all = append(all, l)
		}
		return all
	}
	var err error
	f.rates = read("db=1MB/s", "logs=2MB/s")
	if f.cfg.Limits, err = f.rates.byName(); err != nil {
		t.Fatal(err)
	}
	s, err := server.New(f.cfg)
	if err != nil {
		t.Fatal(err)
	}
	are := func(want ...string) {
		t.Helper()
		by, err := read(want...).byName()
		if got := s.Status().Limits; err != nil || !maps.Equal(got, by) {
			t.Errorf("%v, want %v (%v)", got, by, err)
		}
	}
	are("db=1MB/s", "logs=2MB/s")
	for _, name := range []string{"db", "more"} {
		if _, err := s.SetLimit(name, qos.Limit{Operations: 5, Burst: qos.DefaultBurst}); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.relimit(s, tree, read("db=1MB/s", "logs=3MB/s,latency")); err != nil {
		t.Fatal(err)
	}
	are("db=5iops", "logs=3MB/s,latency", "more=5iops")
	for want, wrong := range map[string]limits{
		"c.yaml:2:1: no export lofs; did you mean logs?": read("db=9MB/s", "lofs=1MB/s"),
		"c.yaml:2:1: db is given twice":                  read("db=9MB/s", "/db/=8MB/s"),
	} {
		if err := f.relimit(s, tree, wrong); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	are("db=5iops", "logs=3MB/s,latency", "more=5iops")
	if err := tree.Remove(super, "logs"); err != nil {
		t.Fatal(err)
	}
	if err := f.relimit(s, tree, read("db=2MB/s")); err != nil {
		t.Fatal(err)
	}
	are("db=2MB/s", "more=5iops")
}
