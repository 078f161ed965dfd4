package volume_test

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"farflash/flash/nbd"
	"farflash/flash/nbd/nbdtest"
	"farflash/flash/nbd/server"
	"farflash/flash/nbd/volume"
	"farflash/internal/patience"
)

// TestSpeed compares 4 KiB reads, 32 outstanding on one connection, with those of qemu-nbd and nbdkit on the same file,
// in alternation.
func TestSpeed(t *testing.T) {
	patience.SkipUnlessLong(t)
	for _, p := range []string{"fio", "qemu-nbd", "nbdkit"} {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("%s is not installed", p)
		}
	}
	const used, file = 768 << 20, 1 << 30
	path := filepath.Join(t.TempDir(), "pool")
	uris := map[string]string{}
	names := []string{"farflash, 1 % in memory", "qemu-nbd --cache=none", "farflash, all in memory",
		"nbdkit file, cached", "no server, io_uring"}
	other := filepath.Join(filepath.Dir(path), "second")
	for name, x := range map[string]struct {
		path   string
		frames int
	}{names[0]: {path, used / 4096 / 100}, names[2]: {other, used/4096 + 4096}} {
		loops := nbdtest.Loops(t)
		p := nbdtest.Pool(t, loops, x.path, file, x.frames)
		v, err := volume.New(p, 0, used)
		if err != nil {
			t.Fatal(err)
		}
		cfg := server.DefaultConfig()
		cfg.Loops = loops
		cfg.Exports = server.Fixed(nbdtest.One{Export: nbd.Export{Name: "disk", Volume: v}})
		_, addr := nbdtest.Serve(t, cfg)
		uris[name] = "nbd://" + addr + "/disk"
		run(t, "fio", "--name=fill", "--ioengine=nbd", "--uri="+uris[name], "--rw=write", "--bs=256k", "--iodepth=8",
			fmt.Sprintf("--size=%d", used), "--eta=never")
	}
	for name, args := range map[string][]string{
		names[1]: {"qemu-nbd", "--persistent", "--read-only", "--format=raw", "--cache=none", "--aio=io_uring",
			"--bind=127.0.0.1", "--shared=8"},
		names[3]: {"nbdkit", "--foreground", "--readonly", "--ipaddr=127.0.0.1", "file", "file=" + path},
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		_, port, _ := net.SplitHostPort(l.Addr().String())
		l.Close()
		if args[0] == "qemu-nbd" {
			args = append(args, "--port="+port, path)
		} else {
			args = slices.Insert(args, 1, "--port="+port)
		}
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			cmd.Process.Signal(syscall.SIGTERM)
			cmd.Wait()
		})
		uris[name] = "nbd://127.0.0.1:" + port
		for range 100 {
			if nc, err := net.Dial("tcp", "127.0.0.1:"+port); err == nil {
				nc.Close()
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	iops := map[string][]float64{}
	rounds := 5
	for round := range rounds + 1 {
		for _, name := range names {
			how := []string{"--ioengine=nbd", "--uri=" + uris[name]}
			if uris[name] == "" { // the raw device, the upper bound
				how = []string{"--ioengine=io_uring", "--direct=1", "--readonly", "--filename=" + path}
			}
			out := run(t, "fio",
				append(how, "--name=read", "--rw=randread", "--bs=4k", "--iodepth=32", fmt.Sprintf("--size=%d", used),
					"--time_based", "--runtime=3",
					"--randrepeat=0", "--norandommap", "--eta=never", "--output-format=json")...)
			var told struct {
				Jobs []struct {
					Read struct {
						IOPS float64
						Lat  struct{ Percentile map[string]float64 } `json:"clat_ns"`
					}
				}
			}
			if err := json.Unmarshal([]byte(out[max(0, strings.Index(out, "{")):]), &told); err != nil {
				t.Fatal(err)
			}
			if r := told.Jobs[0].Read; round > 0 { // the first warms up
				iops[name] = append(iops[name], r.IOPS)
				t.Logf("%-24s %8.0f IOPS, p50 %4.0f us, p99 %5.0f us", name, r.IOPS,
					r.Lat.Percentile["50.000000"]/1e3, r.Lat.Percentile["99.000000"]/1e3)
			}
		}
	}
	for _, pair := range [][2]int{{0, 1}, {2, 3}, {0, 3}, {0, 4}, {1, 4}} {
		a, b := iops[names[pair[0]]], iops[names[pair[1]]]
		ratios := make([]float64, rounds)
		for i := range ratios {
			ratios[i] = a[i] / b[i]
		}
		slices.Sort(ratios)
		t.Logf("%s over %s: %.2f (%.2f to %.2f in %d rounds)", names[pair[0]], names[pair[1]], ratios[rounds/2],
			ratios[0], ratios[rounds-1], rounds)
	}
}
