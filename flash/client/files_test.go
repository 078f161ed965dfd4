package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"farflash/flash/cfs"
	"farflash/flash/client"
	"farflash/flash/ctl"
	"farflash/flash/server"
	"farflash/flash/verbs"
	"farflash/flash/verbs/control"
	"farflash/flash/verbs/stream"
	"farflash/flash/wire"
	"farflash/internal/patience"
	"farflash/numeric/rng"
)

// shape is a model of files and directories.
type shape struct {
	dir        bool
	size, perm uint64
	kids       map[string]*shape
}

func folder() *shape { return &shape{dir: true, kids: map[string]*shape{}} }

// find returns the node of a path, its directory and its last name.
func (m *shape) find(at string) (n, dir *shape, name string, s control.Status) {
	names := strings.Split(at, "/")
	dir = m
	for _, x := range names[:len(names)-1] {
		switch next := dir.kids[x]; {
		case next == nil:
			return nil, nil, "", control.NotFound
		case !next.dir:
			return nil, nil, "", control.NotDirectory
		default:
			dir = next
		}
	}
	name = names[len(names)-1]
	return dir.kids[name], dir, name, control.OK
}

// apply executes a request as the server should.
func (m *shape) apply(r control.FileRequest) control.Status {
	n, dir, name, s := m.find(r.Path)
	if s != control.OK {
		return s
	}
	if r.Op == control.Create || r.Op == control.Mkdir {
		if n != nil {
			return control.Exists
		}
		dir.kids[name] = &shape{dir: r.Op == control.Mkdir, size: r.Size, perm: uint64(r.Perm),
			kids: map[string]*shape{}}
		return control.OK
	}
	if n == nil {
		return control.NotFound
	}
	switch r.Op {
	case control.Unlink, control.Rmdir:
		switch {
		case n.dir && r.Op == control.Unlink:
			return control.IsDirectory
		case !n.dir && r.Op == control.Rmdir:
			return control.NotDirectory
		case len(n.kids) > 0:
			return control.NotEmpty
		}
		delete(dir.kids, name)
	case control.Rename:
		there, into, to, s := m.find(r.Other)
		switch {
		case s != control.OK:
			return s
		case there == n:
			return control.OK
		case strings.HasPrefix(r.Other+"/", r.Path+"/"):
			return control.Inside
		case there == nil:
		case r.Keep:
			return control.Exists
		case n.dir && !there.dir:
			return control.NotDirectory
		case !n.dir && there.dir:
			return control.IsDirectory
		case len(there.kids) > 0:
			return control.NotEmpty
		}
		into.kids[to] = n
		delete(dir.kids, name)
	case control.Truncate:
		if n.dir {
			return control.IsDirectory
		}
		if !r.Keep || r.Size > n.size {
			n.size = r.Size
		}
	case control.Set:
		n.perm = uint64(r.Perm)
	}
	return control.OK
}

// lines lists a model.
func (m *shape) lines(at string) (all []string) {
	for name, n := range m.kids {
		all = append(all, fmt.Sprint(path.Join(at, name), n.dir, n.size, n.perm))
		all = append(all, n.lines(path.Join(at, name))...)
	}
	slices.Sort(all)
	return all
}

// listed lists what a server has in a directory, in the form of lines.
func listed(t testing.TB, f *client.Files, top string) (all []string) {
	t.Helper()
	for todo := []string{""}; len(todo) > 0; {
		at, after := todo[0], ""
		todo = todo[1:]
		for {
			entries, _, err := f.List(context.Background(), control.Handle{}, path.Join(top, at), after)
			if err != nil {
				t.Fatal(err)
			}
			if len(entries) == 0 {
				break
			}
			for _, e := range entries {
				p, size := path.Join(at, e.Name), e.Size
				if e.Kind == control.Directory {
					todo, size = append(todo, p), 0
				}
				all = append(all, fmt.Sprint(p, e.Kind == control.Directory, size, e.Perm))
				after = e.Name
			}
		}
	}
	slices.Sort(all)
	return all
}

