package put_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"farflash/model/cluster"
	"farflash/model/cluster/reserve"
	"farflash/numeric/units"
	"farflash/sim"
)

// TestSteps traces each protocol step by step: a few chunks on a cluster with round numbers, so that every time in
// testdata/steps is computed by hand there. Links and disks take 1 ns per byte, a message has 100 B, a frame at most
// 1000 B, and a trip takes 1 us.
//
// The command is put, with arguments as in scenarios; its input is one chunk per line, with its arrival time and its
// gateway. The output lists each receipt, with the times at which it was handed to its sender's link and had arrived in
// full (a multicast is one line), bids when they are made and when they end, disk jobs, and completed chunks; times are
// in microseconds. -rewrite updates the file.
func TestSteps(t *testing.T) {
	datadriven.Walk(t, "testdata/steps", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd != "put" {
				d.Fatalf(t, "no command %s", d.Cmd)
			}
			return steps(t, d)
		})
	})
}

// small returns the cluster of TestSteps.
func small() cluster.Config {
	cfg := cluster.DefaultConfig()
	cfg.Gateways, cfg.Targets, cfg.Group, cfg.Groups, cfg.Replicas, cfg.Chunk = 2, 4, 2, 2, 2, 2000
	cfg.Placement = cluster.PlaceHRW
	cfg.Disk.Rate, cfg.Disk.Queue = units.ByteRate(units.GB), 100*units.KB
	cfg.Link = cluster.Link{Rate: 8 * units.Gbps, Frame: 1000, Trip: units.Microsecond, Mark: 2000}
	cfg.Control = cluster.Control{Unicast: 100, Replicast: 100, Share: 0.5, Queued: true}
	return cfg
}

// argument sets a field of a configuration.
func argument(cfg *cluster.Config, key, value string) error {
	text := []byte(value)
	number := func(p *int) error {
		_, err := fmt.Sscan(value, p)
		return err
	}
	switch key {
	case "protocol":
		err := cfg.Protocol.UnmarshalText(text)
		if cfg.Protocol.Grouped() || cfg.Protocol == cluster.CommandWindow {
			cfg.Placement = cluster.PlaceRandom // the default, which placement cannot override here
		}
		return err
	case "placement":
		return cfg.Placement.UnmarshalText(text)
	case "gateways":
		return number(&cfg.Gateways)
	case "targets":
		return number(&cfg.Targets)
	case "group":
		return number(&cfg.Group)
	case "groups":
		return number(&cfg.Groups)
	case "replicas":
		return number(&cfg.Replicas)
	case "outstanding":
		return number(&cfg.Outstanding)
	case "overcommit":
		return number(&cfg.Overcommit)
	case "chunk":
		return cfg.Chunk.UnmarshalText(text)
	case "disk.rate":
		return cfg.Disk.Rate.UnmarshalText(text)
	case "disk.queue":
		return cfg.Disk.Queue.UnmarshalText(text)
	case "link.mark":
		return cfg.Link.Mark.UnmarshalText(text)
	case "link.frame":
		return cfg.Link.Frame.UnmarshalText(text)
	case "ahead":
		return cfg.Ahead.UnmarshalText(text)
	case "acknowledge":
		return cfg.Acknowledge.UnmarshalText(text)
	case "choices":
		return number(&cfg.Choices)
	case "queued":
		cfg.Control.Queued = value == "true"
		return nil
	case "choosy":
		cfg.Choosy = value == "true"
		return nil
	}
	return fmt.Errorf("no argument %s", key)
}

// script yields chunks at given times.
type script []cluster.Arrival

func (s *script) Next(a *cluster.Arrival) bool {
	if len(*s) == 0 {
		return false
	}
	*a, *s = (*s)[0], (*s)[1:]
	return true
}

