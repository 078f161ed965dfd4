package bench_test

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"farflash/flash/bench"
	"farflash/flash/uring"
)

// small is a very short measurement.
func small(t *testing.T) bench.Config {
	c := bench.DefaultConfig()
	c.Dir, c.Size, c.Memory, c.Rounds, c.Time, c.Connections = t.TempDir(), 12<<20, 1<<20, 2, 40*time.Millisecond, 3
	c.Systems = []bench.System{bench.Verbs, bench.Socket, bench.SocketCached, bench.VerbsPolled, bench.NVMe}
	if _, err := exec.LookPath("gcc"); err == nil {
		c.Systems = append(c.Systems, bench.SocketC)
	}
	if r, err := uring.New(2); err == nil {
		r.Close()
		c.Systems = append(c.Systems, bench.SocketRing, bench.Local)
	}
	return c
}

// TestRun has every system serve reads, writes and both, in closed and open loops, with small and large blocks. It
// verifies only that requests complete.
func TestRun(t *testing.T) {
	for name, change := range map[string]func(*bench.Config){
		"reads":  func(*bench.Config) {},
		"writes": func(c *bench.Config) { c.Writes = 1 },
		"mixed":  func(c *bench.Config) { c.Writes, c.Depth = 0.3, 5 },
		"large":  func(c *bench.Config) { c.Block, c.Memory = 256<<10, 4<<20 },
		"longer than a window, in little memory": func(c *bench.Config) {
			c.Block, c.Size, c.Depth, c.Systems = 1<<20,
				16<<20, 8, c.Systems[:1]
		},
		"large writes, more than a connection takes at once": func(c *bench.Config) {
			c.Block, c.Memory, c.Size, c.Depth, c.Writes, c.Connections = 1<<20, 8<<20, 16<<20, 8, 1, 1
			c.Space, c.Systems = 4, c.Systems[:2]
		},
		"open": func(c *bench.Config) { c.Load = 0.3 },
		"atomics": func(c *bench.Config) {
			c.Atomics, c.Systems = true,
				[]bench.System{bench.Verbs, bench.VerbsPolled}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := small(t)
			change(&c)
			r, err := bench.Run(c)
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Outcomes) != len(c.Systems) || len(r.Ratios) != len(c.Systems)-1 || r.Confidence != 0.5 {
				t.Fatalf("%+v", r)
			}
			for _, o := range r.Outcomes {
				if o.Rate.Low <= 0 || o.P50.Low <= 0 || o.P99.Low < o.P50.Low || len(o.Rounds) != c.Rounds {
					t.Errorf("%v: %+v", o.System, o)
				}
			}
			if reads := r.Outcomes[0].Reads; name == "reads" && (reads.Low < 0.5 || reads.High > 1.01) {
				t.Errorf("%v device reads a request, with a twelfth of the pages in memory", reads)
			}
			if o := r.Find(bench.NVMe); name == "reads" && (o.Reads.Low < 0.5 || o.Reads.High > 1.01) {
				t.Errorf("%v device reads a request of NVMe/TCP", o.Reads)
			}
		})
	}
}

// TestTooLittleMemory verifies that a configuration that would deadlock is refused: long reads whose outstanding
// windows do not fit in memory.
func TestTooLittleMemory(t *testing.T) {
	c := small(t)
	c.Block, c.Size, c.Connections, c.Depth = 1<<20, 16<<20, 64, 4
	if _, err := bench.Run(c); err == nil ||
		!strings.Contains(err.Error(),
			"1MiB of memory is too little for 64 connections with 4 requests of 1MiB each; use ") {
		t.Error(err)
	}
	c = small(t)
	c.Block, c.Connections, c.Depth = 64<<10, 64, 4
	if _, err := bench.Run(c); err == nil ||
		!strings.Contains(err.Error(), "1MiB of memory is too little for 64 NVMe/TCP connections with 4 requests of 64KiB") {
		t.Error(err)
	}
}

// TestMain runs the server process of TestServers, or the tests.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "servers" {
		if err := bench.Serve(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	m.Run()
}

