package ctl

import (
	"fmt"

	"farflash/flash/device"
)

// Trouble is an operation of a device that failed, or a page that was read and is damaged.
type Trouble struct {
	Err    error
	Name   string // of the device, if it has one
	Device int    // in the pool's order
	Offset int64  // on the device, in bytes
	Bytes  int
	Page   uint64 // of the pool, if Paged
	Kind   device.Kind
	Paged  bool
}

func (t Trouble) String() string {
	name := t.Name
	if name == "" {
		name = fmt.Sprintf("device %d", t.Device)
	}
	switch {
	case t.Kind == device.Flush:
		return fmt.Sprintf("%s: flush: %v", name, t.Err)
	case t.Paged:
		return fmt.Sprintf("%s: %v of the pool's page %d at offset %d: %v", name, t.Kind, t.Page, t.Offset, t.Err)
	}
	return fmt.Sprintf("%s: %v of %d bytes at offset %d: %v", name, t.Kind, t.Bytes, t.Offset, t.Err)
}

// trouble reports a failed operation to Config.Trouble, which runs without the lock.
func (c *core) trouble(dev int32, op *device.Op, page uint64, err error) {
	if c.cfg.Trouble == nil {
		return
	}
	t := Trouble{Err: err, Device: int(dev), Offset: op.Offset, Bytes: len(op.Buf), Kind: op.Kind, Page: page,
		Paged: page != noPage}
	c.notify(func(error) { c.cfg.Trouble(t) }, nil)
}

// named returns a function that completes troubles by the devices' names before it passes them on.
func named(fn func(Trouble), devices []device.Device) func(Trouble) {
	if fn == nil {
		return nil
	}
	return func(t Trouble) {
		t.Name = nameOf(devices, t.Device)
		fn(t)
	}
}

// nameOf returns a device's name, or "".
func nameOf(devices []device.Device, i int) string {
	if d, ok := devices[i].(interface{ Name() string }); ok {
		return d.Name()
	}
	return ""
}
