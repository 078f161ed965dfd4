package cc

import (
	"fmt"
	"strings"
	"testing"

	"farflash/numeric/units"
	"farflash/sim"

	"github.com/cockroachdb/datadriven"
)

// walk is one queue pair that a file drives through its congestion control.
type walk struct {
	alg Algorithm
	s   Sender
	now sim.Time
	pos uint64
}

// TestSteps follows algorithms step by step. A file of testdata/steps has these commands, each followed by the
// resulting state:
//
//	start machine [line=40Gbps] [key=value ...]    a new queue pair; dcqcn, mellanox or ns3-rdma
//	cnp at=10us                                   a congestion notification arrives
//	sent at=10us bytes=1MB                        payload is handed to the link
//	run until=100us                               time passes; each timer call of the algorithm has its line
func TestSteps(t *testing.T) {
	datadriven.Walk(t, "testdata/steps", func(t *testing.T, path string) {
		x := &walk{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var b strings.Builder
			if d.Cmd == "start" {
				x.start(t, d)
				return x.line()
			}
			var at sim.Time
			key := "at"
			if d.Cmd == "run" {
				key = "until"
			}
			scan(t, d, key, &at)
			x.wait(&b, at)
			switch d.Cmd {
			case "run":
			case "cnp":
				x.alg.React(0, &x.s, &Signal{Kind: CNP, Now: at})
				b.WriteString(x.line())
			case "sent":
				var size units.Bytes
				scan(t, d, "bytes", &size)
				x.pos += uint64(size)
				x.alg.React(0, &x.s, &Signal{Kind: Sent, Now: at, Payload: size})
				b.WriteString(x.line())
			default:
				d.Fatalf(t, "there is no step %s", d.Cmd)
			}
			if b.Len() == 0 {
				return "nothing\n"
			}
			return b.String()
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

// start creates a new queue pair.
func (x *walk) start(t *testing.T, d *datadriven.TestData) {
	c := DefaultConfig()
	line := 40 * units.Gbps
	name := d.CmdArgs[0].Key
	switch name {
	case "dcqcn":
	case "mellanox":
		c.DCQCN = MellanoxDCQCN(line)
	case "ns3-rdma":
		c.DCQCN = NS3RDMADCQCN()
	default:
		d.Fatalf(t, "there is no machine %s", name)
	}
	settings := map[string]interface{ UnmarshalText([]byte) error }{
		"line": &line, "gain": &c.DCQCN.Gain, "alpha_interval": &c.DCQCN.AlphaInterval,
		"rate_increase_timer": &c.DCQCN.RateIncreaseTimer,
		"byte_counter":        &c.DCQCN.ByteCounter, "rate_ai": &c.DCQCN.RateAI, "rate_hai": &c.DCQCN.RateHAI,
		"min_rate":               &c.MinRate,
		"rate_decrease_interval": &c.DCQCN.RateDecreaseInterval, "clamp_target": &c.DCQCN.ClampTarget,
		"alpha_initial": &c.DCQCN.AlphaInitial,
	}
	for _, a := range d.CmdArgs[1:] {
		if a.Key == "fast_recovery" {
			a.Scan(t, 0, &c.DCQCN.FastRecovery)
			continue
		}
		into, ok := settings[a.Key]
		if !ok {
			d.Fatalf(t, "there is no setting %s", a.Key)
		}
		if err := into.UnmarshalText([]byte(a.Vals[0])); err != nil {
			d.Fatalf(t, "%s: %v", a.Key, err)
		}
	}
	*x = walk{alg: must(New(c, 1)), s: Sender{Line: line, BaseRTT: 10 * units.Microsecond, BDP: 50 * units.KB}}
	x.alg.Start(0, &x.s)
}

// wait lets time pass and makes the timer calls that fall due.
func (x *walk) wait(b *strings.Builder, at sim.Time) {
	for x.s.Wake <= at {
		x.now = x.s.Wake
		x.s.Wake = sim.Forever
		x.alg.React(0, &x.s, &Signal{Kind: Timer, Now: x.now})
		b.WriteString(x.line())
	}
	x.now = at
}

// line prints the queue pair's state.
func (x *walk) line() string {
	st := &x.alg.(*dcqcn).qps[0]
	wake := "never"
	if x.s.Wake != sim.Forever {
		wake = x.s.Wake.String()
	}
	return fmt.Sprintf("%v: rate %v, target %v, alpha %v, T %d, B %d; next %s\n", x.now, x.s.Rate, st.target,
		st.alpha, st.byTimer, st.byBytes, wake)
}
