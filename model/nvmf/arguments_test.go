package nvmf_test

import (
	"math"
	"testing"

	"farflash/block"
	"farflash/block/blocktest"
	"farflash/internal/hostile"
	"farflash/internal/patience"
	"farflash/model/nvmf"
	"farflash/model/nvmf/nvmftest"
	"farflash/numeric/units"
	"farflash/policy/ratecontrol"
	"farflash/sim"
)

// ender counts the commands that a system completes.
type ender struct {
	ended int
	inner bool // inside Submit
	early bool // a command ended there
}

func (e *ender) Ended(*nvmf.Done) {
	e.ended++
	e.early = e.early || e.inner
}

// strange is a system of two initiators and two drives at one target.
func strange(t testing.TB, cfg nvmf.Config, protocol nvmf.Protocol) (*sim.Engine, *nvmf.System, *ender) {
	t.Helper()
	eng := sim.New()
	s, err := nvmf.New(cfg, protocol, true, eng)
	if err != nil {
		return nil, nil, nil
	}
	s.AddInitiator(0)
	s.AddInitiator(1)
	target := s.AddTarget(2)
	for range 2 {
		d, err := blocktest.New(blocktest.DefaultConfig(), eng, s.Complete)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.AddDrive(target, d); err != nil {
			t.Fatal(err)
		}
	}
	e := &ender{}
	s.Connect(nvmftest.New(nvmftest.DefaultConfig(), eng, s), e)
	return eng, s, e
}

// TestArguments verifies that what a system cannot be, and cannot do, is an error or refused.
func TestArguments(t *testing.T) {
	refused := hostile.Check(t, "nvmf")
	made := func() *nvmf.System {
		_, s, _ := strange(t, nvmf.DefaultConfig(), nvmf.NVMeoF)
		return s
	}
	link := nvmf.Link{Rate: units.Gbps, Share: 1}
	steer := func(change func(*nvmf.Link)) func() error {
		return func() error {
			l := link
			change(&l)
			return made().Steer(0, controller(ratecontrol.Static, 1, 1, 1), 8, l, false)
		}
	}
	refused("nil engine", func() error {
		_, err := nvmf.New(nvmf.DefaultConfig(), nvmf.NVMeoF, true, nil)
		return err
	}, "engine is nil")
	refused("protocol", func() error { _, err := nvmf.New(nvmf.DefaultConfig(), 9, true, sim.New()); return err },
		"protocol 9")
	refused("no configuration", func() error { _, err := nvmf.New(nvmf.Config{}, 0, true, sim.New()); return err },
		"queue_pairs")
	refused("no controller", func() error { return made().Steer(0, nil, 8, link, false) }, "controller is nil")
	static := controller(ratecontrol.Static, 1, 1, 1)
	refused("no depth", func() error { return made().Steer(0, static, 0, link, false) }, "depth of 0")
	refused("no target", func() error { return made().Steer(7, static, 8, link, false) }, "target 7")
	refused("rate", steer(func(l *nvmf.Link) { l.Rate = 0 }), "link of 0")
	refused("share", steer(func(l *nvmf.Link) { l.Share = math.NaN() }), "NaN")
	refused("acknowledgements", steer(func(l *nvmf.Link) { l.Ack = math.Inf(1) }), "+Inf")
	refused("nil drive", func() error { _, err := made().AddDrive(0, nil); return err }, "drive is nil")
	refused("drive of no target", func() error {
		_, err := made().AddDrive(1, nil)
		return err
	}, "no target 1")
	for _, c := range []struct {
		name string
		do   func(*nvmf.System)
		want string
	}{
		{"nil network", func(s *nvmf.System) { s.Connect(nil, &ender{}) }, "is nil"},
		{"connected twice", func(s *nvmf.System) {
			s.Connect(nvmftest.New(nvmftest.DefaultConfig(), sim.New(), s), &ender{})
		}, "connected already"},
		{"initiator", func(s *nvmf.System) { s.Submit(2, 0, block.Request{Length: 512}) }, "initiator 2 of 2"},
		{"negative initiator", func(s *nvmf.System) { s.Submit(-1, 0, block.Request{Length: 512}) }, "initiator -1"},
		{"drive", func(s *nvmf.System) { s.Submit(0, 2, block.Request{Length: 512}) }, "drive 2 of 2"},
		{"operation", func(s *nvmf.System) { s.Submit(0, 0, block.Request{Op: block.Ops, Length: 512}) }, "(8) of 512"},
		{"length", func(s *nvmf.System) { s.Submit(0, 0, block.Request{Length: -512}) }, "-512 bytes"},
		{"length that overflows", func(s *nvmf.System) { s.Submit(0, 0, block.Request{Length: 1 << 40}) }, "bytes"},
		{"late initiator", func(s *nvmf.System) {
			s.Submit(0, 0, block.Request{Length: 512})
			if n := s.AddInitiator(3); n != -1 {
				t.Errorf("it has number %d", n)
			}
		}, "after the first command"},
		{"late target", func(s *nvmf.System) { s.Submit(0, 0, block.Request{Length: 512}); s.AddTarget(3) },
			"after the first command"},
		{"demands", func(s *nvmf.System) { s.Demands([]ratecontrol.Demanded{{At: 5}, {At: 4}}) }, "demand 1"},
		{"demand in the past", func(s *nvmf.System) { s.Demands([]ratecontrol.Demanded{{At: -5}}) }, "demand 0"},
		{"completion", func(s *nvmf.System) { s.Complete(block.Completion{Tag: 5}) }, "did not submit"},
		{"completion of none", func(s *nvmf.System) { s.Complete(block.Completion{}) }, "did not submit"},
		{"initiator's node", func(s *nvmf.System) { s.InitiatorNode(2) }, "no initiator 2"},
		{"target's node", func(s *nvmf.System) { s.TargetNode(-1) }, "no target -1"},
		{"device", func(s *nvmf.System) { s.Device(2) }, "no drive 2"},
		{"drives", func(s *nvmf.System) { s.DrivesOf(1) }, "no target 1"},
		{"visits", func(s *nvmf.System) { s.Visited(2) }, "no drive 2"},
		{"steering", func(s *nvmf.System) { s.Steering(1) }, "no target 1"},
		{"demanded", func(s *nvmf.System) { s.Demanded(0) }, "no controller"},
		{"received", func(s *nvmf.System) { s.Received(0) }, "no controller"},
		{"transmit queue", func(s *nvmf.System) { s.InTXQ(1) }, "no target 1"},
		{"tuned drive", func(s *nvmf.System) { s.Tune(2, 0, 1, 1) }, "no drive 2"},
		{"tuned queue", func(s *nvmf.System) { s.Tune(0, 1, 1, 1) }, "no queue 1"},
	} {
		refused(c.name, func() error { s := made(); c.do(s); return s.Err() }, c.want)
	}
	s := made()
	for _, m := range []int32{-1, 0, math.MaxInt32} {
		s.Delivered(m)
		s.Acked(m)
		if _, c := s.Carried(m); c != 0 || s.Carries(m) {
			t.Errorf("the system carries message %d", m)
		}
	}
	eng := sim.New()
	early, err := nvmf.New(nvmf.DefaultConfig(), nvmf.NVMeoF, true, eng)
	if err != nil {
		t.Fatal(err)
	}
	early.AddInitiator(0)
	refused("before Connect", func() error { early.Submit(0, 0, block.Request{}); return early.Err() },
		"before Connect")
}

