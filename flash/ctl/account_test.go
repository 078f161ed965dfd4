package ctl_test

import (
	"testing"

	"farflash/flash/ctl"
	"farflash/flash/ctl/heat"
	"farflash/flash/ctl/media"
	"farflash/flash/device"
	"farflash/numeric/rng"
)

// TestAccount verifies a conservation law: the writes that the devices received equal those that the pool counts, kind
// by kind; each filled segment has its summary; and write amplification is the total over the pages written for users.
func TestAccount(t *testing.T) {
	cfg, layout := small()
	dev := device.NewMem(smallGrains * device.Grain)
	shape := format(t, layout, dev)
	p := open(t, cfg, dev)
	_, before := dev.Operations(device.Write)
	draw := rng.NewStream(1, "account")
	b := make([]byte, ctl.Page)
	const writes = 4000
	for i := range writes {
		b[0], b[1] = byte(i), byte(i>>8)
		page := draw.IntN(shape.Capacity - 20)
		if draw.IntN(3) > 0 {
			page %= 40
		}
		if err := p.WriteAt(b, uint64(page)*ctl.Page, false); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Sync(); err != nil {
		t.Fatal(err)
	}
	s := p.Stats()
	_, after := dev.Operations(device.Write)
	counted := s.Puts + s.Moved + s.Log + s.Checkpoint + s.Summaries + s.Rewritten
	if got := after - before; got != counted {
		t.Errorf("%d pages were given to the device, %d are counted: %+v", got, counted, s)
	}
	if s.Puts != writes || s.Moved == 0 || s.Log == 0 || s.Checkpoints == 0 || s.Checkpoint == 0 || s.Summaries == 0 {
		t.Errorf("not everything happened: %+v", s)
	}
	if want := float64(counted) / writes; s.WAF() != want {
		t.Errorf("write amplification %v, want %v", s.WAF(), want)
	}
	if n := s.Streams[heat.Hot] + s.Streams[heat.Warm] + s.Streams[heat.Cold]; n != s.Puts+s.Moved {
		t.Errorf("%d pages went to streams, %d were written", n, s.Puts+s.Moved)
	}
	// All allocated places are in filled segments, except those in up to three open ones.
	filled := s.Summaries * int64(layout.Segment)
	if placed := s.Puts + s.Moved; filled > placed || filled < placed-3*int64(layout.Segment) {
		t.Errorf("%d pages were placed, and there are %d summaries of segments of %d", placed, s.Summaries,
			layout.Segment)
	}
	r := p.Check(true)
	for _, v := range r.Violations {
		t.Error(v)
	}
	if r.Pages != r.Places || r.Contents != r.Pages || r.Summaries == 0 {
		t.Errorf("%+v", r)
	}
	if used, _ := p.Use(); used != r.Pages {
		t.Errorf("%d pages are in use, %d were found", used, r.Pages)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if (ctl.Stats{}).WAF() != 1 {
		t.Error("nothing was amplified")
	}
}

// TestResumed reopens a pool repeatedly after power cuts, writing one page in between. Partly filled segments are
// resumed, so no place in them is lost and collection has no work.
func TestResumed(t *testing.T) {
	cfg, layout := small()
	dev := device.NewMem(smallGrains * device.Grain)
	format(t, layout, dev)
	b := make([]byte, ctl.Page)
	const cuts = 60
	for i := range uint64(cuts) {
		p := open(t, cfg, dev)
		b[0] = byte(i)
		if err := p.WriteAt(b, i*ctl.Page, true); err != nil {
			t.Fatal(err)
		}
		if s := p.Stats(); s.Moved != 0 {
			t.Fatalf("after %d cuts, with %d pages written, %d were moved", i, i+1, s.Moved)
		}
		clean(t, p, true)
		draw := rng.NewStream(i, "cut")
		dev = dev.Crash(&draw)
	}
	p := open(t, cfg, dev)
	for i := range uint64(cuts) {
		if err := p.ReadAt(b, i*ctl.Page); err != nil || b[0] != byte(i) {
			t.Errorf("page %d holds %d (%v)", i, b[0], err)
		}
	}
	if used, _ := p.Use(); used != cuts {
		t.Errorf("%d pages are in use", used)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestRun compares runs of pages with a slice, at both ends of the address space too.
func TestRun(t *testing.T) {
	cfg, layout := small()
	dev := device.NewMem(smallGrains * device.Grain)
	format(t, layout, dev)
	p := open(t, cfg, dev)
	held := map[uint64]bool{}
	b := make([]byte, ctl.Page)
	for _, page := range []uint64{0, 1, 2, 5, 511, 512, 513, 1 << 40, media.MaxLBA - 2, media.MaxLBA - 1} {
		if err := p.WriteAt(b, page*ctl.Page, false); err != nil {
			t.Fatal(err)
		}
		held[page] = true
	}
	p.Get(7, ctl.Reading, func(r ctl.Ref, err error) { // in memory, but still without content
		if err != nil {
			t.Error(err)
		}
		p.Put(r, ctl.Kept, heat.Auto, nil)
	})
	for _, first := range []uint64{0, 1, 2, 3, 4, 5, 6, 7, 8, 500, 510, 511, 513, 514, 1<<40 - 9, 1 << 40, 1<<40 + 1,
		media.MaxLBA - 20, media.MaxLBA - 2, media.MaxLBA - 1} {
		for _, n := range []uint64{1, 2, 3, 9, 20} {
			most := min(n, media.MaxLBA-first)
			want := uint64(1)
			for want < most && held[first+want] == held[first] {
				want++
			}
			got, is := p.Run(first, n)
			if !held[first] && first+n > media.MaxLBA && got == n {
				got = want // pages beyond the address space have no content either
			}
			if got != want || is != held[first] {
				t.Errorf("%d pages from %d on: %d, %v; want %d, %v", n, first, got, is, want, held[first])
			}
			if p.Holds(first) != held[first] {
				t.Errorf("page %d has content: %v", first, !held[first])
			}
		}
	}
	for _, first := range []uint64{0, 3, media.MaxLBA, media.MaxLBA + 7, 1<<64 - 1} {
		if n, is := p.Run(first, 0); n != 0 || is {
			t.Errorf("no pages from %d on: %d, %v", first, n, is)
		}
		if n, is := p.Run(max(first, media.MaxLBA), 5); n != 5 || is {
			t.Errorf("beyond the space: %d, %v", n, is)
		}
	}
	if p.Holds(media.MaxLBA) || p.Holds(1<<64-1) {
		t.Error("there is content beyond the space")
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestHeldTrim trims held pages: they are discarded when the last holder puts them, whether or not they were changed or
// written before. Trimmed pages read as zeros, before and after a crash.
func TestHeldTrim(t *testing.T) {
	for name, stored := range map[string]bool{"written before": true, "new": false} {
		for change, how := range map[string]ctl.Change{"kept": ctl.Kept, "changed": ctl.Changed,
			"durable": ctl.Durable} {
			t.Run(name+", "+change, func(t *testing.T) {
				cfg, layout := small()
				dev := device.NewMem(smallGrains * device.Grain)
				format(t, layout, dev)
				p := open(t, cfg, dev)
				b := make([]byte, ctl.Page)
				b[9] = 9
				if stored {
					if err := p.WriteAt(b, 3*ctl.Page, true); err != nil {
						t.Fatal(err)
					}
				}
				var refs []ctl.Ref
				for range 2 {
					p.Get(3, ctl.Writing, func(r ctl.Ref, err error) {
						if err != nil {
							t.Fatal(err)
						}
						refs = append(refs, r)
					})
				}
				trimmed, put := 0, 0
				p.Trim(3, 1, true, func(err error) {
					if err != nil {
						t.Error(err)
					}
					trimmed++
				})
				for i, r := range refs {
					if how != ctl.Kept {
						r.Data[1] = byte(7 + i)
					}
					p.Put(r, how, heat.Auto, func(err error) {
						if err != nil {
							t.Error(err)
						}
						put++
					})
					if i == 0 && trimmed != 0 {
						t.Error("it is trimmed while somebody has it")
					}
				}
				if err := p.Sync(); err != nil {
					t.Fatal(err)
				}
				if trimmed != 1 || put != 2 {
					t.Errorf("%d trims and %d puts are over", trimmed, put)
				}
				if used, _ := p.Use(); used != 0 || p.Holds(3) {
					t.Errorf("%d pages are in use", used)
				}
				clean(t, p, true)
				draw := rng.NewStream(1, "cut")
				dev = dev.Crash(&draw)
				p = open(t, cfg, dev)
				if err := p.ReadAt(b, 3*ctl.Page); err != nil || b[1] != 0 || b[9] != 0 || p.Holds(3) {
					t.Errorf("after a crash it holds %d %d (%v)", b[1], b[9], err)
				}
				if err := p.Close(); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}
