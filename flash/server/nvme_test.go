package server_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"farflash/flash/cfs"
	"farflash/flash/nvme/nvmetest"
	"farflash/flash/nvme/wire"
	"farflash/flash/server"
)

// paths are NVMe addresses in any ports.
func paths(n int) []string { return slices.Repeat([]string{"127.0.0.1:0"}, n) }

// host connects an NVMe host through a path, with two I/O queues.
func (d *daemon) host(path int, name string) (*nvmetest.Host, error) {
	h, err := nvmetest.Open(d.s.Paths()[path].String(), nvmetest.Login{Queues: 2,
		Identity: wire.Identity{HostID: [16]byte{1}, Host: name, Subsystem: d.s.Subsystem()}})
	if err == nil {
		d.t.Cleanup(func() { _ = h.Close() })
	}
	return h, err
}

func (d *daemon) connect(path int) *nvmetest.Host {
	d.t.Helper()
	h, err := d.host(path, nvmetest.HostName)
	if err != nil {
		d.t.Fatal(err)
	}
	return h
}

// spaces reads the namespaces that a host sees: their sizes and names.
func (d *daemon) spaces(h *nvmetest.Host) (blocks map[uint32]uint64, names map[uint32]string) {
	d.t.Helper()
	list, err := h.Admin.Identify(wire.CNSActive, 0)
	if err != nil {
		d.t.Fatal(err)
	}
	blocks, names = map[uint32]uint64{}, map[uint32]string{}
	for _, id := range wire.DecodeList(list) {
		b, err := h.Admin.Identify(wire.CNSNamespace, id)
		if err != nil {
			d.t.Fatal(err)
		}
		n := wire.DecodeNamespace(b)
		blocks[id], names[id] = n.Blocks, fmt.Sprintf("%x", n.NGUID)
	}
	return blocks, names
}

// TestNVMe verifies that the files that the server's user can read are namespaces, through two paths; that NVMe, NBD
// and iWARP share their bytes; and that a namespace keeps its identity when its file is renamed and when the pool is
// served again, while another file at the same number has another.
func TestNVMe(t *testing.T) { ways(t, testNVMe) }

