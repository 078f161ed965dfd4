package cfs_test

import (
	"fmt"

	"farflash/flash/cfs"
	"farflash/flash/ctl"
	"farflash/flash/ctl/media"
	"farflash/flash/device"
)

// A file is created, written, and read by its address.
func Example() {
	check := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	dev := device.NewMem(16 << 20)
	layout := ctl.DefaultLayout()
	layout.UUID, layout.Segment = media.UUID{1}, 64
	shape, err := layout.Shape(dev.Size())
	check(err)
	check(ctl.Format(shape, dev))
	cfg := ctl.DefaultConfig()
	cfg.Frames = 64
	pool, err := ctl.Open(cfg, dev)
	check(err)
	check(cfs.Format(pool, cfs.Config{}))
	files, err := cfs.Open(pool, cfs.Config{})
	check(err)

	who := cfs.Cred{} // user 0
	file, err := files.Create(who, "/greeting", 0o644, 100)
	check(err)
	_, err = file.WriteAt([]byte("hello, flash"), 0)
	check(err)
	check(file.Sync())
	base, size, err := file.Pin()
	check(err)
	b := make([]byte, 12)
	check(pool.ReadAt(b, base))
	fmt.Printf("%s (%d bytes)\n", b, size)
	check(file.Close())
	fmt.Println(len(files.Check().Violations), "violations")
	check(pool.Close())
	// Output:
	// hello, flash (100 bytes)
	// 0 violations
}
