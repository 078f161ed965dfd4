package ctl_test

import (
	"testing"

	"farflash/flash/ctl"
	"farflash/flash/ctl/media"
	"farflash/flash/device"
)

// keep computes the checkpoint, parities included, and keeps it.
func (d *computed) keep() {
	parity := make([]byte, device.Grain)
	for i := range d.grains {
		page := make([]byte, device.Grain)
		d.compute(d.slot+media.BodyGrain(i), page)
		d.written[d.slot+media.BodyGrain(i)] = page
		media.Parity(parity, page)
		if i%media.Group == media.Group-1 || i == d.grains-1 {
			d.written[d.slot+media.BodyGrain(i)+1] = parity
			parity = make([]byte, device.Grain)
		}
	}
}

// BenchmarkOpen opens a pool of 32 GB that was filled in order, from memory, with too little for its checksums. A byte
// is one of the checkpoint.
func BenchmarkOpen(b *testing.B) {
	d := newComputed(b, 32e9)
	d.keep()
	b.SetBytes(d.grains * device.Grain)
	cfg := ctl.DefaultConfig()
	cfg.Map = 16 << 20
	for b.Loop() {
		open(b, cfg, d)
	}
}
