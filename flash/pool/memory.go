package pool

import (
	"fmt"
	"syscall"

	"farflash/numeric/units"
)

// mapBytes is the memory per page of the medium that a pool's map reserves as soon as the pool opens. Only what is in
// use is touched.
const mapBytes = 8

// affordable returns an error if the map of devices of these sizes exceeds the machine's memory, which the kernel would
// not reserve.
func affordable(sizes []int64) error {
	var info syscall.Sysinfo_t
	if err := syscall.Sysinfo(&info); err != nil {
		return err
	}
	return affords(sizes, (info.Totalram+info.Totalswap)*uint64(info.Unit))
}

func affords(sizes []int64, memory uint64) error {
	total := uint64(0)
	for _, n := range sizes {
		total += uint64(n)
	}
	if need := total / Page * mapBytes; need > memory {
		return fmt.Errorf("%v of devices need %v of memory for the map of their pages, and this machine has %v; "+
			"divide them among several pools", units.Bytes(total), units.Bytes(need),
			units.Bytes(memory))
	}
	return nil
}
