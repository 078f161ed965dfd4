package host_test

import (
	"errors"
	"math"
	"testing"

	"golang.org/x/sys/unix"

	"farflash/flash/nvme/host"
	"farflash/flash/nvme/wire"
)

// TestTooLong verifies that commands have less than 2 GiB of data. The memory is only reserved: its pages do not exist.
func TestTooLong(t *testing.T) {
	if math.MaxInt == math.MaxInt32 {
		t.Skip("no slice is that long here")
	}
	long, err := unix.Mmap(-1, 0, 1<<31, unix.PROT_NONE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_NORESERVE)
	if err != nil {
		t.Skip(err)
	}
	defer func() {
		if err := unix.Munmap(long); err != nil {
			t.Error(err)
		}
	}()
	for _, n := range []int{1<<31 - 1, 1 << 31} {
		for _, c := range []*host.Command{{In: long[:n]}, {Out: long[:n]}} {
			q, err := host.New(host.Config{Depth: 1})
			if err != nil {
				t.Fatal(err)
			}
			q.Input(icresp(wire.Digests{}, 0, 4096))
			done := false
			c.Done = func() { done = true }
			q.Submit(c)
			if refused := done && c.Err != nil; refused != (n == 1<<31) {
				t.Errorf("a command of %d bytes: %v", n, c.Err)
			}
			q.Fail(errors.New("the end"))
		}
	}
}
