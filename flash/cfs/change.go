package cfs

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"farflash/flash/cfs/buddy"
	"farflash/flash/ctl"
)

// change is a change of the tree in preparation. It is invisible until it takes effect.
type change struct {
	*FS
	inodes map[uint32]inode           // new versions of inodes
	dirs   map[*node]map[int][]dirent // new versions of directory pages
	moves  []ctl.Step                 // of data, applied before the metadata pages are exchanged
	drops  []ctl.Step                 // applied after the exchange
	ends   []written                  // zeros from the old end of a file to the end of its page
	undo   []func()                   // releases allocated blocks if the change fails
	then   []func()                   // updates of the tree in memory once the change takes effect
	loose  *node                      // one of its pins does not keep it at its address
}

// do prepares a change with plan and commits it. It returns when the change is durable, but later changes can be
// prepared before that.
func (f *FS) do(plan func(c *change) error) error {
	f.change.Lock()
	c := &change{FS: f, inodes: map[uint32]inode{}, dirs: map[*node]map[int][]dirent{}}
	err := plan(c)
	var until func() error
	if err == nil {
		until, err = c.commit()
	}
	if err != nil {
		for _, undo := range slices.Backward(c.undo) {
			undo()
		}
	}
	f.change.Unlock()
	if err != nil {
		return err
	}
	return until()
}

// home is a metadata page that changes.
type home struct {
	page  uint64
	fresh bool // the page does not exist yet
	b     []byte
}

// homes returns the new contents of all pages that change.
func (c *change) homes() []home {
	var all []home
	pagesOf := map[uint32]bool{}
	for number := range c.inodes {
		pagesOf[number/inodesPerPage] = true
	}
	for p := range pagesOf {
		b := make([]byte, ctl.Page)
		for i := range uint32(inodesPerPage) {
			number := p*inodesPerPage + i
			in, ok := c.inodes[number]
			if n := c.tree.get(number); !ok && n != nil {
				in = n.inode
			}
			in.drained = in.drained && c.tree.layout >= drainedVersion
			in.encode(b[i*inodeSize:], c.seed, number)
		}
		all = append(all, home{inodePage + uint64(p), !c.tree.inodePages[p], b})
	}
	for dir, changed := range c.dirs {
		in := c.inodeOf(dir)
		for i, entries := range changed {
			if uint64(i) >= pages(in.size) {
				continue // truncated away with the end of the directory
			}
			b := make([]byte, ctl.Page)
			encodeDir(b, c.seed, dir.number, uint32(i), entries)
			all = append(all, home{in.base + uint64(i), i >= len(dir.pages), b})
		}
	}
	slices.SortFunc(all, func(a, b home) int { return cmp.Compare(a.page, b.page) })
	return all
}

