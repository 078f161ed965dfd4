package cfs

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"strings"

	"farflash/flash/cfs/buddy"
	"farflash/flash/ctl"
	"farflash/flash/ctl/media"
)

// node is a file or directory in memory.
type node struct {
	inode
	number uint32
	parent *node  // nil for the root and for nameless files
	name   string // in parent
	at     int    // the page of parent with the name
	opens  int    // open Files
	pins   int    // of these, Files that rely on its address
	taking int    // Allocates in progress; guarded by change
	cuts   uint64 // how often pages beyond its end were dropped
	made   uint64 // its place among the files created since the file system was opened; 0: it was there before
	// tree.changes after its last change; 0: before the file system was opened
	changed uint64

	children map[string]*node // of a directory
	pages    [][]dirent       // of a directory: the stored entries, by page
	rooms    []int            // of a directory: free bytes, by page
}

// path returns a node's path for messages.
func (n *node) path() string {
	switch {
	case n.number == rootInode:
		return "/"
	case n.parent == nil:
		return fmt.Sprintf("inode %d", n.number)
	}
	var names []string
	for ; n.parent != nil; n = n.parent {
		names = append(names, n.name)
	}
	if n.number != rootInode {
		names = append(names, n.path())
	} else {
		names = append(names, "")
	}
	slices.Reverse(names)
	return strings.Join(names, "/")
}

// tree is the stored metadata, in memory.
type tree struct {
	layout uint32
	kept   []byte  // see Keep
	nodes  []*node // by number
	// by number: the birth of the node, or of the last that had the number since Open; 0: none had it
	born       []uint8
	lowest     uint32 // all lower numbers are in use
	opening    uint32 // of the pool; see Handle
	changes    uint64 // see Outcome
	inodePages map[uint32]bool
	space      *buddy.Space
}

func newTree() *tree {
	return &tree{nodes: make([]*node, rootInode+1), lowest: rootInode + 1, inodePages: map[uint32]bool{},
		space: buddy.New(dataShift)}
}

func (t *tree) root() *node { return t.nodes[rootInode] }

func (t *tree) set(n *node) {
	for int(n.number) >= len(t.nodes) {
		t.nodes = append(t.nodes, nil)
	}
	for len(t.born) < len(t.nodes) {
		t.born = append(t.born, 0)
	}
	t.nodes[n.number], t.born[n.number] = n, n.birth
}

func (t *tree) get(number uint32) *node {
	if int(number) >= len(t.nodes) {
		return nil
	}
	return t.nodes[number]
}

// free returns the lowest unused number.
func (t *tree) free() uint32 {
	for int(t.lowest) < len(t.nodes) && t.nodes[t.lowest] != nil {
		t.lowest++
	}
	return t.lowest
}

func (t *tree) remove(number uint32) {
	t.nodes[number] = nil
	t.lowest = min(t.lowest, number)
}

// Cred is a user's identity. UID 0 has all rights.
type Cred struct{ UID, GID uint32 }

// Rights are the kinds of access to a file or directory.
type Rights uint16

// The rights, as mode bits.
const (
	Search Rights = 1 << iota
	Write
	Read
)

// allows reports whether a user has all the wanted rights to a node.
func (n *node) allows(who Cred, want Rights) bool {
	has := Rights(n.perm)
	switch {
	case who.UID == 0:
		return true
	case who.UID == n.uid:
		has >>= 6
	case who.GID == n.gid:
		has >>= 3
	}
	return has&want == want
}

// walk resolves a list of names from a node on.
func (n *node) walk(who Cred, names []string) (*node, error) {
	for _, name := range names {
		switch {
		case n.kind != Directory:
			return nil, fmt.Errorf("%s: %w", n.path(), ErrNotDir)
		case !n.allows(who, Search):
			return nil, fmt.Errorf("%s: %w", n.path(), fs.ErrPermission)
		}
		next := n.children[name]
		if next == nil {
			return nil, fmt.Errorf("%s/%s: %w", strings.TrimSuffix(n.path(), "/"), name, fs.ErrNotExist)
		}
		n = next
	}
	return n, nil
}

// start resolves a place's handle, and splits its path.
func (t *tree) start(p Place) (from *node, names []string, err error) {
	if from, err = t.find(p.At); err == nil {
		names, err = split(p.Path)
	}
	return from, names, err
}

// lookup resolves a place.
func (t *tree) lookup(who Cred, p Place) (*node, error) {
	from, names, err := t.start(p)
	if err != nil {
		return nil, err
	}
	return from.walk(who, names)
}

