package cfs

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
	"unicode"
	"unicode/utf8"

	"farflash/flash/ctl"
	"farflash/flash/ctl/media"
)

// The layout, in pages of the pool's space.
const (
	superPage  = 0
	sparePage  = 1 << 10
	spares     = 16
	swapPage   = sparePage + spares // scratch page for the exchange of two pages; always empty in between
	inodeShift = 25
	inodePage  = 1 << inodeShift
	dataShift  = 26 // file blocks start at 2^dataShift

	inodeSize     = 32
	inodesPerPage = ctl.Page / inodeSize
	maxInodes     = inodesPerPage << inodeShift

	// MaxSize is the maximum size of a file, maxName of a name, in bytes.
	MaxSize = 1 << 50 // bounded so that one atomic group of records can drop a file
	maxName = 255

	maxOrder   = 38 // order of MaxSize
	rootInode  = 1
	noOrder    = 63 // marks an inode without a block
	births     = 63
	direntHead = 5 // bytes before a name
	dirHead    = 32
	dirRoom    = ctl.Page - dirHead
)

// Kind is the type of an inode.
type Kind uint8

// The kinds.
const (
	None Kind = iota
	Regular
	Directory
)

func (k Kind) String() string { return [...]string{"none", "file", "directory"}[k] }

// storedDrained is the stored kind of a regular file that is drained.
const storedDrained = 3

// inode is the stored state of a file or directory.
type inode struct {
	base     uint64 // first page of the block
	size     uint64 // bytes
	order    uint8  // the block has 2^order pages; noOrder: no block
	kind     Kind
	nameless bool  // in no directory
	drained  bool  // a regular file that whoever serves it keeps from new clients
	birth    uint8 // distinguishes files that have the number in turn, 1 to births; 0 in a layout without it
	perm     uint16
	uid, gid uint32
	mtime    uint32 // seconds since 1970
}

var le = binary.LittleEndian

// errDamaged is wrapped by errors about invalid stored data.
var errDamaged = errors.New("damaged")

// sum returns an inode's checksum. It covers the inode's number, so that a misplaced inode is detected.
func (in *inode) sum(b []byte, seed, number uint32) uint32 {
	var head [4]byte
	le.PutUint32(head[:], number)
	return media.Sum(media.Sum(seed, head[:]), b[:28])
}

// encode writes an inode into its 32 bytes. None is 32 zeros, so that pages never written contain no inodes.
//
//	bits of the first word: 0-51 base, 52-57 order, 58-59 kind (3: drained), 60 nameless, 61-63 the low bits of birth
//	bits of the second:     0-51 size, 52-60 permissions, 61-63 the high bits of birth
func (in *inode) encode(b []byte, seed, number uint32) {
	clear(b[:inodeSize])
	if in.kind == None {
		return
	}
	kind := in.kind
	if in.drained {
		kind = storedDrained
	}
	word := in.base | uint64(in.order)<<52 | uint64(kind)<<58 | uint64(in.birth&7)<<61
	if in.nameless {
		word |= 1 << 60
	}
	le.PutUint64(b, word)
	le.PutUint64(b[8:], in.size|uint64(in.perm)<<52|uint64(in.birth>>3)<<61)
	le.PutUint32(b[16:], in.uid)
	le.PutUint32(b[20:], in.gid)
	le.PutUint32(b[24:], in.mtime)
	le.PutUint32(b[28:], in.sum(b, seed, number))
}

// decodeInode decodes 32 bytes, and rejects anything that encode does not produce.
func decodeInode(b []byte, seed, number uint32) (in inode, err error) {
	if [inodeSize]byte(b) == [inodeSize]byte{} {
		return in, nil
	}
	first, second := le.Uint64(b), le.Uint64(b[8:])
	in = inode{
		base: first & (1<<52 - 1), order: uint8(first >> 52 & 63), kind: Kind(first >> 58 & 3),
		nameless: first>>60&1 != 0, birth: uint8(first>>61 | second>>61<<3),
		size: second & (1<<52 - 1), perm: uint16(second >> 52 & (1<<9 - 1)),
		uid: le.Uint32(b[16:]), gid: le.Uint32(b[20:]), mtime: le.Uint32(b[24:]),
	}
	if in.kind == storedDrained {
		in.kind, in.drained = Regular, true
	}
	switch {
	case le.Uint32(b[28:]) != in.sum(b, seed, number):
		return inode{}, fmt.Errorf("checksum mismatch: %w", errDamaged)
	case in.kind != Regular && in.kind != Directory:
		return inode{}, fmt.Errorf("unknown kind: %w", errDamaged)
	case in.kind == Directory && (in.size%ctl.Page != 0 || in.nameless):
		return inode{}, fmt.Errorf("invalid directory of %d bytes: %w", in.size, errDamaged)
	case in.order == noOrder && (in.base != 0 || in.size != 0):
		return inode{}, fmt.Errorf("%d bytes without a block: %w", in.size, errDamaged)
	case in.order == noOrder:
		return in, nil
	case in.order > maxOrder || in.base&(1<<in.order-1) != 0 || in.base < 1<<dataShift || in.base+1<<in.order > 1<<52:
		return inode{}, fmt.Errorf("its block of 2^%d pages at %d is misaligned or out of range: %w", in.order,
			in.base, errDamaged)
	case in.size > MaxSize || pages(in.size) > 1<<in.order:
		return inode{}, fmt.Errorf("%d bytes exceed its block of 2^%d pages: %w", in.size, in.order, errDamaged)
	}
	return in, nil
}

// pages returns the number of pages for size bytes.
func pages(size uint64) uint64 { return (size + ctl.Page - 1) / ctl.Page }

// dirent is a directory entry.
type dirent struct {
	name  string
	inode uint32
}

