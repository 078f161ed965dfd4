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
	uris[names[1]] = beside(t, path, "qemu-nbd", "--persistent", "--read-only", "--format=raw", "--cache=none",
		"--aio=io_uring", "--bind=127.0.0.1", "--shared=8")
	uris[names[3]] = beside(t, path, "nbdkit", "--foreground", "--readonly", "--ipaddr=127.0.0.1", "file")
	iops := map[string][]float64{}
	rounds := 5
	for round := range rounds + 1 {
		for _, name := range names {
			how := []string{"--ioengine=nbd", "--uri=" + uris[name]}
			if uris[name] == "" { // the raw device, the upper bound
				how = []string{"--ioengine=io_uring", "--direct=1", "--readonly", "--filename=" + path}
			}
			r := fio(t, append(how, "--name=read", "--rw=randread", "--bs=4k", "--iodepth=32",
				fmt.Sprintf("--size=%d", used), "--time_based", "--runtime=3", "--randrepeat=0",
				"--norandommap")...).Read
			if round > 0 { // the first warms up
				iops[name] = append(iops[name], r.IOPS)
				t.Logf("%-24s %8.0f IOPS, p50 %4.0f us, p99 %5.0f us", name, r.IOPS,
					r.Lat.Percentile["50.000000"]/1e3, r.Lat.Percentile["99.000000"]/1e3)
			}
		}
	}
	for _, pair := range [][2]int{{0, 1}, {2, 3}, {0, 3}, {0, 4}, {1, 4}} {
		ratios(t, names[pair[0]], names[pair[1]], iops)
	}
}

// ratios logs the median of a's rates over b's, round by round, with its range.
func ratios(t *testing.T, a, b string, rates map[string][]float64) {
	var all []float64
	for i := range rates[a] {
		all = append(all, rates[a][i]/rates[b][i])
	}
	slices.Sort(all)
	t.Logf("%s over %s: %.2f (%.2f to %.2f in %d rounds)", a, b, all[len(all)/2], all[0], all[len(all)-1], len(all))
}

// beside starts another NBD server of a file on a loopback port until the test ends, and returns its address.
func beside(t *testing.T, path string, command ...string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	l.Close()
	args := append([]string{"--port=" + port}, command[1:]...)
	if command[0] == "nbdkit" {
		path = "file=" + path
	}
	cmd := exec.Command(command[0], append(args, path)...)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		cmd.Wait()
	})
	for range 100 {
		if nc, err := net.Dial("tcp", "127.0.0.1:"+port); err == nil {
			nc.Close()
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	return "nbd://127.0.0.1:" + port
}

// job is what fio reports of a job's reads or writes, in ns.
type job struct {
	IOPS float64
	Lat  struct {
		Mean       float64
		Percentile map[string]float64
	} `json:"clat_ns"`
}

// fio runs one job, or several reported together.
func fio(t *testing.T, args ...string) (out struct{ Read, Write, Sync job }) {
	t.Helper()
	text := run(t, "fio", append(args, "--eta=never", "--output-format=json")...)
	var told struct {
		Jobs []struct{ Read, Write, Sync job }
	}
	if err := json.Unmarshal([]byte(text[max(0, strings.Index(text, "\n{")):]), &told); err != nil {
		t.Fatal(err)
	}
	return told.Jobs[0]
}

// TestSyncSpeed compares random 4 KiB writes that are each flushed, by one, four and sixteen jobs with a connection
// each, with those of qemu-nbd and nbdkit, in alternation. All files were written before.
func TestSyncSpeed(t *testing.T) {
	patience.SkipUnlessLong(t)
	for _, p := range []string{"fio", "qemu-nbd", "nbdkit"} {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("%s is not installed", p)
		}
	}
	const used, file, rounds = 256 << 20, 512 << 20, 3
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"pool", "qemu", "nbdkit"} {
		run(t, "dd", "if=/dev/urandom", "of="+path(name), "bs=1M", fmt.Sprintf("count=%d", file>>20), "conv=fsync")
	}
	loops := nbdtest.Loops(t)
	v, err := volume.New(nbdtest.Pool(t, loops, path("pool"), file, 16384), 0, used)
	if err != nil {
		t.Fatal(err)
	}
	cfg := server.DefaultConfig()
	cfg.Loops = loops
	cfg.Exports = server.Fixed(nbdtest.One{Export: nbd.Export{Name: "disk", Volume: v}})
	_, addr := nbdtest.Serve(t, cfg)
	names := []string{"farflash", "qemu-nbd", "nbdkit"}
	uris := map[string]string{
		names[0]: "nbd://" + addr + "/disk",
		names[1]: beside(t, path("qemu"), "qemu-nbd", "--persistent", "--format=raw", "--bind=127.0.0.1",
			"--shared=32"),
		names[2]: beside(t, path("nbdkit"), "nbdkit", "--foreground", "--ipaddr=127.0.0.1", "file"),
	}
	for _, jobs := range []int{1, 4, 16} {
		rates := map[string][]float64{}
		for round := range rounds + 1 {
			for _, name := range names {
				out := fio(t, "--name=sync", "--ioengine=nbd", "--uri="+uris[name], "--rw=randwrite", "--bs=4k",
					"--fsync=1",
					fmt.Sprintf("--size=%d", used), fmt.Sprintf("--numjobs=%d", jobs), "--thread", "--group_reporting",
					"--time_based", "--runtime=2", "--norandommap")
				if round > 0 {
					rates[name] = append(rates[name], out.Write.IOPS)
					t.Logf("%2d jobs, %-8s %6.0f writes a second", jobs, name, out.Write.IOPS)
				}
			}
		}
		ratios(t, names[0], names[1], rates)
		ratios(t, names[0], names[2], rates)
	}
}
