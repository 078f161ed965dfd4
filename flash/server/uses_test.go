package server_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"farflash/flash/cfs"
	"farflash/flash/nbd/nbdtest"
	"farflash/flash/nvme/nvmetest"
	"farflash/flash/nvme/wire"
	"farflash/flash/qos"
	"farflash/flash/server"
	"farflash/flash/verbs/control"
)

// drained asks for the state of an export that is drained.
func (d *daemon) drained() server.Drain {
	d.t.Helper()
	x, err := d.s.DrainExport("/disk/")
	if err != nil {
		d.t.Fatal(err)
	}
	return x
}

// TestDrainExport verifies that no client can open a drained export, over any protocol, and that the refusal states
// the reason; that those who have it open go on and are named until they close it; that NVMe hosts wait with what the
// server has not accepted; that other exports are served; and that everybody can open it again when it is resumed.
func TestDrainExport(t *testing.T) { ways(t, testDrainExport) }

func testDrainExport(t *testing.T) {
	d := begin(t, func(c *server.Config) {
		c.NBD, c.NVMe, c.Queues, c.Metrics = "127.0.0.1:0", paths(1), 1, "127.0.0.1:0"
	})
	block, far, host := d.nbd("disk"), d.dial(), d.connect(0)
	file := d.open(far, "disk")
	flush := func(id uint32) error { return host.IO[0].Do(nvmetest.IOOp(wire.Flush, id, 0, 1, 0)) }
	if err := flush(1); err != nil {
		t.Fatal(err)
	}
	x := d.drained()
	if len(x.Users) == 3 { // the host's last command may not be quite over
		time.Sleep(100 * time.Millisecond)
		x = d.drained()
	}
	if x.Export != "disk" || x.Hosts != 1 || len(x.Users) != 2 || x.Users[0].Protocol != "iwarp" ||
		x.Users[1] != (server.User{Protocol: "nbd", Peer: block.LocalAddr().String()}) {
		t.Fatalf("%+v", x)
	}
	d.want(map[string]string{`farflash_export_drained{export="disk"}`: "1",
		`farflash_export_drained_users{export="disk"}`: "2"})
	const why = "the export is being drained and takes no new clients"
	if err := nbdtest.Dial(t, d.nbdAddress()).Go("disk", false); err == nil || !strings.Contains(err.Error(), why) {
		t.Errorf("NBD: %v", err)
	}
	if err := nbdtest.Dial(t, d.nbdAddress()).Go("", false); err == nil || !strings.Contains(err.Error(), why) {
		t.Errorf("the default export: %v", err)
	}
	if _, err := d.dial().Open("disk", all); !errors.Is(err, control.Draining) || !strings.Contains(err.Error(), why) {
		t.Errorf("iWARP: %v", err)
	}
	if err := flush(1); !errors.Is(err, wire.PathInaccessible) {
		t.Errorf("NVMe: %v", err)
	}
	if err := flush(2); err != nil {
		t.Errorf("another namespace: %v", err)
	}
	d.nbd("other")
	if _, _, e, err := block.Fetch(0, 0, 4096); e != 0 || err != nil {
		t.Errorf("who has it open: %v, %v", e, err)
	}
	if _, err := file.WriteDurable(make([]byte, 4096), 0); err != nil {
		t.Errorf("who has it open: %v", err)
	}
	if s := d.s.Status().Draining; len(s) != 1 || s[0].Export != "disk" || len(s[0].Users) != 2 {
		t.Errorf("the status says %+v", s)
	}
	for _, c := range []interface{ Close() error }{block, far} {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for i := 0; len(d.drained().Users) > 0; i++ {
		if i == 500 {
			t.Fatalf("%+v are left", d.drained())
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err := d.s.ResumeExport("disk"); err != nil {
		t.Fatal(err)
	}
	if err := d.s.ResumeExport("disk"); err == nil || !strings.Contains(err.Error(), "disk is not being drained") {
		t.Errorf("resumed twice: %v", err)
	}
	d.nbd("disk")
	d.open(d.dial(), "disk")
	if err := flush(1); err != nil {
		t.Error(err)
	}
	if s := d.s.Status().Draining; len(s) != 0 {
		t.Errorf("the status still says %+v", s)
	}
	for _, f := range []func(string) error{func(n string) error { _, err := d.s.DrainExport(n); return err },
		d.s.ResumeExport, func(n string) error { _, err := d.s.SetLimit(n, qos.Limit{}); return err }} {
		if err := f("disj"); err == nil || !strings.Contains(err.Error(), "no export disj; did you mean disk?") {
			t.Errorf("a wrong name: %v", err)
		}
	}
}

// TestDrainLasts verifies that an export that is drained is so under another name, and when the pool is served again,
// over each protocol.
func TestDrainLasts(t *testing.T) { ways(t, testDrainLasts) }

func testDrainLasts(t *testing.T) {
	d := begin(t, func(c *server.Config) { c.Address = "127.0.0.1:0" })
	if x := d.drained(); x.Brief != "" {
		t.Errorf("it is forgotten: %s", x.Brief)
	}
	if err := d.tree.Rename(cfs.Cred{}, "disk", "moved", true); err != nil {
		t.Fatal(err)
	}
	if err := d.s.Drain(d.drain); err != nil {
		t.Fatal(err)
	}
	d.again(func(c *server.Config) {
		c.Address, c.NBD, c.NVMe, c.Queues, c.Connections = "127.0.0.1:0", "127.0.0.1:0", paths(1), 1, 8
	})
	if x := d.s.Status().Draining; len(x) != 1 || x[0].Export != "moved" {
		t.Errorf("the status says %+v", x)
	}
	try := func() [3]error {
		_, iwarp := d.dial().Open("moved", all)
		return [3]error{nbdtest.Dial(t, d.nbdAddress()).Go("moved", false), iwarp,
			d.connect(0).IO[0].Do(nvmetest.IOOp(wire.Flush, 1, 0, 1, 0))}
	}
	if errs := try(); errs[0] == nil || !errors.Is(errs[1], control.Draining) ||
		!errors.Is(errs[2], wire.PathInaccessible) {
		t.Errorf("%v", errs)
	}
	if err := d.s.ResumeExport("moved"); err != nil {
		t.Fatal(err)
	}
	errs := try()
	if err := errors.Join(errs[:]...); err != nil {
		t.Error(err)
	}
}

// TestDrainCompletes verifies that a command that was accepted before its export is drained completes, even if it still
// waits for a limit, and that its host is named until then.
func TestDrainCompletes(t *testing.T) { ways(t, testDrainCompletes) }

func testDrainCompletes(t *testing.T) {
	d := begin(t, func(c *server.Config) {
		c.Address, c.NVMe, c.Queues = "", paths(1), 1
		c.Limits = map[string]qos.Limit{"disk": {Bytes: 16 << 10}}
	})
	host := d.connect(0)
	write := func() *nvmetest.Op {
		o := nvmetest.IOOp(wire.Write, 1, 0, 8, 0)
		o.Out, o.InCapsule = make([]byte, 4096), true
		return o
	}
	if err := host.IO[0].Do(write()); err != nil {
		t.Fatal(err)
	}
	if err := host.IO[0].Send(write()); err != nil { // waits for a quarter of a second
		t.Fatal(err)
	}
	for d.s.Status().Exports[0].Outstanding == 0 {
		time.Sleep(time.Millisecond)
	}
	if x := d.drained(); !slices.Equal(x.Users, []server.User{{Protocol: "nvme", Peer: nvmetest.HostName}}) {
		t.Errorf("with a command outstanding %+v use it", x.Users)
	}
	if p, err := host.IO[0].Next(); err != nil || p.CQE.Status != 0 {
		t.Errorf("%+v, %v", p.CQE, err)
	}
	for i := 0; len(d.drained().Users) > 0; i++ {
		if i == 500 {
			t.Fatalf("%+v are left", d.drained())
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// TestSetLimit verifies that a limit that is set, changed or taken away acts on clients that have had the export open
// before, and on queued accesses, over each protocol, and that the status has it.
func TestSetLimit(t *testing.T) { ways(t, testSetLimit) }

func testSetLimit(t *testing.T) {
	d := begin(t, func(c *server.Config) {
		c.NBD, c.NVMe, c.Queues, c.Metrics = "127.0.0.1:0", paths(1), 1, "127.0.0.1:0"
	})
	block, file, host := d.nbd("disk"), d.open(d.dial(), "disk"), d.connect(0)
	b := make([]byte, 4096)
	three := func() time.Duration {
		t.Helper()
		from := time.Now()
		if _, _, e, err := block.Fetch(0, 0, 4096); e != 0 || err != nil {
			t.Fatal(e, err)
		}
		if _, err := file.ReadAt(b, 0); err != nil {
			t.Fatal(err)
		}
		o := nvmetest.IOOp(wire.Read, 1, 0, 8, 0)
		o.In = b
		if err := host.IO[0].Do(o); err != nil {
			t.Fatal(err)
		}
		return time.Since(from)
	}
	three()
	obey := func(order string) {
		t.Helper()
		if _, err := d.s.Obey(json.RawMessage(order)); err != nil {
			t.Fatal(err)
		}
	}
	obey(`{"export": "disk", "limit": {"bytes_per_second": 16384, "class": "latency"}}`)
	d.want(map[string]string{`farflash_export_limit_bytes_per_second{export="disk"}`: "16384"})
	if strings.Contains(d.metrics(), "farflash_export_limit_operations_per_second{") {
		t.Error("a limit of operations that is none is a metric")
	}
	if x := d.s.Status().Limits; len(x) != 1 || x["disk"] != (qos.Limit{Bytes: 16384, Class: qos.Latency}) {
		t.Errorf("the status says %+v", x)
	}
	if took := three(); took < 500*time.Millisecond { // the second and the third wait a quarter of a second each
		t.Errorf("three reads at 4 a second took %v", took)
	}
	if _, _, e, err := d.nbd("other").Fetch(0, 0, 4096); e != 0 || err != nil {
		t.Error(e, err)
	}
	obey(`{"export": "disk", "limit": {"bytes_per_second": 64, "operations_per_second": 9}}`) // one page a minute
	done := make(chan error, 2)
	for range 2 { // one of them at least waits
		go func() { _, err := file.ReadAt(make([]byte, 4096), 0); done <- err }()
	}
	d.want(map[string]string{`farflash_export_limit_operations_per_second{export="disk"}`: "9"})
	time.Sleep(100 * time.Millisecond)
	if len(done) == 2 {
		t.Error("two reads at one a minute are done")
	}
	obey(`{"export": "disk", "limit": {}}`)
	for range 2 {
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("a read waits for a limit that was taken away")
		}
	}
	if x := d.s.Status().Limits; len(x) != 0 {
		t.Errorf("the status still says %+v", x)
	}
	if took := three(); took > 5*time.Second {
		t.Errorf("without a limit three reads took %v", took)
	}
	for order, want := range map[string]string{
		`{}`: "asks for nothing", `{"export": "disk", "limit": {"bytes_per_second": -1}}`: "negative",
		`{"export": "disk", "limit": {"class": "fast"}}`: "latency", `{"drian": true}`: "another version", `x`: "wrong",
	} {
		if _, err := d.s.Obey(json.RawMessage(order)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", order, err, want)
		}
	}
}
