package cfs

import (
	"errors"
	"testing"
)

// TestInode verifies that an inode survives encoding, and that each possible inconsistency is detected even with a
// correct checksum.
func TestInode(t *testing.T) {
	const seed, number = 7, 9
	good := inode{base: 1 << 30, size: 5 * pageSize, order: 3, kind: Regular, perm: 0o640, birth: 10, uid: 1, gid: 2,
		mtime: 3}
	b := make([]byte, inodeSize)
	for name, c := range map[string]struct {
		change func(*inode)
		ok     bool
	}{
		"as it should be":   {func(*inode) {}, true},
		"nameless":          {func(in *inode) { in.nameless = true }, true},
		"empty":             {func(in *inode) { in.base, in.size, in.order = 0, 0, noOrder }, true},
		"full":              {func(in *inode) { in.size = 8 * pageSize }, true},
		"directory":         {func(in *inode) { in.kind = Directory }, true},
		"drained":           {func(in *inode) { in.drained = true }, true},
		"drained, nameless": {func(in *inode) { in.drained, in.nameless = true, true }, true},
		"the last birth":    {func(in *inode) { in.birth = births }, true},
		"the first layout":  {func(in *inode) { in.birth = 0 }, true},
		"size and no block": {func(in *inode) { in.base, in.order = 0, noOrder }, false},
		"base and no block": {func(in *inode) { in.size, in.order = 0, noOrder }, false},
		"too long":          {func(in *inode) { in.size = 8*pageSize + 1 }, false},
		"not aligned":       {func(in *inode) { in.base += 4 }, false},
		"order":             {func(in *inode) { in.order, in.base = maxOrder+1, 1<<(maxOrder+1) }, false},
		"among the inodes":  {func(in *inode) { in.base = inodePage }, false},
		"half a page":       {func(in *inode) { in.kind, in.size = Directory, 100 }, false},
		"no name":           {func(in *inode) { in.kind, in.nameless = Directory, true }, false},
	} {
		in := good
		c.change(&in)
		in.encode(b, seed, number)
		switch got, err := decodeInode(b, seed, number); {
		case c.ok && (err != nil || got != in):
			t.Errorf("%s: %+v comes back as %+v, %v", name, in, got, err)
		case !c.ok && !errors.Is(err, errDamaged):
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if _, err := decodeInode(b, seed, number+1); !errors.Is(err, errDamaged) {
			t.Errorf("%s, at another's place: %v", name, err)
		}
	}
	good.encode(b, seed, number)
	le.PutUint64(b, le.Uint64(b)&^(3<<58))
	le.PutUint32(b[28:], good.sum(b, seed, number))
	if in, err := decodeInode(b, seed, number); !errors.Is(err, errDamaged) {
		t.Errorf("no kind: %+v, %v", in, err)
	}
}
