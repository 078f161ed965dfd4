package cfs

import (
	"fmt"
	"slices"

	"farflash/flash/ctl"
	"farflash/flash/ctl/media"
)

// Report is the result of Check.
type Report struct {
	Violations         []ctl.Violation // every violation found, each with the path of a file, an inode or a page
	Files, Directories int
	Pages              uint64 // pages in use by files and directories
}

// Check reads all metadata and verifies every invariant: stored metadata decodes, matches its checksums and is in the
// right place; every file has one name and every name one file; blocks are aligned, do not overlap, and leave exactly
// the free space; no page in use is unowned; and the tree in memory equals the stored one. Changes are blocked
// meanwhile; reading and writing files is not.
func (f *FS) Check() Report {
	f.change.Lock()
	defer f.change.Unlock()
	var r Report
	stored, violations := f.load()
	r.Violations = violations
	if stored == nil {
		if len(violations) == 0 {
			r.Violations = append(r.Violations, ctl.Violation{Path: "superblock", What: "missing"})
		}
		return r
	}
	add := func(path, format string, args ...any) {
		r.Violations = append(r.Violations, ctl.Violation{Path: path, What: fmt.Sprintf(format, args...)})
	}
	for i := range max(len(stored.nodes), len(f.tree.nodes)) {
		is, was := stored.get(uint32(i)), f.tree.get(uint32(i))
		switch {
		case is == nil && was == nil:
			continue
		case is == nil || was == nil:
			add(fmt.Sprintf("inode %d", i), "stored: %v; in memory: %v", is != nil, was != nil)
			continue
		case is.inode != was.inode || is.path() != was.path() || is.at != was.at:
			add(was.path(), "is stored as %+v at page %d of %s; memory has %+v at page %d", is.inode, is.at,
				is.path(), was.inode, was.at)
		case !slices.EqualFunc(is.pages, was.pages, slices.Equal):
			add(was.path(), "the stored order of its names differs from memory")
		case !slices.Equal(is.rooms, was.rooms):
			add(was.path(), "its pages have %v bytes free; memory has %v", is.rooms, was.rooms)
		case len(is.children) != len(was.children):
			add(was.path(), "%d names are stored; memory has %d", len(is.children), len(was.children))
		}
		if is.kind == Directory {
			r.Directories++
		} else {
			r.Files++
		}
	}
	for _, err := range f.tree.space.Check() {
		add("free blocks", "%v", err)
	}
	if is, was := stored.space.Pages(), f.tree.space.Pages(); is != was && len(violations) == 0 {
		add("free blocks", "%d pages are free; memory has %d", is, was)
	}
	for _, e := range f.strays(f.tree) {
		if f.untidy {
			break
		}
		add(fmt.Sprintf("page %d", e.first), "%d pages in use have no owner", e.count)
	}
	for e := range f.inUse(extent{1 << dataShift, media.MaxLBA - 1<<dataShift}) {
		r.Pages += e.count
	}
	return r
}

// CheckPool opens the file system of a pool, which cleans up after a crash, and checks it, for callers that have only
// the pool. It returns ErrNoFS if there is no file system.
func CheckPool(pool *ctl.Pool, cfg Config) (Report, Found, error) {
	f := &FS{pool: pool, uuid: pool.Shape().UUID, now: cfg.Now}
	f.seed = f.uuid.Seed()
	t, violations := f.load()
	switch {
	case len(violations) > 0:
		return Report{Violations: violations}, Found{}, nil
	case t == nil:
		return Report{}, Found{}, ErrNoFS
	}
	open, err := Open(pool, cfg)
	if err != nil {
		return Report{}, Found{}, err
	}
	return open.Check(), open.Found(), nil
}
