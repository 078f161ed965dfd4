package uring_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"farflash/flash/device"
	"farflash/flash/uring"
)

// TestLittleLockedMemory verifies that a device works for a user with a small RLIMIT_MEMLOCK, as most users have. The
// limit does not apply to root, whose test is repeated as the user nobody.
func TestLittleLockedMemory(t *testing.T) {
	const again, memlock, nobody = "FARFLASH_TEST_NOBODY", 8, 65534
	if os.Getuid() == 0 && os.Getenv(again) == "" {
		cmd := exec.Command("/proc/self/exe", "-test.run=^TestLittleLockedMemory$", "-test.v")
		cmd.Env = append(os.Environ(), again+"=1", "TMPDIR="+os.TempDir())
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		out, err := cmd.CombinedOutput()
		if os.IsPermission(err) {
			t.Skipf("nobody may not run the test: %v", err)
		}
		if err != nil || !bytes.Contains(out, []byte("PASS")) {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	var was syscall.Rlimit
	if err := syscall.Getrlimit(memlock, &was); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Setrlimit(memlock, &was); err != nil {
			t.Error(err)
		}
	}()
	if err := syscall.Setrlimit(memlock, &syscall.Rlimit{Cur: 64 << 10, Max: was.Max}); err != nil {
		t.Fatal(err)
	}
	d, err := uring.Open(filepath.Join(t.TempDir(), "device"), device.Mode{Create: 1 << 20}, 8)
	if uring.Forbidden(err) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	arena, err := device.Arena(4 << 20)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Register(arena); err != nil {
		t.Fatalf("a user who may lock 64 KiB: %v", err)
	}
	for i := range 2 * device.Grain {
		arena[i] = byte(i >> 3)
	}
	done := make(chan error, 1)
	do := func(kind device.Kind, b []byte) {
		op := device.Op{Kind: kind, Offset: 8192, Buf: b, Done: func(op *device.Op) { done <- op.Err }}
		d.Submit(&op)
		if err := <-done; err != nil {
			t.Fatalf("%v: %v", kind, err)
		}
	}
	do(device.Write, arena[:2*device.Grain])
	do(device.Read, arena[1<<20:][:2*device.Grain])
	if !bytes.Equal(arena[:2*device.Grain], arena[1<<20:][:2*device.Grain]) {
		t.Error("what was written is not what is read")
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if err := device.Release(arena); err != nil {
		t.Error(err)
	}
}
