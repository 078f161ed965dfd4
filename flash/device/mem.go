package device

import (
	"bytes"
	"maps"
	"slices"
	"sync"

	"farflash/numeric/rng"
)

// Faults are the faults injected into a Mem, most as a probability per operation. The draws depend on the seed and the
// number of the operation.
type Faults struct {
	Seed       uint64
	ReadError  float64 // EIO
	WriteError float64 // EIO; the content written is undefined
	FlushError float64 // EIO; no data is made durable
	Full       float64 // a write fails with ENOSPC, without writing
	Short      float64 // a read or write transfers only part of its bytes
	// FailAt is the number of the operation, counted from 1, that fails with EIO (FailFull: ENOSPC) regardless of its
	// kind; 0 is none. From FailFrom on every operation fails; 0 is none.
	FailAt, FailFrom int64
	FailFull         bool  // FailAt and FailFrom fail writes with ENOSPC
	Misdirect        int64 // the number of the write that lands one grain too far; 0 is none
	Lose             int64 // the number of the write that reports success without writing; 0 is none
}

// Mem is a device in memory. Without Hold, operations complete within Submit. With Hold they are queued for Step, which
// picks one at random, so that a seed can produce any order of completion in a single goroutine.
//
// Written data is volatile until a flush. Crash returns the device as found after a power cut.
type Mem struct {
	mu     sync.Mutex
	size   int64
	stable [][]byte // by grain, without trailing zeros; slices stored here are immutable
	// grains written since the last flush, in order of completion; several versions of a grain are kept
	cache  []dirty
	newest map[int64]int32
	held   []*Op
	hold   bool
	closed bool
	faults Faults
	random rng.Stream
	count  int64
	counts [3]int64 // operations by kind
	grains [3]int64
}

// dirty is a grain in the volatile cache.
type dirty struct {
	grain   int64
	content []byte
}

// NewMem returns a device of size bytes, all zero.
func NewMem(size int64) *Mem {
	return &Mem{size: size, stable: make([][]byte, size/Grain), newest: map[int64]int32{}}
}

// SetFaults replaces the faults and restarts the count of operations.
func (m *Mem) SetFaults(f Faults) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults, m.count, m.random = f, 0, rng.NewStream(f.Seed, "faults")
}

// Hold enables or disables queuing of operations for Step.
func (m *Mem) Hold(on bool) {
	m.mu.Lock()
	m.hold = on
	m.mu.Unlock()
}

// Held returns the number of queued operations.
func (m *Mem) Held() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.held)
}

// Operations returns how many operations of a kind were executed or failed, and their size in grains.
func (m *Mem) Operations(k Kind) (ops, grains int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.counts[k], m.grains[k]
}

// Count returns the number of operations since SetFaults.
func (m *Mem) Count() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.count
}

// Size implements Device.
func (m *Mem) Size() int64 { return m.size }

// Submit implements Device.
func (m *Mem) Submit(ops ...*Op) {
	for _, op := range ops {
		m.mu.Lock()
		if m.hold {
			m.held = append(m.held, op)
			m.mu.Unlock()
			continue
		}
		err := m.do(op)
		m.mu.Unlock()
		op.Finish(err)
	}
}

// Step executes one queued operation, and reports whether there was one.
func (m *Mem) Step(draw *rng.Stream) bool {
	m.mu.Lock()
	if len(m.held) == 0 {
		m.mu.Unlock()
		return false
	}
	i := int(draw.IntN(int64(len(m.held))))
	op := m.held[i]
	m.held = append(m.held[:i], m.held[i+1:]...)
	err := m.do(op)
	m.mu.Unlock()
	op.Finish(err)
	return true
}

// Close implements Device.
func (m *Mem) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	return nil
}

func (m *Mem) do(op *Op) error {
	if m.closed {
		return ErrClosed
	}
	if err := op.Check(m.size); err != nil {
		return err
	}
	m.count++
	m.counts[op.Kind]++
	m.grains[op.Kind] += int64(len(op.Buf) / Grain)
	f := &m.faults
	if f.FailAt == m.count || f.FailFrom > 0 && m.count >= f.FailFrom {
		if f.FailFull && op.Kind == Write {
			return ErrSpace
		}
		return ErrIO
	}
	draw := func(p float64) bool { return p > 0 && m.random.Float64() < p }
	switch op.Kind {
	case Read:
		if draw(f.ReadError) {
			return ErrIO
		}
		part := op.Buf
		short := draw(f.Short)
		if short {
			part = part[:m.random.IntN(int64(len(part)))]
		}
		m.read(op.Offset, part)
		if short {
			return ErrShort
		}
	case Write:
		return m.write(op, draw)
	case Flush:
		if draw(f.FlushError) {
			return ErrIO
		}
		for _, d := range m.cache {
			m.stable[d.grain] = d.content
		}
		m.cache = m.cache[:0]
		clear(m.newest)
	}
	return nil
}

