package server_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"farflash/flash/cfs/live"
	"farflash/flash/ctl"
	"farflash/flash/nbd"
	"farflash/flash/nbd/nbdtest"
	"farflash/flash/nvme/chap"
	"farflash/flash/nvme/initiator"
)

// The files of a soak: for workers, which write to it through both doors and verify it; for fio; and one that changes
// its size. All pools together have less than 1 GiB.
const (
	soakPool  = "160MiB"
	soakData  = 12 << 20
	soakFio   = 8 << 20
	soakSpare = 4 << 20 // and up to four times that

	soakWorkers = 3
	soakPages   = soakData / ctl.Page / soakWorkers // of each worker
)

// soak is a daemon under load.
type soak struct {
	*program
	t       *testing.T
	nbdAt   string
	nvmeAt  string
	dir     string // of secrets
	issuer  *authority
	own     tls.Certificate // of clients
	lasts   time.Time
	ended   atomic.Bool
	members sync.WaitGroup

	// state is odd while the daemon may be away. mu is held where it changes, and by those who need the process.
	state atomic.Int64
	mu    sync.Mutex

	// secrets is write-locked while the daemon may use old or new ones.
	secrets sync.RWMutex
	keys    [soakWorkers + 1]chap.Keys // of workers and the visitor
	reread  chan bool                  // the daemon has read secrets again

	operations, durable, verified, away, dropped, visits, sizes, reloads, jobs, kills atomic.Int64
}

// TestSoakDoors serves two pools through NBD with TLS and NVMe/TCP with keys, from processes of the program: one is
// killed again and again, of the other the memory is watched. Workers write through both doors, flush, and verify: no
// page may be older than the last version that was flushed, or acknowledged by a process that lives. A worker also
// closes its NVMe association with writes on their way and comes back: they must not land after later ones. Meanwhile
// fio writes and verifies through NBD, clients come and go without saying so, a file changes its size, and secrets are
// replaced. Nothing may fail but what a kill makes fail, and the log has no errors.
//
// FARFLASH_SOAK_SERVE=45m is its length; memory is judged from 3 minutes on.
func TestSoakDoors(t *testing.T) {
	length := 5 * time.Second
	if text := os.Getenv("FARFLASH_SOAK_SERVE"); text != "" {
		var err error
		if length, err = time.ParseDuration(text); err != nil {
			t.Fatalf("FARFLASH_SOAK_SERVE: %v", err)
		}
	} else if testing.Short() {
		t.Skip("it takes some seconds, and more to build the program")
	}
	path := built(t)
	for _, name := range []string{"killed", "steady"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := beginSoak(t, path, length)
			if name == "killed" {
				s.killing()
			} else {
				s.watching()
			}
			s.members.Wait()
			t.Logf("%d operations, of them %d durable; %d pages verified, %d steps met a daemon that was away; %d "+
				"kills, "+
				"%d dropped associations, %d visits, %d sizes, %d reloads, %d jobs of fio", s.operations.Load(),
				s.durable.Load(), s.verified.Load(), s.away.Load(), s.kills.Load(), s.dropped.Load(), s.visits.Load(),
				s.sizes.Load(), s.reloads.Load(), s.jobs.Load())
			for what, n := range map[string]int64{"operation": s.operations.Load(), "flush": s.durable.Load(),
				"verified page": s.verified.Load(), "dropped association": s.dropped.Load(), "visit": s.visits.Load(),
				"change of size": s.sizes.Load(), "reload": s.reloads.Load()} {
				if n == 0 && length >= time.Minute && !t.Failed() { // shorter ones may not get there
					t.Errorf("there was no %s", what)
				}
			}
		})
	}
}