// drawn is a random request below a directory.
func drawn(r *rand.Rand, top string) control.FileRequest {
	place := func() string {
		names := []string{"a", "b", "c"}
		p := names[r.IntN(3)]
		for r.IntN(2) == 0 && strings.Count(p, "/") < 3 {
			p += "/" + names[r.IntN(3)]
		}
		return path.Join(top, p)
	}
	x := control.FileRequest{Path: place(),
		Op: []control.Op{control.Create, control.Create, control.Mkdir, control.Mkdir, control.Unlink, control.Rmdir,
			control.Rename, control.Rename, control.Truncate, control.Set}[r.IntN(10)]}
	switch x.Op {
	case control.Create:
		x.Perm, x.Size = uint16(r.IntN(512)), uint64(r.IntN(20000))
	case control.Mkdir:
		x.Perm = uint16(r.IntN(512))
	case control.Rename:
		x.Other, x.Keep = place(), r.IntN(2) == 0
	case control.Truncate:
		x.Size, x.Keep = uint64(r.IntN(20000)), r.IntN(2) == 0
	case control.Set:
		x.Perm, x.Mask = uint16(r.IntN(512)), control.SetPerm
	}
	return x
}

// status is that of an error of Files.
func status(err error) (s control.Status) {
	errors.As(err, &s)
	return s
}

// TestFilesModel: two clients whose connections are cut at random, before and after the server has executed their
// requests, get the answers of a model in which each request takes effect once, and the server has the model's files.
func TestFilesModel(t *testing.T) {
	bounded(t, 5*time.Minute)
	steps, seeds := 150, 2
	if patience.Long(t) {
		steps, seeds = 2000, 10
	}
	for seed := range uint64(seeds) {
		h := newHost(t)
		var both sync.WaitGroup
		proxies := [2]*proxy{}
		for i := range 2 {
			p := newProxy(t, h.address(), chaos(seed*2+uint64(i), 3000))
			proxies[i] = p
			top := []string{"first", "second"}[i]
			c, calm := dialAnyhow(t, p), dial(t, h.address(), quick())
			both.Go(func() {
				f := c.Files()
				model := folder()
				model.kids[top] = folder()
				if _, err := f.Do(context.Background(), control.FileRequest{Op: control.Mkdir, Path: top}); err != nil {
					t.Error(err)
					return
				}
				r := rand.New(rand.NewPCG(seed, uint64(i)))
				for step := range steps {
					x := drawn(r, top)
					want := model.apply(x)
					if _, err := f.Do(context.Background(), x); status(err) != want || (err == nil) != (want == 0) {
						t.Errorf("step %d, %+v: %v, want %v", step, x, err, want)
						return
					}
				}
				if got, want := listed(t, calm.Files(), top), model.kids[top].lines(""); !slices.Equal(got, want) {
					t.Errorf("the server has\n%v\nwant\n%v", got, want)
				}
			})
		}
		both.Wait()
		if proxies[0].connections() < 5 {
			t.Errorf("only %d connections", proxies[0].connections())
		}
	}
}

// dialAnyhow dials through a proxy that may cut the first connections.
func dialAnyhow(t testing.TB, p *proxy) *client.Client {
	t.Helper()
	cfg := quick()
	cfg.Reconnect.Silence = 100 * time.Millisecond
	cfg.Stream.Setup, cfg.Reconnect.Attempt = 100*time.Millisecond, 200*time.Millisecond
	for {
		c, err := client.Dial(context.Background(), p.address(), cfg)
		if err == nil {
			t.Cleanup(func() { _ = c.Close() })
			return c
		}
	}
}

// script are requests none of which has the same answer twice, with their answers.
var script = []struct {
	r    control.FileRequest
	want control.Status
}{
	{control.FileRequest{Op: control.Mkdir, Path: "d"}, control.OK},
	{control.FileRequest{Op: control.Create, Path: "d/f"}, control.OK},
	{control.FileRequest{Op: control.Create, Path: "d/f"}, control.Exists},
	{control.FileRequest{Op: control.Rename, Path: "d/f", Other: "d/g"}, control.OK},
	{control.FileRequest{Op: control.Rename, Path: "d/f", Other: "d/h"}, control.NotFound},
	{control.FileRequest{Op: control.Rmdir, Path: "d"}, control.NotEmpty},
	{control.FileRequest{Op: control.Unlink, Path: "d/g"}, control.OK},
	{control.FileRequest{Op: control.Rmdir, Path: "d"}, control.OK},
}

