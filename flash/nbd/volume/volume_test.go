package volume_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"farflash/flash/ctl"
	"farflash/flash/ctl/media"
	"farflash/flash/device"
	"farflash/flash/nbd"
	"farflash/flash/nbd/nbdtest"
	"farflash/flash/nbd/server"
	"farflash/flash/nbd/volume"
	"farflash/flash/uring"
	"farflash/numeric/rng"
)

const size = 24 << 20

// serve serves a volume of a pool with few frames.
func serve(t testing.TB, change func(*server.Config, *nbd.Export)) (*server.Server, string) {
	t.Helper()
	loops := threads(t)
	p := nbdtest.Pool(t, loops, "", 48<<20, 512)
	v, err := volume.New(p, 1<<30, size)
	if err != nil {
		t.Fatal(err)
	}
	e := nbd.Export{Name: "disk", Description: "the only one", Volume: v}
	cfg := server.DefaultConfig()
	cfg.Loops = loops
	cfg.Failed = func(_ net.Addr, err error) { t.Logf("a connection: %v", err) }
	if change != nil {
		change(&cfg, &e)
	}
	cfg.Exports = server.Fixed(nbdtest.One{Export: e})
	return nbdtest.Serve(t, cfg)
}

// both runs a test with goroutines and with loops for the I/O of connections.
func both(t *testing.T, test func(*testing.T)) {
	t.Run("goroutines", test)
	t.Run("loops", test)
}

// threads returns the loops of such a test, or nil for goroutines.
func threads(t testing.TB) *uring.Loops {
	if slices.Contains(strings.Split(t.Name(), "/"), "loops") {
		return nbdtest.Loops(t)
	}
	return nil
}

// TestAgainstMemory runs random commands, with simple and structured replies, and compares with a slice.
func TestAgainstMemory(t *testing.T) { both(t, testAgainstMemory) }

func testAgainstMemory(t *testing.T) {
	for _, structured := range []bool{false, true} {
		t.Run(fmt.Sprintf("structured=%v", structured), func(t *testing.T) {
			_, addr := serve(t, nil)
			c := nbdtest.Dial(t, addr)
			if err := c.Go("disk", structured); err != nil {
				t.Fatal(err)
			}
			if c.Size != size {
				t.Fatalf("%d bytes", c.Size)
			}
			draw := rng.NewStream(3, "commands")
			want := make([]byte, size)
			lengths := []int64{1, 100, 4096, 8192, 70_000, 300_000, 1 << 20, 3 << 20}
			for i := range 400 {
				n := 1 + draw.IntN(lengths[draw.IntN(int64(len(lengths)))])
				at := draw.IntN(size - n + 1)
				if draw.IntN(3) == 0 {
					at, n = at&^4095, min((n+4095)&^4095, size-at&^4095)
				}
				flags := uint16(draw.IntN(8) / 7 * nbd.CmdFUA)
				var e nbd.Errno
				var err error
				what := draw.IntN(10)
				switch {
				case what < 3:
					p := make([]byte, n)
					for i := range p {
						p[i] = byte(draw.Uint64())
					}
					copy(want[at:], p)
					e, err = c.Do(flags, nbd.CmdWrite, uint64(at), uint32(n), p)
				case what < 7:
					if structured && n <= nbd.Window && draw.IntN(3) == 0 {
						flags |= nbd.CmdDF
					}
					var got []byte
					if got, _, e, err = c.Fetch(flags, uint64(at), uint32(n)); !bytes.Equal(got, want[at:][:n]) {
						t.Fatalf("step %d: %d bytes at %d are not what was written: %v %v", i, n, at, e, err)
					}
				case what < 8:
					if draw.IntN(2) == 0 {
						flags |= nbd.CmdNoHole
					}
					clear(want[at:][:n])
					e, err = c.Do(flags, nbd.CmdWriteZeroes, uint64(at), uint32(n), nil)
				case what < 9:
					// A trim may leave zeros or the old contents, so the range is written anew.
					if e, err = c.Do(flags, nbd.CmdTrim, uint64(at), uint32(n), nil); e != 0 || err != nil {
						break
					}
					e, err = c.Do(0, nbd.CmdWrite, uint64(at), uint32(n), want[at:][:n])
				default:
					if e, err = c.Do(0, nbd.CmdCache, uint64(at), uint32(n), nil); e == 0 && err == nil {
						e, err = c.Do(0, nbd.CmdFlush, 0, 0, nil)
					}
				}
				if e != 0 || err != nil {
					t.Fatalf("step %d, kind %d, %d bytes at %d: %v, %v", i, what, n, at, e, err)
				}
			}
		})
	}
}

