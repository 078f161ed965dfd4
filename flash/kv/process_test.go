package kv_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"golang.org/x/sys/unix"

	"farflash/flash/cfs"
	"farflash/flash/client"
	"farflash/flash/ctl"
	"farflash/flash/kv"
	flashpool "farflash/flash/pool"
	"farflash/flash/server"
	"farflash/internal/patience"
	"farflash/numeric/rng"
)

// The roles of processes that TestProcesses starts from its own program: a server of a pool, and a client of a store.
const role, at, seed, size = "FARFLASH_TEST_ROLE", "FARFLASH_TEST_AT", "FARFLASH_TEST_SEED", "FARFLASH_TEST_SIZE"

func TestMain(m *testing.M) {
	var err error
	switch os.Getenv(role) {
	case "server":
		err = serverProcess(os.Getenv(at))
	case "client":
		err = clientProcess(os.Getenv(at))
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// line is what a client says: an operation when it begins, and its answer.
type line struct {
	N       int
	Op      string `json:",omitempty"` // of the beginning only
	Key     string `json:",omitempty"`
	Value   string `json:",omitempty"`
	OK      bool   `json:",omitempty"`
	Unknown bool   `json:",omitempty"`
	At      int64  // on the clock that all processes share
}

// clock is the time since the machine was started.
func clock() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(err)
	}
	return t.Nano()
}

// serverProcess serves a pool with two threads until it is killed, and prints its address.
func serverProcess(path string) error {
	o := flashpool.DefaultOptions()
	o.Pool.Frames, o.Cached = 1024, true // some file systems for tests have no direct I/O
	loops, err := flashpool.Threads(o, 2)
	if err != nil {
		return err
	}
	o.Loops = loops
	p, _, err := flashpool.Open(o, path)
	if err != nil {
		return err
	}
	tree, err := cfs.Open(p, cfs.Config{})
	if err != nil {
		return err
	}
	c := server.DefaultConfig()
	c.Pool, c.Files, c.Loops = p, server.Tree(tree, cfs.Cred{}), loops
	c.Address, c.Connections, c.Reads = "127.0.0.1:0", 24, 4
	s, err := server.New(c)
	if err == nil {
		err = s.Listen()
	}
	if err != nil {
		return err
	}
	address, _, _ := s.Addresses()
	fmt.Println(address)
	_, err = io.Copy(io.Discard, os.Stdin) // it ends with the test
	return err
}

// clientProcess does operations on the store until the server has ended it, or it is killed.
func clientProcess(address string) error {
	var number uint64
	var most int
	if _, err := fmt.Sscan(os.Getenv(seed), &number); err != nil {
		return err
	}
	if _, err := fmt.Sscan(os.Getenv(size), &most); err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0) // it ends with the test
	}()
	m, _, err := reach(address, number)
	if err != nil {
		os.Exit(0) // the server has been killed
	}
	opt := m.Options()
	opt.Patience = 1500 * time.Millisecond
	s, err := kv.Open(context.Background(), m, m, opt)
	switch {
	case errors.Is(err, client.ErrFenced):
		return nil
	case err != nil:
		return fmt.Errorf("open: %w", err)
	}
	draw := rng.NewStream(number, "process")
	say := func(x line) error {
		b, err := json.Marshal(x)
		if err == nil {
			_, err = os.Stdout.Write(append(b, '\n'))
		}
		return err
	}
	for n := 0; ; n++ {
		in := input{op: []string{"get", "get", "put", "del", "add", "add"}[draw.IntN(6)], key: fmt.Sprint(draw.IntN(3))}
		switch in.op {
		case "put":
			text := fmt.Sprint(number, ".", n, " ")
			in.value = strings.Repeat(text, most/len(text))[:1+int(draw.IntN(int64(most-100)))]
		case "add":
			in.value = fmt.Sprint(1 << draw.IntN(20))
		}
		if err := say(line{N: n, Op: in.op, Key: in.key, Value: in.value, At: clock()}); err != nil {
			return err
		}
		out, err := ask(s, in)
		unknown := errors.Is(err, kv.ErrUnknown) || errors.Is(err, client.ErrFenced)
		if err != nil && !unknown {
			return fmt.Errorf("%s of %s: %w", in.op, in.key, err)
		}
		if err := say(line{N: n, Value: out.value, OK: out.ok, Unknown: unknown, At: clock()}); err != nil {
			return err
		}
		if errors.Is(err, client.ErrFenced) {
			return nil
		}
	}
}

// process is one that was started.
type process struct {
	cmd   *exec.Cmd
	in    io.Closer
	lines *bufio.Reader
	errs  bytes.Buffer
	ended sync.WaitGroup
}

func start(t *testing.T, env ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(os.Args[0])}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stderr = &p.errs
	in, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.in, p.lines = in, bufio.NewReaderSize(out, 1<<17)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	return p
}

// kill is kill -9.
func (p *process) kill() { _ = p.cmd.Process.Signal(syscall.SIGKILL) }