// place resolves a place to its directory and last name, and the node of that name, if it exists.
func (t *tree) place(who Cred, p Place) (dir *node, name string, there *node, err error) {
	from, names, err := t.start(p)
	switch {
	case err != nil:
		return nil, "", nil, err
	case len(names) == 0:
		return nil, "", nil, fmt.Errorf("%s: %w", from.path(), fs.ErrExist)
	}
	name = names[len(names)-1]
	if dir, err = from.walk(who, names[:len(names)-1]); err != nil {
		return nil, "", nil, err
	}
	switch {
	case dir.kind != Directory:
		return nil, "", nil, fmt.Errorf("%s: %w", dir.path(), ErrNotDir)
	case !dir.allows(who, Search):
		return nil, "", nil, fmt.Errorf("%s: %w", dir.path(), fs.ErrPermission)
	}
	return dir, name, dir.children[name], nil
}

// within reports whether a node is top or below it.
func (n *node) within(top *node) bool {
	for ; n != nil; n = n.parent {
		if n == top {
			return true
		}
	}
	return false
}

// loader reads the whole tree and collects all violations. With plan it goes on as far as it can, and plans how to mend
// them.
type loader struct {
	*FS
	tree       *tree
	violations []ctl.Violation
	page       []byte
	plan       *plan
}

func (l *loader) wrong(path string, err error) {
	l.violations = append(l.violations, ctl.Violation{Path: path, What: err.Error()})
}

func (l *loader) wrongf(path, format string, args ...any) { l.wrong(path, fmt.Errorf(format, args...)) }

// load reads the stored tree. It returns nil if there is no superblock.
func (f *FS) load() (*tree, []ctl.Violation) {
	l := &loader{FS: f, tree: newTree(), page: make([]byte, ctl.Page)}
	if err := f.pool.ReadAt(l.page, superPage*ctl.Page); err != nil {
		l.wrong("superblock", err)
		return nil, l.violations
	}
	var err error
	l.tree.layout, l.tree.kept, err = decodeSuper(l.page, f.uuid)
	switch {
	case errors.Is(err, ErrNoFS):
		return nil, nil
	case err != nil:
		l.wrong("superblock", err)
		return nil, l.violations
	}
	l.read()
	return l.tree, l.violations
}

// read reads all but the superblock.
func (l *loader) read() {
	l.inodes()
	l.plan.last(l)
	l.blocks()
	if root := l.tree.root(); root == nil || root.kind != Directory {
		l.wrongf("/", "no root directory")
		l.plan.noRoot(l)
	}
	if root := l.tree.root(); root != nil && root.kind == Directory {
		l.walk(root)
	}
	l.plan.orphans(l)
	for _, n := range l.tree.nodes {
		if n != nil && n.number != rootInode && n.parent == nil && !n.nameless {
			l.wrongf(n.path(), "the %v is in no directory", n.kind)
		}
	}
}

// inodes reads the inode pages that were ever written, which are at most as many as the pool has pages.
func (l *loader) inodes() {
	for e := range l.inUse(extent{inodePage, inodePage}) {
		for p := e.first; p < e.first+e.count; p++ {
			l.inodesAt(p)
		}
	}
}

func (l *loader) inodesAt(p uint64) {
	first := uint32(p-inodePage) * inodesPerPage
	if int(first/inodesPerPage) != len(l.tree.inodePages) {
		// numbers are allocated lowest first and inode pages are never freed, so a gap is damage; this also bounds
		// memory by the pages stored
		l.wrongf(fmt.Sprintf("inodes %d to %d", first, first+inodesPerPage-1), "the preceding inode page is missing")
		if !l.plan.fill(l, first/inodesPerPage) {
			return
		}
	}
	l.tree.inodePages[first/inodesPerPage] = true
	if err := l.pool.ReadAt(l.page, p*ctl.Page); err != nil {
		l.wrong(fmt.Sprintf("inodes %d to %d", first, first+inodesPerPage-1), err)
		if !l.plan.oldInodes(l, first/inodesPerPage) {
			return
		}
	}
	l.decodeInodes(first)
}

// decodeInodes takes the inodes from number first on from page.
func (l *loader) decodeInodes(first uint32) {
	for i := range uint32(inodesPerPage) {
		in, err := decodeInode(l.page[i*inodeSize:][:inodeSize], l.seed, first+i)
		switch {
		case err != nil:
			l.wrong(fmt.Sprintf("inode %d", first+i), err)
			l.plan.inodes(first/inodesPerPage, "inode %d is damaged; its file is lost", first+i)
		case in.kind == None:
		case first+i < rootInode:
			l.wrongf(fmt.Sprintf("inode %d", first+i), "a %v has a reserved inode number", in.kind)
			l.plan.inodes(first/inodesPerPage, "inode %d is reserved: it is cleared", first+i)
		default:
			n := &node{inode: in, number: first + i}
			if in.kind == Directory {
				n.children = map[string]*node{}
			}
			l.tree.set(n)
		}
	}
}

