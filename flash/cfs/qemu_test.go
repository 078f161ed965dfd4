package cfs_test

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"farflash/flash/cfs"
	"farflash/flash/ctl"
	"farflash/flash/device"
	"farflash/numeric/rng"
)

// export is a device served by another program: an export of the Network Block Device protocol, with simple replies.
type export struct {
	conn  net.Conn
	size  int64
	write sync.Mutex
	mu    sync.Mutex
	under map[uint64]*device.Op
	next  uint64
	ended error
	done  chan struct{}

	flushes atomic.Int64 // flushes submitted
}

// dialExport opens an export with NBD_OPT_EXPORT_NAME, which every server supports.
func dialExport(socket, name string) (*export, error) {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return nil, err
	}
	e := &export{conn: conn, under: map[uint64]*device.Op{}, done: make(chan struct{})}
	var hello [18]byte
	if _, err := io.ReadFull(conn, hello[:]); err != nil || string(hello[:16]) != "NBDMAGICIHAVEOPT" {
		return nil, errors.Join(fmt.Errorf("no server of the protocol: %q", hello[:]), err, conn.Close())
	}
	ask := binary.BigEndian.AppendUint32(nil, 3) // fixed newstyle, no zeroes
	ask = append(ask, "IHAVEOPT"...)
	ask = binary.BigEndian.AppendUint32(ask, 1) // export by name
	ask = binary.BigEndian.AppendUint32(ask, uint32(len(name)))
	ask = append(ask, name...)
	if _, err := conn.Write(ask); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	var about [10]byte
	if _, err := io.ReadFull(conn, about[:]); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	e.size = int64(binary.BigEndian.Uint64(about[:])) / device.Grain * device.Grain
	go e.replies()
	return e, nil
}

// Submit implements device.Device.
func (e *export) Submit(ops ...*device.Op) {
	for _, op := range ops {
		if err := op.Check(e.size); err != nil {
			op.Finish(err)
			continue
		}
		b := binary.BigEndian.AppendUint32(nil, 0x25609513)
		b = binary.BigEndian.AppendUint16(b, 0)
		b = binary.BigEndian.AppendUint16(b, [...]uint16{device.Read: 0, device.Write: 1, device.Flush: 3}[op.Kind])
		e.mu.Lock()
		if e.ended != nil {
			e.mu.Unlock()
			op.Finish(e.ended)
			continue
		}
		e.next++
		b = binary.BigEndian.AppendUint64(b, e.next)
		e.under[e.next] = op
		e.mu.Unlock()
		if op.Kind == device.Flush {
			e.flushes.Add(1)
			b = append(b, make([]byte, 12)...)
		} else {
			b = binary.BigEndian.AppendUint64(b, uint64(op.Offset))
			b = binary.BigEndian.AppendUint32(b, uint32(len(op.Buf)))
		}
		if op.Kind == device.Write {
			b = append(b, op.Buf...)
		}
		e.write.Lock()
		_, _ = e.conn.Write(b) // replies reports the error
		e.write.Unlock()
	}
}

func (e *export) replies() {
	defer close(e.done)
	r := bufio.NewReader(e.conn)
	var head [16]byte
	for {
		_, err := io.ReadFull(r, head[:])
		if err == nil && binary.BigEndian.Uint32(head[:]) != 0x67446698 {
			err = errors.New("no reply of the protocol")
		}
		var op *device.Op
		e.mu.Lock()
		if err == nil {
			op = e.under[binary.BigEndian.Uint64(head[8:])]
			delete(e.under, binary.BigEndian.Uint64(head[8:]))
		}
		if op == nil {
			e.ended = errors.Join(device.ErrClosed, err)
			left := e.under
			e.under = nil
			e.mu.Unlock()
			for _, op := range left {
				op.Finish(e.ended)
			}
			return
		}
		e.mu.Unlock()
		if code := binary.BigEndian.Uint32(head[4:]); code != 0 {
			op.Finish(syscall.Errno(code))
			continue
		}
		if op.Kind == device.Read {
			if _, err := io.ReadFull(r, op.Buf); err != nil {
				op.Finish(err)
				continue
			}
		}
		op.Finish(nil)
	}
}

// Size implements device.Device.
func (e *export) Size() int64 { return e.size }

// Close implements device.Device.
func (e *export) Close() error {
	b := binary.BigEndian.AppendUint32(nil, 0x25609513)
	b = append(b, 0, 0, 0, 2) // disconnect
	_, err := e.conn.Write(append(b, make([]byte, 20)...))
	<-e.done
	return errors.Join(err, e.conn.Close())
}

// logged is an entry of a write log in the format of Linux dm-log-writes.
type logged struct {
	at    int64
	b     []byte
	flush bool
}

// readLog reads such a log: a superblock, then for each write one sector of metadata and its data.
func readLog(path string) ([]logged, error) {
	const sector, flagFlush, flagDiscard = 512, 1, 4
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	le := binary.LittleEndian
	if len(b) < sector || le.Uint64(b) != 0x6a736677736872 || le.Uint64(b[8:]) != 1 || le.Uint32(b[24:]) != sector {
		return nil, errors.New("no log of writes with sectors of 512 bytes")
	}
	var all []logged
	at := sector
	for range le.Uint64(b[16:]) {
		if at+sector > len(b) {
			return nil, io.ErrUnexpectedEOF
		}
		where, n, flags := le.Uint64(b[at:]), int(le.Uint64(b[at+8:]))*sector, le.Uint64(b[at+16:])
		at += sector
		if flags&flagDiscard != 0 {
			return nil, errors.New("a discard, which nobody asked for")
		}
		if n < 0 || at+n > len(b) {
			return nil, io.ErrUnexpectedEOF
		}
		all = append(all, logged{int64(where) * sector, b[at : at+n], flags&flagFlush != 0})
		at += n
	}
	return all, nil
}

