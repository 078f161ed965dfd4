package nvmf_test

import (
	"testing"

	"farflash/block"
	"farflash/model/fabric"
	"farflash/model/nvmf"
	"farflash/numeric/units"
	"farflash/sim"
)

// TestHeadsLimitNothing: a host that obeys the heads of submission queues sends the same commands at the same times. A
// completion carries how many commands the target has taken from the queue by then, its own among them; so those that
// the host believes in the queue are never more than those outstanding, which QueueDepth limits. Heads that passed a
// command only when it and all before it had completed would hold commands back.
func TestHeadsLimitNothing(t *testing.T) {
	for _, p := range []nvmf.Protocol{nvmf.NVMeoF, nvmf.NVMeTCP} {
		const depth, many = 4, 400
		l := defaultLayout()
		l.protocol, l.cfg.QueueDepth = p, depth
		l.device.Latency = [block.Ops]sim.Time{block.Read: 30 * us, block.Write: 150 * us}
		if p == nvmf.NVMeTCP {
			l.network = fabric.TCP(fabric.DefaultConfig())
		}
		r := newRig(t, l)
		var sent, answered [many]sim.Time
		var order []uint64
		r.sys.OnMessage = func(m nvmf.Message) {
			switch m.Kind {
			case nvmf.Capsule:
				sent[m.Tag] = r.eng.Now()
				order = append(order, m.Tag)
			case nvmf.Response, nvmf.Data: // of a read the later of both, or the data alone
				answered[m.Tag] = r.eng.Now()
			}
		}
		for i := range many {
			r.ask(ask{at: sim.Time(i) * us, req: block.Request{Op: block.Op(i % 3 / 2), Length: 4096 << (i % 4)}})
		}
		r.eng.Run(units.Second)
		var done [many]nvmf.Done
		for i := range r.done {
			done[r.done[i].Tag] = r.done[i]
		}
		if len(order) != many || len(r.done) != many {
			t.Fatalf("%v: %d commands were sent, %d ended", p, len(order), len(r.done))
		}
		full, held := 0, 0
		for n, tag := range order {
			now, head, outstanding, inOrder := sent[tag], 0, 0, 0
			for _, x := range order[:n] {
				if done[x].Ended > now {
					outstanding++
					continue
				}
				taken := 0 // the head that this completion carries
				for _, y := range order {
					if done[y].Arrived <= answered[x] {
						taken++
					}
				}
				head = max(head, taken)
			}
			for inOrder < n && done[order[inOrder]].Ended <= now {
				inOrder++
			}
			if n-head > outstanding || outstanding >= depth {
				t.Fatalf("%v: command %d finds %d in the queue, and %d outstanding", p, n, n-head, outstanding)
			}
			if outstanding == depth-1 {
				full++
			}
			if n-inOrder >= depth {
				held++
			}
		}
		if full < many/2 || held < many/10 {
			t.Errorf("%v: %d commands took the last entry, and heads in order would hold %d", p, full, held)
		}
	}
}
