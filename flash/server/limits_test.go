package server_test

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"time"

	"farflash/flash/nbd/nbdtest"
	"farflash/flash/qos"
	"farflash/flash/server"
	"farflash/flash/verbs"
	"farflash/flash/verbs/control"
)

// nbd is a client of an export over NBD.
func (d *daemon) nbd(name string) *nbdtest.Client {
	d.t.Helper()
	_, at, _ := d.s.Addresses()
	c := nbdtest.Dial(d.t, at)
	if err := c.Go(name, true); err != nil {
		d.t.Fatal(err)
	}
	return c
}

// limited serves NBD, with an export that has a limit.
func limited(l qos.Limit) func(*server.Config) {
	return func(c *server.Config) {
		c.NBD, c.Limits = "127.0.0.1:0", map[string]qos.Limit{"/disk//": l}
	}
}

// TestOneName holds that an export has its limit and the number of its uses whatever spelling of its name a client asks for.
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

// deep is files in a folder d.
type deep struct{ server.Files }

func (x deep) Open(name string, rights verbs.Rights) (server.File, error) {
	at, ok := strings.CutPrefix(name, "d/")
	if !ok {
		return server.File{}, fs.ErrNotExist
	}
	return x.Files.Open(at, rights)
}
