package kv

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/bits"

	"github.com/cespare/xxhash/v2"
)

// Class is what an answer to a change promises, for all clients of a store.
type Class uint8

// The classes.
const (
	// Async: a change may be lost when the server ends without a clean stop, and with it the value before it.
	Async Class = iota
	// Data: after such an end a key has its last value or an earlier one, whole.
	Data
	// Durable: a change that was answered, or that a read has returned, is on flash.
	Durable
	classes
)

var classNames = [classes]string{"async", "data", "durable"}

func (c Class) String() string {
	if c < classes {
		return classNames[c]
	}
	return fmt.Sprintf("Class(%d)", uint8(c))
}

// ParseClass returns the class with a name.
func ParseClass(name string) (Class, error) {
	for c, n := range classNames {
		if n == name {
			return Class(c), nil
		}
	}
	return 0, fmt.Errorf("%q is no class; use async, data or durable", name)
}

const (
	page   = 4096
	member = 16 // bytes of a member: its name, and a reserved word
	chunk  = 16 // bytes of a chunk of slots: its owner, and its word

	membersAt = page
	chunksAt  = membersAt + members*member
	members   = 1024 // number 0 is the collector's lock
	perChunk  = 48   // slots

	entries = 15 // of a bucket; in the place of another one is its header
	body    = 16 // bytes of an entry before the key
	preface = 24 // bytes of a record before the key

	mostSlots = 1 << slotBits
)

// Members is the most clients that a store can have at a time.
const Members = members - 1

// Geometry is the shape of a store. All of it lies in one file: a page with the geometry, the members, the chunks of
// slots, the buckets, and the slots.
type Geometry struct {
	Buckets uint64 // each for up to 15 keys of its own, and for those of full ones
	Slots   uint64 // each for one value
	Entry   uint32 // bytes of an entry: 64, 128 or 256
	Slot    uint32 // bytes of a slot, a multiple of 4096
	Class   Class
	Seed    uint64 // of the hash
}

// NewGeometry returns the geometry of a store for a number of keys of up to key bytes, with values of up to value
// bytes. Two thirds of the places for keys are then in use, and one slot in eight is spare.
func NewGeometry(keys uint64, key, value int, class Class, seed uint64) (Geometry, error) {
	g := Geometry{Class: class, Seed: seed, Entry: 64}
	for int(g.Entry)-body < key && g.Entry < 256 {
		g.Entry *= 2
	}
	switch most := mostSlots * 8 / 9; {
	case keys < 1 || keys > uint64(most):
		return g, fmt.Errorf("%d keys; use 1 to %d", keys, most)
	case key < 1 || key > 256-body:
		return g, fmt.Errorf("keys of up to %d bytes; use 1 to %d", key, 256-body)
	case value < 0 || value > 1<<20:
		return g, fmt.Errorf("values of up to %d bytes; use 0 to %d", value, 1<<20)
	}
	g.Buckets = max((keys+9)/10, 2)
	g.Slots = keys + max(keys/8, 32*perChunk)
	g.Slots = min((g.Slots+perChunk-1)/perChunk*perChunk, mostSlots/perChunk*perChunk)
	g.Slot = uint32((preface + key + value + page - 1) / page * page)
	return g, nil
}

// Key is the greatest length of a key in bytes.
func (g *Geometry) Key() int { return int(g.Entry) - body }

// Value is the greatest length of a value in bytes, for a key of this length.
func (g *Geometry) Value(key int) int { return int(g.Slot) - preface - key }

// Places is the number of entries.
func (g *Geometry) Places() uint64 { return g.Buckets * entries }

// Size is the number of bytes of the file.
func (g *Geometry) Size() int64 { return g.slot(uint32(g.Slots)) }

func (g *Geometry) chunks() uint64 { return g.Slots / perChunk }

func (g *Geometry) bucketSize() int64 { return (entries + 1) * int64(g.Entry) }

func (g *Geometry) bucketsAt() int64 { return pages(chunksAt + int64(g.chunks())*chunk) }

func pages(n int64) int64 { return (n + page - 1) / page * page }