func beginSoak(t *testing.T, path string, length time.Duration) *soak {
	s := &soak{t: t, dir: t.TempDir(), nbdAt: lasting(t), issuer: newAuthority(t), reread: make(chan bool, 1)}
	s.own = s.issuer.issue(t, false)
	s.secure()
	config := filepath.Join(s.dir, "serve.yaml")
	s.put("serve.yaml", fmt.Appendf(nil, "exports: {data: %dB, fio: %dB}\n", soakData, soakFio))
	pair := filepath.Join(s.dir, "server.pem")
	s.program = launch(t, path, "--config", config, "--size", soakPool, "--nbd", s.nbdAt, "--nvme-queues", "1",
		"--tls-cert", pair, "--tls-key", pair, "--tls-clients", filepath.Join(s.dir, "ca-cert.pem"), "--nvme-keys",
		filepath.Join(s.dir, "keys"), "--log", "json")
	s.nvmeAt = net.JoinHostPort("127.0.0.1", s.port)
	s.errors = s
	s.start()
	s.lasts = time.Now().Add(length)
	for i := range soakWorkers {
		s.member(&worker{s: s, number: i, r: mathrand.New(mathrand.NewPCG(uint64(i), 11)), base: i * soakPages,
			pages: make([]version, soakPages)})
	}
	s.member(&visitor{s: s, r: mathrand.New(mathrand.NewPCG(1, 12))})
	s.member(&operator{s: s, r: mathrand.New(mathrand.NewPCG(1, 13))})
	if engines, err := exec.Command("fio", "--enghelp").Output(); err == nil && bytes.Contains(engines, []byte("nbd")) {
		l, err := net.Listen("unix", filepath.Join(s.dir, "fio"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() }) // nothing is written to it
		go s.relay(l)
		s.member(&tester{s})
	} else {
		t.Log("fio with the engine nbd is not installed")
	}
	return s
}

// turner is a member of a soak: it takes turns until the end.
type turner interface {
	turn()
	last() // after the end
}

func (s *soak) member(m turner) {
	s.members.Go(func() {
		for time.Now().Before(s.lasts) && !s.ended.Load() {
			m.turn()
		}
		if !s.ended.Load() {
			m.last()
		}
	})
}

// fail reports an error that no kill explains, and ends the soak.
func (s *soak) fail(format string, args ...any) {
	s.t.Helper()
	if !s.ended.Swap(true) {
		s.t.Errorf(format, args...)
	}
}

// try runs a step that uses the daemon. It may fail if the daemon was away at some time meanwhile.
func (s *soak) try(what string, step func() error) bool {
	s.t.Helper()
	return s.tryIn(s.state.Load(), what, step)
}

// tryIn is try for a step that uses what was opened when the state was before.
func (s *soak) tryIn(before int64, what string, step func() error) bool {
	s.t.Helper()
	err := step()
	switch {
	case err == nil:
		return true
	case before%2 != 0 || s.state.Load() != before:
		s.away.Add(1)
		time.Sleep(10 * time.Millisecond)
	default:
		s.fail("%s: %v", what, err)
	}
	return false
}

// killing kills the daemon again and again, after a time that lets several steps end, or hardly one.
func (s *soak) killing() {
	r := mathrand.New(mathrand.NewPCG(1, 14))
	mean := min(time.Until(s.lasts)/4, 20*time.Second)
	for !s.ended.Load() {
		pause := time.Duration(r.ExpFloat64() * float64(mean))
		if time.Until(s.lasts) < pause+time.Second {
			return
		}
		time.Sleep(pause)
		s.mu.Lock()
		s.state.Add(1)
		s.kill()
		s.start()
		s.state.Add(1)
		s.kills.Add(1)
		s.mu.Unlock()
	}
}

// watching samples the memory of the daemon until the end. Of the last third it must be that of the middle one.
func (s *soak) watching() {
	began, length := time.Now(), time.Until(s.lasts)
	var thirds [3][]float64
	for !s.ended.Load() && time.Now().Before(s.lasts) {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
		if err != nil {
			s.t.Logf("memory is not watched: %v", err)
			return
		}
		_, rest, _ := strings.Cut(string(text), "VmRSS:")
		var kib float64
		if _, err := fmt.Sscan(rest, &kib); err != nil {
			s.fail("the daemon's memory: %v", err)
			return
		}
		at := min(2, int(3*time.Since(began)/length))
		thirds[at] = append(thirds[at], kib/1024)
		time.Sleep(250 * time.Millisecond)
	}
	var mean [3]float64
	for i, all := range thirds {
		for _, x := range all {
			mean[i] += x / float64(len(all))
		}
	}
	s.t.Logf("memory in MiB, in thirds: %.1f", mean)
	if length >= 3*time.Minute && mean[2] > 1.05*mean[1] {
		s.fail("the memory grows: it has %.1f MiB in the middle third, and %.1f MiB in the last", mean[1], mean[2])
	}
}