// TestFilesCutEverywhere cuts the connection at every place of a short exchange, in both directions.
func TestFilesCutEverywhere(t *testing.T) {
	bounded(t, 5*time.Minute)
	h := newHost(t)
	p := newProxy(t, h.address(), never)
	round := func() {
		c := dialAnyhow(t, p)
		for _, x := range script {
			_, err := c.Files().Do(context.Background(), x.r)
			if status(err) != x.want || (err == nil) != (x.want == 0) {
				t.Errorf("%v of %s: %v, want %v", x.r.Op, x.r.Path, err, x.want)
			}
		}
		_ = c.Close()
	}
	round()
	up, down := p.last()
	if up < 900 || down < 800 {
		t.Fatalf("an exchange of %d and %d bytes", up, down)
	}
	stride := 37
	if patience.Long(t) {
		stride = 3
	}
	for cut := 0; cut < up+down && !t.Failed(); cut += stride {
		w := way{cut: cut, end: []int{reset, fin, half}[cut%3]}
		if cut >= up {
			w.cut, w.down = cut-up, true
		}
		first := true
		p.set(func(int) way {
			if first {
				first = false
				return w
			}
			return way{cut: -1}
		})
		round()
		if t.Failed() {
			t.Logf("cut: %+v", w)
		}
	}
}

// TestFilesRestart: a request in progress when the server is killed has an unknown outcome, which is one of two, or is
// executed by the next server; the one after it is executed.
func TestFilesRestart(t *testing.T) {
	bounded(t, 2*time.Minute)
	h := newHost(t)
	p := newProxy(t, h.address(), never)
	f := dial(t, p.address(), quick()).Files()
	ctx := context.Background()
	reply, err := f.Do(ctx, control.FileRequest{Op: control.Create, Path: "old"})
	if err != nil {
		t.Fatal(err)
	}
	old := reply.File.Handle
	unknown, draw := 0, rng.NewStream(1, "kill")
	for i := range 8 {
		name := fmt.Sprint("f", i)
		done := make(chan error)
		go func() {
			_, err := f.Do(ctx, control.FileRequest{Op: control.Create, Path: name})
			done <- err
		}()
		if i%2 == 0 {
			time.Sleep(time.Duration(i) * 300 * time.Microsecond)
		}
		h.kill(p, &draw)
		err := <-done
		if err != nil && !errors.Is(err, client.ErrUnknown) {
			t.Fatal(err)
		}
		if err != nil {
			unknown++
		}
		_, there := f.Do(ctx, control.FileRequest{Op: control.Lookup, Path: name})
		if status(there) != control.OK && status(there) != control.NotFound || err == nil && there != nil {
			t.Errorf("%s was created with %v, and then: %v", name, err, there)
		}
		if _, err := f.Do(ctx, control.FileRequest{Op: control.Mkdir, Path: fmt.Sprint("d", i)}); err != nil {
			t.Error(err)
		}
		reply, err := f.Do(ctx, control.FileRequest{Op: control.Lookup, At: old})
		if err != nil || reply.File.Handle.Inode != old.Inode {
			t.Errorf("a handle after %d restarts: %+v, %v", i+1, reply, err)
		}
	}
	t.Logf("%d unknown outcomes", unknown)
}