// TestManyAtOnce has several clients with many outstanding commands, each on its own range.
func TestManyAtOnce(t *testing.T) { both(t, testManyAtOnce) }

func testManyAtOnce(t *testing.T) {
	_, addr := serve(t, nil)
	const clients, depth, part = 4, 48, size / 4
	var all sync.WaitGroup
	for k := range clients {
		c := nbdtest.Dial(t, addr)
		if err := c.Go("", true); err != nil {
			t.Fatal(err)
		}
		all.Add(1)
		go func() {
			defer all.Done()
			draw := rng.NewStream(uint64(k), "client")
			fill := make([]byte, part/4096)
			order := 0
			for round := range 30 {
				// A batch of writes to distinct pages, all at once; then reads of the same pages.
				pages := map[uint64]byte{}
				var out []byte
				for len(pages) < depth {
					p, b := uint64(draw.IntN(part/4096)), byte(1+draw.IntN(255))
					if _, ok := pages[p]; ok {
						continue
					}
					pages[p], fill[p] = b, b
					out = nbd.AppendRequest(out, 0, nbd.CmdWrite, p, uint64(k)*part+p*4096, 4096)
					out = append(out, bytes.Repeat([]byte{b}, 4096)...)
				}
				go c.Write(out)
				for range pages {
					if m, err := c.Next(); err != nil || m.Err != 0 {
						t.Errorf("client %d, round %d: %+v, %v", k, round, m, err)
						return
					}
				}
				out = nil
				for range depth {
					p := uint64(draw.IntN(part / 4096))
					out = nbd.AppendRequest(out, 0, nbd.CmdRead, p, uint64(k)*part+p*4096, 4096)
				}
				go c.Write(out)
				last := uint64(0)
				for range depth {
					m, err := c.Next()
					if err != nil || m.Err != 0 {
						t.Errorf("client %d, round %d: %+v, %v", k, round, m, err)
						return
					}
					if m.Cookie < last {
						order++
					}
					last = m.Cookie
					want := bytes.Repeat([]byte{fill[m.Cookie]}, 4096)
					if m.Type == nbd.ChunkData && !bytes.Equal(m.Payload[8:], want) ||
						m.Type == nbd.ChunkHole && fill[m.Cookie] != 0 {
						t.Errorf("client %d, round %d: page %d is not what was written", k, round, m.Cookie)
						return
					}
				}
			}
		}()
	}
	all.Wait()
}

// TestStatus queries extents and verifies that holes are read as holes.
func TestStatus(t *testing.T) { both(t, testStatus) }

