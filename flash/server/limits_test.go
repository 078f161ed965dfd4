package server_test

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"time"

	"farflash/flash/nbd"
	"farflash/flash/nbd/nbdtest"
	"farflash/flash/qos"
	"farflash/flash/server"
	"farflash/flash/verbs"
	"farflash/flash/verbs/control"
)

// nbd connects an NBD client to an export.
func (d *daemon) nbd(name string) *nbdtest.Client {
	d.t.Helper()
	_, at, _ := d.s.Addresses()
	c := nbdtest.Dial(d.t, at)
	if err := c.Go(name, true); err != nil {
		d.t.Fatal(err)
	}
	return c
}

// limited serves NBD with a limit on one export.
func limited(l qos.Limit) func(*server.Config) {
	return func(c *server.Config) {
		c.NBD, c.Limits = "127.0.0.1:0", map[string]qos.Limit{"/disk//": l}
	}
}

// TestOneName verifies that an export's limit and use count apply whatever spelling of its name a client uses.
func TestOneName(t *testing.T) { ways(t, testOneName) }

func testOneName(t *testing.T) {
	if got := server.Name("//d//f/"); got != "d/f" {
		t.Errorf("the name of //d//f/ is %q", got)
	}
	d := begin(t, func(c *server.Config) {
		limited(qos.Limit{Operations: 50})(c)
		c.PerExport = 2
		c.Files = deep{c.Files}
		c.Limits = map[string]qos.Limit{"d/disk": {Operations: 50}}
	})
	f, err := d.dial().Open("d//disk", all)
	if err != nil {
		t.Fatal(err)
	}
	c := d.nbd("/d///disk")
	if _, err := d.dial().Open("d////disk/", all); !errors.Is(err, control.TooMany) {
		t.Errorf("a third use, where two may be: %v", err)
	}
	from := time.Now()
	for range 6 {
		if _, err := f.ReadAt(make([]byte, 4096), 0); err != nil {
			t.Fatal(err)
		}
		if _, _, e, err := c.Fetch(0, 0, 4096); e != 0 || err != nil {
			t.Fatal(e, err)
		}
	}
	if took := time.Since(from); took < 200*time.Millisecond {
		t.Errorf("12 operations at 50 a second took %v", took)
	}
}

// deep is a set of files in a folder d.
type deep struct{ server.Files }

func (x deep) Open(name string, rights verbs.Rights) (server.File, error) {
	at, ok := strings.CutPrefix(name, "d/")
	if !ok {
		return server.File{}, fs.ErrNotExist
	}
	return x.Files.Open(at, rights)
}

// TestEverythingIsCharged verifies that every command that makes the device write or read is charged its bytes, and one
// that frees pages is charged an operation.
func TestEverythingIsCharged(t *testing.T) { ways(t, testEverythingIsCharged) }

func testEverythingIsCharged(t *testing.T) {
	const n = 256 << 10
	for name, x := range map[string]struct {
		limit  qos.Limit
		flags  uint16
		kind   nbd.Command
		length uint32
	}{
		"zeros that take room": {qos.Limit{Bytes: 4 * n}, nbd.CmdNoHole, nbd.CmdWriteZeroes, 2 * n},
		"zeros in pages":       {qos.Limit{Bytes: 4 * 4000}, 0, nbd.CmdWriteZeroes, 4000},
		"what is cached":       {qos.Limit{Bytes: 4 * n}, 0, nbd.CmdCache, n},
		"trims":                {qos.Limit{Operations: 4}, 0, nbd.CmdTrim, n},
		"zeros that are holes": {qos.Limit{Operations: 4}, 0, nbd.CmdWriteZeroes, n},
		"flushes":              {qos.Limit{Operations: 4}, 0, nbd.CmdFlush, 0},
	} {
		d := begin(t, limited(x.limit))
		c := d.nbd("disk")
		from := time.Now()
		for range 2 {
			if e, err := c.Do(x.flags, x.kind, 0, x.length, nil); e != 0 || err != nil {
				t.Fatal(name, e, err)
			}
		}
		if took := time.Since(from); took < 240*time.Millisecond {
			// the cost of the first delays the second
			t.Errorf("%s took %v", name, took)
		}
		d.end()
	}
	// Freed pages cost no bytes of a rate limit, so trimming a disk is immediate.
	c := begin(t, limited(qos.Limit{Bytes: 1 << 10})).nbd("disk")
	for range 4 {
		if e, err := c.Do(0, nbd.CmdWriteZeroes, 0, size, nil); e != 0 || err != nil {
			t.Fatal(e, err)
		}
	}
}

// TestGoneLeavesTheQueue verifies that requests of clients that have left are withdrawn from the queue: their places
// are freed and the next request proceeds.
func TestGoneLeavesTheQueue(t *testing.T) { ways(t, testGoneLeavesTheQueue) }

func testGoneLeavesTheQueue(t *testing.T) {
	d := begin(t, func(c *server.Config) {
		limited(qos.Limit{Bytes: 64})(c) // one page per minute
		c.Metrics = "127.0.0.1:0"
	})
	for range 8 {
		c := d.nbd("disk")
		for range 4 {
			if _, err := c.Send(0, nbd.CmdRead, 0, 4096, nil); err != nil {
				t.Fatal(err)
			}
		}
		p := d.dial()
		f := d.open(p, "disk")
		for range 4 {
			go func() { _, _ = f.ReadAt(make([]byte, 4096), 0) }() // returns when its connection ends
		}
		d.until("farflash_accesses_waiting 7\n", "farflash_accesses_waiting 8\n")
		_, _ = c.Close(), p.Close()
		d.until("farflash_accesses_waiting 0\n")
	}
	d.until("farflash_nbd_connections 0\n")
	d.until("farflash_connections 0\n")
	if _, _, e, err := d.nbd("other").Fetch(0, 0, 4096); e != 0 || err != nil {
		t.Error(e, err)
	}
	if _, err := d.open(d.dial(), "other").ReadAt(make([]byte, 4096), 0); err != nil {
		t.Error(err)
	}
}

// until waits until /metrics contains one of the lines.
func (d *daemon) until(lines ...string) {
	d.t.Helper()
	for range 500 {
		text := d.metrics()
		for _, line := range lines {
			if strings.Contains(text, line) {
				return
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	d.t.Fatalf("not %q in time:\n%s", lines, d.metrics())
}
