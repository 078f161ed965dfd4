package cfs

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"farflash/flash/ctl"
	"farflash/flash/ctl/heat"
	"farflash/flash/ctl/media"
)

// Survey is what can be read of a file system in whatever state.
type Survey struct {
	Entries    []Status // by path, each directory before its contents; a file that has no name is in LostFound
	Violations []ctl.Violation
	Mends      []string // what Mend will do, in words
	Hopeless   bool     // a violation is ambiguous, so Mend changes nothing
	fs         *FS
	plan       *plan
}

// LostFound is the directory for files of which the name is lost.
const LostFound = "lost+found"

// plan collects how violations can be mended. A nil plan does nothing: then a violation ends the loading of what
// depends on it.
type plan struct {
	super   bool
	pages   map[uint32]bool        // inode pages to write again
	dirs    map[*node]map[int]bool // pages of directories to write again
	lost    []*node                // files and directories without a name
	mends   []string
	refused bool
}

func (p *plan) say(format string, args ...any) {
	p.mends = append(p.mends, fmt.Sprintf(format, args...))
}

// hopeless notes a violation that can be mended in several ways, of which none is better.
func (p *plan) hopeless() {
	if p != nil {
		p.refused = true
	}
}

// inodes plans to write an inode page again.
func (p *plan) inodes(page uint32, format string, args ...any) {
	if p != nil {
		p.pages[page] = true
		p.say(format, args...)
	}
}

// unname plans to write a directory page without a name.
func (p *plan) unname(dir *node, at int, path, why string) {
	if p != nil {
		p.rewrite(dir, at)
		p.say("the name %s is removed: %s", path, why)
	}
}

func (p *plan) rewrite(dir *node, at int) {
	if p.dirs[dir] == nil {
		p.dirs[dir] = map[int]bool{}
	}
	p.dirs[dir][at] = true
}

// named plans to clear the mark of a file without a name that has one.
func (p *plan) named(n *node, path string) {
	if p != nil {
		n.nameless = false
		p.inodes(n.number/inodesPerPage, "%s keeps its name", path)
	}
}

// last looks for inode pages after the last, of which an earlier version is left. Inode pages are never freed.
func (p *plan) last(l *loader) {
	if p == nil {
		return
	}
	for next := uint32(len(l.tree.inodePages)); l.spareInodes(next) >= 0; next++ {
		l.wrongf(fmt.Sprintf("inodes %d to %d", next*inodesPerPage, (next+1)*inodesPerPage-1), "the page is missing")
		p.fill(l, next+1)
	}
}

// noRoot makes an empty root directory.
func (p *plan) noRoot(l *loader) {
	if p == nil {
		return
	}
	n := &node{number: rootInode, children: map[string]*node{},
		inode: inode{kind: Directory, order: noOrder, perm: 0o755, mtime: l.time()}}
	l.tree.inodePages[0] = true
	l.tree.set(n)
	p.inodes(0, "the root directory is made anew, and is empty")
}

// fill plans to write the inode pages before the given one that are missing, from older versions if there are any.
func (p *plan) fill(l *loader, page uint32) bool {
	if p == nil {
		return false
	}
	// As many as the pool has pages, at most: otherwise the page is not one.
	if _, capacity := l.pool.Use(); int64(page) > capacity {
		p.hopeless()
		return false
	}
	for k := uint32(len(l.tree.inodePages)); k < page; k++ {
		l.tree.inodePages[k] = true
		if p.oldInodes(l, k) {
			l.decodeInodes(k * inodesPerPage)
		}
	}
	return true
}

// oldInodes reads the version of an inode page that its last change left in a spare page. It reports whether there is
// one.
func (p *plan) oldInodes(l *loader, page uint32) bool {
	if p == nil {
		return false
	}
	first := page * inodesPerPage
	found := l.spareInodes(page)
	if found < 0 {
		p.inodes(page, "inodes %d to %d are lost, with their files", first, first+inodesPerPage-1)
		return false
	}
	p.inodes(page, "inodes %d to %d are taken from an earlier version: what was created, removed or resized since "+
		"may be "+
		"missing, there again, or have its earlier size", first, first+inodesPerPage-1)
	return l.pool.ReadAt(l.page, uint64(sparePage+found)*ctl.Page) == nil
}

