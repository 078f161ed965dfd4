package ctl_test

import (
	"encoding/binary"
	"slices"
	"sync"
	"testing"
	"time"

	"farflash/flash/ctl"
	"farflash/flash/device"
	"farflash/numeric/rng"
)

// stalled is a device that holds writes to the checkpoints back on request.
type stalled struct {
	*device.Mem
	from, upto int64

	mu   sync.Mutex
	on   bool
	held []*device.Op
}

func (d *stalled) Submit(ops ...*device.Op) {
	for _, op := range ops {
		d.mu.Lock()
		hold := d.on && op.Kind == device.Write && op.Offset >= d.from && op.Offset < d.upto
		if hold {
			d.held = append(d.held, op)
		}
		d.mu.Unlock()
		if !hold {
			d.Mem.Submit(op)
		}
	}
}

func (d *stalled) stall(on bool) {
	d.mu.Lock()
	d.on = on
	held := d.held
	d.held = nil
	d.mu.Unlock()
	d.Mem.Submit(held...)
}

// TestKept overwrites pages at random while a checkpoint is held up. The former entries of changing
// places keep within their memory, because writes wait, and the checkpoint is the mapping as of its beginning.
func TestKept(t *testing.T) {
	const pages = 30_000 // their entries are several groups of a checkpoint
	cfg, layout := small()
	layout.Segment, layout.LogPages = 256, 256
	cfg.Moves = 16
	mem := device.NewMem(pages * 2 * device.Grain)
	shape := format(t, layout, mem)
	dev := &stalled{Mem: mem, from: shape.CheckpointStart(0) * ctl.Page, upto: shape.LogStart() * ctl.Page}
	p := open(t, cfg, dev)
	draw := rng.NewStream(1, "kept")
	newest := make([]uint64, pages)
	b := make([]byte, ctl.Page)
	write := func(n int) error {
		for range n {
			page := uint64(draw.IntN(pages))
			serial++
			newest[page] = serial
			binary.LittleEndian.PutUint64(b, serial)
			binary.LittleEndian.PutUint64(b[8:], page)
			if err := p.WriteAt(b, page*ctl.Page, false); err != nil {
				return err
			}
		}
		return nil
	}
	read := func() {
		t.Helper()
		for page, want := range newest {
			if err := p.ReadAt(b, uint64(page)*ctl.Page); err != nil {
				t.Fatal(err)
			}
			is, of := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
			if is != want || is > 0 && of != uint64(page) {
				t.Fatalf("page %d is %d of page %d; it was %d", page, is, of, want)
			}
		}
	}
	reopen := func(cfg ctl.Config) {
		t.Helper()
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		dev.Mem = dev.Reopen()
		p = open(t, cfg, dev)
	}
	// crash cuts the power once a checkpoint is in force that began before changes that are in no page of the log.
	crash := func(round uint64) {
		t.Helper()
		all := cfg
		all.Map = 0 // the entries count: no part of the map is stored
		reopen(all)
		synced := slices.Clone(newest)
		dev.stall(true)
		for kept := int64(0); kept == 0; kept, _, _ = p.Kept() {
			if err := p.Sync(); err != nil {
				t.Fatal(err)
			}
			copy(synced, newest)
			if err := write(40); err != nil {
				t.Fatal(err)
			}
		}
		dev.stall(false)
		cut := rng.NewStream(round, "cut")
		dev.Mem = dev.Crash(&cut)
		p = open(t, all, dev)
		for page, least := range synced {
			if err := p.ReadAt(b, uint64(page)*ctl.Page); err != nil {
				t.Fatal(err)
			}
			is := binary.LittleEndian.Uint64(b)
			if is < least || is > newest[page] {
				t.Fatalf("page %d is %d; %d was durable, and %d the newest", page, is, least, newest[page])
			}
			newest[page] = is
		}
		reopen(cfg)
	}
	if err := write(pages); err != nil {
		t.Fatal(err)
	}
	fulls := 0
	for round := range uint64(6) {
		dev.stall(true)
		over := make(chan error)
		go func() { over <- write(5000) }()
		for done := false; !done; {
			bytes, most, full := p.Kept()
			if full { // and stays so
				fulls++
				time.Sleep(20 * time.Millisecond)
				bytes, _, _ = p.Kept()
				dev.stall(false)
				dev.stall(true)
			}
			if bytes > 2*most+4096 { // a list of places doubles as it grows, and writes are in flight
				t.Errorf("%d bytes are kept, of at most %d", bytes, most)
			}
			select {
			case err := <-over:
				if err != nil {
					t.Fatal(err)
				}
				done = true
			case <-time.After(100 * time.Microsecond):
			}
		}
		dev.stall(false)
		if round%2 == 0 {
			crash(round)
		}
		read()
		clean(t, p, true)
	}
	if fulls == 0 {
		t.Error("no write waited")
	}
	// A change while one checkpoint is written, and none later, is in the next ones in both slots.
	all := cfg
	all.Map = 0
	reopen(all)
	for round := range 3 {
		dev.stall(true)
		for kept := int64(0); kept == 0; kept, _, _ = p.Kept() {
			if err := write(40); err != nil {
				t.Fatal(err)
			}
		}
		dev.stall(false)
		for range 2 + round {
			reopen(all)
			read()
		}
	}
	clean(t, p, true)
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
}