// Write receives the daemon's log.
func (s *soak) Write(b []byte) (int, error) {
	for line := range bytes.Lines(b) {
		var x struct{ Level, Msg string }
		switch err := json.Unmarshal(line, &x); {
		case err != nil || x.Level == "ERROR":
			s.t.Logf("the daemon says: %s", line)
			s.fail("the daemon's log has an error")
		case strings.Contains(x.Msg, "are read again; open connections"):
			select {
			case s.reread <- true:
			default:
			}
		}
	}
	return len(b), nil
}

// put replaces a file.
func (s *soak) put(name string, b []byte) {
	at := filepath.Join(s.dir, name)
	if err := errors.Join(os.WriteFile(at+".new", b, 0o600), os.Rename(at+".new", at)); err != nil {
		s.fail("%v", err)
	}
}

// hostOf is the name of a worker as a host, or of the visitor.
func hostOf(number int) string { return fmt.Sprintf("nqn.2026-01.example:host%d", number) }

// secure makes new secrets: a certificate of the daemon, keys of hosts and the subsystem.
func (s *soak) secure() {
	s.put("server.pem", pemOf(s.t, s.issuer.issue(s.t, false)))
	s.put("ca-cert.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.issuer.cert.Raw}))
	s.put("client-cert.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.own.Certificate[0]}))
	s.put("client-key.pem", pemOf(s.t, s.own))
	var lines []byte
	for i := range s.keys {
		var k [2]chap.Key
		for j := range k {
			var err error
			if k[j], err = chap.NewKey(rand.Reader); err != nil {
				s.fail("%v", err)
			}
		}
		s.keys[i] = chap.Keys{Host: k[0], Controller: k[1]}
		lines = fmt.Appendf(lines, "%s %s %s\n", hostOf(i), k[0].Text(), k[1].Text())
	}
	s.put("keys", lines)
}

// pemOf returns a certificate and its key.
func pemOf(t *testing.T, c tls.Certificate) []byte {
	key, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		t.Error(err)
	}
	return slices.Concat(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}))
}

// begin connects to NBD, up to TLS.
func (s *soak) begin() (*nbdtest.Client, error) {
	s.secrets.RLock()
	defer s.secrets.RUnlock()
	nc, err := net.DialTimeout("tcp", s.nbdAt, 10*time.Second)
	if err != nil {
		return nil, err
	}
	c, err := nbdtest.NewClient(nc, nbd.FlagFixedNewstyle|nbd.FlagNoZeroes)
	if err == nil {
		err = c.SetDeadline(time.Now().Add(time.Minute))
	}
	if err == nil {
		err = c.Secure(&tls.Config{RootCAs: s.issuer.pool, Certificates: []tls.Certificate{s.own},
			ServerName: "127.0.0.1"})
	}
	if err == nil {
		err = c.SetDeadline(time.Time{})
	}
	if err != nil {
		return nil, errors.Join(err, nc.Close())
	}
	return c, nil
}

