package kv

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"farflash/flash/client"
)

// Remote is a store's file on a server, as Memory and Peers. The client must have a name (client.Config.Named), and no
// other store in this file.
type Remote struct {
	client   *client.Client
	file     *client.File
	name     uint64
	instance string
}

// NewRemote returns a file that a client has opened.
func NewRemote(c *client.Client, f *client.File) (*Remote, error) {
	name, err := strconv.ParseUint(c.Name(), 16, 64)
	if err != nil || name == 0 {
		return nil, fmt.Errorf("kv: the client's name is %q; it needs client.Config.Named", c.Name())
	}
	return &Remote{client: c, file: f, name: name, instance: f.Instance()}, nil
}

// ReadAt implements Memory.
func (r *Remote) ReadAt(b []byte, off int64) (int, error) { return r.file.ReadAt(b, off) }

// Write implements Memory.
func (r *Remote) Write(b []byte, off int64, ahead bool) (err error) {
	if ahead {
		_, err = r.file.WriteAhead(b, off)
	} else {
		_, err = r.file.WriteAt(b, off)
	}
	return err
}

// CompareSwapBits implements Memory.
func (r *Remote) CompareSwapBits(off int64, old, oldMask, value, mask uint64, durable bool) (uint64, error) {
	return r.file.CompareSwapBits(off, old, oldMask, value, mask, durable)
}

// Flush implements Memory.
func (r *Remote) Flush() error { return r.file.Flush() }

// Name implements Peers.
func (r *Remote) Name() uint64 { return r.name }

// Instance implements Peers.
func (r *Remote) Instance() string { return r.instance }

// Fence implements Peers.
func (r *Remote) Fence(ctx context.Context, name uint64, patience time.Duration) error {
	err := r.client.Fence(ctx, fmt.Sprintf("%016x", name), patience)
	if errors.Is(err, client.ErrAlive) {
		return ErrAlive
	}
	return err
}

// Options returns the default options for a remote store.
func (r *Remote) Options() Options {
	o := DefaultOptions()
	o.Unknown = func(err error) bool { return errors.Is(err, client.ErrUnknown) && !errors.Is(err, client.ErrFenced) }
	return o
}