// commit makes the change: new versions are written to spare pages, and once they are durable one Remap moves them and
// the data into place. It returns when all of it is in effect, and until waits for its durability.
func (c *change) commit() (until func() error, err error) {
	if len(c.inodes) == 0 { // no stored metadata changes
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, then := range c.then {
			then()
		}
		return func() error { return nil }, nil
	}
	homes := c.homes()
	if slices.ContainsFunc(homes, func(h home) bool { return h.fresh }) {
		// A change that needs additional space starts only with all spare pages allocated, so that changes that free
		// space always find some.
		if err := c.refill(); err != nil {
			return nil, err
		}
	}
	var steps, exchanges []ctl.Step
	var used []int // indices of spare pages
	writes := c.ends
	for i := range c.filled {
		if k := len(used); c.filled[i] && k < len(homes) {
			h := homes[k]
			used = append(used, i)
			spare := uint64(sparePage + i)
			writes = append(writes, written{page: spare, b: h.b})
			if h.fresh {
				exchanges = append(exchanges, ctl.Step{From: spare, To: h.page, Count: 1})
				continue
			}
			exchanges = append(exchanges, ctl.Step{From: h.page, To: swapPage, Count: 1},
				ctl.Step{From: spare, To: h.page, Count: 1}, ctl.Step{From: swapPage, To: spare, Count: 1})
		}
	}
	if len(used) < len(homes) {
		return nil, fmt.Errorf("cfs: %d pages change, but only %d spare pages are available: %w", len(homes),
			len(used), ctl.ErrFull)
	}
	if err := c.write(writes); err != nil {
		return nil, fmt.Errorf("cfs: %w", err)
	}
	steps = append(append(append(steps, c.moves...), exchanges...), c.drops...)
	done := make(chan error, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.pool.Remap(steps, true, func(err error) { done <- err }); err != nil {
		return nil, fmt.Errorf("cfs: %w", err)
	}
	for k, h := range homes {
		if h.fresh {
			c.filled[used[k]] = false
		}
	}
	c.tree.changes++
	for number := range c.inodes {
		c.tree.inodePages[number/inodesPerPage] = true
		if n := c.tree.get(number); n != nil {
			n.inode, n.changed = c.inodes[number], c.tree.changes
		}
	}
	for dir, changed := range c.dirs {
		for _, i := range slices.Sorted(maps.Keys(changed)) {
			for len(dir.pages) <= i {
				dir.pages, dir.rooms = append(dir.pages, nil), append(dir.rooms, dirRoom)
			}
			dir.pages[i], dir.rooms[i] = changed[i], room(changed[i])
		}
		dir.pages, dir.rooms = dir.pages[:pages(dir.size)], dir.rooms[:pages(dir.size)]
	}
	for _, then := range c.then {
		then()
	}
	return func() error {
		if err := <-done; err != nil {
			return fmt.Errorf("cfs: %w", err)
		}
		return nil
	}, nil
}

// inodeOf returns the new version of a node's inode.
func (c *change) inodeOf(n *node) inode {
	if in, ok := c.inodes[n.number]; ok {
		return in
	}
	return n.inode
}

// entries returns the new version of a directory page's entries.
func (c *change) entries(dir *node, i int) []dirent {
	if e, ok := c.dirs[dir][i]; ok {
		return e
	}
	if i < len(dir.pages) {
		return dir.pages[i]
	}
	return nil
}

func (c *change) setEntries(dir *node, i int, entries []dirent) {
	if c.dirs[dir] == nil {
		c.dirs[dir] = map[int][]dirent{}
	}
	c.dirs[dir][i] = entries
	in := c.inodeOf(dir)
	in.mtime = c.time()
	c.inodes[dir.number] = in
}

// room returns the number of bytes that will be free in a directory page.
func (c *change) room(dir *node, i int) int {
	if e, ok := c.dirs[dir][i]; ok || i >= len(dir.rooms) {
		return room(e)
	}
	return dir.rooms[i]
}

func room(entries []dirent) int {
	left := dirRoom
	for _, e := range entries {
		left -= e.room()
	}
	return left
}

// link adds a name for n to a directory.
func (c *change) link(dir *node, name string, n *node) error {
	e := dirent{name, n.number}
	in := c.inodeOf(dir)
	at, count := 0, int(pages(in.size))
	for at < count && c.room(dir, at) < e.room() {
		at++
	}
	if at == count {
		if err := c.grow(dir, in.size+ctl.Page); err != nil {
			return err
		}
	}
	c.setEntries(dir, at, append(slices.Clone(c.entries(dir, at)), e))
	c.then = append(c.then, func() {
		n.parent, n.name, n.at = dir, name, at
		dir.children[name] = n
	})
	return nil
}

// relink gives n the name of the node there.
func (c *change) relink(there, n *node) {
	dir, name, at := there.parent, there.name, there.at
	entries := slices.Clone(c.entries(dir, at))
	for i := range entries {
		if entries[i].name == name {
			entries[i].inode = n.number
		}
	}
	c.setEntries(dir, at, entries)
	c.then = append(c.then, func() {
		there.parent = nil
		n.parent, n.name, n.at = dir, name, at
		dir.children[name] = n
	})
}

// unlink removes a node's name from its directory, and truncates empty pages from the directory's end.
func (c *change) unlink(n *node) {
	dir := n.parent
	left := slices.DeleteFunc(slices.Clone(c.entries(dir, n.at)), func(e dirent) bool { return e.name == n.name })
	c.setEntries(dir, n.at, left)
	in := c.inodeOf(dir)
	last := pages(in.size)
	for last > 0 && len(c.entries(dir, int(last-1))) == 0 {
		last--
	}
	if last < pages(in.size) {
		c.shrink(dir, last*ctl.Page, false)
	}
	name := n.name
	c.then = append(c.then, func() {
		if dir.children[name] == n { // unless relink replaced it
			delete(dir.children, name)
		}
		if n.parent == dir && n.name == name {
			n.parent = nil
		}
	})
}

// birth returns the birth of a new node with a number. It differs from that of the node that had the number before. If
// that one was removed before Open, it is not known, and the time decides.
func (c *change) birth(number uint32) uint8 {
	switch {
	case c.tree.layout == firstVersion:
		return 0
	case int(number) < len(c.tree.born) && c.tree.born[number] != 0:
		return c.tree.born[number]%births + 1
	}
	return uint8((uint64(c.opened)+c.made)%births + 1)
}

// create makes a node that has no name yet.
func (c *change) create(who Cred, kind Kind, perm uint16) (*node, error) {
	c.made++
	n := &node{number: c.tree.free(), made: c.made}
	if n.number >= maxInodes-1 {
		return nil, fmt.Errorf("cfs: %d files: %w", n.number, ctl.ErrFull)
	}
	n.inode = inode{kind: kind, birth: c.birth(n.number), perm: perm & 0o777, order: noOrder, uid: who.UID,
		gid:   who.GID,
		mtime: c.time()}
	if kind == Directory {
		n.children = map[string]*node{}
	}
	c.inodes[n.number] = n.inode
	c.then = append(c.then, func() {
		n.inode, n.changed = c.inodes[n.number], c.tree.changes
		c.tree.set(n)
	})
	return n, nil
}

// remove frees a node and its block. An open file only loses its name.
func (c *change) remove(n *node) {
	in := c.inodeOf(n)
	if n.opens > 0 {
		in.nameless = true
		c.inodes[n.number] = in
		return
	}
	c.inodes[n.number] = inode{}
	if in.order != noOrder {
		c.drops = append(c.drops, ctl.Step{From: in.base, Count: 1 << in.order, Drop: true})
	}
	c.then = append(c.then, func() {
		c.tree.remove(n.number)
		if in.order != noOrder {
			c.tree.space.Free(in.base, int(in.order))
		}
	})
}

// resize changes a file's size.
func (c *change) resize(n *node, size uint64) error {
	if size < c.inodeOf(n).size {
		c.shrink(n, size, n.pins > 0)
		return nil
	}
	return c.grow(n, size)
}

// grow enlarges a node.
func (c *change) grow(n *node, size uint64) error {
	old := c.inodeOf(n)
	if err := c.ensureBlock(n, size); err != nil {
		return err
	}
	in := c.inodeOf(n)
	in.size, in.mtime = size, c.time()
	c.inodes[n.number] = in
	c.zeroEnd(old, size)
	return nil
}

// ensureBlock ensures that a node's block has space for size bytes: the current block, extended in place into its free
// buddies, or a new block at least twice as large.
func (c *change) ensureBlock(n *node, size uint64) error {
	if size > MaxSize {
		return fmt.Errorf("%s: %d bytes, the maximum is %d: %w", n.path(), size, uint64(MaxSize), ErrTooLarge)
	}
	in := c.inodeOf(n)
	old := in
	space := c.tree.space
	switch need := buddy.Order(pages(size)); {
	case size == 0 || old.order != noOrder && need <= int(old.order):
		return nil
	case old.order == noOrder:
		base, ok := space.Alloc(need)
		if !ok {
			return fmt.Errorf("%s: no free address range for %d bytes: %w", n.path(), size, ctl.ErrFull)
		}
		in.base, in.order = base, uint8(need)
		c.undo = append(c.undo, func() { space.Free(base, need) })
	default:
		order := int(old.order)
		for order < need && space.Extend(old.base, order) {
			order++
		}
		if order == need {
			in.order = uint8(need)
			c.undo = append(c.undo, func() { space.Shrink(old.base, need, int(old.order)) })
			break
		}
		space.Shrink(old.base, order, int(old.order))
		pins := n.pins
		if n == c.loose {
			pins--
		}
		if pins > 0 {
			return fmt.Errorf("%s: %w", n.path(), ErrBusy)
		}
		base, ok := space.Alloc(need)
		if !ok {
			return fmt.Errorf("%s: no free address range for %d bytes: %w", n.path(), size, ctl.ErrFull)
		}
		in.base, in.order = base, uint8(need)
		c.moves = append(c.moves, ctl.Step{From: old.base, To: base, Count: 1 << old.order})
		c.undo = append(c.undo, func() { space.Free(base, need) })
		c.then = append(c.then, func() { space.Free(old.base, int(old.order)) })
	}
	c.inodes[n.number] = in
	return nil
}

// zeroEnd zeroes the rest of a file's last page, which may contain data from before the file was truncated, before it
// becomes part of the file.
func (c *change) zeroEnd(old inode, size uint64) {
	in := old.size % ctl.Page
	if in == 0 || size <= old.size {
		return
	}
	last := old.base + old.size/ctl.Page
	if !c.pool.Holds(last) {
		return // no content: it reads as zeros
	}
	c.ends = append(c.ends, written{page: last, from: int(in), b: make([]byte, ctl.Page-in)})
}

// trimBlock drops the pages beyond a node's end, and the part of its block that it does not need.
func (c *change) trimBlock(n *node) {
	in := c.inodeOf(n)
	if in.order == noOrder || c.tight(n, in) {
		return
	}
	c.shrink(n, in.size, n.pins > 0)
	next := c.inodes[n.number]
	next.mtime = in.mtime
	c.inodes[n.number] = next
}

// tight reports whether a node has no pages beyond its end and no larger block than it needs. Then closing it is no
// change, and no metadata is written.
func (c *change) tight(n *node, in inode) bool {
	keep := pages(in.size)
	rest := uint64(1)<<in.order - keep
	behind, held := c.pool.Run(in.base+keep, rest)
	return !held && behind == rest && (n.pins > 0 || in.size > 0 && buddy.Order(keep) == int(in.order))
}

// shrink reduces a node's size. A pinned node keeps its block, because users of its address may write beyond the new
// end.
func (c *change) shrink(n *node, size uint64, pinned bool) {
	in := c.inodeOf(n)
	old := in
	in.size, in.mtime = size, c.time()
	if old.order == noOrder {
		return
	}
	keep := pages(size)
	c.then = append(c.then, func() { n.cuts++ })
	c.drops = append(c.drops, ctl.Step{From: in.base + keep, Count: 1<<in.order - keep, Drop: true})
	space := c.tree.space
	switch {
	case pinned:
	case size == 0:
		in.base, in.order = 0, noOrder
		c.then = append(c.then, func() { space.Free(old.base, int(old.order)) })
	default:
		in.order = min(in.order, uint8(buddy.Order(keep)))
		c.then = append(c.then, func() { space.Shrink(old.base, int(old.order), int(in.order)) })
	}
	c.inodes[n.number] = in
}
