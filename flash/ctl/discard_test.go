package ctl_test

import (
	"bytes"
	"testing"

	"farflash/flash/ctl"
	"farflash/flash/ctl/media"
	"farflash/flash/device"
)

// TestDiscardAtTheEnds discards ranges that begin or end within the first and the last page of the space, and verifies
// that exactly the bytes of the range are zeros.
func TestDiscardAtTheEnds(t *testing.T) {
	cfg, layout := small()
	dev := device.NewMem(smallGrains * device.Grain)
	format(t, layout, dev)
	p := open(t, cfg, dev)
	const pages = 3
	first, last := uint64(0), uint64(media.MaxLBA-pages)*ctl.Page
	full := bytes.Repeat([]byte{7}, pages*ctl.Page)
	for _, base := range []uint64{first, last} {
		for _, from := range []uint64{0, 1, 50, 4095, 4096, 4097, 8192, 2*ctl.Page + 4000, 3*ctl.Page - 100} {
			for _, n := range []uint64{1, 50, 100, 4095, 4096, 4097, 8192, 8193, 3 * ctl.Page} {
				if n = min(n, pages*ctl.Page-from); n == 0 {
					continue
				}
				for _, b := range []uint64{first, last} {
					if err := p.WriteAt(full, b, false); err != nil {
						t.Fatal(err)
					}
				}
				if err := p.Discard(base+from, n, true); err != nil {
					t.Fatal(err)
				}
				for _, b := range []uint64{first, last} {
					want := bytes.Clone(full)
					if b == base {
						clear(want[from : from+n])
					}
					got := make([]byte, len(want))
					if err := p.ReadAt(got, b); err != nil {
						t.Fatal(err)
					}
					if !bytes.Equal(got, want) {
						t.Fatalf("after a discard of %d bytes at %d+%d the bytes at %d differ", n, base, from, b)
					}
				}
			}
		}
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
}
