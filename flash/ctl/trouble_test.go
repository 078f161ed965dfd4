package ctl_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"farflash/flash/ctl"
	"farflash/flash/device"
)

// TestTrouble verifies that a damaged page, and operations that fail, are reported with the device and the offset.
func TestTrouble(t *testing.T) {
	cfg, layout := small()
	var got []ctl.Trouble
	cfg.Trouble = func(x ctl.Trouble) { got = append(got, x) }
	dev := device.NewMem(smallGrains * device.Grain)
	shape := format(t, layout, dev)
	pool := open(t, cfg, dev)
	b := make([]byte, ctl.Page)
	stamp(b, 7, 1)
	if err := pool.WriteAt(b, 7*ctl.Page, true); err != nil {
		t.Fatal(err)
	}
	for i := range 4 * uint64(cfg.Frames) { // out of memory
		stamp(b, 20+i, 1)
		if err := pool.WriteAt(b, (20+i)*ctl.Page, true); err != nil {
			t.Fatal(err)
		}
	}
	_, first := shape.Place(0)
	for g := first; g < dev.Size(); g += ctl.Page {
		if dev.Peek(g, b); b[0] != 0 || b[1] != 0 {
			if s, err := serialOf(b, 7); err == nil && s == 1 {
				dev.Corrupt(g + 100)
				if err := pool.ReadAt(b, 7*ctl.Page); !errors.Is(err, ctl.ErrDamaged) {
					t.Fatal(err)
				}
				if len(got) != 1 || got[0].Offset != g || got[0].Page != 7 || !got[0].Paged ||
					got[0].Kind != device.Read || !errors.Is(got[0].Err, ctl.ErrDamaged) {
					t.Fatalf("%+v; the page is at offset %d", got, g)
				}
			}
		}
	}
	if len(got) == 0 {
		t.Fatal("the page is not on the device")
	}
	got = nil
	dev.SetFaults(device.Faults{FailFrom: 1, FailFull: true})
	if err := pool.WriteAt(b, 9*ctl.Page, true); err == nil {
		t.Error("a write that failed is durable")
	}
	got = slices.DeleteFunc(got, func(x ctl.Trouble) bool { return x.Kind == device.Read }) // collection's
	if len(got) == 0 || got[0].Kind != device.Write || got[0].Offset < first ||
		!errors.Is(got[0].Err, device.ErrSpace) ||
		!strings.Contains(got[0].String(), "device 0: write of 4096 bytes at offset") {
		t.Errorf("%v", got)
	}
	_ = pool.Close() // its writes fail too
}