func (g *Geometry) bucket(i uint64) int64 { return g.bucketsAt() + int64(i)*g.bucketSize() }

// entry is the position of an entry of a bucket, from 1 to 15; 0 is its header.
func (g *Geometry) entry(bucket uint64, i int) int64 {
	return g.bucket(bucket) + int64(i)*int64(g.Entry)
}

func (g *Geometry) slot(i uint32) int64 { return pages(g.bucket(g.Buckets)) + int64(i)*int64(g.Slot) }

func (g *Geometry) chunk(i uint32) int64 { return chunksAt + int64(i)*chunk }

// places returns the two buckets where a key can be: its home, and where it goes when that is full.
func (g *Geometry) places(key []byte) (home, other uint64) {
	var d xxhash.Digest
	d.ResetWithSeed(g.Seed)
	_, _ = d.Write(key) // never fails
	h := d.Sum64()
	home, _ = bits.Mul64(h, g.Buckets)
	step, _ := bits.Mul64(h*0x9E3779B97F4A7C15, g.Buckets-1)
	return home, (home + 1 + step) % g.Buckets
}

var (
	le    = binary.LittleEndian
	magic = [8]byte{'F', 'F', 'K', 'V', 'S', 'T', 'R', 1}
	table = crc32.MakeTable(crc32.Castagnoli)
)

// instanceAt is the position of the hash of the server's instance for which the chunks are right.
const instanceAt = 64

// encode returns the first page, without an instance.
func (g *Geometry) encode() []byte {
	b := make([]byte, page)
	copy(b, magic[:])
	le.PutUint64(b[8:], g.Buckets)
	le.PutUint64(b[16:], g.Slots)
	le.PutUint32(b[24:], g.Entry)
	le.PutUint32(b[28:], g.Slot)
	b[32] = byte(g.Class)
	le.PutUint64(b[40:], g.Seed)
	le.PutUint32(b[48:], crc32.Checksum(b[:48], table))
	return b
}

// ErrFormat is the error of a file that is no store, or of another version.
var ErrFormat = errors.New("the file is no key-value store of this version")

// decode is the reverse of encode, for valid geometries only.
func decode(b []byte) (g Geometry, err error) {
	if len(b) < page || [8]byte(b) != magic || crc32.Checksum(b[:48], table) != le.Uint32(b[48:]) {
		return g, ErrFormat
	}
	g = Geometry{Buckets: le.Uint64(b[8:]), Slots: le.Uint64(b[16:]), Entry: le.Uint32(b[24:]), Slot: le.Uint32(b[28:]),
		Class: Class(b[32]), Seed: le.Uint64(b[40:])}
	switch {
	case g.Buckets < 2 || g.Buckets > mostSlots, g.Slots < perChunk || g.Slots > mostSlots || g.Slots%perChunk != 0,
		g.Entry != 64 && g.Entry != 128 && g.Entry != 256,
		g.Slot == 0 || g.Slot%page != 0 || g.Slot > 1<<20+2*page, g.Class >= classes:
		return g, ErrFormat
	}
	return g, nil
}

// word is the first word of an entry: its state, whether it may not be durable yet, a number that binds it to the rest
// of the entry, a version that grows with each change, and the slot of the value or, of a busy one, the member.
type word uint64

const (
	slotBits    = 24
	versionBits = 24
	bindBits    = 13

	freshBit = 1 << 61
)

const (
	empty = iota
	busy
	full
)

func (w word) state() int      { return int(w >> 62) }
func (w word) fresh() bool     { return w&freshBit != 0 }
func (w word) settled() word   { return w &^ freshBit }
func (w word) bind() uint16    { return uint16(w >> (slotBits + versionBits) & (1<<bindBits - 1)) }
func (w word) version() uint32 { return uint32(w >> slotBits & (1<<versionBits - 1)) }
func (w word) slot() uint32    { return uint32(w & (1<<slotBits - 1)) }

// next is the word after w, with the same bind.
func (w word) next(state int, slot uint32) word { return w.bound(w.bind(), state, slot) }

