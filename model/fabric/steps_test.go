package fabric

import (
	"fmt"
	"strings"
	"testing"

	"farflash/numeric/units"
	"farflash/sim"

	"github.com/cockroachdb/datadriven"
)

// TestSteps follows pauses and marks step by step. A file of testdata/steps has these commands:
//
//	star hosts=3 rate=10Gbps delay=1us [key=value ...]    a new network of one switch, with its buffer settings;
//	                                                      packets have 1000 B on the wire unless payload differs
//	send src=1 dst=0 bytes=9KB at=0us                     a message, in packets of 900 B and 100 B of headers
//	run until=20us                                        the events at ports until then, and the accounts at the end
//	marks queue=100KB                                     the share of packets marked with this much behind them
func TestSteps(t *testing.T) {
	datadriven.Walk(t, "testdata/steps", func(t *testing.T, path string) {
		var r *rig
		var log strings.Builder
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			log.Reset()
			switch d.Cmd {
			case "star":
				r = stepsNetwork(t, d, &log)
				p := &r.net.ports[r.net.PortOf(0, false)]
				sw := &r.net.nodes[len(r.net.nodes)-1]
				return fmt.Sprintf("a port keeps %d B of headroom; %d B are shared\n", p.head, sw.pool)
			case "send":
				x := post{class: 1}
				d.ScanArgs(t, "src", &x.src)
				d.ScanArgs(t, "dst", &x.dst)
				scan(t, d, "bytes", &x.size)
				scan(t, d, "at", &x.at)
				r.send(x)
				return ""
			case "run":
				var until sim.Time
				scan(t, d, "until", &until)
				r.eng.Run(until)
				r.check(t)
				return log.String() + accounts(r)
			case "marks":
				var queue units.Bytes
				scan(t, d, "queue", &queue)
				return markedShare(r.net, int64(queue))
			}
			d.Fatalf(t, "there is no step %s", d.Cmd)
			return ""
		})
	})
}

// scan parses an argument of a step.
func scan(t *testing.T, d *datadriven.TestData, key string, into interface{ UnmarshalText([]byte) error }) {
	t.Helper()
	var text string
	d.ScanArgs(t, key, &text)
	if err := into.UnmarshalText([]byte(text)); err != nil {
		d.Fatalf(t, "%s: %v", key, err)
	}
}

// stepsNetwork returns a star whose ports write their events to a log.
func stepsNetwork(t *testing.T, d *datadriven.TestData, log *strings.Builder) *rig {
	c := plain()
	c.Payload, c.Header, c.Acks.Size = 900, 100, 60
	c.PFC.Reserve, c.PFC.Quanta = 0, 0
	c.Recovery.Timeout = Timeout{}
	pools := Pools{Limit: units.MB, Recheck: 2 * units.Microsecond, Lasts: 5 * units.Microsecond}
	hosts, rate, delay := 3, 10*units.Gbps, units.Microsecond
	settings := map[string]interface{ UnmarshalText([]byte) error }{
		"rate": &rate, "delay": &delay, "payload": &c.Payload, "buffer": &c.Buffer, "threshold": &c.PFC.Threshold,
		"alpha":   &c.PFC.Alpha,
		"reserve": &c.PFC.Reserve, "resume_offset": &c.PFC.ResumeOffset, "headroom": &c.PFC.Headroom,
		"frame":      &c.PFC.Frame,
		"pool_limit": &pools.Limit, "pool_minimum": &pools.Minimum, "class_limit": &pools.ClassLimit,
		"class_resume": &pools.ClassResume,
		"kmin":         &c.ECN.Kmin, "kmax": &c.ECN.Kmax, "pmax": &c.ECN.Pmax, "ecn_rate": &c.ECN.Rate,
	}
	for _, a := range d.CmdArgs {
		switch a.Key {
		case "hosts":
			a.Scan(t, 0, &hosts)
		case "quanta":
			a.Scan(t, 0, &c.PFC.Quanta)
		case "pool_alpha":
			a.Scan(t, 0, &pools.Alpha)
		default:
			c.ECN.Enabled = c.ECN.Enabled || a.Key == "kmin"
			if a.Key == "pool_limit" {
				c.Pools = &pools
			}
			into, ok := settings[a.Key]
			if !ok {
				d.Fatalf(t, "there is no setting %s", a.Key)
			}
			if err := into.UnmarshalText([]byte(a.Vals[0])); err != nil {
				d.Fatalf(t, "%s: %v", a.Key, err)
			}
		}
	}
	r := newRig(t, c, star(t, hosts, rate, delay), 1)
	n := r.net
	n.OnPause = func(p Pause) {
		what := "is paused"
		if p.Resume {
			what = "goes on"
		}
		fmt.Fprintf(log, "%v: %s %s\n", p.At, n.PortName(p.Port), what)
	}
	n.OnDrop = func(x Drop) { fmt.Fprintf(log, "%v: %s drops a packet: %v\n", x.At, n.PortName(x.Port), x.Reason) }
	n.OnSend = func(x Sending) {
		if x.Carries == PauseFrame {
			fmt.Fprintf(log, "%v: %s sends a %v\n", n.eng.Now(), n.PortName(x.Port), x.Carries)
		}
	}
	r.onDelivered = func(m int32) { fmt.Fprintf(log, "%v: message %d has arrived\n", r.eng.Now(), m) }
	return r
}

// accounts prints the buffer accounts of the switch's ports and the counters so far.
func accounts(r *rig) string {
	n := r.net
	var b strings.Builder
	sw := &n.nodes[len(n.nodes)-1]
	for pi := sw.first; pi < sw.first+sw.ports; pi++ {
		if l := n.lane(pi, 1); l.in+l.head+l.out > 0 {
			fmt.Fprintf(&b, "%s: %d B wait to leave; %d B and %d B of headroom came in\n", n.PortName(pi), l.out,
				l.in, l.head)
		}
	}
	for pi := range int32(n.Ports()) {
		if x := n.Port(pi); x.Pauses > 0 || x.Drops > 0 {
			fmt.Fprintf(&b, "%s: %d pauses, %v in all, %v the longest; %d packets dropped\n", n.PortName(pi),
				x.Pauses, x.Paused, x.Longest, x.Drops)
		}
	}
	c := &n.Counters
	fmt.Fprintf(&b, "%d pauses, %d resumes, %d refreshes, %d frames, %d drops\n", c.Pauses, c.Resumes, c.Refreshes,
		c.Frames, c.DropCount())
	return b.String()
}

// markedShare decides four million times whether to mark a packet that leaves queue bytes behind on the first switch
// port, and returns the share of marks in per mille. The standard error is at most a quarter of one.
func markedShare(n *Network, queue int64) string {
	p := &n.ports[n.PortOf(0, false)]
	if queue <= p.kmin {
		return "never\n"
	}
	const times = 4_000_000
	marked := 0
	for range times {
		if n.marks(p, queue) {
			marked++
		}
	}
	switch marked {
	case 0:
		return "never\n"
	case times:
		return "always\n"
	}
	return fmt.Sprintf("%.0f per mille\n", float64(marked)*1000/times)
}