func (e dirent) room() int { return direntHead + len(e.name) }

const magicDir, magicSuper = 0x46464344, 0x46464353 // FFCD, FFCS

// sealPage stores, and pageSum computes, the checksum of a directory page or superblock. It is in the second word.
func sealPage(page []byte, seed uint32) { le.PutUint32(page[4:], pageSum(page, seed)) }

func pageSum(page []byte, seed uint32) uint32 {
	return crc32.Update(media.Sum(seed, page[:4]), crc32.MakeTable(crc32.Castagnoli), page[8:ctl.Page])
}

// encodeDir writes a directory page: a header with the directory's number and the page's index, then entries of inode
// number, length and name.
func encodeDir(page []byte, seed, number, index uint32, entries []dirent) {
	clear(page[:ctl.Page])
	le.PutUint32(page, magicDir)
	le.PutUint32(page[8:], number)
	le.PutUint32(page[12:], index)
	le.PutUint16(page[16:], uint16(len(entries)))
	at := dirHead
	for _, e := range entries {
		le.PutUint32(page[at:], e.inode)
		page[at+4] = uint8(len(e.name))
		copy(page[at+direntHead:], e.name)
		at += e.room()
	}
	sealPage(page, seed)
}

func decodeDir(page []byte, seed, number, index uint32) (entries []dirent, err error) {
	switch {
	case le.Uint32(page) != magicDir:
		return nil, fmt.Errorf("not a directory page: %w", errDamaged)
	case le.Uint32(page[4:]) != pageSum(page, seed):
		return nil, fmt.Errorf("checksum mismatch: %w", errDamaged)
	case le.Uint32(page[8:]) != number || le.Uint32(page[12:]) != index:
		return nil, fmt.Errorf("belongs to page %d of inode %d: %w", le.Uint32(page[12:]), le.Uint32(page[8:]),
			errDamaged)
	}
	at := dirHead
	for range le.Uint16(page[16:]) {
		if at+direntHead > ctl.Page || at+direntHead+int(page[at+4]) > ctl.Page {
			return entries, fmt.Errorf("its entries exceed the page: %w", errDamaged)
		}
		e := dirent{string(page[at+direntHead:][:page[at+4]]), le.Uint32(page[at:])}
		if err := checkName(e.name); err != nil {
			return entries, fmt.Errorf("%w: %w", err, errDamaged)
		}
		if e.inode <= rootInode {
			return entries, fmt.Errorf("%q has invalid inode %d: %w", e.name, e.inode, errDamaged)
		}
		entries = append(entries, e)
		at += e.room()
	}
	return entries, nil
}

// Layouts: the first has no births, and before the third no file is stored as drained.
const (
	firstVersion   = 1
	drainedVersion = 3
	version        = 3
)

// superKept is where in the superblock the settings begin that Keep stores, after their length in two bytes. Programs
// older than Keep leave these bytes zero.
const superKept = 34

// encodeSuper writes the superblock.
func encodeSuper(page []byte, u media.UUID, layout uint32, kept []byte) {
	clear(page[:ctl.Page])
	le.PutUint32(page, magicSuper)
	le.PutUint32(page[8:], layout)
	copy(page[16:], u[:])
	le.PutUint16(page[superKept-2:], uint16(len(kept)))
	copy(page[superKept:], kept)
	sealPage(page, u.Seed())
}

// decodeSuper returns the layout of the file system and the kept settings.
func decodeSuper(page []byte, u media.UUID) (layout uint32, kept []byte, err error) {
	layout = le.Uint32(page[8:])
	length := int(le.Uint16(page[superKept-2:]))
	switch {
	case [ctl.Page]byte(page) == [ctl.Page]byte{}:
		return 0, nil, ErrNoFS
	case le.Uint32(page) != magicSuper:
		return 0, nil, fmt.Errorf("page 0 is not a superblock: %w", errDamaged)
	case media.UUID(page[16:32]) != u || le.Uint32(page[4:]) != pageSum(page, u.Seed()):
		return 0, nil, fmt.Errorf("checksum mismatch, or the superblock of another pool: %w", errDamaged)
	case layout < firstVersion || layout > version:
		return 0, nil, fmt.Errorf("the file system has layout %d; this program supports %d to %d", layout, firstVersion,
			version)
	case length > MostKept:
		return 0, nil, fmt.Errorf("%d bytes of settings exceed the superblock: %w", length, errDamaged)
	}
	return layout, bytes.Clone(page[superKept:][:length]), nil
}

// checkName returns ErrName with the reason if a name is invalid.
func checkName(name string) error {
	why, also := "", ErrName
	switch {
	case name == "":
		why = "is empty"
	case name == "." || name == "..":
		why = "is reserved"
	case len(name) > maxName:
		why, also = fmt.Sprintf("has %d bytes; the maximum is %d", len(name), maxName), errLong
	case !utf8.ValidString(name):
		why = "is not UTF-8"
	case strings.ContainsRune(name, '/'):
		why = "contains a slash"
	case strings.ContainsFunc(name,
		func(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }):
		why = "contains a nonprintable character"
	default:
		return nil
	}
	return fmt.Errorf("%q %s: %w", name, why, also)
}

// errLong is ErrName and ErrLong.
var errLong = fmt.Errorf("%w, %w", ErrName, ErrLong)

// split splits a path into names. Paths start at the root, with or without a leading slash.
func split(path string) ([]string, error) {
	var names []string
	if len(path) > 4096 {
		return nil, fmt.Errorf("the path has %d bytes; the maximum is 4096: %w", len(path), errLong)
	}
	for name := range strings.SplitSeq(path, "/") {
		if name == "" {
			continue
		}
		if err := checkName(name); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, nil
}
