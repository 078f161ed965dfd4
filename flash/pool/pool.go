// Package pool finds pools of the flash controller in files and block devices: it says what is there, formats what is
// empty, and opens what is a pool.
//
// Format and Open are the main functions; Options say how. What is formatted is empty: it does not exist, or every
// byte of it is zero. Anything else is refused with Foreign, unless it is to be overwritten. Whoever has a device
// open has it locked against other processes, so two never have one pool.
//
// What it leaves out: what lies in a pool (flash/cfs), and who may reach it (flash/server).
package pool

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"syscall"

	"farflash/flash/ctl"
	"farflash/flash/ctl/media"
	"farflash/flash/device"
	"farflash/flash/uring"
)

// Options are how devices are used.
type Options struct {
	Pool   ctl.Config
	Layout ctl.Layout // of a pool that is made; zero: as Fit has it
	// Cached goes through the operating system's page cache instead of around it.
	Cached bool
	// Portable reads and writes by pread and pwrite even where there is a ring.
	Portable bool
	// Loops, if set, are the threads that do the devices' operations over io_uring, beside what else they do. They
	// are closed after the pool.
	Loops *uring.Loops
	// Depth is how many operations a device has under way at once.
	Depth int
	// Overwrite formats what is not empty.
	Overwrite bool
	// Begun, if set, is told of each device that is formatted, before anything is written to it, and whether it is a
	// file that was made for that.
	Begun func(path string, made bool)
}

// DefaultOptions is direct I/O, at depth 256, over io_uring where the kernel allows it.
func DefaultOptions() Options { return Options{Pool: ctl.DefaultConfig(), Depth: 256} }

// Foreign is the error of a device that holds something that is no pool.
type Foreign struct {
	Path   string
	Offset int64 // of the first byte that is not zero
}

func (e *Foreign) Error() string {
	return fmt.Sprintf("%s holds data that is not a pool (byte %d is not zero): it is left alone; name another file, "+
		"or say that what is in it may go: farflash flash format --overwrite %s",
		e.Path, e.Offset, e.Path)
}

// ErrPool is the error of formatting what is a pool already.
var ErrPool = errors.New("is a pool already")

// ErrMissing is the error of a device that is not there, or has no size, where no size was given.
var ErrMissing = errors.New("is not there, or has no size")

// State is what is on a device.
type State uint8

// The states.
const (
	Missing State = iota // no file, or one of no bytes
	Empty                // nothing but zeros
	Formatted
)