// blocks reserves the nodes' blocks and reports overlaps.
func (l *loader) blocks() {
	var all []*node
	for _, n := range l.tree.nodes {
		if n != nil && n.order != noOrder {
			all = append(all, n)
		}
	}
	slices.SortStableFunc(all, func(a, b *node) int { return int(int64(a.base - b.base)) })
	var widest *node // of the previous nodes, the one whose block ends last
	for _, n := range all {
		if widest != nil && widest.base+1<<widest.order > n.base {
			l.wrongf(n.path(), "its block of 2^%d pages at %d overlaps that of inode %d, 2^%d at %d", n.order, n.base,
				widest.number, widest.order, widest.base)
			l.plan.hopeless()
		} else if !l.tree.space.Reserve(n.base, int(n.order)) {
			l.wrongf(n.path(), "its block of 2^%d pages at %d cannot be reserved", n.order, n.base)
			l.plan.hopeless()
		}
		if widest == nil || n.base+1<<n.order > widest.base+1<<widest.order {
			widest = n
		}
	}
}

// walk reads a directory and everything below it. It enters each node at most once, so it terminates even on damaged
// directories.
func (l *loader) walk(root *node) {
	_, capacity := l.pool.Use()
	for todo := []*node{root}; len(todo) > 0; {
		dir := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if pages(dir.size) > uint64(capacity) {
			l.wrongf(dir.path(), "the directory has %d pages, but the pool has a capacity of %d", pages(dir.size),
				capacity)
			l.plan.hopeless()
			continue
		}
		for i := range pages(dir.size) {
			where := fmt.Sprintf("%s: page %d", dir.path(), i)
			var entries []dirent
			err := l.pool.ReadAt(l.page, (dir.base+i)*ctl.Page)
			if err == nil {
				entries, err = decodeDir(l.page, l.seed, dir.number, uint32(i))
			}
			if err != nil {
				l.wrong(where, err)
				entries = l.plan.oldNames(l, dir, uint32(i), entries)
			}
			dir.pages, dir.rooms = append(dir.pages, entries), append(dir.rooms, room(entries))
			for _, e := range entries {
				if n := l.enter(dir, int(i), e); n != nil && n.kind == Directory && n.pages == nil {
					todo = append(todo, n)
				}
			}
		}
	}
}

// enter links an entry's node into its directory if the entry is valid.
func (l *loader) enter(dir *node, at int, e dirent) *node {
	path := strings.TrimSuffix(dir.path(), "/") + "/" + e.name
	n := l.tree.get(e.inode)
	if n != nil && n.nameless {
		l.wrongf(path, "inode %d is marked as nameless", e.inode)
		l.plan.named(n, path)
	}
	why := ""
	switch {
	case dir.children[e.name] != nil:
		why = "duplicate name"
	case n == nil:
		why = fmt.Sprintf("inode %d is free or damaged", e.inode)
	case n.nameless:
		return nil
	case n.parent != nil:
		why = fmt.Sprintf("inode %d is also named %s", e.inode, n.path())
	case dir.within(n):
		why = fmt.Sprintf("inode %d contains this directory", e.inode)
	default:
		n.parent, n.name, n.at = dir, e.name, at
		dir.children[e.name] = n
		return n
	}
	l.wrongf(path, "%s", why)
	l.plan.unname(dir, at, path, why)
	return nil
}

// extent is a run of consecutive pages.
type extent struct{ first, count uint64 }

// inUse iterates over the runs of pages in use within an extent.
func (f *FS) inUse(all extent) iter.Seq[extent] {
	return func(yield func(extent) bool) {
		for all.count > 0 {
			n, held := f.pool.Run(all.first, all.count)
			if held && !yield(extent{all.first, n}) {
				return
			}
			all.first, all.count = all.first+n, all.count-n
		}
	}
}

// strays returns pages in use that no file owns: beyond the ends of files, or outside all areas.
func (f *FS) strays(t *tree) []extent {
	owned := []extent{{superPage, 1}, {sparePage, spares}, {inodePage, inodePage}}
	var all []*node
	for _, n := range t.nodes {
		if n != nil && n.order != noOrder {
			all = append(all, n)
		}
	}
	slices.SortFunc(all, func(a, b *node) int { return int(int64(a.base - b.base)) })
	for _, n := range all {
		// the whole block: users of a pinned address may write beyond the end, and Allocate does
		if n.pins > 0 || n.taking > 0 {
			owned = append(owned, extent{n.base, 1 << n.order})
		} else {
			owned = append(owned, extent{n.base, pages(n.size)})
		}
	}
	var stray []extent
	for e := range f.inUse(extent{0, media.MaxLBA}) {
		for e.count > 0 {
			for len(owned) > 0 && owned[0].first+owned[0].count <= e.first {
				owned = owned[1:]
			}
			n := e.count
			switch {
			case len(owned) == 0:
			case owned[0].first <= e.first: // owned, up to its end
				n = min(n, owned[0].first+owned[0].count-e.first)
				e.first, e.count = e.first+n, e.count-n
				continue
			default:
				n = min(n, owned[0].first-e.first)
			}
			stray = append(stray, extent{e.first, n})
			e.first, e.count = e.first+n, e.count-n
		}
	}
	return stray
}
