package flashcli

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"farflash/cli/verb"
	"farflash/flash/cfs"
	"farflash/flash/ctl"
	"farflash/flash/device"
	"farflash/flash/nvme/chap"
	"farflash/flash/server"
	"farflash/numeric/units"
	"farflash/scenario/shape"
)

// TestConfig verifies that a config sets flags, of which those of the command line win, and that each mistake is named
// with its line and column.
func TestConfig(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.yaml")
	read := func(text string, args ...string) (config, *cobra.Command, error) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := (&program{&verb.Program{}}).flashServe()
		if err := cmd.Flags().Parse(args); err != nil {
			t.Fatal(err)
		}
		c, err := readConfig(cmd, path, true)
		return c, cmd, err
	}
	c, cmd, err := read("devices: [a.img, b.img]\nexports: {db: 1GiB, \"x/y\": 2GB}\nnbd: 127.0.0.1:1\n"+
		"nvme: [127.0.0.1:2, 127.0.0.1:3]\nlimit: {db: \"100MB/s,latency\"}\ndrain: 3s\nnvme_queues: 4\nread_only: "+
		"true\n"+
		"listen: 127.0.0.1:4\n", "--listen", "127.0.0.1:5")
	if err != nil {
		t.Fatal(err)
	}
	if len(c.devices) != 2 || len(c.exports) != 2 || c.exports[0].name != "db" || c.exports[1].size != 2*units.GB ||
		c.exports[1].at.Line != 2 || len(c.limits) != 1 || c.limits[0].name != "db" || c.limits[0].at.Line != 5 ||
		c.limits[0].rate.String() != "100MB/s,latency" {
		t.Errorf("%+v", c)
	}
	for name, want := range map[string]string{"nbd": "127.0.0.1:1", "nvme": "[127.0.0.1:2,127.0.0.1:3]",
		"drain": "3s", "nvme-queues": "4", "read-only": "true",
		"listen": "127.0.0.1:5"} {
		if got := cmd.Flags().Lookup(name).Value.String(); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	for text, want := range map[string]string{
		"devics: [a]":                 ":1:1: unknown key \"devics\"; did you mean devices?",
		"nbd: x\nnbd-address: x":      ":2:1: unknown key \"nbd-address\"; did you mean nbd?",
		"config: x":                   ":1:1: unknown key \"config\"",
		"nvme_queues: x":              ":1:14: nvme_queues: \"x\" is not a whole number",
		"read_only: 5":                ":1:12: read_only: \"5\" is neither true nor false",
		"drain: 5":                    ":1:8: drain: \"5\" is not a time",
		"nbd: [a, b]":                 ":1:6: nbd has one value, not a list",
		"nbd: {a: b}":                 ":1:6: a mapping stands here",
		"exports: [a]":                ":1:10: a list stands here; write NAME: VALUE",
		"exports: {a: 5}":             ":1:14: a: \"5\" has no unit",
		"exports: {a: [5GB]}":         ":1:14: a list stands here",
		"limit: {a: x}":               ":1:12: a: \"x\" is not a rate",
		"limit: [a]":                  ":1:9: give NAME=RATE",
		"limit: [a=5iops, \"b=x\"]":   ":1:18: \"x\" is not a rate",
		"devices: {a: b}":             ":1:10: a mapping stands here",
		"- a":                         "no keys",
		"nvme-queues: 3":              ":1:1: unknown key \"nvme-queues\"; did you mean nvme_queues?",
		"nbd: a\nnvme_queues: x\nd: ": ":3:1: unknown key \"d\"",
	} {
		if _, _, err := read(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// files returns an empty file system on a pool in memory.
func files(t *testing.T) (*ctl.Pool, *cfs.FS) {
	t.Helper()
	cfg := ctl.DefaultConfig()
	cfg.Frames = 64
	dev := device.NewMem(4000 * device.Grain)
	layout := ctl.Layout{Segment: 16, OverProvision: 0.3}
	shape, err := layout.Shape(dev.Size())
	if err == nil {
		err = ctl.Format(shape, dev)
	}
	if err != nil {
		t.Fatal(err)
	}
	pool, err := ctl.Open(cfg, dev)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pool.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := cfs.Format(pool, cfs.Config{Now: time.Now}); err != nil {
		t.Fatal(err)
	}
	tree, err := cfs.Open(pool, cfs.Config{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	return pool, tree
}

// TestExports verifies that exports are created, with the directories above, and extended, and that none is cut.
func TestExports(t *testing.T) {
	_, tree := files(t)
	var said bytes.Buffer
	log := slog.New(slog.NewTextHandler(&said, nil))
	changes := func() int { return strings.Count(said.String(), "\n") }
	c := config{exports: []export{{name: "db", size: units.MiB}, {name: "/a/b/logs", size: 2 * units.MiB}}}
	if err := c.make(tree, log); err != nil || changes() != 2 {
		t.Fatal(said.String(), err)
	}
	c.exports[0].size = 3 * units.MiB
	if err := c.make(tree, log); err != nil || changes() != 3 {
		t.Fatal(said.String(), err)
	}
	var got []int64
	for _, name := range []string{"db", "a/b/logs"} {
		x, err := tree.Stat(super, name)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, x.Size)
	}
	if !reflect.DeepEqual(got, []int64{3 << 20, 2 << 20}) {
		t.Errorf("sizes are %v", got)
	}
	for want, x := range map[string]export{"more than": {name: "db", size: units.MiB},
		"directory": {name: "a", size: units.MiB}, "name": {name: "..", size: units.MiB}} {
		c := config{exports: []export{x}}
		if err := c.make(tree, log); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if changes() != 3 {
		t.Errorf("lines for three changes: %s", said.String())
	}
}

// TestPlaced verifies that the error of each setting begins with its flag, or with its place in the config and its key.
func TestPlaced(t *testing.T) {
	for want, change := range map[string]func(*server.Config){
		"--listen: 127.0.0.1: missing port":                func(c *server.Config) { c.Address = "127.0.0.1" },
		"--listen: 0.0.0.0:1 is reachable":                 func(c *server.Config) { c.Address = "0.0.0.0:1" },
		"c.yaml:3:1: nbd: 127.0.0.1:1234567: invalid port": func(c *server.Config) { c.NBD = "127.0.0.1:1234567" },
		"c.yaml:3:1: nbd: 0.0.0.0:1 is reachable":          func(c *server.Config) { c.NBD = "0.0.0.0:1" },
		"--metrics: unix:: a path is missing":              func(c *server.Config) { c.Metrics = "unix:" },
		"c.yaml:4:2: nvme: 127.0.0.1: missing port":        func(c *server.Config) { c.NVMe[1] = "127.0.0.1" },
		"c.yaml:4:1: nvme: unix:/x: NVMe/TCP needs":        func(c *server.Config) { c.NVMe[0] = "unix:/x" },
		"--nvme-host: \"me\" is no name":                   func(c *server.Config) { c.Hosts = []string{"me"} },
		"--nvme-subsystem: \"disk\" is no name":            func(c *server.Config) { c.Subsystem = "disk" },
		"--nvme-queues: -1 I/O queues":                     func(c *server.Config) { c.Queues = -1 },
		"--nvme-keys: \"me\" is no name":                   func(c *server.Config) { c.Keys = map[string]chap.Keys{"me": {}} },
		"--connections: 0 connections":                     func(c *server.Config) { c.Connections = 0 },
		"--per-export: 0 uses":                             func(c *server.Config) { c.PerExport = 0 },
		"--exports: 0 exports":                             func(c *server.Config) { c.Open = 0 },
		"--reads: 0 reads":                                 func(c *server.Config) { c.Reads = 0 },
		"--nbd-connections: -1 NBD":                        func(c *server.Config) { c.NBDConnections = -1 },
		"--handshake: 0s is no deadline":                   func(c *server.Config) { c.Handshake = 0 },
		"--progress: 0s is no deadline":                    func(c *server.Config) { c.Progress = 0 },
		"--idle: -1ns is no deadline":                      func(c *server.Config) { c.Idle = -1 },
		"--token-file: a token needs TLS":                  func(c *server.Config) { c.Token = make([]byte, 16) },
		"0 handshakes":                                     func(c *server.Config) { c.Handshakes = 0 },
		"no address to listen on":                          func(c *server.Config) { c.Address, c.NVMe = "", nil },
	} {
		at := func(line, column int) shape.Position {
			return shape.Position{File: "c.yaml", Line: line, Column: column}
		}
		given := config{places: map[string][]shape.Position{"nbd": {at(3, 1)}, "nvme": {at(4, 1), at(4, 2)}}}
		cfg := server.DefaultConfig()
		cfg.Address, cfg.NVMe = "127.0.0.1:0", []string{"127.0.0.1:0", "127.0.0.1:0"}
		if err := cfg.Check(); err != nil {
			t.Fatal(err)
		}
		change(&cfg)
		if err := given.placed(cfg.Check()); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