// TestFilesTwo: each client sees the other's changes with its next request, and counters say what has changed.
func TestFilesTwo(t *testing.T) {
	h := newHost(t)
	a, b := dial(t, h.address(), quick()), dial(t, h.address(), quick())
	ctx := context.Background()
	ask := func(c *client.Client, r control.FileRequest) control.FileReply {
		t.Helper()
		reply, err := c.Files().Do(ctx, r)
		if err != nil {
			t.Fatal(err)
		}
		return reply
	}
	made := ask(a, control.FileRequest{Op: control.Create, Path: "x", Perm: 0o600, UID: 7, GID: 8, Size: 5000})
	seen := ask(b, control.FileRequest{Op: control.Lookup, Path: "x"})
	if seen.File != made.File || seen.Tree != made.Tree || seen.File.UID != 7 || seen.File.Size != 5000 {
		t.Errorf("%+v, want %+v", seen, made)
	}
	ask(b, control.FileRequest{Op: control.Rename, Path: "x", Other: "y"})
	still := ask(a, control.FileRequest{Op: control.Lookup, At: made.File.Handle})
	if still.File.Changed != made.File.Changed || still.Tree <= made.Tree {
		t.Errorf("%+v after %+v", still, made)
	}
	ask(b, control.FileRequest{Op: control.Truncate, At: made.File.Handle, Size: 3})
	cut := ask(a, control.FileRequest{Op: control.Lookup, Path: "y"})
	if cut.File.Changed <= made.File.Changed || cut.File.Size != 3 {
		t.Errorf("%+v after %+v", cut, made)
	}
	ask(b, control.FileRequest{Op: control.Unlink, Path: "y"})
	if _, err := a.Files().Do(ctx, control.FileRequest{Op: control.Lookup, At: made.File.Handle}); !errors.Is(err,
		control.StaleFile) {
		t.Errorf("the handle of a removed file: %v", err)
	}
	use := ask(a, control.FileRequest{Op: control.Usage})
	if space, err := use.Space(); err != nil || space.Files != 1 || space.Directories != 1 || space.Capacity == 0 {
		t.Errorf("%+v, %v", space, err)
	}
	for i := range 300 { // more than a reply has space for
		ask(a, control.FileRequest{Op: control.Create, Path: fmt.Sprintf("many-%0100d", i)})
	}
	if got := listed(t, b.Files(), ""); len(got) != 301 {
		t.Errorf("%d entries", len(got))
	}
}

// TestFilesData: a file that Files has opened is written, grows, is renamed, survives the loss of the connection, and
// can be given a name after it was filled.
func TestFilesData(t *testing.T) {
	bounded(t, time.Minute)
	h := newHost(t)
	p := newProxy(t, h.address(), never)
	c := dial(t, p.address(), quick())
	files, ctx := c.Files(), context.Background()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := files.Do(ctx, control.FileRequest{Op: control.Create, Path: "f", Perm: 0o600, Size: 10})
	check(err)
	f, x, err := files.Open(ctx, control.Handle{}, "f", all)
	check(err)
	if x.Size != 10 || f.Size() != 10 || x.Perm != 0o600 {
		t.Errorf("%+v", x)
	}
	_, err = f.WriteAt([]byte("0123456789"), 0)
	check(err)
	want := []byte("0123456789")
	for size := uint64(ctl.Page); size <= 32*ctl.Page; size *= 2 {
		x, err = f.Grow(size)
		check(err)
		if x.Size != size || f.Size() != size {
			t.Fatalf("%d and %d bytes, want %d", x.Size, f.Size(), size)
		}
		b := bytes.Repeat([]byte{byte(size >> 12)}, int(size)-len(want))
		_, err = f.WriteAt(b, int64(len(want)))
		check(err)
		want = append(want, b...)
		if size == 4*ctl.Page {
			_, err = files.Do(ctx, control.FileRequest{Op: control.Rename, Path: "f", Other: "g"})
			check(err)
			p.to(h.address()) // resets the connection
		}
	}
	check(f.Flush())
	got := make([]byte, len(want))
	_, err = f.ReadAt(got, 0)
	check(err)
	if !bytes.Equal(got, want) {
		t.Error("the data are others")
	}
	other := dial(t, h.address(), quick())
	g, _, err := other.Files().Open(ctx, control.Handle{}, "g", all)
	check(err)
	if _, err := g.Grow(1 << 20); !errors.Is(err, control.Busy) {
		t.Errorf("a file that two clients have open is moved: %v", err)
	}
	if _, err := g.ReadAt(got, 0); err != nil || !bytes.Equal(got, want) {
		t.Errorf("after that: %v", err)
	}
	temp, x, err := files.Temp(ctx, 0o644, 5, 6, all)
	check(err)
	_, err = temp.Grow(8192)
	check(err)
	_, err = temp.WriteAt(want[:8192], 0)
	check(err)
	check(temp.Flush())
	_, err = files.Do(ctx, control.FileRequest{Op: control.Name, At: x.Handle, Other: "named", Keep: true})
	check(err)
	check(temp.Close())
	named := open(t, other, "named")
	if _, err := named.ReadAt(got[:8192], 0); err != nil || !bytes.Equal(got[:8192], want[:8192]) {
		t.Error("the named file has other data", err)
	}
	lost, _, err := files.Temp(ctx, 0o644, 0, 0, all)
	check(err)
	p.to(h.address())
	if _, err := lost.Grow(1); err == nil {
		t.Error("a file without a name outlives its connection")
	}
	if n := h.tree.Usage().Files; n != 3 { // disk, g and named
		t.Errorf("%d files", n)
	}
}