func (m *Mem) write(op *Op, draw func(float64) bool) error {
	f, at, grains := &m.faults, op.Offset, op.Buf
	switch {
	case draw(f.Full):
		return ErrSpace
	case f.Lose == m.count:
		return nil
	case f.Misdirect == m.count:
		at = min(at+Grain, m.size-int64(len(op.Buf)))
	case draw(f.WriteError):
		m.put(at, grains[:m.random.IntN(int64(len(grains)/Grain)+1)*Grain])
		return ErrIO
	case draw(f.Short):
		m.put(at, grains[:m.random.IntN(int64(len(grains)/Grain))*Grain])
		return ErrShort
	}
	m.put(at, grains)
	return nil
}

func (m *Mem) put(at int64, grains []byte) {
	for ; len(grains) > 0; grains, at = grains[Grain:], at+Grain {
		m.newest[at/Grain] = int32(len(m.cache))
		m.cache = append(m.cache, dirty{at / Grain, trimmed(grains[:Grain])})
	}
	if len(m.cache) > 1<<16 { // a drive's cache is bounded: the oldest data goes to the medium
		m.writeBack(1 << 15)
	}
}

// writeBack makes the oldest n grains of the cache durable.
func (m *Mem) writeBack(n int) {
	for _, d := range m.cache[:n] {
		m.stable[d.grain] = d.content
	}
	m.cache = append(m.cache[:0], m.cache[n:]...)
	clear(m.newest)
	for i, d := range m.cache {
		m.newest[d.grain] = int32(i)
	}
}

// zeros is compared with the end of a grain by trimmed.
var zeros [Grain]byte

// trimmed returns a copy without trailing zeros, in steps of 64 bytes.
func trimmed(b []byte) []byte {
	n := len(b)
	for n >= 64 && bytes.Equal(b[n-64:n], zeros[:64]) {
		n -= 64
	}
	return bytes.Clone(b[:n])
}

func (m *Mem) content(grain int64) []byte {
	if i, ok := m.newest[grain]; ok {
		return m.cache[i].content
	}
	return m.stable[grain]
}

func (m *Mem) read(at int64, to []byte) {
	for ; len(to) > 0; at += Grain {
		n := copy(to[:min(len(to), Grain)], m.content(at/Grain))
		clear(to[n:min(len(to), Grain)])
		to = to[min(len(to), Grain):]
	}
}

// Peek reads without counting as an operation.
func (m *Mem) Peek(at int64, to []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.read(at, to)
}

// Corrupt changes one byte durably, like a medium that loses data.
func (m *Mem) Corrupt(at int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var b [Grain]byte
	grain := at / Grain
	copy(b[:], m.content(grain))
	b[at%Grain] ^= 0x5a
	if i, ok := m.newest[grain]; ok {
		m.cache[i].content = trimmed(b[:])
		return
	}
	m.stable[grain] = trimmed(b[:])
}

// Crash returns the device as found after a power cut at this instant: everything flushed, and any part of the later
// writes: each version of a grain lost or kept, in any order, some torn at sectors. Queued writes may have been
// executed too. The receiver continues unaffected.
func (m *Mem) Crash(draw *rng.Stream) *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := NewMem(m.size)
	copy(c.stable, m.stable)
	lost := append([]dirty(nil), m.cache...)
	for _, op := range m.held {
		if op.Kind == Write && op.Check(m.size) == nil && draw.IntN(2) == 0 {
			for i := 0; i < len(op.Buf); i += Grain {
				lost = append(lost, dirty{(op.Offset + int64(i)) / Grain, trimmed(op.Buf[i:][:Grain])})
			}
		}
	}
	// Draw the share that survives first, so that almost none and almost all occur as well.
	keep := draw.IntN(5)
	for i := len(lost) - 1; i > 0; i-- {
		j := int(draw.IntN(int64(i + 1)))
		lost[i], lost[j] = lost[j], lost[i]
	}
	for _, d := range lost {
		switch {
		case keep < 4 && draw.IntN(4) >= keep:
		case draw.IntN(8) == 0:
			c.stable[d.grain] = torn(c.stable[d.grain], d.content, draw)
		default:
			c.stable[d.grain] = d.content
		}
	}
	return c
}

// torn returns a grain that mixes the sectors of two versions.
func torn(a, b []byte, draw *rng.Stream) []byte {
	var x, y [Grain]byte
	copy(x[:], a)
	copy(y[:], b)
	for s := 0; s < Grain; s += Sector {
		if draw.IntN(2) == 0 {
			copy(x[s:s+Sector], y[s:])
		}
	}
	return trimmed(x[:])
}

// Kill returns the device as found after its user died without a power failure: everything written is there, and as
// volatile as before; queued writes were executed or not. The receiver continues unaffected.
func (m *Mem) Kill(draw *rng.Stream) *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := NewMem(m.size)
	copy(c.stable, m.stable)
	c.cache = slices.Clone(m.cache)
	maps.Copy(c.newest, m.newest)
	for _, op := range m.held {
		if op.Kind == Write && op.Check(m.size) == nil && draw.IntN(2) == 0 {
			c.put(op.Offset, op.Buf)
		}
	}
	return c
}

// Reopen returns an open device with everything written so far, durably.
func (m *Mem) Reopen() *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := NewMem(m.size)
	copy(c.stable, m.stable)
	for _, d := range m.cache {
		c.stable[d.grain] = d.content
	}
	return c
}
