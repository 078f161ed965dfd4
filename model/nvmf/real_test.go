package nvmf_test

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net"
	"sync"
	"testing"

	"farflash/block"
	"farflash/flash/nvme"
	"farflash/flash/nvme/nvmetest"
	"farflash/flash/nvme/server"
	"farflash/flash/nvme/wire"
	"farflash/model/fabric"
	"farflash/model/nvmf"
	"farflash/numeric/units"
)

// tap relays connections to a target and keeps the bytes of each direction of the last one.
type tap struct {
	l        net.Listener
	mu       sync.Mutex
	out, ret *bytes.Buffer
}

type locked struct {
	mu *sync.Mutex
	b  *bytes.Buffer
}

func (l locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func newTap(t *testing.T, target string) *tap {
	t.Helper()
	x := &tap{}
	var err error
	if x.l, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			host, err := x.l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", target)
			if err != nil {
				t.Error(err)
				return
			}
			out, ret := new(bytes.Buffer), new(bytes.Buffer)
			x.mu.Lock()
			x.out, x.ret = out, ret
			x.mu.Unlock()
			for _, way := range []struct {
				to, from net.Conn
				b        *bytes.Buffer
			}{{far, host, out}, {host, far, ret}} {
				running.Go(func() {
					_, _ = io.Copy(io.MultiWriter(locked{&x.mu, way.b}, way.to), way.from) // until either end closes
					_ = far.Close()
					_ = host.Close()
				})
			}
		}
	})
	t.Cleanup(func() {
		_ = x.l.Close()
		running.Wait()
	})
	return x
}

// units returns the bytes and number of the PDUs by their types since the last call.
func (x *tap) units(t *testing.T) (size map[wire.Type]units.Bytes, n map[wire.Type]int) {
	t.Helper()
	x.mu.Lock()
	defer x.mu.Unlock()
	size, n = map[wire.Type]units.Bytes{}, map[wire.Type]int{}
	for _, b := range []*bytes.Buffer{x.out, x.ret} {
		for b.Len() > 0 {
			h := wire.Common(b.Bytes())
			if int(h.Length) > b.Len() || h.Length == 0 {
				t.Fatalf("a PDU of %d bytes, of which %d were seen", h.Length, b.Len())
			}
			b.Next(int(h.Length))
			size[h.Type] += units.Bytes(h.Length)
			n[h.Type]++
		}
	}
	return size, n
}

// TestLikeTheReal verifies that the model sends the bytes that flash/nvme and a host of it exchange for the same
// command: reads and writes of several lengths, with and without digests, data in the capsule and the success flag.
func TestLikeTheReal(t *testing.T) {
	for _, digests := range []wire.Digests{{}, {Header: true}, {Data: true}, {Header: true, Data: true}} {
		for _, success := range []bool{false, true} {
			t.Run(fmt.Sprintf("%+v, success flag %v", digests, success), func(t *testing.T) {
				testLikeTheReal(t, digests, success)
			})
		}
	}
}

func testLikeTheReal(t *testing.T, digests wire.Digests, success bool) {
	cfg := nvme.DefaultConfig()
	cfg.Limits.InCapsule = 16 << 10
	target := nvmetest.Target(t, cfg, nvmetest.Space(1, nvmetest.NewMemory(1<<20)))
	c := server.DefaultConfig()
	c.Target = target
	_, addr := nvmetest.Serve(t, c)
	tap := newTap(t, addr)
	h, err := nvmetest.Open(tap.l.Addr().String(), nvmetest.Login{Queues: 1, Digests: digests, NoFlow: success,
		Identity: wire.Identity{HostID: [16]byte{1}, Host: nvmetest.HostName, Subsystem: nvmetest.Subsystem}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = h.Close() }()
	tap.units(t) // the handshake
	for _, op := range []block.Op{block.Read, block.Write} {
		for _, size := range []int{4 << 10, 16 << 10, 128 << 10} {
			for _, inside := range []bool{false, true} {
				if inside && (op == block.Read || size > cfg.Limits.InCapsule) {
					continue
				}
				o := nvmetest.IOOp(wire.Read, 1, 0, size/512, 0)
				if op == block.Write {
					o = nvmetest.IOOp(wire.Write, 1, 0, size/512, 0)
					o.Out, o.InCapsule = make([]byte, size), inside
				} else {
					o.In = make([]byte, size)
				}
				if err := h.IO[0].Do(o); err != nil {
					t.Fatal(err)
				}
				real, n := tap.units(t)

				l := defaultLayout()
				l.protocol, l.network = nvmf.NVMeTCP, fabric.TCP(fabric.DefaultConfig())
				l.cfg.TCP = nvmf.TCP{HeaderDigest: digests.Header, DataDigest: digests.Data, SuccessFlag: success,
					MaxHostData: nvme.Window}
				l.cfg.InCapsule = 0
				if inside {
					l.cfg.InCapsule = units.Bytes(cfg.Limits.InCapsule)
				}
				r := newRig(t, l)
				got, messages := map[wire.Type]units.Bytes{}, 0
				r.sys.OnMessage = func(m nvmf.Message) {
					messages++
					bytes := r.net.Messages()[m.Number].Size
					switch m.Kind {
					case nvmf.Capsule:
						got[wire.CapsuleCmd] += bytes
					case nvmf.Pull:
						got[wire.R2T] += bytes
					case nvmf.Pulled:
						got[wire.H2CData] += bytes
					case nvmf.Response:
						got[wire.CapsuleResp] += bytes
					case nvmf.Data: // and the response that follows, if one does
						response := units.Bytes(0)
						if !success {
							response = real[wire.CapsuleResp]
							got[wire.CapsuleResp] += response
						}
						got[wire.C2HData] += bytes - response
					}
				}
				r.ask(ask{req: block.Request{Op: op, Length: int64(size)}})
				r.run(t)
				if !maps.Equal(got, real) {
					t.Errorf("%v of %d bytes, in its capsule %v: the model sends %v, the target %v (%v PDUs)", op, size, inside,
						got, real, n)
				}
				for k, times := range n {
					if times != 1 {
						t.Errorf("%v of %d bytes: %d PDUs of type %d", op, size, times, k)
					}
				}
			}
		}
	}
}