// rebound is the word after w, with the next bind.
func (w word) rebound(state int, slot uint32) word { return w.bound(w.bind()+1, state, slot) }

func (w word) bound(bind uint16, state int, slot uint32) word {
	return word(state)<<62 | word(bind&(1<<bindBits-1))<<(slotBits+versionBits) |
		word((w.version()+1)&(1<<versionBits-1))<<slotBits | word(slot)
}

// lock is the header of a bucket: who holds the lock for insertions, whether keys of the bucket may be in their other
// bucket, and a version, which is odd while the lock is held.
type lock uint64

const spillBit = 1 << 47

func (h lock) owner() uint16 { return uint16(h >> 48) }
func (h lock) held() bool    { return h&1 != 0 }
func (h lock) spills() bool  { return h&spillBit != 0 }

// by is the header when a member takes the lock.
func (h lock) by(owner uint16) lock { return h.after() | lock(owner)<<48 }

// after is the header with the next version, and without an owner.
func (h lock) after() lock { return h&spillBit | (h+1)&(spillBit-1) }

// hold is the word of a chunk: an epoch, which changes when the slots in use are counted anew, and a bit for each slot
// in use.
type hold uint64

const allUsed = 1<<perChunk - 1

func (w hold) epoch() uint16 { return uint16(w >> perChunk) }
func (w hold) used() uint64  { return uint64(w & allUsed) }

// inUse is the number of slots in use.
func (w hold) inUse() int { return bits.OnesCount64(w.used()) }

// with returns a word with these slots in use.
func (w hold) with(used uint64) hold { return w&^allUsed | hold(used&allUsed) }

// counted returns the word after a count.
func (w hold) counted(used uint64) hold { return hold(w.epoch()+1)<<perChunk | hold(used&allUsed) }

// putBody encodes the rest of an entry behind its word: b begins at the entry.
func putBody(b []byte, w word, key []byte, at int64) {
	le.PutUint16(b[8:], w.bind())
	le.PutUint16(b[10:], uint16(len(key)))
	copy(b[body:], key)
	le.PutUint32(b[12:], bodySum(b[8:12], key, at))
}

// bodySum begins with the place of the entry, so that the content of another one does not verify there.
func bodySum(head, key []byte, at int64) uint32 {
	return crc32.Update(crc32.Update(uint32(at)^uint32(at>>32), table, head), table, key)
}

// keyOf returns the key of a full entry, if its parts belong together.
func keyOf(b []byte, at int64) (key []byte, ok bool) {
	n := int(le.Uint16(b[10:]))
	if n > len(b)-body || le.Uint16(b[8:]) != word(le.Uint64(b)).bind() {
		return nil, false
	}
	key = b[body:][:n]
	return key, bodySum(b[8:12], key, at) == le.Uint32(b[12:])
}

// putRecord encodes a value for the entry that will have the word w, and returns the bytes of b in use.
func putRecord(b []byte, w word, key, value []byte) []byte {
	b = b[:preface+len(key)+len(value)]
	le.PutUint64(b, uint64(w.settled()))
	le.PutUint32(b[8:], uint32(len(key)))
	le.PutUint32(b[12:], uint32(len(value)))
	le.PutUint64(b[16:], 0)
	copy(b[preface:], key)
	copy(b[preface+len(key):], value)
	le.PutUint32(b[16:], crc32.Checksum(b, table))
	return b
}

// valueOf returns the value of a record, if it is the one for the word w and the key. It changes b.
func valueOf(b []byte, w word, key []byte) (value []byte, ok bool) {
	n, m := le.Uint32(b[8:]), le.Uint32(b[12:])
	if word(le.Uint64(b)) != w.settled() || int(n) != len(key) || uint64(n)+uint64(m) > uint64(len(b)-preface) {
		return nil, false
	}
	b = b[:preface+n+m]
	sum := le.Uint64(b[16:])
	le.PutUint64(b[16:], 0)
	ok = uint64(crc32.Checksum(b, table)) == sum && string(b[preface:preface+n]) == string(key)
	return b[preface+n:], ok
}
