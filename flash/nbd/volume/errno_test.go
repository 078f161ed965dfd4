package volume

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"farflash/flash/ctl"
	"farflash/flash/nbd"
)

// TestErrno verifies which number clients receive for an error of the pool, above all that a full file system under the
// pool is reported as that, also once the pool is read-only because of it.
func TestErrno(t *testing.T) {
	for _, c := range []struct {
		err  error
		want nbd.Errno
	}{
		{ctl.ErrFull, nbd.ENOSPC}, {ctl.ErrClosed, nbd.ESHUTDOWN}, {ctl.ErrRange, nbd.EINVAL},
		{ctl.ErrDamaged, nbd.EIO}, {errors.New("any other"), nbd.EIO},
		{fmt.Errorf("writing page 7: %w", syscall.ENOSPC), nbd.ENOSPC},
		{fmt.Errorf("%w: %w", ctl.ErrReadOnly, syscall.ENOSPC), nbd.ENOSPC},
		{fmt.Errorf("%w: %w", ctl.ErrReadOnly, syscall.EIO), nbd.EIO},
	} {
		if got := Errno(c.err); got != c.want {
			t.Errorf("%v: %v, not %v", c.err, got, c.want)
		}
	}
}
