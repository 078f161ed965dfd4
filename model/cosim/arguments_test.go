package cosim_test

import (
	"io"
	"math"
	"testing"

	"farflash/block"
	"farflash/block/blocktest"
	"farflash/block/raid"
	"farflash/internal/hostile"
	"farflash/internal/patience"
	"farflash/model/cosim"
	"farflash/model/fabric"
	"farflash/model/fabric/topo"
	"farflash/model/nvmf"
	"farflash/model/nvmf/nvmftest"
	"farflash/numeric/units"
	"farflash/sim"
	"farflash/workload"
	"farflash/workload/flows"
)

// quick is a device of 1 MiB on an engine.
func quick(t testing.TB, eng *sim.Engine, sink func(block.Completion)) *blocktest.Device {
	t.Helper()
	cfg := blocktest.DefaultConfig()
	cfg.Capacity = []int64{1 << 20, 1 << 16}
	d, err := blocktest.New(cfg, eng, sink)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// attach attaches a host to a device with one flow.
func attach(t testing.TB, change func(*cosim.Flow)) error {
	eng := sim.New()
	h := cosim.NewHost(eng)
	f := cosim.Flow{Name: "load", Source: workload.Slice(nil), Queue: block.QueueConfig{Depth: 8}}
	change(&f)
	return h.Attach(quick(t, eng, h.Complete), []cosim.Flow{f})
}

// router returns the error of a route.
func router(change func(*cosim.Route), initiators int, targets [][]int32, capacity int64) error {
	r := cosim.Route{Drive: cosim.ByStripe, Unit: 4096}
	change(&r)
	_, err := cosim.NewRouter(r, initiators, targets, capacity)
	return err
}

// iterative returns the error of iterations.
func iterative(change func(*cosim.IterativeConfig, *cosim.Job)) error {
	cfg := cosim.IterativeConfig{DriveDepth: 1}
	j := cosim.Job{Command: block.Request{Length: 512}}
	change(&cfg, &j)
	_, err := cosim.NewIterative(cfg, []cosim.Job{j}, 1, nil)
	return err
}

// trafficOf returns the error of traffic between two hosts.
func trafficOf(list []flows.Flow, hosts []int32) error {
	eng := sim.New()
	net := star(eng)
	x := cosim.NewTraffic(eng, net, flows.Slice(list), hosts)
	if err := x.Start(); err != nil {
		return err
	}
	eng.Run(sim.Forever)
	return x.Err()
}

// star is a network of two hosts and a switch.
func star(eng *sim.Engine) *fabric.Network {
	g, err := topo.Build(topo.Config{Star: &topo.Star{Hosts: 2}}, 100*units.Gbps, 0, units.Microsecond)
	if err != nil {
		panic(err)
	}
	net, err := fabric.New(fabric.DefaultConfig(), g, eng, nil, 1, "net")
	if err != nil {
		panic(err)
	}
	return net
}

// TestArguments verifies that what a host, an array, traffic and iterations cannot be is an error.
func TestArguments(t *testing.T) {
	var h *cosim.Host
	drives := [][]int32{{0, 1}, {2}}
	none := func(*cosim.Route) {}
	first := func(at sim.Time) error {
		_, err := cosim.NewIterative(cosim.IterativeConfig{}, []cosim.Job{{Command: block.Request{Op: block.Write}}}, 1,
			func(int) sim.Time { return at })
		return err
	}
	it, err := cosim.NewIterative(cosim.IterativeConfig{DriveDepth: 1}, []cosim.Job{{}}, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	flow := func(change func(*cosim.Flow)) func() error { return func() error { return attach(t, change) } }
	route := func(change func(*cosim.Route)) func() error {
		return func() error { return router(change, 2, drives, 1<<20) }
	}
	job := func(change func(*cosim.IterativeConfig, *cosim.Job)) func() error {
		return func() error { return iterative(change) }
	}
	refused := hostile.Check(t, "cosim")
	refused("host without engine attached", func() error { return cosim.NewHost(nil).Attach(nil, nil) },
		"engine is nil")
	refused("host without engine started", func() error { return cosim.NewHost(nil).Start() }, "engine is nil")
	refused("host on no device", func() error { return cosim.NewHost(sim.New()).Attach(nil, nil) }, "device is nil")
	refused("host started without device", func() error { return cosim.NewHost(sim.New()).Start() }, "use Attach")
	refused("host attached twice", func() error {
		eng := sim.New()
		h = cosim.NewHost(eng)
		d := quick(t, eng, h.Complete)
		if err := h.Attach(d, nil); err != nil {
			t.Error(err)
		}
		return h.Attach(d, nil)
	}, "the host has a device")
	refused("host started twice", func() error {
		if err := h.Start(); err != nil {
			t.Error(err)
		}
		return h.Start()
	}, "has started")
	refused("completion of no request", func() error { h.Complete(block.Completion{}); return nil }, "not outstanding")
	refused("completion of request 7", func() error { h.Complete(block.Completion{Tag: 7}); return nil },
		"not outstanding")
	refused("completion of a great tag", func() error { h.Complete(block.Completion{Tag: 1 << 40}); return nil },
		"not outstanding")
	refused("no source", flow(func(f *cosim.Flow) { f.Source = nil }), "source is nil")
	refused("outstanding", flow(func(f *cosim.Flow) { f.Outstanding = -1 }), "-1 outstanding")
	refused("too many outstanding", flow(func(f *cosim.Flow) { f.Outstanding = 1 << 40 }), "outstanding")
	refused("start", flow(func(f *cosim.Flow) { f.Start = -1 }), "use 0s or more")
	refused("until", flow(func(f *cosim.Flow) { f.Until = -1 }), "use 0s or more")
	refused("think", flow(func(f *cosim.Flow) { f.Think = -1 }), "use 0s or more")
	refused("think after none", flow(func(f *cosim.Flow) { f.Think = 1 }), "use 1 or more")
	refused("wave", flow(func(f *cosim.Flow) { f.Wave = -1 }), "wave -1")
	refused("wave that never comes", flow(func(f *cosim.Flow) { f.Wave = math.MaxInt }), "wave")
	refused("last", flow(func(f *cosim.Flow) { f.Last = -1 }), "last sector")
	refused("namespace", flow(func(f *cosim.Flow) { f.Namespace = 2 }), "no namespace 2")
	refused("queue", flow(func(f *cosim.Flow) { f.Queue.Depth = -1 }), "load: ")
	refused("array without engine", func() error { _, err := cosim.NewArray(nil, nil, cosim.Route{}, nil); return err },
		"one of them is nil")
	refused("initiators", func() error { return router(none, -1, drives, 1<<20) }, "-1 initiators")
	refused("targets", func() error { return router(none, 1, nil, 1<<20) }, "0 drives")
	refused("capacity", func() error { return router(none, 1, drives, -1) }, "capacity")
	refused("empty target", func() error {
		return router(func(r *cosim.Route) { r.Drive = cosim.ByTarget }, 1, [][]int32{{0}, {}}, 1<<20)
	}, "targets[1]: it has no drives")
	refused("drive that does not exist", func() error { return router(none, 1, [][]int32{{0, 7}}, 1<<20) }, "drive 7")
	refused("initiator spread", route(func(r *cosim.Route) { r.Initiator = cosim.ByStripe }), "initiator: ")
	refused("drive spread", route(func(r *cosim.Route) { r.Drive = cosim.ByFlow }), "drive: ")
	refused("no unit", route(func(r *cosim.Route) { r.Unit = 0 }), "unit: none is given")
	refused("odd unit", route(func(r *cosim.Route) { r.Unit = 1000 }), "unit: ")
	refused("no unit of hashes", route(func(r *cosim.Route) {
		*r = cosim.Route{Initiator: cosim.ByHash, Drive: cosim.ByVolume}
	}), "unit: none is given")
	refused("negative transfer", route(func(r *cosim.Route) { r.MaxTransfer = -512 }), "max_transfer")
	refused("odd transfer", route(func(r *cosim.Route) { r.MaxTransfer = 100 }), "max_transfer")
	refused("owner", route(func(r *cosim.Route) { r.Initiator, r.Owners = cosim.ByFlow, []int32{0, 2} }),
		"flow 1 has initiator 2")
	refused("recorder", func() error { _, err := cosim.NewRecorder(sim.New(), cosim.Router{}); return err },
		"from NewRouter")
	refused("recorder without engine", func() error { _, err := cosim.NewRecorder(nil, cosim.Router{}); return err },
		"needs an engine")
	refused("divided without engine", func() error {
		return cosim.NewDivided(nil, 1, blocktest.Sink(func(block.Completion) {})).Behind(quick(t, sim.New(), nil))
	}, "one of them is nil")
	refused("divided without drive", func() error {
		return cosim.NewDivided(sim.New(), 1, blocktest.Sink(func(block.Completion) {})).Behind(nil)
	}, "one of them is nil")
	refused("divided without depth", func() error {
		d := cosim.NewDivided(sim.New(), 0, blocktest.Sink(func(block.Completion) {}))
		return d.Behind(quick(t, sim.New(), nil))
	}, "a drive of 0 commands")
	refused("divided, not yet behind", func() error {
		_, err := cosim.NewDivided(sim.New(), 1, nil).Open(block.QueueConfig{})
		return err
	}, "use Behind")
	refused("rebuild without engine", func() error { cosim.Rebuild(nil, nil); return nil }, "nil engine or step")
	refused("stages", func() error { new(cosim.Anatomy).Add(1, make([]sim.Time, 18)); return nil }, "17 stages")
	refused("latency", func() error { new(cosim.Anatomy).Add(-1, nil); return nil }, "negative latency")
	refused("traffic without anything", func() error { return cosim.NewTraffic(nil, nil, nil, nil).Start() },
		"one of them is nil")
	refused("flow from nowhere", func() error { return trafficOf([]flows.Flow{{Src: 2, Size: 1}}, []int32{0, 1}) },
		"there are 2 hosts")
	refused("flow to nowhere", func() error { return trafficOf([]flows.Flow{{Dst: -1, Size: 1}}, []int32{0, 1}) },
		"there are 2 hosts")
	refused("flow to a node that does not exist", func() error {
		return trafficOf([]flows.Flow{{Dst: 1, Size: 1}}, []int32{0, 77})
	}, "77")
	refused("flow of no size", func() error { return trafficOf([]flows.Flow{{Dst: 1, Size: -1}}, []int32{0, 1}) },
		"flow 0")
	refused("flow of no class", func() error {
		return trafficOf([]flows.Flow{{Dst: 1, Size: 1, Class: 200}}, []int32{0, 1})
	}, "flow 0")
	refused("flow before the beginning", func() error {
		return trafficOf([]flows.Flow{{Dst: 1, Size: 1, Start: -1}}, []int32{0, 1})
	}, "before the previous one")
	refused("no jobs", func() error { _, err := cosim.NewIterative(cosim.IterativeConfig{}, nil, 1, nil); return err },
		"0 jobs")
	refused("no drives", func() error {
		_, err := cosim.NewIterative(cosim.IterativeConfig{}, make([]cosim.Job, 1), -1, nil)
		return err
	}, "-1 drives")
	refused("threshold", job(func(c *cosim.IterativeConfig, _ *cosim.Job) { c.Threshold = math.NaN() }), "threshold")
	refused("stable range", job(func(c *cosim.IterativeConfig, _ *cosim.Job) { c.StableRange = math.Inf(1) }),
		"stable_range")
	refused("stable for", job(func(c *cosim.IterativeConfig, _ *cosim.Job) { c.StableFor = -1 }), "stable_for")
	refused("weights", job(func(c *cosim.IterativeConfig, _ *cosim.Job) { c.Weights[1] = math.NaN() }), "weights[1]")
	refused("most", job(func(c *cosim.IterativeConfig, _ *cosim.Job) { c.Most = -1 }), "most")
	refused("acceleration", job(func(c *cosim.IterativeConfig, _ *cosim.Job) { c.Acceleration = 9 }), "acceleration")
	refused("relaxation", job(func(c *cosim.IterativeConfig, _ *cosim.Job) { c.Relaxation = math.NaN() }), "relaxation")
	refused("drive depth", job(func(c *cosim.IterativeConfig, _ *cosim.Job) { c.DriveDepth = -1 }), "drive_depth")
	refused("arrival", job(func(_ *cosim.IterativeConfig, j *cosim.Job) { j.Arrival = -1 }), "arrives at")
	refused("drive", job(func(_ *cosim.IterativeConfig, j *cosim.Job) { j.Drive = 1 }), "drive 1")
	refused("request", job(func(_ *cosim.IterativeConfig, j *cosim.Job) { j.Request = math.MaxInt32 }), "request")
	refused("length", job(func(_ *cosim.IterativeConfig, j *cosim.Job) { j.Command.Length = -1 }), "length")
	refused("operation", job(func(_ *cosim.IterativeConfig, j *cosim.Job) { j.Command.Op = 77 }), "reads and writes")
	refused("first arrival", func() error { return first(-1) }, "first arrives")
	refused("storage", func() error { return it.Storage(1, nil) }, "no drive 1")
	refused("storage of nothing", func() error { return it.Storage(0, nil) }, "drive 0")
	refused("storage of a nil drive", func() error {
		return it.Storage(0, func(*sim.Engine, func(block.Completion)) (block.Device, error) { return nil, nil })
	}, "is nil")
	refused("network", func() error { return it.Network(nil, 0, nil) }, "are nil")
	refused("finish", func() error { it.Finish(); return nil }, "without its Network")
	refused("times", func() error { it.Times(1); return nil }, "job 1")
	refused("part", func() error { it.Part(-1); return nil }, "request -1")
	refused("stages of a request", func() error { it.Stages(1); return nil }, "request 1")
}

// TestStrangeRequests verifies that each device completes requests that it cannot serve, with a status, and never
// inside Submit.
func TestStrangeRequests(t *testing.T) {
	const K = 1 << 10
	for _, x := range []struct {
		name string
		make func(eng *sim.Engine, sink func(block.Completion)) block.Device
	}{
		{"array", func(eng *sim.Engine, sink func(block.Completion)) block.Device {
			return anyArray(t, eng, cosim.Route{Drive: cosim.ByStripe, Unit: 64 * K}, sink)
		}},
		{"array by flow", func(eng *sim.Engine, sink func(block.Completion)) block.Device {
			return anyArray(t, eng, cosim.Route{Initiator: cosim.ByFlow, Owners: []int32{0}}, sink)
		}},
		{"volume", func(eng *sim.Engine, sink func(block.Completion)) block.Device {
			a := anyArray(t, eng, cosim.Route{}, sink)
			if err := a.Stripe(raid.DefaultConfig(), 1<<20); err != nil {
				t.Fatal(err)
			}
			if err := a.Stripe(raid.DefaultConfig(), 1<<20); err == nil {
				t.Error("an array becomes a volume twice")
			}
			return a
		}},
		{"divided", func(eng *sim.Engine, sink func(block.Completion)) block.Device {
			d := cosim.NewDivided(eng, 4, blocktest.Sink(sink))
			if err := d.Behind(quick(t, eng, d.Complete)); err != nil {
				t.Fatal(err)
			}
			return d
		}},
	} {
		t.Run(x.name, func(t *testing.T) {
			eng := sim.New()
			var done []block.Completion
			dev := x.make(eng, func(c block.Completion) { done = append(done, c) })
			q, err := dev.Open(block.QueueConfig{Depth: 64})
			if err != nil {
				t.Fatal(err)
			}
			size := dev.Capacity(0)
			for k, c := range []struct {
				queue block.QueueID
				req   block.Request
				want  block.Status
			}{
				{q + 1, block.Request{Length: 512}, block.Invalid},
				{-1, block.Request{Length: 512}, block.Invalid},
				{math.MaxInt32, block.Request{Op: block.Flush}, block.Invalid},
				{q, block.Request{Op: block.Ops, Length: 512}, block.Invalid},
				{q, block.Request{Op: 255, Length: 512}, block.Invalid},
				{q, block.Request{Offset: -512, Length: 512}, block.Invalid},
				{q, block.Request{Length: -512}, block.Invalid},
				{q, block.Request{Op: block.Flush, Offset: -512, Length: -512}, block.OK},
				{q, block.Request{Length: 700}, block.Invalid},
				{q, block.Request{Offset: 5, Length: 512}, block.Invalid},
				{q, block.Request{Op: block.Write}, block.Invalid},
				{q, block.Request{Offset: math.MinInt64, Length: math.MinInt64}, block.Invalid},
				{q, block.Request{Offset: size, Length: 512}, block.OutOfRange},
				{q, block.Request{Length: math.MaxInt64 - 511}, block.OutOfRange},
				{q, block.Request{Offset: math.MaxInt64 - 511, Length: math.MaxInt64 - 511}, block.OutOfRange},
				{q, block.Request{Length: 512}, block.OK},
			} {
				c.req.Tag = uint64(100 + k)
				done = nil
				if !dev.Submit(c.queue, c.req) {
					t.Fatalf("%+v on queue %d: refused", c.req, c.queue)
				}
				if len(done) > 0 {
					t.Errorf("%+v on queue %d: completed inside Submit", c.req, c.queue)
				}
				eng.Run(sim.Forever)
				if len(done) != 1 || done[0].Status != c.want || done[0].Tag != c.req.Tag || done[0].Queue != c.queue {
					t.Errorf("%+v on queue %d: %+v, want %v", c.req, c.queue, done, c.want)
				}
			}
			if err := dev.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := dev.Open(block.QueueConfig{Depth: 64}); err == nil {
				t.Error("a closed device opens a queue")
			}
			if dev.Submit(q, block.Request{Length: 512}) {
				t.Error("a closed device takes a request")
			}
		})
	}
}

// anyArray is an array of three drives behind two targets.
func anyArray(t testing.TB, eng *sim.Engine, route cosim.Route, sink func(block.Completion)) *cosim.Array {
	t.Helper()
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	sys, err := nvmf.New(nvmf.DefaultConfig(), nvmf.NVMeoF, true, eng)
	must(err)
	sys.AddInitiator(0)
	sys.AddInitiator(1)
	for i := range int32(3) {
		if i < 2 {
			sys.AddTarget(2 + i)
		}
		_, err := sys.AddDrive(i/2, quick(t, eng, sys.Complete))
		must(err)
	}
	a, err := cosim.NewArray(eng, sys, route, sink)
	must(err)
	sys.Connect(nvmftest.New(nvmftest.DefaultConfig(), eng, sys), a)
	return a
}

// fuzzed is a source that a fuzzer writes.
type fuzzed struct {
	code *hostile.Code
	left int
}

func (f *fuzzed) Next(r *workload.Record) error {
	if f.left == 0 || !f.code.More() {
		return io.EOF
	}
	f.left--
	c := f.code
	*r = workload.Record{Time: units.Duration(c.Int()) * units.Microsecond, Offset: c.Int() * 512, Size: c.Int() * 512,
		Op: block.Op(c.Below(10)), Volume: uint32(c.Int()), Append: c.Below(4) == 1}
	if c.Below(8) == 0 {
		r.Time, r.Offset, r.Size = units.Duration(c.Int()), c.Int(), c.Int()
	}
	return nil
}

// FuzzHost attaches a host with flows that the input describes to a drive or an array, and runs it: it ends with all
// requests completed, or with an error.
func FuzzHost(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27})
	f.Add([]byte{1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 1, 2, 3, 4, 1, 0, 1, 2, 0, 0, 1, 9, 3, 8, 1, 0, 1, 2, 0,
		0, 1})
	f.Add([]byte{2, 200, 1, 200, 2, 200, 3, 200, 4, 1, 200, 5, 200, 6, 200, 7, 240, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})
	f.Add([]byte("the hosts issue what a fuzzer writes, and an array or a drive serves it or refuses it"))
	f.Fuzz(func(t *testing.T, in []byte) {
		defer patience.Limit()()
		code := hostile.Code(in)
		eng := sim.New()
		h := cosim.NewHost(eng)
		var dev block.Device
		var array *cosim.Array
		switch code.Below(3) {
		case 0:
			dev = quick(t, eng, h.Complete)
		case 1:
			route := cosim.Route{Drive: cosim.ByStripe, Unit: 4096}
			code.Change(&route, 3)
			if _, err := cosim.NewRouter(route, 2, [][]int32{{0, 1}, {2}}, 1<<20); err != nil {
				return
			}
			array = anyArray(t, eng, route, h.Complete)
			dev = array
		case 2:
			d := cosim.NewDivided(eng, 1+code.Below(9), h)
			if err := d.Behind(quick(t, eng, d.Complete)); err != nil {
				t.Fatal(err)
			}
			dev = d
		}
		var list []cosim.Flow
		for range 1 + code.Below(3) {
			x := cosim.Flow{Queue: block.QueueConfig{Depth: 8}, Outstanding: code.Below(3)}
			src := &fuzzed{&code, 20}
			code.Change(&x, code.Below(4))
			x.Source = src
			list = append(list, x)
		}
		if h.Attach(dev, list) != nil || h.Start() != nil {
			return
		}
		hostile.Refused(t, "cosim", func() {
			eng.Run(sim.Forever)
			if h.Err() == nil && h.Issued() != h.Ended() {
				t.Errorf("%d requests issued, %d completed; left: %+v", h.Issued(), h.Ended(), h.Left())
			}
			if array != nil && h.Err() == nil && array.Inside() != 0 {
				t.Errorf("%d requests are left in the array", array.Inside())
			}
			h.FlowMeasured(int(code.Int()), block.Op(code.Byte()))
			h.Measured(block.Op(code.Byte()))
			h.ID(code.Word())
			h.Waiting()
			h.Expects()
		})
	})
}
