package mount

import (
	"context"
	"fmt"
	"log"
	"os/exec"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// Mounted is a mount.
type Mounted struct {
	dir    string
	server *fuse.Server
	cancel context.CancelFunc
}

// device is the kernel's side.
const device = "/dev/fuse"

// Available returns nil if this machine can mount.
func Available() error {
	if err := unix.Access(device, unix.R_OK|unix.W_OK); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrUnavailable, device, err)
	}
	if super() {
		return nil
	}
	for _, name := range []string{"fusermount3", "fusermount"} {
		if _, err := exec.LookPath(name); err == nil {
			return nil
		}
	}
	return fmt.Errorf("%w: without CAP_SYS_ADMIN it needs fusermount3", ErrUnavailable)
}

// super reports whether this process can mount by itself.
func super() bool {
	h := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var all [2]unix.CapUserData
	return unix.Capget(&h, &all[0]) == nil && all[0].Effective&(1<<unix.CAP_SYS_ADMIN) != 0
}

// largest is the size of the largest read or write of the kernel, in bytes.
const largest = 1 << 20

// Mount shows a tree in an existing directory.
func Mount(dir string, t Tree, cfg Config) (*Mounted, error) {
	if err := Available(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	super := super()
	o := fuse.MountOptions{FsName: cfg.Source, Name: "farflash", AllowOther: super, DirectMountStrict: super,
		Options: []string{"default_permissions"}, MaxWrite: largest, DisableXAttrs: true, DisableReadDirPlus: true,
		Logger: log.New(discard{}, "", 0)}
	switch {
	case cfg.ReadOnly && super:
		o.DirectMountFlags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_RDONLY
	case cfg.ReadOnly:
		o.Options = append(o.Options, "ro")
	}
	root := newNode(&tree{Tree: t, ctx: ctx, cfg: cfg})
	none := time.Duration(0)
	server, err := fs.Mount(dir, root, &fs.Options{MountOptions: o, EntryTimeout: &cfg.Cache, AttrTimeout: &cfg.Cache,
		NegativeTimeout: &none, RootStableAttr: &fs.StableAttr{Ino: rootInode}, NullPermissions: true})
	if err != nil {
		cancel()
		return nil, fmt.Errorf("mounting at %s: %w", dir, err)
	}
	return &Mounted{dir, server, cancel}, nil
}

// discard drops what go-fuse logs, which are the kernel's errors that programs get too.
type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }

// Wait returns when it is no longer mounted, whoever unmounts it.
func (m *Mounted) Wait() {
	m.server.Wait()
	m.cancel()
}

// mostUnmount is how long an unmount can wait for the server.
const mostUnmount = 3 * time.Second

// Unmount ends the mount. Programs that still use it get errors from then on, those that wait for the server too, and
// the directory is free.
func (m *Mounted) Unmount() error {
	done := make(chan error, 1)
	go func() { done <- m.server.Unmount() }()
	select {
	case err := <-done:
		if err == nil {
			m.cancel()
			return nil
		}
	case <-time.After(mostUnmount):
	}
	m.cancel()
	if super() {
		// Force lets everything fail that waits for this process. EINVAL: done meanwhile.
		if err := unix.Unmount(m.dir, unix.MNT_DETACH|unix.MNT_FORCE); err != nil && err != unix.EINVAL {
			return fmt.Errorf("unmounting %s: %w", m.dir, err)
		}
		return nil
	}
	if text, err := exec.Command("fusermount3", "-uz", m.dir).CombinedOutput(); err != nil {
		return fmt.Errorf("unmounting %s: %w: %s", m.dir, err, text)
	}
	return nil
}
