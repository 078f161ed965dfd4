//go:build unix

package usage

import (
	"runtime"
	"syscall"
	"time"
)

// Process returns the CPU time of this process and its largest resident set in bytes.
func Process() (cpu time.Duration, peak int64) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, 0
	}
	peak = int64(u.Maxrss) //nolint:unconvert // 32 bits wide on some platforms
	if runtime.GOOS != "darwin" && runtime.GOOS != "ios" {
		peak *= 1024 // Linux and the BSDs count kilobytes
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), peak
}