// Probe says what is on a device. What is neither empty nor a pool is an error: Foreign.
func Probe(path string) (State, error) {
	st, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Missing, nil
	case err != nil:
		return 0, err
	case !st.Mode().IsRegular() && st.Mode()&(fs.ModeDevice|fs.ModeCharDevice) != fs.ModeDevice:
		// to open a FIFO would wait for who writes to it
		return 0, fmt.Errorf("%s is neither a file nor a block device", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	state, err := probe(path, f)
	return state, errors.Join(err, f.Close())
}

// chunk is how much is looked at at once.
const chunk = 1 << 20

func probe(path string, f *os.File) (State, error) {
	size, err := f.Seek(0, 2)
	if err != nil {
		return 0, err
	}
	if size == 0 {
		return Missing, nil
	}
	buf := device.Aligned(chunk)
	for at := int64(0); at < 2*device.Grain && at+device.Grain <= size; at += device.Grain {
		if _, err := f.ReadAt(buf[:device.Grain], at); err != nil {
			return 0, fmt.Errorf("%s: %w", path, err)
		}
		if _, _, err := media.DecodeSuperblock(buf[:device.Grain]); err == nil || !errors.Is(err, media.ErrForeign) {
			return Formatted, nil // one that cannot be read, of another version, is refused when it is opened
		}
	}
	for at := int64(0); at < size; {
		// A file system tells holes, which are not read; where it cannot, all is data.
		const seekData = 3
		next, err := syscall.Seek(int(f.Fd()), at, seekData)
		switch {
		case errors.Is(err, syscall.ENXIO):
			return Empty, nil // no data from here on
		case err == nil:
			at = next &^ (device.Grain - 1)
		}
		n, err := f.ReadAt(buf[:min(chunk, (size-at+device.Grain-1)&^(device.Grain-1))], at)
		if n == 0 && err != nil {
			return 0, fmt.Errorf("%s: %w", path, err)
		}
		for i, b := range buf[:n] {
			if b != 0 {
				return 0, &Foreign{path, at + int64(i)}
			}
		}
		at += int64(n)
	}
	return Empty, nil
}

// Fit is the layout of a pool and the sizes of its devices, in bytes, such that so many bytes can be in use. given
// are the sizes that devices have; 0 is one to be made. If size is zero, all must have one, and everything that there
// is is used.
func Fit(l ctl.Layout, size uint64, given ...int64) (media.Shape, []int64, error) {
	sizes := append([]int64(nil), given...)
	free, have := 0, int64(0)
	for _, n := range given {
		if n == 0 {
			free++
		}
		have += n
	}
	automatic := l.Segment == 0
	attempt := func(each int64) (media.Shape, error) {
		total := have
		for i, n := range given {
			if n == 0 {
				sizes[i] = each
			}
			total += sizes[i]
		}
		if automatic {
			// About 128 segments at least, so that the five which are nobody's are few; 8 MiB at most.
			l.Segment = 16
			for l.Segment < ctl.DefaultLayout().Segment && total/Page/int64(2*l.Segment) >= 128 {
				l.Segment *= 2
			}
			l.OverProvision = ctl.DefaultLayout().OverProvision
		}
		return l.Shape(sizes...)
	}
	if size == 0 || free == 0 {
		shape, err := attempt(0)
		if err == nil && uint64(shape.Capacity)*Page < size {
			err = fmt.Errorf("the devices hold %d bytes when they are a pool, less than the %d asked for; give a "+
				"smaller --size, or more devices", shape.Capacity*Page, size)
		}
		return shape, sizes, err
	}
	if size > 1<<50 {
		return media.Shape{}, nil, fmt.Errorf("%d bytes are more than a pool can have; give at most 1PiB", size)
	}
	// The smallest that has the room, in steps of a 64th: a layout's overhead is no multiple of anything.
	need := max(int64(0), int64(size)-have) / int64(free)
	var last error
	for each := max(need, 1<<20); each <= 4*max(need, 1<<20)+(64<<20); each += max(each/64, 1<<18) &^ (Page - 1) {
		each = each &^ (Page - 1)
		shape, err := attempt(each)
		if last = err; err == nil && uint64(shape.Capacity)*Page >= size {
			return shape, sizes, nil
		}
	}
	return media.Shape{}, nil, fmt.Errorf("no layout of these devices has room for %d bytes: %w", size, last)
}

// Page is the controller's.
const Page = ctl.Page

// Format makes an empty pool in which so many bytes can be in use; with size 0, as many as there is room for. Files
// are made, or extended, as large as that needs. After an error files that were made are gone, and those that had no
// bytes have none.
func Format(o Options, size uint64, paths ...string) (media.Shape, error) {
	if len(paths) == 0 {
		return media.Shape{}, errors.New("a pool has at least one device")
	}
	given := make([]int64, len(paths))
	for i, path := range paths {
		n, err := vacant(o, path)
		if err != nil {
			return media.Shape{}, err
		}
		if n == 0 && size == 0 {
			return media.Shape{}, fmt.Errorf("%s %w; give --size", path, ErrMissing)
		}
		given[i] = n
	}
	if _, err := rand.Read(o.Layout.UUID[:]); err != nil {
		return media.Shape{}, err
	}
	shape, sizes, err := Fit(o.Layout, size, given...)
	if err != nil {
		return shape, fmt.Errorf("%s: %w", strings.Join(paths, ", "), err)
	}
	devices := make([]device.Device, 0, len(paths))
	fresh := make([]bool, len(paths))
	var undo []func() error
	for i, path := range paths {
		mode := device.Mode{Cached: o.Cached}
		if given[i] == 0 {
			mode.Create = sizes[i]
		}
		made := false
		if made, err = create(path, mode.Create > 0); err != nil {
			break
		}
		fresh[i] = made
		if made {
			o.begin(path, true)
		}
		var f *device.File
		if f, err = device.OpenFile(path, mode, 1); err != nil {
			if made && !errors.Is(err, syscall.EWOULDBLOCK) { // it is another's if he has locked it
				undo = append(undo, func() error { return os.Remove(path) })
			}
			break
		}
		devices = append(devices, f)
		switch {
		case made:
			undo = append(undo, func() error { return os.Remove(path) })
		case mode.Create > 0:
			undo = append(undo, func() error { return os.Truncate(path, 0) })
		}
		if !o.Overwrite {
			// Again, now that it is locked: another may have come first.
			var state State
			if state, err = probe(path, f.File); err == nil && state == Formatted {
				err = fmt.Errorf("%s %w", path, ErrPool)
			}
			if err != nil {
				break
			}
		}
	}
	if err == nil {
		for i, path := range paths {
			if !fresh[i] {
				o.begin(path, false)
			}
		}
		err = ctl.Format(shape, devices...)
	}
	for _, d := range devices {
		err = errors.Join(err, d.Close())
	}
	if err != nil {
		for _, f := range undo {
			err = errors.Join(err, f())
		}
		return shape, err
	}
	return shape, nil
}

func (o *Options) begin(path string, made bool) {
	if o.Begun != nil {
		o.Begun(path, made)
	}
}

// create makes an empty file, if it may and there is nothing, and reports whether it has.
func create(path string, may bool) (made bool, err error) {
	if !may {
		return false, nil
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist):
		return false, nil
	case err != nil:
		return false, err
	}
	return true, f.Close()
}