// TestServers runs the servers in a separate process, which leaves no files and reports its processor time; its errors
// are reported to the client side. Clients and servers have separate processors, or share them.
func TestServers(t *testing.T) {
	c := small(t)
	c.Server = []string{os.Args[0], "servers"}
	r, err := bench.Run(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range r.Clients {
		if runtime.NumCPU() > 1 && slices.Contains(r.Servers, n) || len(r.Servers) == 0 {
			t.Errorf("clients on %v, servers on %v", r.Clients, r.Servers)
		}
	}
	open := c
	open.Load = 0.3
	if _, err := bench.Run(open); err != nil {
		t.Errorf("an open loop: %v", err)
	}
	mixed := c
	mixed.Pinned, mixed.Systems = false, c.Systems[:1]
	if r, err := bench.Run(mixed); err != nil || !slices.Equal(r.Clients, r.Servers) ||
		len(r.Clients) != runtime.NumCPU() {
		t.Errorf("%+v, %v", r, err)
	}
	for _, o := range r.Outcomes {
		if o.Rate.Low <= 0 || o.CPU.Low <= 0 || len(o.Rounds) != c.Rounds {
			t.Errorf("%v: %+v", o.System, o)
		}
	}
	if left, err := os.ReadDir(c.Dir); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
	c.Atomics, c.Systems, c.Rounds = true, []bench.System{bench.Verbs}, 1
	if _, err := bench.Run(c); err != nil {
		t.Errorf("atomics: %v", err)
	}
	c.Dir = "/nowhere/at/all"
	if _, err := bench.Run(c); err == nil || !strings.Contains(err.Error(), c.Dir) {
		t.Errorf("error %v", err)
	}
	c.Server = []string{"/nowhere/at/all"}
	if _, err := bench.Run(c); err == nil || !strings.Contains(err.Error(), "servers") {
		t.Errorf("error %v", err)
	}
	c.Server = []string{"/bin/true"} // a process that sends no output
	if _, err := bench.Run(c); err == nil || !strings.Contains(err.Error(), "servers") {
		t.Errorf("error %v", err)
	}
}

// TestRefused verifies that invalid configurations are refused with an error.
func TestRefused(t *testing.T) {
	for _, change := range []func(*bench.Config){
		func(c *bench.Config) { c.Systems = nil },
		func(c *bench.Config) { c.Systems = []bench.System{bench.Socket, bench.Socket} },
		func(c *bench.Config) { c.Block = 1000 },
		func(c *bench.Config) { c.Connections = 0 },
		func(c *bench.Config) { c.Writes = 1.5 },
		func(c *bench.Config) { c.Atomics = true },
		func(c *bench.Config) { c.Atomics, c.Systems, c.Writes = true, []bench.System{bench.Verbs}, 0.5 },
		func(c *bench.Config) { c.Rounds = 0 },
		func(c *bench.Config) { c.Size = 1 },
		func(c *bench.Config) { c.Dir = "/nowhere/at/all" },
	} {
		c := bench.DefaultConfig()
		change(&c)
		if _, err := bench.Run(c); err == nil {
			t.Errorf("%+v is measured", c)
		}
	}
}

// TestScale uses one set of files for every number of connections, with one report for each.
func TestScale(t *testing.T) {
	c := small(t)
	c.Systems = []bench.System{bench.Verbs, bench.Socket}
	numbers := []int{1, 5, 2}
	all, err := bench.Scale(c, numbers)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != len(numbers) {
		t.Fatalf("%d reports", len(all))
	}
	for i, r := range all {
		v := r.Find(bench.Verbs)
		if r.Connections != numbers[i] || r.Block != c.Block || v == nil || v.Rate.Low <= 0 ||
			r.Find(bench.Local) != nil {
			t.Errorf("%+v", r)
		}
		if g := r.Gbps(1000); g != 0.032768 {
			t.Errorf("1000 requests of %d bytes are %v Gbit/s", r.Block, g)
		}
	}
	for _, numbers := range [][]int{nil, {1, 0}, {5000}} {
		if _, err := bench.Scale(c, numbers); err == nil {
			t.Errorf("%d connections are measured", numbers)
		}
	}
}

// TestNoCompiler verifies that without gcc only the server in C is skipped, by name.
func TestNoCompiler(t *testing.T) {
	c := small(t)
	t.Setenv("PATH", t.TempDir())
	c.Systems = []bench.System{bench.Socket, bench.SocketC}
	r, err := bench.Run(c)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Outcomes) != 1 || len(r.Skipped) != 1 || r.Skipped[0].System != bench.SocketC ||
		!strings.Contains(r.Skipped[0].Why, "gcc") {
		t.Errorf("%+v", r)
	}
	c.Systems = []bench.System{bench.SocketC}
	if _, err := bench.Run(c); err == nil || !strings.Contains(err.Error(), "gcc") {
		t.Errorf("%v", err)
	}
}

// TestRegister verifies that a file of any size, up to 32 TiB, is registered without reading a page. Of the times it
// verifies only that they are positive.
func TestRegister(t *testing.T) {
	c := bench.RegisterConfig{Dir: t.TempDir(), Sizes: []int64{4096, 1 << 20, 1 << 45}, Rounds: 2}
	out, err := bench.Register(c)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range out {
		if r.Size != c.Sizes[i] || r.File.Low <= 0 || r.Memory.Low <= 0 || (r.Skipped == "") != (r.Pinned.Low > 0) {
			t.Errorf("%+v", r)
		}
	}
	if out[2].Skipped == "" {
		t.Error("32 TiB of memory were pinned")
	}
	for _, wrong := range []bench.RegisterConfig{{Dir: c.Dir, Rounds: 1}, {Dir: c.Dir, Sizes: c.Sizes},
		{Dir: c.Dir, Sizes: []int64{100}, Rounds: 1}, {Dir: "/nowhere/at/all", Sizes: c.Sizes, Rounds: 1}} {
		if _, err := bench.Register(wrong); err == nil {
			t.Errorf("%+v is measured", wrong)
		}
	}
}

// TestProcessor verifies that the parts of a system's profile add up to 1, without the clients' samples.
func TestProcessor(t *testing.T) {
	c := small(t)
	c.Systems, c.Time = []bench.System{bench.Verbs, bench.Socket}, 300*time.Millisecond
	out, err := bench.Processor(c)
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range out {
		sum := 0.0
		for _, s := range x.Shares {
			sum += s
		}
		if x.System != c.Systems[i] || x.Samples == 0 || sum < 0.999 || sum > 1.001 {
			t.Errorf("%+v", x)
		}
	}
	c.Systems = []bench.System{bench.Local}
	if _, err := bench.Processor(c); err == nil {
		t.Error("what has no server has a profile of one")
	}
}