// steps runs a command and returns its trace.
func steps(t *testing.T, d *datadriven.TestData) string {
	cfg := small()
	for _, a := range d.CmdArgs {
		for _, v := range a.Vals {
			if err := argument(&cfg, a.Key, v); err != nil {
				d.Fatalf(t, "%s: %v", a.Key, err)
			}
		}
	}
	for _, u := range cfg.Unused() {
		u.Reset() // keys of small that the protocol does not use
	}
	var chunks script
	for line := range strings.Lines(d.Input) {
		var at, gateway string
		if n, _ := fmt.Sscan(line, &at, &gateway); n != 2 {
			d.Fatalf(t, "%q is not a time and gateway", line)
		}
		x := cluster.Arrival{Object: -1}
		if err := x.At.UnmarshalText([]byte(at)); err != nil {
			d.Fatalf(t, "%v", err)
		}
		if _, err := fmt.Sscanf(gateway, "g%d", &x.Gateway); err != nil {
			d.Fatalf(t, "%s: %v", gateway, err)
		}
		chunks = append(chunks, x)
	}
	return tell(t, cfg, chunks)
}

// tell runs a cluster with some chunks and returns the trace.
func tell(t *testing.T, cfg cluster.Config, chunks script) string {
	t.Helper()
	eng := sim.New()
	c, err := cluster.New(cfg, eng, 1)
	if err != nil {
		return err.Error() + "\n"
	}
	want := len(chunks)
	c.Replay(&chunks)
	var out strings.Builder
	var to string // of the line being written
	var last cluster.Passage
	node := func(n int32) string {
		if n >= int32(cfg.Gateways) {
			return fmt.Sprintf("t%d", n-int32(cfg.Gateways))
		}
		return fmt.Sprintf("g%d", n)
	}
	end := func() {
		if to != "" {
			fmt.Fprintf(&out, "%7s -> %7s  %s > %s: %s %d", us(last.Sent), us(last.Received), node(last.From), to,
				last.Kind, last.Chunk)
			if last.Data {
				fmt.Fprintf(&out, ", %d B", int64(last.Size))
			}
			fmt.Fprintln(&out)
		}
		to = ""
	}
	c.OnReceive = func(x *cluster.Passage) {
		if to != "" && last.Sent == x.Sent && last.Received == x.Received && last.From == x.From &&
			last.Kind == x.Kind && last.Chunk == x.Chunk {
			to += " " + node(x.To[0])
			return
		}
		end()
		last, to = *x, node(x.To[0])
	}
	c.OnBid = func(x *cluster.BidChange) {
		end()
		state := x.State.String()
		if x.Done {
			state = "done"
		}
		fmt.Fprintf(&out, "           %7s  t%d: bid %d %s", us(x.At), x.Target, x.Chunk, state)
		if x.Window != (reserve.Window{}) {
			fmt.Fprintf(&out, ", %s to %s", us(x.Window.Left), us(x.Window.Right))
		}
		fmt.Fprintln(&out)
	}
	c.OnDisk = func(x *cluster.Work) {
		end()
		fmt.Fprintf(&out, "%7s -> %7s  t%d: writes %d\n", us(x.From), us(x.To), x.Target, x.Chunk)
	}
	done := 0
	c.OnDone = func(x *cluster.Done) {
		end()
		done++
		fmt.Fprintf(&out, "           %7s  g%d: done %d, after %s\n", us(x.Done), x.Gateway, x.Chunk,
			us(x.Done-x.Begun))
	}
	c.Start()
	eng.Run(units.Millisecond)
	end()
	if err := c.Check(); err != nil {
		t.Error(err)
	}
	if k := &c.Counters; done+int(k.Dropped) != want {
		t.Errorf("%d of %d chunks are done, %d given up", done, want, k.Dropped)
	}
	if k := &c.Counters.Bids; k.Asked > 0 {
		fmt.Fprintf(&out, "%d bids, %d behind a tentative one; %d decided after %s in all\n", k.Asked, k.Behind,
			k.Decided, us(k.Deciding))
	}
	if k := &c.Counters; k.Dings+k.Impatient+k.LateRejected > 0 {
		fmt.Fprintf(&out, "%d dings, %d times asked again, %d windows taken back\n", k.Dings, k.Impatient,
			k.LateRejected)
	}
	if want == 1 && done == 1 {
		fmt.Fprintf(&out, "alone it takes %s\n", us(c.Floor()))
	}
	return out.String()
}

// us formats a time in microseconds, to the nanosecond if it is a whole number of nanoseconds, otherwise to the
// picosecond.
func us(t sim.Time) string {
	if t%units.Nanosecond == 0 {
		return fmt.Sprintf("%.3f", float64(t)/float64(units.Microsecond))
	}
	return fmt.Sprintf("%.6f", float64(t)/float64(units.Microsecond))
}