// nbd connects to an export.
func (s *soak) nbd(name string) (*nbdtest.Client, error) {
	c, err := s.begin()
	if err != nil {
		return nil, err
	}
	if err := c.Go(name, true); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// nvme connects as a host, and returns the namespace of data.
func (s *soak) nvme(number int) (*initiator.Association, *initiator.Namespace, error) {
	s.secrets.RLock()
	defer s.secrets.RUnlock()
	c := initiator.DefaultConfig()
	c.Reconnect = initiator.Reconnect{} // the soak itself makes other associations
	c.Subsystem, c.Queues, c.Depth, c.Host, c.HostID, c.Keys = subsystem, 1, 16, hostOf(number),
		[16]byte{15: byte(number + 1)}, s.keys[number]
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	a, err := initiator.Dial(ctx, s.nvmeAt, c)
	if err != nil {
		return nil, nil, err
	}
	all, err := a.Namespaces()
	for _, x := range all {
		if x.Size() == soakData {
			return a, x, nil
		}
	}
	return nil, nil, errors.Join(fmt.Errorf("none of %d namespaces is that of data", len(all)), err, a.Close())
}

// version is what a worker knows of a page. A version that is a multiple of 8 is all zeros.
type version struct {
	sent    uint64 // the newest version, which may not have arrived
	low     uint64 // no older one can be read while the daemon lives
	flushed uint64 // no older one can be read at all
}

func (v version) page(number int, at uint64) []byte {
	if at%8 == 0 {
		at = 0
	}
	return versionPage(at, number)
}

// worker writes and verifies pages of its own, through both doors.
type worker struct {
	s      *soak
	number int
	r      *mathrand.Rand
	base   int // its first page
	pages  []version
	life   int64 // the daemon's state when it connected first

	association *initiator.Association
	space       *initiator.Namespace
	client      *nbdtest.Client
}

// close closes both doors.
func (w *worker) close() {
	if w.association != nil {
		_ = w.association.Close() // it may have failed
	}
	if w.client != nil {
		_ = w.client.Close() // it may have failed
	}
	w.association, w.space, w.client = nil, nil, nil
}

// open opens both doors, as far as they are not open. If the daemon may be another than before, they were those of the
// old one, and only what was flushed is known.
func (w *worker) open() error {
	if now := w.s.state.Load(); now != w.life || now%2 != 0 {
		w.close()
		w.life = now
		for i := range w.pages {
			w.pages[i].low = w.pages[i].flushed
		}
	}
	var err error
	if w.association == nil {
		if w.association, w.space, err = w.s.nvme(w.number); err != nil {
			w.association = nil
			return err
		}
	}
	if w.client == nil {
		w.client, err = w.s.nbd("data")
	}
	return err
}

// some is a range of its pages.
func (w *worker) some() (first, n int) {
	n = 1 + w.r.IntN(8)
	return w.r.IntN(len(w.pages) - n + 1), n
}

// turn takes a step through one of the doors.
func (w *worker) turn() {
	w.s.operations.Add(1)
	first, n := w.some()
	overNBD := w.r.IntN(2) == 0
	ok := w.s.try("connecting", w.open)
	if ok {
		switch k := w.r.IntN(100); {
		case k < 40:
			ok = w.s.tryIn(w.life, "writing", func() error { return w.write(overNBD, first, n, k < 8) })
		case k < 48:
			ok = w.s.tryIn(w.life, "zeroing", func() error { return w.zero(overNBD, first, n) })
		case k < 58:
			ok = w.s.tryIn(w.life, "flushing", func() error { return w.flush(overNBD) })
		case k < 60:
			w.drop(first, n)
		default:
			ok = w.s.tryIn(w.life, "reading", func() error { return w.verify(overNBD, first, n) })
		}
	}
	if !ok {
		w.close()
	}
	time.Sleep(time.Duration(w.r.IntN(4)) * time.Millisecond)
}

// last verifies everything through both doors.
func (w *worker) last() {
	defer w.close()
	for _, overNBD := range []bool{false, true} {
		const chunk = 64
		for first := 0; first < len(w.pages); first += chunk {
			for !w.s.ended.Load() && !w.s.try("at the end", func() error {
				return errors.Join(w.open(), w.verify(overNBD, first, min(chunk, len(w.pages)-first)))
			}) {
				w.close()
			}
		}
	}
}

// errno makes an error of the result of an NBD command.
func errno(e nbd.Errno, err error) error {
	if err == nil && e != 0 {
		err = e
	}
	return err
}

// next returns pages of new versions, which may be there from now on.
func (w *worker) next(first, n int, zero bool) []byte {
	var b []byte
	for i := first; i < first+n; i++ {
		p := &w.pages[i]
		for p.sent++; p.sent%8 == 0 != zero; p.sent++ {
		}
		b = append(b, p.page(w.base+i, p.sent)...)
	}
	return b
}

// there notes that the newest versions have arrived.
func (w *worker) there(first, n int, durable bool) {
	for i := first; i < first+n; i++ {
		p := &w.pages[i]
		if p.low = p.sent; durable {
			p.flushed = p.sent
		}
	}
}

func (w *worker) write(overNBD bool, first, n int, durable bool) (err error) {
	b, at := w.next(first, n, false), int64(w.base+first)*ctl.Page
	switch {
	case overNBD:
		flags := uint16(0)
		if durable {
			flags = nbd.CmdFUA
		}
		err = errno(w.client.Do(flags, nbd.CmdWrite, uint64(at), uint32(len(b)), b))
	case durable:
		_, err = w.space.WriteDurable(b, at)
	default:
		_, err = w.space.WriteAt(b, at)
	}
	if err == nil {
		w.there(first, n, durable)
	}
	return err
}

func (w *worker) zero(overNBD bool, first, n int) (err error) {
	b, at := w.next(first, n, true), int64(w.base+first)*ctl.Page
	if overNBD {
		err = errno(w.client.Do(0, nbd.CmdWriteZeroes, uint64(at), uint32(len(b)), nil))
	} else {
		err = w.space.WriteZeroes(at, int64(len(b)))
	}
	if err == nil {
		w.there(first, n, false)
	}
	return err
}

func (w *worker) flush(overNBD bool) (err error) {
	if overNBD {
		err = errno(w.client.Do(0, nbd.CmdFlush, 0, 0, nil))
	} else {
		err = w.space.Flush()
	}
	if err == nil {
		for i := range w.pages {
			w.pages[i].flushed = w.pages[i].low
		}
		w.s.durable.Add(1)
	}
	return err
}

// verify reads pages and verifies that each has a version that is possible.
func (w *worker) verify(overNBD bool, first, n int) (err error) {
	b, at := make([]byte, n*ctl.Page), int64(w.base+first)*ctl.Page
	if overNBD {
		var e nbd.Errno
		b, _, e, err = w.client.Fetch(0, uint64(at), uint32(len(b)))
		err = errno(e, err)
	} else {
		_, err = w.space.ReadAt(b, at)
	}
	if err != nil {
		return err
	}
	for i := first; i < first+n; i++ {
		page, p := b[(i-first)*ctl.Page:][:ctl.Page], &w.pages[i]
		// The newest possible one that has these low bits.
		got := p.sent - (p.sent-uint64(binary.LittleEndian.Uint16(page)))&0xffff
		if zero := page[3] == 0; zero {
			got = p.sent &^ 7
		}
		if got < p.low || got > p.sent || !bytes.Equal(page, p.page(w.base+i, got)) {
			w.s.fail("page %d has % x..., version %d or none; known are %+v, through NBD %t", w.base+i, page[:8], got,
				*p,
				overNBD)
			return nil
		}
		if got%8 != 0 { // there may be several versions of zeros
			p.low = got
		}
		w.s.verified.Add(1)
	}
	return nil
}

// drop closes the association with a write on its way, comes back as the same host, and writes a newer version: the
// old one must not land later.
func (w *worker) drop(first, n int) {
	old := w.next(first, n, false)
	space, sent := w.space, make(chan bool)
	go func() {
		defer close(sent)
		_, _ = space.WriteAt(old, int64(w.base+first)*ctl.Page) // it may arrive or not
	}()
	time.Sleep(time.Duration(w.r.IntN(300)) * time.Microsecond)
	_ = w.association.Close() // the write fails, not this
	<-sent
	w.association, w.space = nil, nil
	if w.s.try("connecting again", w.open) && w.s.tryIn(w.life, "writing again", func() error {
		return w.write(false, first, n, false)
	}) && w.s.tryIn(w.life, "reading again", func() error { return w.verify(w.r.IntN(2) == 0, first, n) }) {
		w.s.dropped.Add(1)
		return
	}
	w.close()
}

// visitor connects through one of the doors, or only knocks, and leaves without a word.
type visitor struct {
	s *soak
	r *mathrand.Rand
}

func (v *visitor) turn() {
	switch v.r.IntN(4) {
	case 0:
		v.s.try("knocking", func() error {
			nc, err := net.DialTimeout("tcp", []string{v.s.nbdAt, v.s.nvmeAt}[v.r.IntN(2)], 10*time.Second)
			if err == nil {
				_, _ = nc.Write(make([]byte, v.r.IntN(100))) // it may be closed already
				err = nc.Close()
			}
			return err
		})
	case 1:
		v.s.try("visiting through NVMe", func() error {
			a, x, err := v.s.nvme(soakWorkers)
			if err != nil {
				return err
			}
			_, err = x.ReadAt(make([]byte, ctl.Page), 0)
			return errors.Join(err, a.Close())
		})
	default:
		v.s.try("visiting through NBD", func() error {
			c, err := v.s.nbd("fio")
			if err != nil {
				return err
			}
			_, err = c.Send(0, nbd.CmdRead, 0, soakFio/8, nil)
			if err == nil && v.r.IntN(2) == 0 {
				_, err = c.Next()
			}
			return errors.Join(err, c.Conn.(*tls.Conn).NetConn().Close())
		})
	}
	v.s.visits.Add(1)
	time.Sleep(time.Duration(20+v.r.IntN(80)) * time.Millisecond)
}

func (*visitor) last() {}

// operator changes the size of a file, and the secrets.
type operator struct {
	s *soak
	r *mathrand.Rand
}

func (o *operator) turn() {
	o.s.try("resizing", func() error {
		files, err := live.Dial("", o.s.pool)
		if err != nil {
			return err
		}
		err = files.Change(live.Request{Op: live.Resize, Path: "spare", Size: soakSpare * int64(1+o.r.IntN(4)),
			Create: true, Perm: 0o600})
		return errors.Join(err, files.Close())
	})
	o.s.sizes.Add(1)
	time.Sleep(time.Duration(100+o.r.IntN(300)) * time.Millisecond)
	if o.r.IntN(3) > 0 {
		return
	}
	o.s.secrets.Lock()
	defer o.s.secrets.Unlock()
	o.s.try("replacing secrets", func() error {
		o.s.mu.Lock() // the daemon is there
		select {
		case <-o.s.reread: // of a reload that was not waited for
		default:
		}
		before := o.s.state.Load()
		o.s.secure()
		err := o.s.cmd.Process.Signal(hangup)
		o.s.mu.Unlock()
		for range 3000 {
			select {
			case <-o.s.reread:
				o.s.reloads.Add(1)
				return err
			case <-time.After(10 * time.Millisecond):
			}
			if o.s.state.Load() != before && o.s.state.Load()%2 == 0 {
				return err // the next daemon has read them
			}
		}
		return errors.Join(err, errors.New("the daemon does not say that it has read them"))
	})
}

func (*operator) last() {}

// tester has fio write and verify through NBD.
type tester struct{ s *soak }

func (x *tester) turn() {
	x.s.try("fio", func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, "fio", "--name=soak", "--ioengine=nbd", "--thread",
			"--uri=nbd+unix:///fio?socket="+filepath.Join(x.s.dir, "fio"), "--rw=randwrite", "--bs=4k", "--size=8m",
			"--io_size=4m", "--iodepth=8", "--verify=crc32c", "--verify_fatal=1", "--rate_iops=2000", "--end_fsync=1")
		cmd.Dir, cmd.WaitDelay = x.s.dir, 10*time.Second
		out, err := cmd.CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		x.s.jobs.Add(1)
		return nil
	})
	time.Sleep(100 * time.Millisecond)
}

func (*tester) last() {}

// relay lets clients without TLS in, such as fio's, to which libnbd gives no certificates: it begins the negotiation in
// their place, up to TLS.
func (s *soak) relay(l net.Listener) {
	for {
		plain, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer func() { _ = plain.Close() }() // the client has its answers
			secret, err := s.begin()
			if err != nil {
				return
			}
			defer func() { _ = secret.Close() }() // likewise
			greeting := binary.BigEndian.AppendUint16([]byte("NBDMAGICIHAVEOPT"),
				nbd.FlagFixedNewstyle|nbd.FlagNoZeroes)
			if _, err := plain.Write(greeting); err != nil {
				return
			}
			if _, err := io.ReadFull(plain, make([]byte, 4)); err != nil { // its flags, which are the same
				return
			}
			go func() {
				_, _ = io.Copy(secret, plain) // until one of them closes
				_ = secret.Close()
			}()
			_, _ = io.Copy(plain, secret)
		}()
	}
}

// hangup makes the daemon read its secrets again.
const hangup = syscall.SIGHUP