// TestProcesses: histories of clients that are processes of their own, on a daemon that is one: clients and the daemon
// are killed by kill -9 at any moment and others take their place. A durable store stays that of one register a key.
func TestProcesses(t *testing.T) {
	worlds, clients := 1, uint64(15)
	if patience.Long(t) {
		worlds, clients = 150, 40
	}
	for _, bytes := range []int{4000, 65000} {
		t.Run(fmt.Sprint(bytes), func(t *testing.T) {
			for number := range uint64(worlds) {
				t.Run(fmt.Sprint(number), func(t *testing.T) { processes(t, number, clients, bytes) })
			}
		})
	}
}

// processes plays one history with at least this many clients, one after the other or at once, on several servers.
func processes(t *testing.T, number, all uint64, bytes int) {
	g, err := kv.NewGeometry(100, 16, bytes, kv.Durable, 1)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "pool")
	o := flashpool.DefaultOptions()
	o.Cached = true
	if _, err := flashpool.Format(o, uint64(2*g.Size())+16<<20, path); err != nil {
		t.Fatal(err)
	}
	makeStore(t, o, path, g)
	draw := rng.NewStream(number, "processes")
	h := &journal{t: t}
	for seeds := number * 1000; seeds < number*1000+all; {
		s := start(t, role+"=server", at+"="+path)
		address, err := s.lines.ReadString('\n')
		if err != nil {
			t.Fatalf("the server ended: %v, %s", err, &s.errs)
		}
		address = strings.TrimSpace(address)
		var clients []*process
		begin := func() {
			seeds++
			clients = append(clients, start(t, role+"=client", at+"="+address, fmt.Sprint(seed, "=", seeds),
				fmt.Sprint(size, "=", bytes)))
			h.listen(clients[len(clients)-1], int(seeds))
		}
		for range 4 {
			begin()
		}
		for range draw.IntN(6) {
			time.Sleep(time.Duration(20+draw.IntN(200)) * time.Millisecond)
			clients[draw.IntN(int64(len(clients)))].kill()
			begin()
		}
		time.Sleep(time.Duration(50+draw.IntN(400)) * time.Millisecond)
		s.kill()
		_ = s.cmd.Wait() // it was killed
		for _, c := range clients {
			if draw.IntN(2) == 0 {
				c.kill()
			}
		}
		for _, c := range clients { // the others find that their server is gone, or another one
			_ = c.in.Close()
			c.ended.Wait()
			err := c.cmd.Wait()
			if status, _ := c.cmd.ProcessState.Sys().(syscall.WaitStatus); err != nil && !status.Signaled() {
				t.Errorf("a client: %v, %s", err, &c.errs)
			}
		}
		if t.Failed() {
			return
		}
	}
	h.check()
}

// makeStore makes a store in a new pool.
func makeStore(t *testing.T, o flashpool.Options, path string, g kv.Geometry) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var p *ctl.Pool
	p, _, err := flashpool.Open(o, path)
	must(err)
	must(cfs.Format(p, cfs.Config{}))
	tree, err := cfs.Open(p, cfs.Config{})
	must(err)
	f, err := tree.Create(cfs.Cred{}, "/store", 0o600, g.Size())
	must(err)
	first, err := g.First()
	must(err)
	_, err = f.WriteAt(first, 0)
	must(err)
	must(f.Close())
	must(tree.Sync())
	must(p.Close())
}

// journal is the history that processes report.
type journal struct {
	t   *testing.T
	mu  sync.Mutex
	all []porcupine.Operation
}

// listen records what a client says. An operation without an answer may have been done at any later time.
func (h *journal) listen(p *process, client int) {
	p.ended.Go(func() {
		pending := porcupine.Operation{Return: -1}
		keep := func() {
			if pending.Return != -1 {
				h.mu.Lock()
				h.all = append(h.all, pending)
				h.mu.Unlock()
			}
			pending.Return = -1
		}
		defer keep()
		for {
			text, err := p.lines.ReadBytes('\n')
			if err != nil {
				return // it has ended, perhaps within a line
			}
			var x line
			if err := json.Unmarshal(text, &x); err != nil {
				h.t.Errorf("a client says %.99q: %v", text, err)
				return
			}
			if x.Op != "" {
				pending = porcupine.Operation{ClientId: client, Input: input{x.Op, x.Key, x.Value},
					Output: output{unknown: true}, Call: x.At, Return: 1 << 62}
				continue
			}
			if !x.Unknown {
				pending.Output, pending.Return = output{value: x.Value, ok: x.OK}, x.At
			}
			keep()
		}
	})
}

func (h *journal) check() {
	h.t.Helper()
	known := 0
	for _, x := range h.all {
		if !x.Output.(output).unknown {
			known++
		}
	}
	if known < 20 {
		h.t.Errorf("only %d of %d operations were answered", known, len(h.all))
	}
	is := porcupine.CheckOperationsTimeout(register, h.all, time.Minute)
	if is == porcupine.Illegal {
		h.t.Errorf("%d operations are not linearisable", len(h.all))
	}
	h.t.Logf("%d operations, %d answered: %v", len(h.all), known, is)
}
