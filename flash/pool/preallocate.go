package pool

import (
	"fmt"
	"syscall"

	"farflash/flash/device"
)

// zeroBytes is the size of one write of zeros.
const zeroBytes = 4 << 20

// preallocate allocates the space of a new file and writes zeros to all of it, and calls progress with the bytes
// written after each piece; an error of progress ends it. Allocation alone is not enough: until a block is written for
// the first time, a flush also commits the file system's note that it is no longer empty.
func preallocate(path string, f *device.File, progress func(bytes int64) error) error {
	size := f.Size()
	if err := syscall.Fallocate(int(f.Handle.File.Fd()), 0, 0, size); err != nil {
		return fmt.Errorf("%s: allocating %d bytes: %w", path, size, err)
	}
	zeros := device.Aligned(zeroBytes)
	for at := int64(0); at < size; {
		n := min(size-at, zeroBytes)
		if err := device.Do(f, device.Write, at, zeros[:n]); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		at += n
		if err := progress(n); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return device.Do(f, device.Flush, 0, nil)
}