// TestRecorded has QEMU's storage daemon serve the device and record writes and flushes with its blklogwrites driver.
// Every prefix of the record, and every prefix with some unflushed writes left out, must be a device on which the pool
// opens, all checks pass, and everything acknowledged by then is present.
func TestRecorded(t *testing.T) {
	daemon, err := exec.LookPath("qemu-storage-daemon")
	if err != nil {
		t.Skip("qemu-storage-daemon (Debian: qemu-system-common) is not there")
	}
	dir := t.TempDir()
	image, record, socket := filepath.Join(dir, "image"), filepath.Join(dir, "log"), filepath.Join(dir, "socket")
	const grains = 900
	for path, size := range map[string]int64{image: grains * device.Grain, record: 1 << 30} {
		f := must(os.Create(path))(t)
		ok(t, f.Truncate(size))
		ok(t, f.Close())
	}
	var said strings.Builder
	cmd := exec.Command(daemon,
		"--blockdev", "driver=file,node-name=data,filename="+image, "--blockdev",
		"driver=file,node-name=log,filename="+record,
		"--blockdev", "driver=blklogwrites,node-name=recorder,file=data,log=log,log-sector-size=512",
		"--nbd-server", "addr.type=unix,addr.path="+socket, "--export",
		"type=nbd,id=pool,node-name=recorder,name=pool,writable=on")
	cmd.Stdout, cmd.Stderr = &said, &said
	ok(t, cmd.Start())
	gone := make(chan error, 1)
	go func() { gone <- cmd.Wait() }()
	defer func() { _ = cmd.Process.Kill() }() // already exited if the test passed
	var dev *export
	for range 500 {
		if dev, err = dialExport(socket, "pool"); err == nil {
			break
		}
		select {
		case err := <-gone:
			t.Fatalf("%v\n%s", err, said.String())
		case <-time.After(10 * time.Millisecond):
		}
	}
	ok(t, err)

	// Each acknowledgement, with the number of flushes submitted by then: a record with that many flushes contains its
	// data.
	type ack struct {
		flushes int64
		state   string
	}
	cfg, layout := smallPool()
	shape := must(layout.Shape(dev.Size()))(t)
	ok(t, ctl.Format(shape, dev))
	pool := must(ctl.Open(cfg, dev))(t)
	ok(t, cfs.Format(pool, cfs.Config{}))
	f := must(cfs.Open(pool, cfs.Config{}))(t)
	acks := []ack{{dev.flushes.Load(), must(tree(f))(t)}}
	for range 3 {
		for _, s := range steps() {
			if err := s.do(f); err != nil {
				t.Fatalf("%s: %v", s.name, err)
			}
			n := dev.flushes.Load()
			acks = append(acks, ack{n, must(tree(f))(t)})
		}
		ok(t, f.Remove(root, "/b"))
		acks = append(acks, ack{dev.flushes.Load(), must(tree(f))(t)})
	}
	ok(t, pool.Close())
	ok(t, cmd.Process.Signal(syscall.SIGTERM))
	if err := <-gone; err != nil {
		t.Fatalf("%v\n%s", err, said.String())
	}

	entries := must(readLog(record))(t)
	disk := device.NewMem(grains * device.Grain) // flushed writes
	var loose []logged                           // unflushed writes
	draw := rng.NewStream(1, "recorded")
	flushes, looked, opened := int64(0), 0, 0
	apply := func(to *device.Mem, e logged) {
		if len(e.b) > 0 {
			ok(t, device.Do(to, device.Write, e.at, e.b))
		}
	}
	look := func(found *device.Mem, number int) {
		looked++
		acked := -1
		for i, a := range acks {
			if a.flushes <= flushes {
				acked = i
			}
		}
		pool, err := ctl.Open(cfg, found)
		if err != nil {
			if acked >= 0 {
				t.Fatalf("after entry %d of %d, %d flushes: %v", number, len(entries), flushes, err)
			}
			return // it was still being formatted
		}
		defer func() { ok(t, pool.Close()) }()
		if acked < 0 {
			return
		}
		opened++
		f, err := cfs.Open(pool, cfs.Config{})
		if err != nil {
			t.Fatalf("after entry %d: %v", number, err)
		}
		for _, v := range append(f.Check().Violations, pool.Check(true).Violations...) {
			t.Errorf("after entry %d: %v", number, v)
		}
		got := must(tree(f))(t)
		possible := false
		for _, a := range acks[acked:] {
			possible = possible || a.state == got
		}
		if !possible {
			t.Fatalf("after entry %d, with %d flushes: %q; acknowledged was %q", number, flushes, got,
				acks[acked].state)
		}
	}
	stride := 1
	if raced {
		stride = 9 // single-threaded: no races to find
	}
	for i, e := range entries {
		if e.flush {
			flushes++
			for _, l := range loose {
				apply(disk, l)
			}
			loose = loose[:0]
		}
		if len(e.b) > 0 {
			loose = append(loose, e)
		}
		if i%stride != 0 {
			continue
		}
		whole, some := disk.Reopen(), disk.Reopen()
		for _, l := range loose {
			apply(whole, l)
			if draw.IntN(2) == 0 {
				apply(some, l)
			}
		}
		look(whole, i)
		look(some, i)
	}
	t.Logf("%d entries, %d flushes, %d devices looked at, %d of them after the file system was made; %d acknowledged",
		len(entries), flushes, looked, opened, len(acks))
	if !raced && (opened < 100 || flushes < int64(len(acks))) {
		t.Error("too little was recorded")
	}
}