// spareInodes returns the spare page with the newest earlier version of an inode page, or -1.
func (l *loader) spareInodes(page uint32) int {
	first := page * inodesPerPage
	found, newest := -1, uint32(0)
	for i := range spares {
		if l.pool.ReadAt(l.page, uint64(sparePage+i)*ctl.Page) != nil {
			continue
		}
		used, valid, time := 0, true, uint32(0)
		for k := range uint32(inodesPerPage) {
			in, err := decodeInode(l.page[k*inodeSize:][:inodeSize], l.seed, first+k)
			valid = valid && err == nil
			if in.kind != None {
				used++
				time = max(time, in.mtime)
			}
		}
		if valid && used > 0 && (found < 0 || time >= newest) {
			found, newest = i, time
		}
	}
	return found
}

// oldNames returns the entries of a directory page that cannot be read: those of the version that its last change left
// in a spare page, of which most names fit, or none.
func (p *plan) oldNames(l *loader, dir *node, at uint32, rest []dirent) []dirent {
	if p == nil {
		return rest
	}
	best, fits := []dirent(nil), 0
	for i := range spares {
		if l.pool.ReadAt(l.page, uint64(sparePage+i)*ctl.Page) != nil {
			continue
		}
		entries, err := decodeDir(l.page, l.seed, dir.number, at)
		if err != nil {
			continue
		}
		n := 0
		for _, e := range entries {
			if x := l.tree.get(e.inode); x != nil && x.parent == nil && !x.nameless {
				n++
			}
		}
		if n > fits {
			best, fits = entries, n
		}
	}
	p.rewrite(dir, int(at))
	if best == nil {
		p.say("the names in page %d of %s are lost; the files go to /%s", at, dir.path(), LostFound)
	} else {
		p.say("the names in page %d of %s are taken from an earlier version", at, dir.path())
	}
	return best
}

// orphans reads the directories that have no name, and collects all that is in no directory.
func (p *plan) orphans(l *loader) {
	if p == nil {
		return
	}
	each := func(do func(n *node)) {
		for _, n := range l.tree.nodes {
			if n != nil && n.number != rootInode && n.parent == nil && !n.nameless {
				do(n)
			}
		}
	}
	each(func(n *node) {
		if n.kind == Directory && n.pages == nil {
			l.walk(n)
		}
	})
	each(func(n *node) {
		p.lost = append(p.lost, n)
		p.say("the %v with inode %d has no name, and becomes %s", n.kind, n.number, lostPath(n))
	})
}

func lostPath(n *node) string { return fmt.Sprintf("/%s/inode-%d", LostFound, n.number) }

// NewSurvey reads the remains of the file system of a pool, which may be read-only, and plans how to mend it. It
// returns ErrNoFS if there is none.
func NewSurvey(pool *ctl.Pool, cfg Config) (*Survey, error) {
	f := &FS{pool: pool, uuid: pool.Shape().UUID, now: cfg.Now}
	f.seed = f.uuid.Seed()
	s := &Survey{fs: f, plan: &plan{pages: map[uint32]bool{}, dirs: map[*node]map[int]bool{}}}
	l := &loader{FS: f, tree: newTree(), page: make([]byte, ctl.Page), plan: s.plan}
	err := pool.ReadAt(l.page, superPage*ctl.Page)
	if err == nil {
		l.tree.layout, l.tree.kept, err = decodeSuper(l.page, f.uuid)
	}
	if errors.Is(err, ErrNoFS) {
		if _, held := pool.Run(inodePage, 1); !held { // or all of it is lost
			return nil, fmt.Errorf("cfs: %w", ErrNoFS)
		}
	}
	if err != nil {
		l.wrong("superblock", err)
		s.plan.super = true
		s.plan.say("the superblock of the file system is written again; limits that flash ctl has set are lost")
	}
	l.read()
	f.tree = l.tree
	s.Violations, s.Mends, s.Hopeless = l.violations, s.plan.mends, s.plan.refused
	for _, n := range l.tree.nodes {
		if n == nil || n.number == rootInode || n.nameless {
			continue
		}
		i := l.tree.stat(n)
		if top := n.top(); top.number != rootInode {
			i.Path = lostPath(top) + strings.TrimPrefix(i.Path, top.path())
		}
		s.Entries = append(s.Entries, i)
	}
	slices.SortFunc(s.Entries, func(a, b Status) int { return strings.Compare(a.Path, b.Path) })
	return s, nil
}