// TestFilesRefused: servers that execute no requests, or only those that change nothing, say so.
func TestFilesRefused(t *testing.T) {
	h := newHost(t)
	serve := func(change func(*server.Config)) string {
		sc := server.DefaultConfig()
		sc.Pool, sc.Files, sc.Requests = h.pool, server.Tree(h.tree, cfs.Cred{}), server.Requests(h.tree, cfs.Cred{})
		sc.Address, sc.Connections, sc.Reads = "127.0.0.1:0", 2, 2
		change(&sc)
		s, err := server.New(sc)
		if err == nil {
			err = s.Listen()
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Drain(0) })
		address, _, _ := s.Addresses()
		return address
	}
	lookup := control.FileRequest{Op: control.Lookup, Path: "disk"}
	remove := control.FileRequest{Op: control.Unlink, Path: "disk"}
	ctx := context.Background()
	none := dial(t, serve(func(c *server.Config) { c.Requests = nil }), quick())
	if _, err := none.Files().Do(ctx, lookup); !errors.Is(err, client.ErrNoFiles) {
		t.Error(err)
	}
	frozen := dial(t, serve(func(c *server.Config) { c.ReadOnly = true }), quick())
	if _, err := frozen.Files().Do(ctx, lookup); err != nil {
		t.Error(err)
	}
	if _, err := frozen.Files().Do(ctx, remove); !errors.Is(err, control.ReadOnly) {
		t.Error(err)
	}
	if _, _, err := frozen.Files().Temp(ctx, 0o600, 0, 0, all); !errors.Is(err, control.ReadOnly) {
		t.Error(err)
	}
	f, _, err := frozen.Files().Open(ctx, control.Handle{}, "disk", all)
	if err != nil || f.Rights()&^1 != 0 {
		t.Error(err)
	} else if _, err := f.Grow(1 << 30); !errors.Is(err, control.Denied) {
		t.Error(err)
	}
	once := setting(false) // does not reconnect: its requests have no numbers
	if _, err := dial(t, h.address(), once).Files().Do(ctx, remove); err != nil {
		t.Error(err)
	}
}

// TestFilesOldServer: a server that answers Ask as one of before it is said to be old.
func TestFilesOldServer(t *testing.T) {
	address := answering(t, func(r control.Request) control.Reply {
		reply := control.Reply{Op: r.Op, ID: r.ID}
		if r.Op > control.Fence {
			reply.Status = control.Malformed
		} else {
			reply.Text = "instance"
		}
		return reply
	})
	_, err := dial(t, address, quick()).Files().Do(context.Background(), control.FileRequest{Op: control.Usage})
	if !errors.Is(err, client.ErrOldServer) {
		t.Error(err)
	}
}

// answering is a server that answers control requests by a function.
func answering(t *testing.T, answer func(control.Request) control.Reply) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	a, err := verbs.NewAdapter([16]byte{1})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		nc, err := l.Accept()
		if err != nil {
			return
		}
		in := make([]byte, control.MaxRequest)
		cfg := stream.DefaultConfig()
		cfg.Prepare = func(c *stream.Conn) error { return c.PostReceive(verbs.Receive{Local: in}) }
		c, err := stream.Server(nc, a.NewDomain(1), cfg)
		if err != nil {
			return
		}
		defer c.Close()
		for x := make([]verbs.Completion, 1); c.Wait(x) > 0; {
			if x[0].Err != nil || !x[0].Receive {
				continue
			}
			r, _ := control.ParseRequest(in[:x[0].Length]) // has what could be decoded
			if c.PostReceive(verbs.Receive{Local: in}) != nil ||
				c.Post(verbs.Work{Op: wire.Send, Local: answer(r).Append(nil), Quiet: true}) != nil {
				return
			}
		}
	}()
	return l.Addr().String()
}