func testNVMe(t *testing.T) {
	d := begin(t, func(c *server.Config) {
		c.NBD, c.NVMe, c.Queues, c.Metrics = "127.0.0.1:0", paths(2), 2, "127.0.0.1:0"
	})
	one, two := d.connect(0), d.connect(1)
	blocks, names := d.spaces(one)
	if len(blocks) != 3 || blocks[1] != size/512 || names[1] == names[2] {
		t.Fatalf("namespaces of %v blocks: %v", blocks, names)
	}
	if b, err := one.Admin.Identify(wire.CNSNamespace, 3); err != nil || !wire.DecodeNamespace(b).ReadOnly {
		t.Errorf("a file that only can be read is a namespace that can be written: %v", err)
	}
	put := nvmetest.IOOp(wire.Write, 1, 80, 8, wire.FUA)
	put.Out = bytes.Repeat([]byte("nvme"), 1024)
	if err := one.IO[0].Do(put); err != nil {
		t.Fatal(err)
	}
	if err := one.IO[0].Do(&nvmetest.Op{Request: wire.Request{Opcode: wire.Flush, NSID: 1}}); err != nil {
		t.Fatal(err)
	}
	d.until("farflash_nvme_hosts 2\n", "farflash_nvme_connections 6\n",
		`farflash_operations_total{export="disk",kind="write",protocol="nvme"} 1`,
		`farflash_bytes_total{export="disk",kind="write",protocol="nvme"} 4096`,
		`farflash_operation_seconds_count{export="disk",kind="flush",protocol="nvme"} 1`)
	got := nvmetest.IOOp(wire.Read, 1, 80, 8, 0)
	got.In = make([]byte, 4096)
	if err := two.IO[1].Do(got); err != nil || !bytes.Equal(got.In, put.Out) {
		t.Errorf("through the other path: %v", err)
	}
	if b, _, e, err := d.nbd("disk").Fetch(0, 80*512, 4096); e != 0 || err != nil || !bytes.Equal(b, put.Out) {
		t.Errorf("through NBD: %v %v", e, err)
	}
	b := make([]byte, 4096)
	if _, err := d.open(d.dial(), "disk").ReadAt(b, 80*512); err != nil || !bytes.Equal(b, put.Out) {
		t.Errorf("through iWARP: %v", err)
	}

	if err := d.tree.Rename(cfs.Cred{}, "disk", "moved", true); err != nil {
		t.Fatal(err)
	}
	d.s.Refresh()
	if _, now := d.spaces(one); now[1] != names[1] {
		t.Errorf("%s has become %s by being renamed", names[1], now[1])
	}
	if err := one.IO[0].Do(got); err != nil {
		t.Errorf("after the file was renamed: %v", err)
	}
	third := nvmetest.IOOp(wire.Read, 1, 0, 1, 0) // opened under its new name
	third.In = make([]byte, 512)
	if err := d.connect(0).IO[0].Do(third); err != nil {
		t.Errorf("opened after the file was renamed: %v", err)
	}
	for _, h := range []*nvmetest.Host{one, two} {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := d.s.Drain(d.drain); err != nil {
		t.Fatal(err)
	}

	tree := d.again(func(c *server.Config) { c.Address, c.NVMe = "", paths(1) })
	h := d.connect(0)
	if _, now := d.spaces(h); now[1] != names[1] || now[2] != names[2] {
		t.Errorf("%v was %v before the pool was served again", now, names)
	}
	if err := tree.Remove(cfs.Cred{}, "moved"); err != nil {
		t.Fatal(err)
	}
	f, err := tree.Create(cfs.Cred{}, "disk", 0o666, size)
	if err != nil {
		t.Fatal(err)
	}
	if number, _ := f.Identity(); number != 2 {
		t.Fatalf("the new file has number %d", number)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	d.s.Refresh()
	if _, now := d.spaces(h); now[1] == names[1] || now[1] == "" {
		t.Errorf("another file is %v, which was %v", now, names)
	}
}

// TestNVMeChanges verifies that connected hosts learn of files that are created, grow or are removed; that a file which
// becomes smaller stays as it is until its hosts have disconnected; and that commands on a removed file fail.
func TestNVMeChanges(t *testing.T) { ways(t, testNVMeChanges) }

func testNVMeChanges(t *testing.T) {
	d := begin(t, func(c *server.Config) { c.Address, c.NVMe, c.NBD = "", paths(1), "" })
	h := d.connect(0)
	if _, err := h.Admin.Feature(wire.FeatureEvents, wire.EventNamespace); err != nil {
		t.Fatal(err)
	}
	// learns awaits the event of a change and returns which namespaces have changed.
	learns := func(change func() error) []uint32 {
		t.Helper()
		if err := h.Admin.Send(&nvmetest.Op{Request: wire.Request{Opcode: wire.AsyncEvent}}); err != nil {
			t.Fatal(err)
		}
		if err := change(); err != nil {
			t.Fatal(err)
		}
		d.s.Refresh()
		if p, err := h.Admin.Next(); err != nil || wire.Event(p.CQE.Result) != wire.NamespacesChanged {
			t.Fatalf("%+v, %v", p, err)
		}
		b, err := h.Admin.Log(wire.LogRequest{Log: wire.LogNamespaces, Length: 4096})
		if err != nil {
			t.Fatal(err)
		}
		return wire.DecodeList(b)
	}
	resize := func(name string, n int64) func() error {
		return func() error {
			f, err := d.tree.Open(cfs.Cred{}, name, cfs.Read|cfs.Write)
			if err != nil {
				return err
			}
			defer func() { _ = f.Close() }()
			return f.Truncate(n)
		}
	}
	made := learns(func() error {
		f, err := d.tree.Create(cfs.Cred{}, "new", 0o666, 1<<20)
		if err == nil {
			err = f.Close()
		}
		return err
	})
	if blocks, _ := d.spaces(h); !slices.Equal(made, []uint32{4}) || blocks[4] != 2048 {
		t.Errorf("%v changed, %v blocks", made, blocks)
	}
	if grown := learns(resize("new", 2<<20)); !slices.Equal(grown, []uint32{4}) {
		t.Errorf("%v have grown", grown)
	}
	last := nvmetest.IOOp(wire.Read, 4, 4095, 1, 0)
	last.In = make([]byte, 512)
	if err := h.IO[0].Do(last); err != nil {
		t.Errorf("the last block after growth: %v", err)
	}
	if err := resize("new", 1<<20)(); err != nil {
		t.Fatal(err)
	}
	d.s.Refresh()
	if blocks, _ := d.spaces(h); blocks[4] != 4096 {
		t.Errorf("%d blocks are left under a host", blocks[4])
	}
	if err := h.IO[0].Do(last); err != nil {
		t.Errorf("the last block of a file that is smaller: %v", err)
	}
	d.heard("a file is smaller now")
	if gone := learns(func() error { return d.tree.Remove(cfs.Cred{}, "other") }); !slices.Equal(gone, []uint32{2}) {
		t.Errorf("%v are gone", gone)
	}
	o := nvmetest.IOOp(wire.Read, 2, 0, 1, 0)
	o.In = make([]byte, 512)
	if err := h.IO[0].Do(o); err == nil {
		t.Error("a removed file can be read")
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	for i := 0; ; i++ { // the server looks once a second whether hosts are left
		h := d.connect(0)
		blocks, _ := d.spaces(h)
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
		if blocks[4] == 2048 {
			break
		}
		if i == 20 {
			t.Fatalf("%d blocks without hosts", blocks[4])
		}
		time.Sleep(700 * time.Millisecond)
	}
}

// TestNVMeHosts verifies that only named hosts may connect, and that one more than there is memory for is refused.
func TestNVMeHosts(t *testing.T) {
	d := begin(t, func(c *server.Config) {
		c.Address, c.NVMe, c.Hosts, c.Queues = "", paths(1), []string{nvmetest.HostName}, 7
		c.Subsystem = "nqn.2026-01.example:named"
	})
	if _, err := d.host(0, "nqn.2026-01.example:stranger"); err == nil {
		t.Error("a stranger may connect")
	}
	var all []*nvmetest.Host
	for {
		h, err := d.host(0, nvmetest.HostName)
		if err != nil {
			break
		}
		all = append(all, h)
	}
	// 4096 frames are 16 MiB, a quarter of which is 16 times what a connection borrows: two hosts of 8 connections.
	if len(all) != 2 {
		t.Errorf("%d hosts are served", len(all))
	}
}

// TestNVMeMistakes verifies the errors of settings.
func TestNVMeMistakes(t *testing.T) {
	for want, change := range map[string]func(*server.Config){
		"not encrypted":     func(c *server.Config) { c.NVMe = []string{"10.1.2.3:4420"} },
		"that they reach":   func(c *server.Config) { c.NVMe = []string{"0.0.0.0:4420"} },
		"one that they":     func(c *server.Config) { c.NVMe = []string{":4420"} },
		"needs HOST:PORT":   func(c *server.Config) { c.NVMe = []string{"unix:/tmp/x"} },
		"missing port":      func(c *server.Config) { c.NVMe = []string{"127.0.0.1"} },
		"NVMe subsystem":    func(c *server.Config) { c.Subsystem = "disk" },
		"/etc/nvme/hostnqn": func(c *server.Config) { c.Hosts = []string{"me"} },
		"I/O queues":        func(c *server.Config) { c.Queues = 1000 },
	} {
		cfg := server.DefaultConfig()
		cfg.Address, cfg.NVMe = "", paths(1)
		if err := cfg.Check(); err != nil {
			t.Fatal(err)
		}
		change(&cfg)
		if err := cfg.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