// vacant is the size of a device that may be formatted; 0 if it is to be made.
func vacant(o Options, path string) (int64, error) {
	state, err := Probe(path)
	var foreign *Foreign
	switch {
	case errors.As(err, &foreign) && o.Overwrite:
	case err != nil:
		return 0, err
	case state == Missing:
		return 0, nil
	case state == Formatted && !o.Overwrite:
		return 0, fmt.Errorf("%s %w; to make it an empty one: farflash flash format --overwrite %s", path, ErrPool,
			path)
	}
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	n, err := f.Seek(0, 2)
	return n &^ (Page - 1), errors.Join(err, f.Close())
}

// Open opens a pool. ring reports whether its devices go over io_uring.
func Open(o Options, paths ...string) (pool *ctl.Pool, ring bool, err error) {
	for _, path := range paths {
		state, err := Probe(path)
		switch {
		case err != nil:
			return nil, false, err
		case state == Missing:
			return nil, false, fmt.Errorf("%s %w; make a pool of it: farflash flash format --size 10GiB %s", path,
				ErrMissing, path)
		case state == Empty:
			return nil, false, fmt.Errorf("%s is empty and no pool; make one of it: farflash flash format %s", path,
				path)
		}
	}
	ring = !o.Portable && available()
	devices := make([]device.Device, 0, len(paths))
	mode := device.Mode{Cached: o.Cached}
	for _, path := range paths {
		var d device.Device
		switch {
		case ring && o.Loops != nil:
			d, err = o.Loops.Open(path, mode)
		case ring:
			d, err = uring.Open(path, mode, o.Depth)
		default:
			d, err = device.OpenFile(path, mode, min(o.Depth, 32))
		}
		if err != nil {
			break
		}
		devices = append(devices, d)
	}
	if err == nil {
		pool, err = ctl.Open(o.Pool, devices...)
	}
	if err != nil {
		for _, d := range devices {
			err = errors.Join(err, d.Close())
		}
		return nil, false, fmt.Errorf("%s: %w", strings.Join(paths, ", "), err)
	}
	return pool, ring, nil
}

// MaxThreads is the most threads that Threads starts.
const MaxThreads = 255

// DefaultThreads is half as many as the machine has processors.
func DefaultThreads() int { return min(max(1, runtime.GOMAXPROCS(0)/2), MaxThreads) }

// Threads starts n threads for devices and sockets (Options.Loops), and DefaultThreads if n is 0; nil where the
// kernel gives no rings, or o does without.
func Threads(o Options, n int) (*uring.Loops, error) {
	if o.Portable || !available() {
		return nil, nil
	}
	if n == 0 {
		n = DefaultThreads()
	}
	return uring.Start(n, o.Depth)
}

// available reports whether the kernel gives rings to this process.
func available() bool {
	r, err := uring.New(2)
	return err == nil && r.Close() == nil
}
