package nvmf

import (
	"errors"
	"testing"

	"farflash/block"
	"farflash/block/blocktest"
	"farflash/model/fabric"
	"farflash/numeric/units"
	"farflash/sim"
)

// silent is a network on which no message arrives.
type silent struct {
	posted int32
	left   int // number of queue pairs and streams that can still be opened
}

// open opens one more, if the limit allows it.
func (n *silent) open() (fabric.QP, error) {
	if n.left--; n.left < 0 {
		return 0, errors.New("there is no more")
	}
	return 0, nil
}

func (n *silent) Open(_, _ int32, _ uint8) (fabric.QP, error) { return n.open() }
func (n *silent) Post(fabric.QP, units.Bytes) (int32, error) {
	n.posted++
	return n.posted, nil
}
func (n *silent) Begun(int32) sim.Time { return 0 }
func (n *silent) Forget(int32)         {}
func (n *silent) Respond(_, _ fabric.QP) (fabric.QP, error) {
	return n.open()
}
func (n *silent) Ask(q fabric.QP, size units.Bytes) (int32, error) { return n.Post(q, size) }
func (n *silent) Answer(q fabric.QP, size units.Bytes, _ int32) (int32, error) {
	return n.Post(q, size)
}

// discard is a sink that keeps nothing.
type discard struct{}

func (discard) Ended(*Done) {}

// TestCheckNotices verifies that Check reports each broken law, and no intact one.
func TestCheckNotices(t *testing.T) {
	for name, x := range map[string]struct {
		change func(*System)
		holds  bool
	}{
		"as it is":                        {func(*System) {}, true},
		"a command that nobody has":       {func(s *System) { s.Counters.Submitted++ }, false},
		"stages that are not the latency": {func(s *System) { s.Counters.Latency++ }, false},
		"fewer than none in a drive's queue": {func(s *System) {
			s.drives[0].queues[0].inside,
				s.drives[0].inside = -1, -1
		}, false},
		"as many as may be in a drive's queue": {func(s *System) {
			s.drives[0].queues[0].inside,
				s.drives[0].inside = 2, 2
		}, true},
		"too many in a drive's queue": {func(s *System) {
			s.drives[0].queues[0].inside,
				s.drives[0].inside = 3, 3
		}, false},
		"a drive that waits for nothing": {func(s *System) { s.drives[0].queues[0].waiting.n = 1 }, false},
		"a drive that has something and more": {func(s *System) {
			q := &s.drives[0].queues[0]
			q.waiting.n,
				q.inside, s.drives[0].inside = 1, 1, 1
		}, true},
		"a drive that counts otherwise":         {func(s *System) { s.drives[0].inside = 1 }, false},
		"less than nothing in a transmit queue": {func(s *System) { s.targets[0].used = -1 }, false},
		"a full transmit queue":                 {func(s *System) { s.targets[0].used = 1000 }, true},
		"a transmit queue that is too full":     {func(s *System) { s.targets[0].used = 1001 }, false},
		"an answer that has it to itself": {func(s *System) {
			s.targets[0].used, s.targets[0].alone = 1001,
				1001
		}, true},
		"less than nothing for writes":   {func(s *System) { s.targets[0].memory.used = -1 }, false},
		"full memory for writes":         {func(s *System) { s.targets[0].memory.used = 2000 }, true},
		"more for writes than there is":  {func(s *System) { s.targets[0].memory.used = 2001 }, false},
		"a write that waits for nothing": {func(s *System) { s.targets[0].memory.waiting.n = 1 }, false},
		"a write that waits for another": {func(s *System) {
			s.targets[0].memory.waiting.n,
				s.targets[0].memory.used = 1, 1
		}, true},
		"fewer than no RDMA Reads":     {func(s *System) { s.conns[0].reading = -1 }, false},
		"as many RDMA Reads as may be": {func(s *System) { s.conns[0].reading = 3 }, true},
		"too many RDMA Reads":          {func(s *System) { s.conns[0].reading = 4 }, false},
		"too many R2Ts, which have no limit": {func(s *System) { s.conns[0].reading, s.protocol = 4, NVMeTCP },
			true},
		"an RDMA Read that waits for nothing": {func(s *System) { s.conns[0].unread.n = 1 }, false},
		"an RDMA Read that waits for another": {func(s *System) { s.conns[0].unread.n, s.conns[0].reading = 1, 1 },
			true},
	} {
		cfg := DefaultConfig()
		cfg.DriveDepth, cfg.TXQ, cfg.WriteBuffers, cfg.Reads.Target = 2, 1000, 2000, 3
		eng := sim.New()
		s, err := New(cfg, NVMeoF, true, eng)
		if err != nil {
			t.Fatal(err)
		}
		s.AddInitiator(0)
		d, err := blocktest.New(blocktest.DefaultConfig(), eng, s.Complete)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.AddDrive(s.AddTarget(1), d); err != nil {
			t.Fatal(err)
		}
		s.Connect(&silent{left: 3}, discard{})
		s.Submit(0, 0, block.Request{Op: block.Read, Length: 512})
		eng.Run(sim.Forever)
		x.change(s)
		if err := s.Check(); (err == nil) != x.holds {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestOpening verifies that a connection opens a queue pair each way and a stream of answers, and fails without any of
// them.
func TestOpening(t *testing.T) {
	for left := range 4 {
		eng := sim.New()
		s, err := New(DefaultConfig(), NVMeoF, true, eng)
		if err != nil {
			t.Fatal(err)
		}
		s.AddInitiator(0)
		d, err := blocktest.New(blocktest.DefaultConfig(), eng, s.Complete)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.AddDrive(s.AddTarget(1), d); err != nil {
			t.Fatal(err)
		}
		s.Connect(&silent{left: left}, discard{})
		s.Submit(0, 0, block.Request{Op: block.Read, Length: 512})
		if (s.Err() == nil) != (left == 3) {
			t.Errorf("with %d opened: %v", left, s.Err())
		}
	}
}