func testStatus(t *testing.T) {
	_, addr := serve(t, nil)
	c := nbdtest.Dial(t, addr)
	if err := c.Go("disk", true); err != nil {
		t.Fatal(err)
	}
	if e, err := c.Do(0, nbd.CmdWrite, 8192, 12288, make([]byte, 12288)); e != 0 || err != nil {
		t.Fatal(e, err)
	}
	if e, err := c.Do(0, nbd.CmdWriteZeroes, 12288, 4096, nil); e != 0 || err != nil {
		t.Fatal(e, err)
	}
	for _, x := range []struct {
		flags  uint16
		at     uint64
		n      uint32
		want   [][2]uint32
		error_ nbd.Errno
	}{
		{0, 0, 24576, [][2]uint32{{8192, 3}, {4096, 0}, {4096, 3}, {4096, 0}, {4096, 3}}, 0},
		{nbd.CmdOne, 0, 24576, [][2]uint32{{8192, 3}}, 0},
		{nbd.CmdOne, 8191, 10, [][2]uint32{{1, 3}}, 0},
		{0, 8191, 10, [][2]uint32{{1, 3}, {9, 0}}, 0},
		{0, 20000, size - 20000, [][2]uint32{{480, 0}, {size - 20480, 3}}, 0},
		{0, size - 4096, 8192, nil, nbd.EINVAL},
		{0, 0, 0, nil, nbd.EINVAL},
	} {
		got, e, err := c.Status(x.flags, x.at, x.n)
		var pairs [][2]uint32
		for _, x := range got {
			pairs = append(pairs, [2]uint32{x.Length, x.Flags})
		}
		if err != nil || e != x.error_ || !slices.Equal(pairs, x.want) {
			t.Errorf("%d bytes at %d: %v, %v, %v; want %v, %v", x.n, x.at, got, e, err, x.want, x.error_)
		}
	}
	if _, holes, e, err := c.Fetch(0, 0, 24576); holes != 16384 || e != 0 || err != nil {
		t.Errorf("%d bytes came as holes: %v, %v", holes, e, err)
	}
	if _, holes, e, err := c.Fetch(nbd.CmdDF, 0, 24576); holes != 0 || e != 0 || err != nil {
		t.Errorf("%d bytes came as holes: %v, %v", holes, e, err)
	}
}

// TestRefusals verifies that invalid commands are refused as the protocol specifies and that the connection continues.
func TestRefusals(t *testing.T) { both(t, testRefusals) }

