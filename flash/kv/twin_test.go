package kv_test

import (
	"context"
	"errors"
	"hash/crc32"
	"testing"
	"time"

	"farflash/flash/kv"
)

// twin is a client that does one thing wrong.
type twin struct {
	*peer
	g    kv.Geometry
	kind string
	seen map[int64]uint64 // words as they were read last, by slot
}

// twins are the things that a client must not do.
var twins = []string{
	"values without checksum",
	"values without the entry's word",
	"locks taken over without a fence",
	"insertions without a lock",
	"swaps repeated blindly",
}

func (x *twin) slotsAt() int64 { return x.g.Size() - int64(x.g.Slots)*int64(x.g.Slot) }

// header reports whether a word is a bucket's header.
func (x *twin) header(off int64) bool {
	at := x.slotsAt() - pagesOf(int64(x.g.Buckets)*16*int64(x.g.Entry))
	return off >= at && off < x.slotsAt() && (off-at)%(16*int64(x.g.Entry)) == 0
}

func pagesOf(n int64) int64 { return (n + 4095) / 4096 * 4096 }

func (x *twin) ReadAt(b []byte, off int64) (int, error) {
	n, err := x.peer.ReadAt(b, off)
	if err != nil {
		return n, err
	}
	switch {
	case off >= x.slotsAt() && len(b) > 24 && (x.kind == twins[0] || x.kind == twins[1]):
		size := 24 + int(b[8]) + int(b[9])<<8 + int(b[12]) + int(b[13])<<8
		if size > len(b) {
			break
		}
		had, sum := le64(b[16:]), func() uint64 {
			putLE64(b[16:], 0)
			return uint64(crc32.Checksum(b[:size], crc32.MakeTable(crc32.Castagnoli)))
		}
		switch {
		case x.kind == twins[0]:
			putLE64(b[16:], sum())
		case sum() == had:
			putLE64(b, x.seen[(off-x.slotsAt())/int64(x.g.Slot)])
			putLE64(b[16:], sum())
		}
	case x.kind == twins[1] && len(b) == 16*int(x.g.Entry):
		for i := range 15 {
			if w := le64(b[(i+1)*int(x.g.Entry):]); w>>62 == 2 {
				x.seen[int64(w&(1<<24-1))] = w &^ (1 << 61)
			}
		}
	}
	return n, err
}

func (x *twin) CompareSwapBits(off int64, old, oldMask, value, mask uint64, durable bool) (uint64, error) {
	switch {
	case x.kind == twins[3] && x.header(off):
		return old, nil
	}
	got, err := x.peer.CompareSwapBits(off, old, oldMask, value, mask, durable)
	for x.kind == twins[4] && errors.Is(err, errUnknown) {
		got, err = x.peer.CompareSwapBits(off, old, oldMask, value, mask, durable)
	}
	return got, err
}

func (x *twin) Fence(ctx context.Context, name uint64, patience time.Duration) error {
	if x.kind != twins[2] {
		return x.peer.Fence(ctx, name, patience)
	}
	q := x.w.clients[uint32(name)-1]
	if q != x.peer && (q.ended || q.dead || x.w.now-q.since >= int(patience)) {
		return nil
	}
	return kv.ErrAlive
}

// TestTwins: clients that do one thing wrong are found by histories that no register has.
func TestTwins(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a minute under the race detector")
	}
	for _, kind := range twins {
		t.Run(kind, func(t *testing.T) {
			for seed := range uint64(20000) {
				g := shape(kv.Async)
				w, h := created(t, g, seed, faults{drop: 30, stall: 20, die: 400}), &history{}
				_ = play(w, h, seed, 4+int(seed%3)*2, 16, 3, func(p *peer) (kv.Memory, kv.Peers) {
					x := &twin{peer: p, g: g, kind: kind, seen: map[int64]uint64{}}
					return x, x
				})
				if !linear(t, h) {
					t.Logf("found by seed %d", seed)
					return
				}
			}
			t.Error("not found")
		})
	}
}
