package server_test

import (
	"bytes"
	"errors"
	"os"
	"testing"
	"time"

	"farflash/flash/ctl"
	"farflash/flash/device"
	"farflash/flash/nbd"
	"farflash/flash/pool"
	"farflash/flash/server"
)

// TestShrunk truncates a pool's file while it is served. A read beyond its end is EIO to the client, and is reported
// with the file and a place beyond that end. The close fails, also if nothing was read: its own writes succeed,
// because a write beyond a file's end extends it.
func TestShrunk(t *testing.T) { ways(t, testShrunk) }

func testShrunk(t *testing.T) {
	const kept = 1 << 20
	for _, read := range []bool{false, true} {
		d := beginOn(t, func(o *pool.Options) { o.Pool.PutThrough = true }, // reads are from the device
			func(c *server.Config) { c.NBD = "127.0.0.1:0" })
		c := d.nbd("disk")
		if e, err := c.Do(nbd.CmdFUA, nbd.CmdWrite, 0, size, bytes.Repeat([]byte{7}, size)); e != 0 || err != nil {
			t.Fatal(e, err)
		}
		if err := os.Truncate(d.path, kept); err != nil {
			t.Fatal(err)
		}
		if read {
			_, _, e, err := c.Fetch(0, size-ctl.Page, ctl.Page)
			if e != nbd.EIO || err != nil {
				t.Errorf("a read beyond the end: error %d, %v", e, err)
			}
			d.mu.Lock()
			if len(d.bad) == 0 || d.bad[0].Name != d.path || d.bad[0].Offset < kept || d.bad[0].Kind != device.Read ||
				!d.bad[0].Paged || d.bad[0].Err == nil {
				t.Errorf("reported: %v", d.bad)
			}
			d.mu.Unlock()
		}
		if err := d.s.Drain(5 * time.Second); err != nil {
			t.Error(err)
		}
		d.s = nil
		if err := d.pool.Close(); !errors.Is(err, device.ErrShrunk) {
			t.Errorf("with a read %v, the close returned: %v", read, err)
		}
		if d.loops != nil {
			if err := d.loops.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
