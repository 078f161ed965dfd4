//go:build !linux

package mount

import "fmt"

// Mounted is a mount.
type Mounted struct{}

// Available returns nil if this machine can mount.
func Available() error { return fmt.Errorf("%w: it needs Linux", ErrUnavailable) }

// Mount shows a tree in an existing directory.
func Mount(string, Tree, Config) (*Mounted, error) { return nil, Available() }

// Wait returns when it is no longer mounted.
func (*Mounted) Wait() {}

// Unmount ends the mount.
func (*Mounted) Unmount() error { return nil }
