package requests_test

import (
	"fmt"
	"io/fs"
	"math"
	"testing"

	"farflash/flash/cfs"
	"farflash/flash/cfs/requests"
	"farflash/flash/ctl"
	"farflash/flash/verbs"
	"farflash/flash/verbs/control"
)

// TestLast: the last request is executed once however often it arrives, and others in their order only.
func TestLast(t *testing.T) {
	var last requests.Last
	executed := ""
	do := func(r control.FileRequest) control.FileReply {
		executed += r.Path
		return control.FileReply{Tree: uint64(len(executed))}
	}
	for _, x := range []struct {
		sequence uint32
		path     string
		want     string
		status   control.Status
		tree     uint64
	}{
		{2, "a", "", control.Sequence, 0}, {1, "b", "b", control.OK, 1}, {1, "b", "b", control.OK, 1},
		{1, "x", "b", control.Sequence, 0}, {3, "x", "b", control.Sequence, 0}, {2, "c", "bc", control.OK, 2},
		{1, "b", "bc", control.Sequence, 0}, {0, "d", "bcd", control.OK, 3}, {2, "c", "bcd", control.OK, 2},
		{0, "d", "bcdd", control.OK, 4}, {3, "e", "bcdde", control.OK, 5},
	} {
		for id := range uint32(2) {
			if x.sequence == 0 && id > 0 {
				break
			}
			r := last.Once(control.FileRequest{ID: id, Op: control.Mkdir, Sequence: x.sequence, Path: x.path}, do)
			if executed != x.want || r.Status != x.status || r.Tree != x.tree {
				t.Errorf("%d %s: %q executed, %+v; want %+v", x.sequence, x.path, executed, r, x)
			}
		}
	}
	if requests.Next(1) != 2 || requests.Next(math.MaxUint32) != 1 {
		t.Error("numbers skip 0 only")
	}
}

// TestStatus: every error of the file system has its status, and an unknown one is a failure.
func TestStatus(t *testing.T) {
	for err, want := range map[error]control.Status{
		nil: control.OK, cfs.ErrStale: control.StaleFile, cfs.ErrNotDir: control.NotDirectory,
		cfs.ErrIsDir: control.IsDirectory, cfs.ErrNotEmpty: control.NotEmpty, cfs.ErrInside: control.Inside,
		cfs.ErrTooLarge: control.TooLarge, cfs.ErrBusy: control.Busy, ctl.ErrFull: control.NoSpace,
		ctl.ErrReadOnly: control.ReadOnly, fs.ErrExist: control.Exists, fs.ErrNotExist: control.NotFound,
		fs.ErrPermission: control.Denied, cfs.ErrName: control.Malformed, control.Draining: control.Draining,
		verbs.ErrFull: control.TooMany, fs.ErrClosed: control.Failed,
		fmt.Errorf("%w, %w", cfs.ErrName, cfs.ErrLong): control.TooLong,
	} {
		if got := requests.Status(err); got != want {
			t.Errorf("%v: %v, want %v", err, got, want)
		}
	}
}
