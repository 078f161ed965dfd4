package server_test

import (
	"errors"
	"syscall"
	"testing"

	"farflash/flash/nvme"
	"farflash/flash/nvme/nvmetest"
	"farflash/flash/nvme/server"
)

// TestEndIsReset verifies that the connections of an association that the target ends are reset: a kernel that sends
// after an end of data has the process killed for which it sends.
func TestEndIsReset(t *testing.T) { ways(t, testEndIsReset) }

func testEndIsReset(t *testing.T, loops *server.Loops) {
	target := nvmetest.Target(t, nvme.DefaultConfig(), nvmetest.Space(1, nvmetest.NewMemory(1<<20)))
	_, addr := nvmetest.Serve(t, quick(t, target, loops))
	h := open(t, addr, login(2))
	target.Remove(nvmetest.Subsystem)
	for i, c := range append(h.IO, h.Admin) {
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("connection %d ends with %v", i, err)
		}
	}
}
