package blocktest_test

import (
	"bytes"
	"fmt"
	"testing"

	"farflash/block"
	"farflash/block/blocktest"
	"farflash/sim"
)

func TestConformance(t *testing.T) {
	for _, c := range []struct {
		name    string
		latency sim.Time
		content bool
	}{{"latency", 80_000_000, false}, {"no latency", 0, false}, {"content", 80_000_000, true}} {
		t.Run(c.name, func(t *testing.T) {
			blocktest.Conform(t, func(t *testing.T, sink blocktest.Sink) blocktest.Subject {
				cfg := blocktest.DefaultConfig()
				cfg.Latency[block.Read], cfg.Content = c.latency, c.content
				eng := sim.New()
				d, err := blocktest.New(cfg, eng, func(done block.Completion) {
					eng.Stop()
					sink(done)
				})
				if err != nil {
					t.Fatal(err)
				}
				return blocktest.Subject{Device: d, Step: func() bool { return eng.Run(sim.Forever) > 0 },
					Content: c.content}
			})
		})
	}
}

func TestConfigErrors(t *testing.T) {
	for name, change := range map[string]func(*blocktest.Config){
		"no namespace":     func(c *blocktest.Config) { c.Capacity = nil },
		"empty namespace":  func(c *blocktest.Config) { c.Capacity = []int64{4096, 0} },
		"odd namespace":    func(c *blocktest.Config) { c.Capacity = []int64{1000} },
		"negative latency": func(c *blocktest.Config) { c.Latency[block.Trim] = -1 },
	} {
		cfg := blocktest.DefaultConfig()
		change(&cfg)
		if _, err := blocktest.New(cfg, sim.New(), nil); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func TestRefuse(t *testing.T) {
	cfg := blocktest.DefaultConfig()
	cfg.Refuse = func(r block.Request) block.Status {
		if r.Op == block.Write {
			return block.WriteFault
		}
		return block.OK
	}
	eng := sim.New()
	var got []block.Status
	d, err := blocktest.New(cfg, eng, func(c block.Completion) { got = append(got, c.Status) })
	if err != nil {
		t.Fatal(err)
	}
	q, err := d.Open(block.QueueConfig{Depth: 8})
	if err != nil {
		t.Fatal(err)
	}
	d.Submit(q, block.Request{Op: block.Write, Length: 512})
	d.Submit(q, block.Request{Op: block.Read, Length: 512})
	eng.Run(sim.Forever)
	if len(got) != 2 || got[0] != block.WriteFault || got[1] != block.OK {
		t.Errorf("got %v", got)
	}
}

// A torn write fails with its first sectors on the medium.
func TestTorn(t *testing.T) {
	cfg := blocktest.DefaultConfig()
	cfg.Content = true
	cfg.Torn = func(r block.Request) int64 {
		if r.Offset == 4096 {
			return 1500 // two sectors and part of the third
		}
		return r.Length
	}
	eng := sim.New()
	var got []block.Status
	d, err := blocktest.New(cfg, eng, func(c block.Completion) { got = append(got, c.Status) })
	if err != nil {
		t.Fatal(err)
	}
	q, err := d.Open(block.QueueConfig{Depth: 8})
	if err != nil {
		t.Fatal(err)
	}
	ones, back := bytes.Repeat([]byte{1}, 2048), make([]byte, 8192)
	for _, r := range []block.Request{
		{Op: block.Write, Offset: 4096, Length: 2048, Data: [][]byte{ones[:700], ones[700:]}},
		{Op: block.Write, Offset: 0, Length: 2048, Data: [][]byte{ones}},
		{Op: block.Read, Length: 8192, Data: [][]byte{back}},
	} {
		d.Submit(q, r)
		eng.Run(sim.Forever)
	}
	want := make([]byte, 8192)
	copy(want, ones)
	copy(want[4096:], ones[:1024])
	if !bytes.Equal(back, want) || len(got) != 3 || got[0] != block.WriteFault || got[1] != block.OK ||
		got[2] != block.OK {
		t.Errorf("statuses %v; %d bytes of the torn write are there, want 1024", got,
			bytes.Count(back[4096:], []byte{1}))
	}
}

func Example() {
	eng := sim.New()
	d, err := blocktest.New(blocktest.DefaultConfig(), eng, func(c block.Completion) {
		fmt.Printf("%v %d: %v after %v\n", c.Op, c.Tag, c.Status, c.Finished-c.Submitted)
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	q, _ := d.Open(block.QueueConfig{Depth: 3, InFlight: 1})
	for tag := range uint64(3) {
		fmt.Println(d.Submit(q, block.Request{Tag: tag, Op: block.Read, Length: 4096}))
	}
	eng.Run(sim.Forever)
	// Output:
	// true
	// true
	// false
	// read 0: ok after 80us
	// read 1: ok after 160us
}
