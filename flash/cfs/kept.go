package cfs

import (
	"bytes"
	"fmt"

	"farflash/flash/ctl"
)

// MostKept is the number of bytes that Keep can store: the part of the superblock's page that nothing else uses.
const MostKept = ctl.Page - superKept

// Keep stores settings of whoever serves the files, in place of those that it stored before. They are durable when it
// returns, and after a crash before that they are the old or the new ones. The file system does not interpret them.
func (f *FS) Keep(settings []byte) error {
	f.change.Lock()
	defer f.change.Unlock()
	if err := f.super(f.tree.layout, settings); err != nil {
		return fmt.Errorf("cfs: keeping settings: %w", err)
	}
	return nil
}

// Kept returns what Keep has stored last.
func (f *FS) Kept() []byte {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return bytes.Clone(f.tree.kept)
}

// Upgrade gives the file system the newest layout. Programs that do not know it cannot open it any more. Files that
// exist keep the birth that they have.
func (f *FS) Upgrade() error {
	f.change.Lock()
	defer f.change.Unlock()
	if err := f.super(version, f.tree.kept); err != nil {
		return fmt.Errorf("cfs: %w", err)
	}
	return nil
}

// super writes another superblock. The caller holds change.
func (f *FS) super(layout uint32, kept []byte) error {
	if err := f.pool.ReadOnly(); err != nil {
		return err
	}
	if len(kept) > MostKept {
		return fmt.Errorf("%d bytes, and there is space for %d", len(kept), MostKept)
	}
	page := make([]byte, ctl.Page)
	encodeSuper(page, f.uuid, layout, kept)
	if err := f.pool.WriteAt(page, superPage*ctl.Page, true); err != nil {
		return err
	}
	f.mu.Lock()
	f.tree.layout, f.tree.kept = layout, bytes.Clone(kept)
	f.mu.Unlock()
	return nil
}
