package examples

import (
	"testing"

	"farflash/model/cluster"
	"farflash/model/cluster/put"
	"farflash/numeric/units"
	"farflash/sim"
)

// Eager is a custom put protocol, as a program outside of Farflash might implement it, without negotiation. A gateway
// sends each replica of a chunk as soon as it has the chunk, to the targets that the placement selects; a target that
// has received a whole replica writes it and notifies the gateway.
type Eager struct {
	bus     *put.Bus
	arrived map[uint32]units.Bytes // bytes received of each replica in flight, by the Arg of its frames
}

// kept is Eager's only control message: a replica is on the disk.
const kept uint8 = 0

// NewEager returns the protocol; it is the argument of cluster.NewUnder.
func NewEager(b *put.Bus) put.Protocol { return &Eager{b, map[uint32]units.Bytes{}} }

// Begin implements put.Protocol.
func (e *Eager) Begin(i int32) {
	b := e.bus
	x := &b.Chunks[i]
	x.N = int8(len(b.Places.Place(x.ID, b.Copies, x.Targets[:0])))
	for k, target := range x.Targets[:x.N] {
		replica := uint32(i)*put.MaxReplicas + uint32(k)
		e.arrived[replica] = 0
		for left := b.Piece; left > 0; left -= b.Frame {
			size := min(left, b.Frame)
			b.Frames.Send(x.Gateway, i, put.Frame{Arg: replica, Size: size}, b.FrameTime(size), []int32{b.Node(target)})
		}
	}
}

// Frame implements put.Protocol.
func (e *Eager) Frame(f put.Frame) {
	if e.arrived[f.Arg] += f.Size; e.arrived[f.Arg] < e.bus.Piece {
		return
	}
	delete(e.arrived, f.Arg)
	i := int32(f.Arg / put.MaxReplicas)
	x := &e.bus.Chunks[i]
	e.bus.Disks.Write(f.Target, put.Message{Kind: kept, From: f.Target, To: x.Gateway, Chunk: i, ID: x.ID})
}

// Message implements put.Protocol.
func (e *Eager) Message(m *put.Message) { e.bus.Outcomes.Acknowledged(m.Chunk) }

// Timer implements put.Protocol; Eager sets no timers.
func (e *Eager) Timer(uint32) {}

// Floor implements put.Forecast: the gateway's link carries the replicas, the last one is written, and the gateway is
// notified.
func (e *Eager) Floor(p *put.Plan) sim.Time {
	replica := sim.Time(0)
	for left := p.Piece; left > 0; left -= p.Frame {
		replica += p.FrameTime(min(left, p.Frame))
	}
	return sim.Time(p.Copies)*replica + p.Trip + p.Alone + p.OnLink() + p.Trip
}

// Expects implements put.Forecast.
func (e *Eager) Expects(int32) (promised, open bool) { return false, false }

// TestProtocolOfOnesOwn verifies that a lone chunk takes the time that Floor predicts, and that with as many gateways
// as targets the protocol keeps up with a chain.
func TestProtocolOfOnesOwn(t *testing.T) {
	run := func(gateways int, protocol func(*put.Bus) put.Protocol) (c *cluster.Cluster, done []cluster.Done) {
		cfg := cluster.DefaultConfig()
		cfg.Protocol, cfg.Gateways, cfg.Targets = cluster.Chain, gateways, 36
		cfg.Chunk = 128 * units.KiB
		eng := sim.New()
		var err error
		if protocol == nil {
			c, err = cluster.New(cfg, eng, 1)
		} else {
			c, err = cluster.NewUnder(protocol, cfg, eng, 1)
		}
		if err != nil {
			t.Fatal(err)
		}
		c.OnDone = func(d *cluster.Done) { done = append(done, *d) }
		c.Start()
		eng.Run(100 * units.Millisecond)
		if err := c.Check(); err != nil {
			t.Error(err)
		}
		return c, done
	}
	c, done := run(1, NewEager)
	if len(done) == 0 || done[0].Done-done[0].Begun != c.Floor() {
		t.Fatalf("%d chunks; the first took %v, its parts %v", len(done), done[0].Done-done[0].Begun, c.Floor())
	}
	_, many := run(36, NewEager)
	_, chained := run(36, nil)
	t.Logf("%d chunks in 100 ms, %d by a chain", len(many), len(chained))
	if len(many) < len(done)*12 || len(many) < len(chained)*9/10 {
		t.Errorf("%d chunks of 36 gateways, %d of one", len(many), len(done))
	}
}