// top returns the highest directory that a node is in, or the node.
func (n *node) top() *node {
	for n.parent != nil {
		n = n.parent
	}
	return n
}

// What describes what a page of the pool is to the file system.
func (s *Survey) What(page uint64) string {
	switch {
	case page == superPage:
		return "the superblock of the file system"
	case page >= sparePage && page <= swapPage:
		return "a spare page"
	case page >= inodePage && page < 1<<dataShift:
		first := (page - inodePage) * inodesPerPage
		return fmt.Sprintf("inodes %d to %d", first, first+inodesPerPage-1)
	}
	for _, n := range s.fs.tree.nodes {
		if n != nil && n.kind == Directory && n.order != noOrder && page >= n.base && page < n.base+pages(n.size) {
			return fmt.Sprintf("page %d of the directory %s", page-n.base, n.path())
		}
	}
	return "outside of all files"
}

// Mend carries out the plan of a new survey, on a pool that can be written. Each step is durable before the next, and
// an interruption leaves a state that Mend continues from. It returns the changes made.
func Mend(pool *ctl.Pool, cfg Config) ([]string, error) {
	s, err := NewSurvey(pool, cfg)
	switch {
	case err != nil:
		return nil, err
	case s.Hopeless:
		return nil, fmt.Errorf("cfs: %w", errAmbiguous)
	case len(s.Violations) == 0:
		return nil, nil
	}
	f, p := s.fs, s.plan
	page := make([]byte, ctl.Page)
	write := func(at uint64) error { return pool.WriteFrom(page, at*ctl.Page, true, heat.Auto) }
	for _, k := range slices.Sorted(maps.Keys(f.tree.inodePages)) {
		if !p.pages[k] && pool.Holds(inodePage+uint64(k)) {
			continue
		}
		clear(page)
		for i := range uint32(inodesPerPage) {
			if n := f.tree.get(k*inodesPerPage + i); n != nil {
				n.encode(page[i*inodeSize:], f.seed, n.number)
			}
		}
		if err := write(inodePage + uint64(k)); err != nil {
			return nil, fmt.Errorf("cfs: mending: %w", err)
		}
	}
	for _, dir := range f.tree.nodes {
		for _, i := range slices.Sorted(maps.Keys(p.dirs[dir])) {
			var left []dirent
			for _, e := range dir.pages[i] {
				if n := dir.children[e.name]; n != nil && n.number == e.inode && n.at == i &&
					!slices.Contains(left, e) {
					left = append(left, e)
				}
			}
			encodeDir(page, f.seed, dir.number, uint32(i), left)
			if err := write(dir.base + uint64(i)); err != nil {
				return nil, fmt.Errorf("cfs: mending: %w", err)
			}
			dir.pages[i], dir.rooms[i] = left, room(left)
		}
	}
	if p.super {
		encodeSuper(page, f.uuid, version, nil)
		if err := write(superPage); err != nil {
			return nil, fmt.Errorf("cfs: mending: %w", err)
		}
	}
	if err := f.begin(f.tree); err != nil {
		return nil, err
	}
	for _, n := range p.lost {
		if err := f.keep(n); err != nil {
			return nil, fmt.Errorf("cfs: mending: %w", err)
		}
	}
	return s.Mends, nil
}

var errAmbiguous = errors.New("the violations can be mended in several ways: copy the files out with " +
	"farflash flash salvage, and format the pool")

// keep names a file or directory that is in no directory.
func (f *FS) keep(n *node) error {
	err := f.Mkdir(Cred{}, "/"+LostFound, 0o700)
	if f.tree.root().children[LostFound] == nil {
		return err
	}
	return f.do(func(c *change) error {
		dir, name, there, err := c.place(Cred{}, Place{Path: lostPath(n)})
		if err != nil {
			return err
		}
		if there != nil {
			name += "-again"
		}
		return c.link(dir, name, n)
	})
}

// Owned reports whether a page is within the areas of the file system, rather than left over.
func (s *Survey) Owned(page uint64) bool {
	return page < media.MaxLBA && s.What(page) != "outside of all files"
}
