package stream_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"testing"
	"time"

	"farflash/flash/verbs"
	"farflash/flash/verbs/siwtest"
	"farflash/flash/verbs/stream"
	"farflash/flash/wire"
)

// rping is our end of rping's exchange: each side announces a buffer with a sixteen-byte Send, or only that it has
// finished a step.
type rping struct {
	t    *testing.T
	conn *stream.Conn
	in   [4][16]byte
}

func (r *rping) prepare(c *stream.Conn) error {
	for i := range r.in {
		if err := c.PostReceive(verbs.Receive{ID: uint64(i), Local: r.in[i][:]}); err != nil {
			return err
		}
	}
	return nil
}

// received waits for a Send of the peer and returns the buffer that it describes; false if the connection has ended.
func (r *rping) received() (offset uint64, stag, length uint32, ok bool) {
	r.t.Helper()
	var x [1]verbs.Completion
	if r.conn.Wait(x[:]) == 0 || x[0].Err != nil {
		return 0, 0, 0, false
	}
	if !x[0].Receive {
		r.t.Fatalf("%+v", x[0])
	}
	b := r.in[x[0].ID][:]
	offset, stag, length = binary.BigEndian.Uint64(b), binary.BigEndian.Uint32(b[8:]), binary.BigEndian.Uint32(b[12:])
	if err := r.conn.PostReceive(verbs.Receive{ID: x[0].ID, Local: b}); err != nil {
		r.t.Fatal(err)
	}
	return offset, stag, length, true
}

func (r *rping) tell(offset uint64, stag uint32, length int) {
	r.t.Helper()
	b := binary.BigEndian.AppendUint64(nil, offset)
	b = binary.BigEndian.AppendUint32(b, stag)
	b = binary.BigEndian.AppendUint32(b, uint32(length))
	if err := r.conn.Post(verbs.Work{Op: wire.Send, Local: b, Quiet: true}); err != nil {
		r.t.Fatal(err)
	}
}

// patient returns a configuration for an emulated machine.
func patient(r *rping) stream.Config {
	cfg := stream.DefaultConfig()
	cfg.Setup, cfg.Progress, cfg.Prepare = time.Minute, time.Minute, r.prepare
	return cfg
}

const rpingSize, rpingCount = 5000, 7

// TestSiwClient serves rping's client on an unmodified Linux kernel, which verifies the returned data: Read, Write and
// Send, with CRCs.
func TestSiwClient(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := l.(*net.TCPListener).SetDeadline(time.Now().Add(3 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	lines := siwtest.Guest(t, "",
		fmt.Sprintf("rping -c -a 10.0.2.2 -p %d -C %d -S %d -V", l.Addr().(*net.TCPAddr).Port, rpingCount, rpingSize))
	siwtest.Until(t, lines, "begins: ")
	nc, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	r := &rping{t: t}
	if r.conn, err = stream.Server(nc, domain(t), patient(r)); err != nil {
		t.Fatal(err)
	}
	defer r.conn.Close()
	buffer, pings := make([]byte, 1<<16), 0
	for {
		offset, stag, n, ok := r.received()
		if !ok {
			break
		}
		if err := r.conn.Post(verbs.Work{Op: wire.ReadReq, Local: buffer[:n], STag: stag, Offset: offset}); err != nil {
			t.Fatal(err)
		}
		if x := wait(t, r.conn); x.Receive || x.Err != nil || int(n) != rpingSize {
			t.Fatalf("%+v", x)
		}
		r.tell(0, 0, 0)
		if offset, stag, n, ok = r.received(); !ok {
			t.Fatal(r.conn.Err())
		}
		if err := r.conn.Post(verbs.Work{Op: wire.Write, Local: buffer[:n], STag: stag, Offset: offset,
			Quiet: true}); err != nil {
			t.Fatal(err)
		}
		r.tell(0, 0, 0)
		pings++
	}
	if end := siwtest.Until(t, lines, "ends: "); end != "0" || pings != rpingCount {
		t.Errorf("rping ends with %s after %d pings, want %d", end, pings, rpingCount)
	}
}

// TestSiwServer is a client of rping's server on an unmodified Linux kernel, which reads and writes our memory.
func TestSiwServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	lines := siwtest.Guest(t, fmt.Sprintf(",hostfwd=tcp:127.0.0.1:%d-:7174", port),
		fmt.Sprintf("rping -s -a 0.0.0.0 -p 7174 -C %d -S %d -V", rpingCount, rpingSize))
	siwtest.Until(t, lines, "begins: ")
	d, r := domain(t), &rping{t: t}
	cfg := patient(r)
	// After its reply, siw misses messages that arrive before it has switched to FPDUs.
	cfg.Settle = 500 * time.Millisecond
	for try := 0; r.conn == nil; try++ {
		nc, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			// Until rping listens, qemu accepts the connection and drops it.
			r.conn, err = stream.Client(nc, d, cfg)
		}
		if err != nil && try == 20 {
			t.Fatal(err)
		}
		if err != nil {
			time.Sleep(500 * time.Millisecond)
		}
	}
	defer r.conn.Close()
	from, to := make([]byte, rpingSize), make([]byte, rpingSize)
	source, err := d.Register(verbs.RegionConfig{Memory: from, Base: 0x1000, Rights: verbs.RemoteRead})
	if err != nil {
		t.Fatal(err)
	}
	sink, err := d.Register(verbs.RegionConfig{Memory: to, Base: 0x9000, Rights: verbs.RemoteWrite})
	if err != nil {
		t.Fatal(err)
	}
	for i := range rpingCount {
		for j := range from {
			from[j] = byte('A' + (i+j)%58)
		}
		copy(from, fmt.Sprintf("rdma-ping-%d: ", i))
		from[len(from)-1] = 0
		r.tell(source.Base(), source.STag(), rpingSize)
		if _, _, _, ok := r.received(); !ok {
			t.Fatal(r.conn.Err())
		}
		r.tell(sink.Base(), sink.STag(), rpingSize)
		if _, _, _, ok := r.received(); !ok {
			t.Fatal(r.conn.Err())
		}
		if !bytes.Equal(from, to) {
			t.Fatalf("ping %d comes back otherwise", i)
		}
	}
	c := r.conn.Counters()
	t.Logf("%d pings; the kernel has read %d and written %d bytes of ours", rpingCount, c.ReadBytes, c.WriteBytes)
}