// FuzzSystem submits what the input says to a system that the input configures: every command ends once, or the system
// has stopped with an error, and its laws hold.
func FuzzSystem(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 1, 0, 1, 8, 1, 0, 0, 1, 9, 2, 1, 1, 0, 3, 4, 0, 1, 1, 5, 6, 1, 0, 0, 1, 7})
	f.Add([]byte{1, 2, 0, 1, 2, 0, 3, 4, 0, 0, 0, 1, 8, 1, 0, 0, 1, 9, 2, 1, 1, 0, 3, 4, 0, 200, 8, 5, 6, 1, 0})
	f.Add([]byte("120000100")) // a write of Flows on queue pairs that last
	f.Add([]byte("commands of every length for every drive, on each of the three protocols"))
	f.Fuzz(func(t *testing.T, in []byte) {
		defer patience.Limit()()
		code := hostile.Code(in)
		protocol := nvmf.Protocol(code.Below(3))
		cfg := nvmf.DefaultConfig()
		code.Change(&cfg, code.Below(5))
		if k := cfg.Host.KeepAlive; k > 0 && k < 100*units.Millisecond {
			return // too many for the run's length
		}
		for _, x := range []nvmf.Software{cfg.Initiator, cfg.Target} {
			for _, rate := range []units.ByteRate{x.Receive, x.Send, x.Digest} {
				if rate > 0 && rate < units.MBPerSecond {
					return // commands may take longer than the run
				}
			}
		}
		eng, s, e := strange(t, cfg, protocol)
		if s == nil {
			return
		}
		if code.Below(2) == 1 {
			ctl := []ratecontrol.Controller{controller(ratecontrol.Static, 1+code.Below(9), 1, 1),
				controller(ratecontrol.Reserve, 1, 2, 1),
				controller(ratecontrol.Paced, 1, 2, 0.5),
				controller(ratecontrol.AIMD, 8, 1, 1)}[code.Below(4)]
			_ = s.Steer(0, ctl, 1+code.Below(40), nvmf.Link{Rate: units.Gbps, Share: 1}, false)
		}
		for range 60 {
			if !code.More() || s.Err() != nil {
				break
			}
			hostile.Refused(t, "nvmf", func() {
				if code.Below(5) == 0 {
					eng.Run(eng.Now() + units.Duration(code.Byte())*units.Microsecond)
					return
				}
				initiator, drive := int32(code.Below(2)), int32(code.Below(2))
				r := block.Request{Op: block.Op(code.Below(4)), Offset: code.Int() * 4096,
					Length: int64(code.Byte()) * 512}
				if code.Below(16) == 15 {
					initiator, drive, r.Length, r.Op = int32(code.Int()), int32(code.Int()), code.Int(),
						block.Op(code.Byte())
				}
				e.inner = true
				s.Submit(initiator, drive, r)
				e.inner = false
			})
		}
		hostile.Refused(t, "nvmf", func() { eng.Run(eng.Now() + 1000*units.Second) })
		if e.early {
			t.Error("a command ended inside Submit")
		}
		if s.Err() != nil {
			return
		}
		// Commands with several paths, or states of paths, may wait for one for longer than the run, and other timers
		// of hosts may let a command on a queue of one take minutes.
		long := cfg.Multipath.Paths > 1 || len(cfg.Multipath.ANA) > 0 || cfg.Host != nvmf.DefaultConfig().Host
		if n := s.Counters.Submitted; n < uint64(e.ended) || n > uint64(e.ended) && !long {
			t.Errorf("%d commands submitted, %d ended", n, e.ended)
		}
		if err := s.Check(); err != nil {
			t.Error(err)
		}
	})
}
