package server_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"slices"
	"testing"
	"time"

	"farflash/flash/nbd"
	"farflash/flash/nbd/nbdtest"
	"farflash/flash/nvme/nvmetest"
	"farflash/flash/nvme/wire"
	"farflash/flash/qos"
	"farflash/flash/server"
	"farflash/policy/ratecontrol"
)

// steeredBy serves NBD and NVMe with rate control.
func steeredBy(t *testing.T, k ratecontrol.Kind, more func(*server.Config)) *daemon {
	return begin(t, func(c *server.Config) {
		c.Address, c.NBD, c.NVMe, c.NBDConnections, c.Queues, c.RateControl = "", "127.0.0.1:0", paths(1), 2, 2, k
		if more != nil {
			more(c)
		}
	})
}

// TestRateControlServes sends more writes, and then reads, than have a place at a time: each read returns what was
// written, over NBD and NVMe, with limits and without.
func TestRateControlServes(t *testing.T) { ways(t, testRateControlServes) }

func testRateControlServes(t *testing.T) {
	for _, k := range []ratecontrol.Kind{ratecontrol.AIMD, ratecontrol.Reserve} {
		for _, limits := range []map[string]qos.Limit{nil, {"disk": {Operations: 1 << 20}}} {
			d := steeredBy(t, k, func(c *server.Config) { c.Limits = limits })
			c := nbdtest.Dial(t, d.nbdAddress())
			if err := c.Go("disk", false); err != nil {
				t.Fatal(err)
			}
			const commands, length = 120, 20 << 10 // more than have a place
			for _, kind := range []nbd.Command{nbd.CmdWrite, nbd.CmdRead} {
				sent := make(chan error, 1)
				go func() {
					for i := range commands {
						var data []byte
						if kind == nbd.CmdWrite {
							data = bytes.Repeat([]byte{byte(i + 1)}, length)
						}
						if _, err := c.Send(0, kind, uint64(i*length), length, data); err != nil {
							sent <- err
							return
						}
					}
					sent <- nil
				}()
				head, data := make([]byte, 16), make([]byte, length)
				for range commands {
					if _, err := io.ReadFull(c, head); err != nil {
						t.Fatal(err)
					}
					id := binary.BigEndian.Uint64(head[8:])
					if e := binary.BigEndian.Uint32(head[4:]); e != 0 {
						t.Fatalf("command %d: error %d", id, e)
					}
					if kind == nbd.CmdWrite {
						continue
					}
					if _, err := io.ReadFull(c, data); err != nil {
						t.Fatal(err)
					}
					want := byte(id - commands)
					if slices.ContainsFunc(data, func(b byte) bool { return b != want }) {
						t.Errorf("%v, %d limits: read %d has %d, want %d", k, len(limits), id, data[0], want)
					}
				}
				if err := <-sent; err != nil {
					t.Fatal(err)
				}
			}
			host := d.connect(0)
			var ops []*nvmetest.Op
			for i := range 60 {
				w := nvmetest.IOOp(wire.Write, 1, uint64(16*i), 16, 0)
				w.Out, w.InCapsule = bytes.Repeat([]byte{byte(i + 1)}, 8192), true
				ops = append(ops, w)
			}
			if err := host.IO[0].Run(ops...); err != nil {
				t.Fatal(err)
			}
			ops = ops[:0]
			for i := range 60 {
				r := nvmetest.IOOp(wire.Read, 1, uint64(16*i), 16, 0)
				r.In = make([]byte, 8192)
				ops = append(ops, r)
			}
			if err := host.IO[1].Run(ops...); err != nil {
				t.Fatal(err)
			}
			for i, o := range ops {
				if o.CQE.Status != 0 || slices.ContainsFunc(o.In, func(b byte) bool { return b != byte(i+1) }) {
					t.Errorf("%v: read %d: %v", k, i, o.CQE.Status)
				}
			}
			d.end()
		}
	}
}

// TestRateControlGone verifies that clients which read nothing, or leave, with more outstanding than has a place, hold
// up no other client, and that nothing of theirs is left.
func TestRateControlGone(t *testing.T) { ways(t, testRateControlGone) }

func testRateControlGone(t *testing.T) {
	d := steeredBy(t, ratecontrol.Reserve, func(c *server.Config) { c.Progress = time.Second })
	silent := d.nbd("disk")
	if e, err := silent.Do(0, nbd.CmdWrite, 0, size, make([]byte, size)); e != 0 || err != nil {
		t.Fatal(e, err)
	}
	for i := range 100 {
		if _, err := silent.Send(0, nbd.CmdRead, uint64(i)<<12, 256<<10, nil); err != nil { // and reads no reply
			t.Fatal(err)
		}
	}
	other := d.nbd("disk")
	for range 20 {
		if _, _, e, err := other.Fetch(0, 0, 64<<10); e != 0 || err != nil {
			t.Fatal(e, err)
		}
	}
	for i := range 100 {
		if _, err := other.Send(0, nbd.CmdRead, uint64(i)<<12, 256<<10, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	for i := 0; ; i++ { // the silent one is cut off
		left, outstanding := 0, int64(0)
		for _, e := range d.s.Status().Exports {
			left, outstanding = left+e.Clients, outstanding+e.Outstanding
		}
		if left == 0 && outstanding == 0 {
			break
		}
		if i == 1000 {
			t.Fatalf("%d clients with %d operations are left", left, outstanding)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
