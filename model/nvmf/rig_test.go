package nvmf_test

import (
	"testing"

	"farflash/block"
	"farflash/block/blocktest"
	"farflash/model/fabric"
	"farflash/model/fabric/topo"
	"farflash/model/nvmf"
	"farflash/numeric/units"
	"farflash/policy/ratecontrol"
	"farflash/sim"
)

const (
	rate  = 40 * units.Gbps
	delay = units.Microsecond
)

// failer is the common part of testing.T and rapid.T.
type failer interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// layout is a system around one switch: the initiators are its first hosts.
type layout struct {
	cfg                         nvmf.Config
	protocol                    nvmf.Protocol
	own                         bool
	initiators, targets, drives int // drives of each target
	device                      blocktest.Config
	network                     fabric.Config
	delay                       sim.Time
	lossy                       bool                          // packets may be dropped
	steered                     func() ratecontrol.Controller // controller of each target; nil for none
	nics                        int                           // of each machine; 0 is 1
	given                       bool                          // demands are given; the network's are ignored
}

func defaultLayout() layout {
	return layout{cfg: nvmf.DefaultConfig(), own: true, initiators: 1, targets: 1, drives: 1,
		device: blocktest.DefaultConfig(), network: fabric.DefaultConfig(), delay: delay}
}

// ask is a request to be submitted at a time.
type ask struct {
	at        sim.Time
	initiator int32
	drive     int32
	req       block.Request
}

// rig is a system that a test drives.
type rig struct {
	eng   *sim.Engine
	net   *fabric.Network
	sys   *nvmf.System
	asks  []ask
	self  sim.Component
	own   sim.Target
	hosts []int32
	lossy bool
	done  []nvmf.Done
	// onEnded may submit.
	onEnded func(*nvmf.Done)
}

// Handle submits the request that is due.
func (r *rig) Handle(e sim.Event) {
	a := &r.asks[e.Arg]
	a.req.Tag = uint64(e.Arg)
	r.sys.Submit(a.initiator, a.drive, a.req)
}

// Ended makes the rig its system's sink.
func (r *rig) Ended(d *nvmf.Done) {
	r.done = append(r.done, *d)
	if r.onEnded != nil {
		r.onEnded(d)
	}
}

func newRig(t failer, l layout) *rig {
	t.Helper()
	r := &rig{eng: sim.New(), lossy: l.lossy}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var err error
	r.sys, err = nvmf.New(l.cfg, l.protocol, l.own, r.eng)
	must(err)
	l.nics = max(l.nics, 1)
	g, err := topo.Build(topo.Config{Star: &topo.Star{Hosts: l.nics * (l.initiators + l.targets)}}, rate, rate, l.delay)
	must(err)
	r.net, err = fabric.New(l.network, g, r.eng, r.sys, 1, "fabric")
	must(err)
	for i, n := range g.Nodes {
		if n.Kind == topo.Host {
			r.hosts = append(r.hosts, int32(i))
		}
	}
	nics := func(machine int) (int32, []int32) {
		own := r.hosts[machine*l.nics:][:l.nics]
		return own[0], own[1:]
	}
	for i := range l.initiators {
		first, more := nics(i)
		r.sys.AddInitiator(first, more...)
	}
	for i := range l.targets {
		first, more := nics(l.initiators + i)
		target := r.sys.AddTarget(first, more...)
		for range l.drives {
			d, err := blocktest.New(l.device, r.eng, r.sys.Complete)
			must(err)
			_, err = r.sys.AddDrive(target, d)
			must(err)
		}
	}
	if l.steered != nil {
		steer(t, r, &l)
		r.net.OnRate = r.sys.Paced
	}
	must(r.net.Use(l.cfg.Class))
	r.sys.Connect(r.net, r)
	r.self, r.own = r.eng.NewComponent(), r.eng.AddHandler(r)
	return r
}

// ask schedules a request.
func (r *rig) ask(a ask) {
	r.asks = append(r.asks, a)
	r.eng.Schedule(r.self, r.own, a.at, 0, uint32(len(r.asks)-1))
}

// node returns the node of a host.
func (r *rig) node(host int) int32 { return r.hosts[host] }

// run runs until the system is idle, and checks the laws.
func (r *rig) run(t failer) {
	t.Helper()
	r.runUntil(t, sim.Forever)
}

// runUntil is run to a time when the system is idle but for its timers.
func (r *rig) runUntil(t failer, at sim.Time) {
	t.Helper()
	r.eng.Run(at)
	if err := r.sys.Err(); err != nil {
		t.Fatal(err)
	}
	if err := r.sys.Check(); err != nil {
		t.Fatal(err)
	}
	if err := r.net.Check(); err != nil {
		t.Fatal(err)
	}
	if n := r.net.Counters.DropCount(); n > 0 && !r.lossy {
		t.Fatalf("%d packets were dropped", n)
	}
	seen := make([]bool, len(r.asks))
	for i := range r.done {
		d := &r.done[i]
		if seen[d.Tag] {
			t.Fatalf("request %d ended twice", d.Tag)
		}
		seen[d.Tag] = true
		sum := sim.Time(0)
		for k, x := range d.Stage {
			if x < 0 {
				t.Fatalf("request %d spent %v in %v", d.Tag, x, nvmf.Stage(k))
			}
			sum += x
		}
		if sum != d.Ended-d.Submitted {
			t.Fatalf("request %d took %v, its stages %v", d.Tag, d.Ended-d.Submitted, sum)
		}
		at, stage := d.Submitted, [nvmf.Stages]sim.Time{}
		d.Steps(func(k nvmf.Stage, from, to sim.Time) {
			if from != at || to <= from {
				t.Fatalf("request %d: a step of %v from %v to %v, after one that ended at %v", d.Tag, k, from, to, at)
			}
			at = to
			stage[k] += to - from
		})
		if at != d.Ended || stage != d.Stage {
			t.Fatalf("request %d: steps until %v of %v, stages %v and not %v", d.Tag, at, d.Ended, stage, d.Stage)
		}
	}
	for i, ok := range seen {
		if !ok {
			t.Fatalf("request %d of %d never ended", i, len(seen))
		}
	}
}

// hops returns the arrivals of several messages that are posted at once, over two equal links with a store-and-forward
// switch: a recursion over packets, by hand.
func hops(cfg fabric.Config, delay sim.Time, sizes ...units.Bytes) []sim.Time {
	var out []sim.Time
	var first, second sim.Time // until when the links are busy
	for _, size := range sizes {
		for left := size; left > 0; left -= cfg.Payload {
			wire := rate.TimeFor(min(left, cfg.Payload) + cfg.Header)
			first += wire
			second = max(second, first+delay) + wire
		}
		out = append(out, second+delay)
	}
	return out
}

func testLog(t *testing.T, r *rig) {
	t.Helper()
	t.Logf("%d commands, %d held at initiators, %d at targets, %d at transmit queues; %d pauses",
		r.sys.Counters.Ended, r.sys.Counters.HeldAtInitiator, r.sys.Counters.HeldAtTarget,
		r.sys.Counters.HeldAtTXQ, r.net.Counters.Pauses)
}
