package server_test

import (
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"farflash/flash/cfs"
	"farflash/flash/client"
	"farflash/flash/ctl"
	"farflash/flash/device"
	"farflash/flash/nbd"
	"farflash/flash/nbd/nbdtest"
	"farflash/flash/pool"
	"farflash/flash/qos"
	"farflash/flash/server"
	"farflash/flash/verbs"
	"farflash/internal/patience"
	"farflash/numeric/rng"
)

// TestCrowdOnFailingDevice verifies that no client hangs when a device fails under a server: each request is answered
// or its connection is lost, the server drains, no resource leaks, and after a power loss the pool is sound and has
// every page that was confirmed as durable.
func TestCrowdOnFailingDevice(t *testing.T) { ways(t, testCrowdOnFailingDevice) }

func testCrowdOnFailingDevice(t *testing.T) {
	seeds := uint64(6)
	if patience.Long(t) {
		seeds = 100
	}
	for seed := range seeds {
		failingRound(t, seed)
		if t.Failed() {
			return
		}
	}
}

func failingRound(t *testing.T, seed uint64) {
	before := runtime.NumGoroutine()
	draw := rng.NewStream(seed, "failing crowd")
	dev := device.NewMem(1600 * device.Grain)
	layout := ctl.Layout{Segment: 32, OverProvision: 0.3, LogPages: 24}
	shape, err := layout.Shape(dev.Size())
	if err == nil {
		err = ctl.Format(shape, dev)
	}
	if err != nil {
		t.Fatal(err)
	}
	cfg := ctl.DefaultConfig()
	cfg.Frames, cfg.Chunk = 1024, 8
	p, err := ctl.Open(cfg, dev)
	if err == nil {
		err = cfs.Format(p, cfs.Config{})
	}
	if err != nil {
		t.Fatal(err)
	}
	tree, err := cfs.Open(p, cfs.Config{})
	if err != nil {
		t.Fatal(err)
	}
	const size = 64 * ctl.Page
	for i := range 6 {
		f, err := tree.Create(cfs.Cred{}, fmt.Sprintf("/export%d", i), 0o600, size)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	sc := server.DefaultConfig()
	sc.Pool, sc.Files = p, server.Tree(tree, cfs.Cred{})
	sc.Address, sc.NBD, sc.Connections, sc.Reads, sc.Depth = "127.0.0.1:0", "127.0.0.1:0", 8, 4, 64<<10
	if seed%2 == 0 {
		sc.Limits = map[string]qos.Limit{"export0": {Class: qos.Latency}, "export5": {Bytes: 32 << 20}}
	}
	if strings.Contains(t.Name(), "/loops") {
		if sc.Loops, err = pool.Threads(pool.DefaultOptions(), 2); err != nil {
			t.Fatal(err)
		}
	}
	s, err := server.New(sc)
	if err == nil {
		err = s.Listen()
	}
	if err != nil {
		t.Fatal(err)
	}
	far, near, _ := s.Addresses()

	var all sync.WaitGroup
	var durable [4][64]uint64 // by page of the first exports: the confirmed durable version; 0 is none
	var newest [4]uint64
	// Versions outstanding when their connection ended. The server may write them after later writes from other
	// connections.
	var loose [4]map[uint64]bool
	for i := range 4 {
		loose[i] = map[uint64]bool{}
		all.Go(func() { // over iWARP: whole pages of versions, some of them durable
			r := rand.New(rand.NewPCG(seed, uint64(i)))
			for range 25 {
				c, err := dial(t, far, client.DefaultConfig())
				if err != nil {
					continue
				}
				var under []uint64 // versions without confirmation
				if f, err := c.Open(fmt.Sprintf("export%d", i), verbs.RemoteRead|verbs.RemoteWrite); err == nil {
					for range 12 {
						page := r.IntN(64)
						newest[i]++
						under = append(under, newest[i])
						b := versionPage(newest[i], page)
						if r.IntN(2) == 0 {
							_, err = f.WriteAt(b, int64(page)*ctl.Page)
						} else if _, err = f.WriteDurable(b, int64(page)*ctl.Page); err == nil {
							durable[i][page] = newest[i]
							under = under[:0] // the requests of a connection are executed in order
						}
						if err == nil && r.IntN(3) == 0 {
							_, err = f.ReadAt(make([]byte, 5*ctl.Page), int64(r.IntN(50))*ctl.Page)
						}
						if err != nil {
							break
						}
					}
				}
				_ = c.Close() // ignoring errors
				for _, v := range under {
					loose[i][v] = true
				}
			}
		})
	}
	for i := 4; i < 6; i++ {
		all.Go(func() { // over NBD
			r := rand.New(rand.NewPCG(seed, uint64(i)))
			for range 15 {
				nc, err := net.Dial("tcp", near)
				if err != nil {
					continue
				}
				_ = nc.SetDeadline(time.Now().Add(time.Minute))
				if c, err := nbdtest.NewClient(nc, nbd.FlagFixedNewstyle|nbd.FlagNoZeroes); err == nil &&
					c.Go(fmt.Sprintf("export%d", i), true) == nil {
					for range 12 {
						at, n := uint64(r.IntN(60))*ctl.Page, uint32(1+r.IntN(4*ctl.Page))
						k := []nbd.Command{nbd.CmdWrite, nbd.CmdFlush, nbd.CmdTrim, nbd.CmdWriteZeroes}[r.IntN(4)]
						var payload []byte
						switch k {
						case nbd.CmdWrite:
							payload = make([]byte, n)
						case nbd.CmdFlush:
							at, n = 0, 0
						}
						if _, err := c.Do(0, k, at, n, payload); err != nil {
							if ne, ok := err.(net.Error); ok && ne.Timeout() {
								t.Errorf("seed %d: a command is not answered in a minute", seed)
							}
							break
						}
					}
				}
				_ = nc.Close() // ignoring errors
			}
		})
	}
	all.Go(func() { // file operations
		r := rand.New(rand.NewPCG(seed, 9))
		for k := range 120 {
			name := fmt.Sprintf("/f%d", r.IntN(5))
			f, err := tree.Create(cfs.Cred{}, name, 0o600, int64(r.IntN(20))*ctl.Page)
			if err != nil {
				f, err = tree.Open(cfs.Cred{}, name, cfs.Read|cfs.Write)
			}
			if err != nil {
				continue
			}
			_, _ = f.WriteAt(make([]byte, 5000), int64(r.IntN(10*ctl.Page))) // these may fail, as all of them
			_ = f.Truncate(int64(r.IntN(15 * ctl.Page)))
			_ = f.Close()
			if r.IntN(3) == 0 {
				_ = tree.Remove(cfs.Cred{}, name)
			}
			if k == 20 {
				faults := device.Faults{Seed: seed}
				switch draw.IntN(5) {
				case 0:
					faults.FlushError = 0.01
				case 1:
					faults.WriteError = 0.01
				case 2:
					faults.FailFrom = 1 + draw.IntN(300)
				case 3:
					faults.Full = 0.01
				default:
					faults.ReadError, faults.WriteError = 0.01, 0.003
				}
				dev.SetFaults(faults)
			}
		}
	})
	watchdog := time.AfterFunc(2*time.Minute, func() { panic(fmt.Sprintf("seed %d: somebody waits for ever", seed)) })
	all.Wait()
	if err := s.Drain(5 * time.Second); err != nil {
		t.Errorf("seed %d: %v", seed, err)
	}
	watchdog.Stop()
	if text := s.Unended(); text != "" {
		t.Errorf("seed %d: after the drain the server counts as outstanding: %s", seed, text)
	}
	for _, v := range p.Check(false).Violations {
		t.Errorf("seed %d: %v", seed, v)
	}
	_ = p.Close() // whether it can be written depends on the device
	if sc.Loops != nil {
		if err := sc.Loops.Close(); err != nil {
			t.Error(err)
		}
	}
	for i := 0; runtime.NumGoroutine() > before && i < 500; i++ {
		time.Sleep(10 * time.Millisecond)
	}
	if n := runtime.NumGoroutine(); n > before {
		t.Errorf("seed %d: %d goroutines are left, of %d", seed, n, before)
	}

	cut := dev.Crash(&draw)
	if p, err = ctl.Open(cfg, cut); err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	if tree, err = cfs.Open(p, cfs.Config{}); err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	for i := range durable {
		f, err := tree.Open(cfs.Cred{}, fmt.Sprintf("/export%d", i), cfs.Read)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for page, floor := range durable[i] {
			b := make([]byte, ctl.Page)
			if _, err := f.ReadAt(b, int64(page)*ctl.Page); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			version := uint64(b[0]) | uint64(b[1])<<8
			if version < floor && !loose[i][version] || version > newest[i] ||
				string(b) != string(versionPage(version, page)) {
				t.Errorf("seed %d: page %d of export%d is version %d; from %d to %d may be there", seed, page, i,
					version, floor, newest[i])
			}
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := violated(tree.Check().Violations); err != nil {
		t.Errorf("seed %d: %v", seed, err)
	}
	if err := violated(p.Check(true).Violations); err != nil {
		t.Errorf("seed %d: %v", seed, err)
	}
	if err := p.Close(); err != nil {
		t.Errorf("seed %d: %v", seed, err)
	}
}

// versionPage returns a page that encodes a version and a page number; version 0 is all zeros.
func versionPage(version uint64, page int) []byte {
	b := make([]byte, ctl.Page)
	for i := 0; version > 0 && i < len(b); i += 4 {
		b[i], b[i+1], b[i+2], b[i+3] = byte(version), byte(version>>8), byte(page), 0xfa
	}
	return b
}
