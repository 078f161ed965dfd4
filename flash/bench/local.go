package bench

import (
	"fmt"

	"farflash/flash/device"
)

// local asks the ring itself: no network and no server.
type local struct {
	b     *bench
	whole [][]byte // of the ring's memory
	ops   []device.Op
	begun []*device.Op
	ended chan int
}

func (b *bench) newLocal(depth int) *local {
	k := &local{b: b, ops: make([]device.Op, depth), ended: make(chan int, depth)}
	for i := range k.ops {
		k.whole = append(k.whole, <-b.ring.buffers)
		k.ops[i].Buf = k.whole[i][device.Grain:][:b.cfg.Block]
		k.ops[i].Done = func(*device.Op) { k.ended <- i }
	}
	return k
}

func (k *local) start(slot int, write bool, offset uint64) error {
	op := &k.ops[slot]
	op.Kind, op.Offset, op.Lone = device.Read, int64(offset), len(k.ops) == 1
	if write {
		op.Kind = device.Write
	}
	k.begun = append(k.begun, op)
	return nil
}

// flush submits together what was begun together, as all systems send it.
func (k *local) flush() error {
	if len(k.begun) > 0 {
		k.b.ring.device.Submit(k.begun...)
		k.begun = k.begun[:0]
	}
	return nil
}

func (k *local) wait(ended []int) (n int, err error) {
	ended[0] = <-k.ended
	for n = 1; n < len(ended) && len(k.ended) > 0; n++ { // nobody else takes from it
		ended[n] = <-k.ended
	}
	for _, slot := range ended[:n] {
		if err := k.ops[slot].Err; err != nil {
			return 0, fmt.Errorf("the file: %w", err)
		}
	}
	return n, nil
}

// close gives the memory back.
func (k *local) close() error {
	for _, w := range k.whole {
		k.b.ring.buffers <- w
	}
	return nil
}