func testRefusals(t *testing.T) {
	_, addr := serve(t, nil)
	c := nbdtest.Dial(t, addr)
	if err := c.Go("disk", true); err != nil {
		t.Fatal(err)
	}
	page := make([]byte, 4096)
	for _, x := range []struct {
		flags uint16
		k     nbd.Command
		at    uint64
		n     uint32
		body  []byte
		want  nbd.Errno
	}{
		{0, nbd.CmdRead, size, 1, nil, nbd.EINVAL},
		{0, nbd.CmdRead, size - 1, 2, nil, nbd.EINVAL},
		{0, nbd.CmdRead, ^uint64(0), 2, nil, nbd.EINVAL},
		{0, nbd.CmdRead, ^uint64(0) - 4095, 4096, nil, nbd.EINVAL},
		{0, nbd.CmdRead, 0, nbd.MaxPayload + 1, nil, nbd.EINVAL},
		{nbd.CmdDF, nbd.CmdRead, 0, nbd.Window + 1, nil, nbd.EOVERFLOW},
		{nbd.CmdNoHole, nbd.CmdRead, 0, 1, nil, nbd.EINVAL},
		{0, nbd.CmdWrite, size - 1, 4096, page, nbd.ENOSPC},
		{nbd.CmdDF, nbd.CmdWrite, 0, 4096, page, nbd.EINVAL},
		{1 << 14, nbd.CmdWrite, 0, 4096, page, nbd.EINVAL},
		{0, nbd.CmdTrim, size - 1, 4096, nil, nbd.EINVAL},
		{0, nbd.CmdWriteZeroes, size - 1, 4096, nil, nbd.ENOSPC},
		{nbd.CmdFastZero | nbd.CmdNoHole, nbd.CmdWriteZeroes, 0, 4096, nil, nbd.ENOTSUP},
		{nbd.CmdFastZero, nbd.CmdWriteZeroes, 0, 4096, nil, 0},
		{0, nbd.Command(8), 0, 0, nil, nbd.EINVAL},
		{0, nbd.Command(99), 0, 4096, nil, nbd.EINVAL},
		{0, nbd.CmdRead, size, 0, nil, 0},
		{0, nbd.CmdWrite, 0, 0, nil, 0},
		{nbd.CmdFUA, nbd.CmdFlush, 0, 0, nil, 0},
		{0, nbd.CmdRead, size - 1, 1, nil, 0},
	} {
		if e, err := c.Do(x.flags, x.k, x.at, x.n, x.body); e != x.want || err != nil {
			t.Errorf("command %d, flags %#x, %d bytes at %d: %v, %v; want %v", x.k, x.flags, x.n, x.at, e, err, x.want)
		}
	}
	if _, err := c.Send(0, nbd.CmdDisconnect, 0, 0, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Next(); err != io.EOF {
		t.Errorf("after the end: %v", err)
	}
}

// TestReadOnly verifies that commands that modify the volume are refused.
func TestReadOnly(t *testing.T) { both(t, testReadOnly) }

func testReadOnly(t *testing.T) {
	_, addr := serve(t, func(_ *server.Config, e *nbd.Export) { e.ReadOnly = true })
	c := nbdtest.Dial(t, addr)
	if err := c.Go("disk", false); err != nil {
		t.Fatal(err)
	}
	if c.Flags&nbd.FlagReadOnly == 0 || c.Flags&nbd.FlagTrim != 0 {
		t.Errorf("flags %#x", c.Flags)
	}
	for _, k := range []nbd.Command{nbd.CmdWrite, nbd.CmdTrim, nbd.CmdWriteZeroes} {
		var p []byte
		if k == nbd.CmdWrite {
			p = make([]byte, 4096)
		}
		if e, err := c.Do(0, k, 0, 4096, p); e != nbd.EPERM || err != nil {
			t.Errorf("command %d: %v, %v", k, e, err)
		}
	}
	if _, _, e, err := c.Fetch(0, 0, 4096); e != 0 || err != nil {
		t.Error(e, err)
	}
}

// TestZeroesAreDurable verifies that a range zeroed with FUA is zero after a crash, even after an earlier trim that was
// not durable.
func TestZeroesAreDurable(t *testing.T) {
	layout := ctl.DefaultLayout()
	layout.UUID, layout.Segment = media.UUID{1, 2, 3}, 64
	dev := device.NewMem(16 << 20)
	shape, err := layout.Shape(dev.Size())
	if err != nil {
		t.Fatal(err)
	}
	if err := ctl.Format(shape, dev); err != nil {
		t.Fatal(err)
	}
	pool, err := ctl.Open(ctl.DefaultConfig(), dev)
	if err != nil {
		t.Fatal(err)
	}
	v, err := volume.New(pool, 0, 8<<20)
	if err != nil {
		t.Fatal(err)
	}
	do := func(k nbd.Kind, durable bool, offset uint64, n int) {
		t.Helper()
		done := make(chan nbd.Errno, 1)
		task := &nbd.Task{Kind: k, Durable: durable, Offset: offset, Length: uint32(n),
			Done: func(t *nbd.Task) { done <- t.Err }}
		if k == nbd.Write {
			task.Payload = bytes.Repeat([]byte{7}, n)
		}
		v.Start([]*nbd.Task{task})
		if err := <-done; err != 0 {
			t.Fatal(err)
		}
	}
	zeroed := func(from, to uint64) {
		t.Helper()
		draw := rng.NewStream(1, "crash")
		for range 10 {
			found, err := ctl.Open(ctl.DefaultConfig(), dev.Crash(&draw))
			if err != nil {
				t.Fatal(err)
			}
			b := make([]byte, to-from)
			if err := found.ReadAt(b, from); err != nil || !bytes.Equal(b, make([]byte, len(b))) {
				t.Errorf("after a crash bytes %d to %d are not zero: %v", from, to, err)
			}
		}
	}
	do(nbd.Write, true, 0, 4*4096)
	do(nbd.Trim, false, 0, 4096)
	do(nbd.Zero, true, 100, 1000) // within a page
	zeroed(100, 1100)
	do(nbd.Zero, false, 4096, 4096)
	do(nbd.Trim, false, 2*4096, 4096)
	do(nbd.Zero, true, 2*4096-10, 20) // the end of one page and the start of the next
	zeroed(2*4096-10, 2*4096+10)
	if err := pool.Close(); err != nil {
		t.Error(err)
	}
}
