package cfs_test

import (
	"fmt"
	"runtime"
	"testing"

	"farflash/flash/cfs"
	"farflash/flash/ctl"
	"farflash/flash/ctl/media"
	"farflash/flash/device"
)

// BenchmarkCreate creates empty files in one directory on a memory device, and reports their cost in memory and at
// open.
func BenchmarkCreate(b *testing.B) {
	dev := device.NewMem(60_000 * device.Grain)
	layout := ctl.Layout{UUID: media.UUID{1}, Segment: 256, OverProvision: 0.3, LogPages: 1024}
	shape := must(layout.Shape(dev.Size()))(b)
	ok(b, ctl.Format(shape, dev))
	cfg := ctl.DefaultConfig()
	pool := must(ctl.Open(cfg, dev))(b)
	ok(b, cfs.Format(pool, cfs.Config{}))
	f := must(cfs.Open(pool, cfs.Config{}))(b)
	n := 0
	for b.Loop() {
		file := must(f.Create(root, fmt.Sprintf("/file-%07d", n), 0o644, 0))(b)
		ok(b, file.Close())
		n++
	}
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	without := heap()
	g := must(cfs.Open(pool, cfs.Config{}))(b)
	b.ReportMetric(float64(heap()-without)/float64(n), "B/file")
	runtime.KeepAlive(g)
	ok(b, pool.Close())
}
