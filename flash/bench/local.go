package bench

import (
	"encoding/binary"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"farflash/flash/device"
)

// local submits to the ring directly, without a network or a server.
type local struct {
	b     *bench
	whole [][]byte // the ring's registered buffers
	ops   []device.Op
	begun []*device.Op
	event int // eventfd, readable when some have ended

	mu    sync.Mutex
	ended []int
}

func (b *bench) newLocal(depth int) (*local, error) {
	event, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("eventfd", err)
	}
	k := &local{b: b, ops: make([]device.Op, depth), event: event}
	for i := range k.ops {
		k.whole = append(k.whole, <-b.ring.buffers)
		k.ops[i].Buf = k.whole[i][device.Grain:][:b.cfg.Block]
		k.ops[i].Done = func(*device.Op) { k.end(i) }
	}
	return k, nil
}

var one = binary.NativeEndian.AppendUint64(nil, 1)

// end records a finished request and signals the first.
func (k *local) end(slot int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ended = append(k.ended, slot); len(k.ended) == 1 {
		_, _ = unix.Write(k.event, one) // cannot fail while the counter is below its maximum
	}
}

func (k *local) start(slot int, write bool, offset uint64) error {
	op := &k.ops[slot]
	// the thread waits for the only request
	op.Kind, op.Offset, op.Lone = device.Read, int64(offset), len(k.ops) == 1 && k.b.cfg.Connections == 1
	if write {
		op.Kind = device.Write
	}
	k.begun = append(k.begun, op)
	return nil
}

// flush submits all started requests together, as all systems send them.
func (k *local) flush() (bool, error) {
	if len(k.begun) > 0 {
		k.b.ring.device.Submit(k.begun...)
		k.begun = k.begun[:0]
	}
	return true, nil
}

func (k *local) take(ended []int) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.ended) == 0 {
		return 0, nil
	}
	n := copy(ended, k.ended) // all of them: ended has an element for each slot
	k.ended = k.ended[:0]
	var count [8]byte
	if _, err := unix.Read(k.event, count[:]); err != nil && err != unix.EINTR {
		return 0, os.NewSyscallError("read", err)
	}
	for _, slot := range ended[:n] {
		if err := k.ops[slot].Err; err != nil {
			return 0, fmt.Errorf("the file: %w", err)
		}
	}
	return n, nil
}

// close returns the buffers.
func (k *local) close() error {
	for _, w := range k.whole {
		k.b.ring.buffers <- w
	}
	return os.NewSyscallError("close", unix.Close(k.event))
}
