package nvmf_test

import (
	"fmt"
	"strings"
	"testing"

	"farflash/block"
	"farflash/block/blocktest"
	"farflash/model/fabric"
	"farflash/model/nvmf"
	"farflash/model/nvmf/nvmftest"
	"farflash/numeric/units"
	"farflash/sim"

	"github.com/cockroachdb/datadriven"
)

// ear sits between the network and the system, and records the messages.
type ear struct {
	*nvmftest.Network
	sys  *nvmf.System
	eng  *sim.Engine
	out  strings.Builder
	what map[int32]string // outstanding messages
	size units.Bytes      // size of the message being posted
	asks []block.Request
}

func (e *ear) log(format string, args ...any) {
	fmt.Fprintf(&e.out, "%v: %s\n", e.eng.Now(), fmt.Sprintf(format, args...))
}

func (e *ear) Post(q fabric.QP, size units.Bytes) (int32, error) {
	e.size = size
	return e.Network.Post(q, size)
}

func (e *ear) Ask(q fabric.QP, size units.Bytes) (int32, error) {
	e.size = size
	return e.Network.Ask(q, size)
}

func (e *ear) Answer(q fabric.QP, size units.Bytes, request int32) (int32, error) {
	e.size = size
	return e.Network.Answer(q, size, request)
}

func (e *ear) Delivered(m int32) {
	e.log("%s arrives", e.what[m])
	e.sys.Delivered(m)
}

func (e *ear) Acked(m int32) {
	e.log("%s acknowledged", e.what[m])
	delete(e.what, m)
	e.sys.Acked(m)
}

// Handle submits the request that is due.
func (e *ear) Handle(ev sim.Event) {
	e.asks[ev.Arg].Tag = uint64(ev.Arg)
	e.sys.Submit(0, 0, e.asks[ev.Arg])
}

// Ended implements nvmf.Sink.
func (e *ear) Ended(d *nvmf.Done) {
	var stages []string
	for k, t := range d.Stage {
		if t > 0 {
			stages = append(stages, fmt.Sprintf("%v %v", nvmf.Stage(k), t))
		}
	}
	e.log("%d ends: %v; %s", d.Tag, d.Status, strings.Join(stages, ", "))
}

// TestCommandSteps follows commands message by message over a network whose times can be added up.
func TestCommandSteps(t *testing.T) {
	datadriven.RunTest(t, "testdata/command", func(t *testing.T, td *datadriven.TestData) string {
		cfg := nvmf.DefaultConfig()
		cfg.Initiator.Command, cfg.Initiator.Cores = 2*us, 1
		cfg.Target.Command, cfg.Target.Cores = 4*us, 1
		td.MaybeScanArgs(t, "queue-depth", &cfg.QueueDepth)
		td.MaybeScanArgs(t, "drive-depth", &cfg.DriveDepth)
		td.MaybeScanArgs(t, "reads", &cfg.Reads.Target)
		for name, size := range map[string]*units.Bytes{"txq": &cfg.TXQ, "write-buffers": &cfg.WriteBuffers} {
			if td.HasArg(name) {
				var n int64
				td.ScanArgs(t, name, &n)
				*size = units.Bytes(n)
			}
		}
		dev := blocktest.DefaultConfig() // reads take 80 us, writes 20
		var waits [2]int64               // part of it spent on other commands
		td.MaybeScanArgs(t, "read-waits", &waits[0])
		td.MaybeScanArgs(t, "write-waits", &waits[1])
		dev.Waited[block.Read], dev.Waited[block.Write] = sim.Time(waits[0])*us, sim.Time(waits[1])*us
		dev.Refuse = func(r block.Request) block.Status {
			if r.Offset == 4096 {
				return block.WriteFault
			}
			return block.OK
		}
		eng := sim.New()
		e := &ear{eng: eng, what: map[int32]string{}}
		e.Network = nvmftest.New(nvmftest.DefaultConfig(), eng, e)
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		var err error
		e.sys, err = nvmf.New(cfg, nvmf.NVMeoF, true, eng)
		must(err)
		e.sys.AddInitiator(0)
		target := e.sys.AddTarget(1)
		d, err := blocktest.New(dev, eng, e.sys.Complete)
		must(err)
		queues := cfg.OneQueue()
		if td.HasArg("two-queues") {
			queues = cfg.ReadAndWrite()
		}
		_, err = e.sys.AddDriveQueues(target, d, queues)
		must(err)
		e.sys.Connect(e, e)
		e.sys.OnMessage = func(m nvmf.Message) {
			e.what[m.Number] = fmt.Sprintf("%d's %v", m.Tag, m.Kind)
			e.log("%s, %v", e.what[m.Number], e.size)
		}
		e.sys.OnVisit = func(v nvmf.Visit) { e.log("%d leaves the drive, in since %v", v.Tag, v.In) }
		self, own := eng.NewComponent(), eng.AddHandler(e)
		for i, line := range strings.Split(strings.TrimSpace(td.Input), "\n") {
			words := strings.Fields(line)
			at, err := units.ParseDuration(words[0])
			must(err)
			r := block.Request{Op: map[string]block.Op{"read": block.Read, "write": block.Write,
				"flush": block.Flush}[words[1]]}
			_, err = fmt.Sscan(words[2], &r.Length)
			must(err)
			if len(words) > 3 {
				_, err = fmt.Sscan(words[3], &r.Offset)
				must(err)
			}
			e.asks = append(e.asks, r)
			eng.Schedule(self, own, at, 0, uint32(i))
		}
		eng.Run(sim.Forever)
		must(e.sys.Err())
		must(e.sys.Check())
		if n := len(e.what); n > 0 || e.sys.Counters.Ended != uint64(len(e.asks)) {
			t.Errorf("%d messages are under way, %d of %d commands ended", n, e.sys.Counters.Ended, len(e.asks))
		}
		return e.out.String()
	})
}
