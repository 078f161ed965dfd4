package bench

import (
	"context"
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"

	"farflash/flash/device"
	"farflash/flash/kv"
)

// kvFile is the file of a store on the server's side, as kv.Memory, for the systems whose servers run the table. The
// slots, which are whole pages, are read and written directly; all else goes through a cache of pages, which writes
// through. So these systems have as much memory for pages as the pool.
type kvFile struct {
	run   func(op *device.Op) error
	slots int64 // where they begin
	pages []cachedPage
	spare sync.Pool // of []byte, for slots
	reads atomic.Int64
}

// cachedPage is a place of the cache, and the lock of the pages that use it.
type cachedPage struct {
	mu   sync.Mutex
	page int64 // its number plus 1; 0: none
	b    []byte
}

func newKVFile(run func(op *device.Op) error, slots, memory int64) *kvFile {
	f := &kvFile{run: run, slots: slots, pages: make([]cachedPage, max(memory/device.Grain, 1))}
	f.spare.New = func() any { b := device.Aligned(device.Grain); return &b }
	return f
}

// load locks a page's place in the cache, and has the page there.
func (f *kvFile) load(page int64) (*cachedPage, error) {
	p := &f.pages[page%int64(len(f.pages))]
	p.mu.Lock()
	if p.page == page+1 {
		return p, nil
	}
	if p.b == nil {
		p.b = device.Aligned(device.Grain)
	}
	p.page = 0
	f.reads.Add(1)
	if err := f.run(&device.Op{Kind: device.Read, Offset: page * device.Grain, Buf: p.b}); err != nil {
		p.mu.Unlock()
		return nil, err
	}
	p.page = page + 1
	return p, nil
}

// store writes a page that has changed, and unlocks it.
func (f *kvFile) store(p *cachedPage) error {
	defer p.mu.Unlock()
	err := f.run(&device.Op{Kind: device.Write, Offset: (p.page - 1) * device.Grain, Buf: p.b})
	if err != nil {
		p.page = 0
	}
	return err
}

// whole calls do with aligned memory for n bytes and what fills the last page.
func (f *kvFile) whole(n int, do func(b []byte) error) error {
	p := f.spare.Get().(*[]byte)
	defer f.spare.Put(p)
	if n = (n + device.Grain - 1) / device.Grain * device.Grain; len(*p) < n {
		*p = device.Aligned(n)
	}
	return do((*p)[:n])
}

// ReadAt implements kv.Memory.
func (f *kvFile) ReadAt(b []byte, off int64) (int, error) {
	if off >= f.slots && off%device.Grain == 0 {
		f.reads.Add(1)
		return len(b), f.whole(len(b), func(all []byte) error {
			err := f.run(&device.Op{Kind: device.Read, Offset: off, Buf: all})
			copy(b, all)
			return err
		})
	}
	return len(b), f.each(off, len(b), func(p *cachedPage, at, from, n int) error {
		defer p.mu.Unlock()
		copy(b[from:from+n], p.b[at:])
		return nil
	})
}

// each calls do for the pages of a range: with the place in the page and in the range, and the number of bytes. do
// unlocks the page.
func (f *kvFile) each(off int64, length int, do func(p *cachedPage, at, from, n int) error) error {
	for from := 0; from < length; {
		at := int((off + int64(from)) % device.Grain)
		n := min(device.Grain-at, length-from)
		p, err := f.load((off + int64(from)) / device.Grain)
		if err == nil {
			err = do(p, at, from, n)
		}
		if err != nil {
			return err
		}
		from += n
	}
	return nil
}

// Write implements kv.Memory. What follows a value in its slot has no meaning, so its last page is written whole.
func (f *kvFile) Write(b []byte, off int64, ahead bool) error {
	var err error
	if off >= f.slots && off%device.Grain == 0 {
		err = f.whole(len(b), func(all []byte) error {
			clear(all[copy(all, b):])
			return f.run(&device.Op{Kind: device.Write, Offset: off, Buf: all})
		})
	} else {
		err = f.each(off, len(b), func(p *cachedPage, at, from, n int) error {
			copy(p.b[at:at+n], b[from:])
			return f.store(p)
		})
	}
	if err != nil || !ahead {
		return err
	}
	return f.Flush()
}

// CompareSwapBits implements kv.Memory.
func (f *kvFile) CompareSwapBits(off int64, old, oldMask, value, mask uint64, durable bool) (uint64, error) {
	p, err := f.load(off / device.Grain)
	if err != nil {
		return 0, err
	}
	b := p.b[off%device.Grain:]
	now := binary.LittleEndian.Uint64(b)
	if (now^old)&oldMask != 0 || now&^mask|value&mask == now {
		p.mu.Unlock()
		return now, nil
	}
	binary.LittleEndian.PutUint64(b, now&^mask|value&mask)
	if err = f.store(p); err == nil && durable {
		err = f.Flush()
	}
	return now, err
}

// Flush implements kv.Memory.
func (f *kvFile) Flush() error { return f.run(&device.Op{Kind: device.Flush}) }

// alone is kv.Peers of the only client of a store.
type alone struct{}

// Name implements kv.Peers.
func (alone) Name() uint64 { return 1 }

// Instance implements kv.Peers.
func (alone) Instance() string { return "alone" }

// Fence implements kv.Peers. The store has had no other client.
func (alone) Fence(context.Context, uint64, time.Duration) error { return nil }

// submitting runs operations on an asynchronous device.
func submitting(d device.Device) func(op *device.Op) error {
	return func(op *device.Op) error {
		done := make(chan struct{})
		op.Done = func(*device.Op) { close(done) }
		d.Submit(op)
		<-done
		return op.Err
	}
}

// counted counts the operations of a client on the memory of a store.
type counted struct {
	kv.Memory
	n *atomic.Int64
}

// ReadAt implements kv.Memory.
func (c counted) ReadAt(b []byte, off int64) (int, error) {
	c.n.Add(1)
	return c.Memory.ReadAt(b, off)
}

// Write implements kv.Memory.
func (c counted) Write(b []byte, off int64, ahead bool) error {
	c.n.Add(1)
	return c.Memory.Write(b, off, ahead)
}

// CompareSwapBits implements kv.Memory.
func (c counted) CompareSwapBits(off int64, old, oldMask, value, mask uint64, durable bool) (uint64, error) {
	c.n.Add(1)
	return c.Memory.CompareSwapBits(off, old, oldMask, value, mask, durable)
}

// Flush implements kv.Memory.
func (c counted) Flush() error {
	c.n.Add(1)
	return c.Memory.Flush()
}
