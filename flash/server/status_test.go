package server_test

import (
	"testing"
	"time"

	"farflash/flash/nbd"
	"farflash/flash/nbd/nbdtest"
	"farflash/flash/nvme/nvmetest"
	"farflash/flash/nvme/wire"
	"farflash/flash/server"
)

// TestStatus verifies that the status has each export's clients and operations by protocol, and that clients that have
// gone, or only asked for an export, are none any more.
func TestStatus(t *testing.T) { ways(t, testStatus) }

func testStatus(t *testing.T) {
	d := begin(t, func(c *server.Config) { c.NBD, c.NVMe, c.Queues = "127.0.0.1:0", paths(1), 1 })
	of := func(protocol string) (found server.ExportStatus) {
		for _, e := range d.s.Status().Exports {
			if e.Export == "disk" && e.Protocol == protocol {
				found = e
			}
		}
		return found
	}
	asks := nbdtest.Dial(t, d.nbdAddress())
	if _, err := asks.Option(nbd.OptInfo, nbdtest.Named("disk", 0, 0)); err != nil {
		t.Fatal(err)
	}
	if err := asks.Close(); err != nil {
		t.Fatal(err)
	}
	near := d.nbd("disk")
	if e, err := near.Do(0, nbd.CmdWrite, 0, 4096, make([]byte, 4096)); e != 0 || err != nil {
		t.Fatal(e, err)
	}
	far := d.dial()
	if _, err := d.open(far, "disk").ReadAt(make([]byte, 4096), 0); err != nil {
		t.Fatal(err)
	}
	host := d.connect(0)
	o := nvmetest.IOOp(wire.Read, 1, 0, 8, 0)
	o.In = make([]byte, 4096)
	if err := host.IO[0].Do(o); err != nil {
		t.Fatal(err)
	}
	second := nvmetest.IOOp(wire.Read, 2, 0, 8, 0) // with a task that has served the first
	second.In = make([]byte, 4096)
	for range 3 {
		if err := host.IO[0].Do(second); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range d.s.Status().Exports {
		if e.Export == "other" && e.Kinds["read"].Count != 3 {
			t.Errorf("another namespace: %+v", e)
		}
	}
	for protocol, kind := range map[string]string{"nbd": "write", "iwarp": "read", "nvme": "read"} {
		e := of(protocol)
		if x := e.Kinds[kind]; e.Clients != 1 || len(e.Kinds) != 1 || x.Count != 1 || x.Bytes != 4096 || x.P50 <= 0 ||
			x.P99 != x.P50 {
			t.Errorf("%s: %+v", protocol, e)
		}
	}
	if x := d.s.Status(); len(x.Addresses) != 3 || x.Used == 0 || x.Unready != "" || x.Capacity <= x.Used {
		t.Errorf("%+v", x)
	}
	for _, c := range []interface{ Close() error }{near, far, host} {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for i := 0; of("nbd").Clients+of("iwarp").Clients+of("nvme").Clients > 0; i++ {
		if i == 500 {
			t.Fatalf("clients are left: %+v", d.s.Status().Exports)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
