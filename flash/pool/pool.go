// Package pool manages flash controller pools on files and block devices: it probes devices, formats empty ones, and
// opens pools.
//
// Format and Open are the main functions, with Options. Format requires an empty device: one that does not exist, or
// whose bytes are all zero. It refuses any other with Foreign, unless Overwrite is set. An open device is locked
// against other processes, so that no two processes open the same pool.
//
// It leaves out the contents of a pool (flash/cfs) and access to it over the network (flash/server).
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

// Options control how devices are used.
type Options struct {
	Pool   ctl.Config
	Layout ctl.Layout // of a new pool; zero: as Fit chooses it
	// Cached uses the operating system's page cache instead of direct I/O.
	Cached bool
	// Portable uses pread and pwrite even where io_uring is available.
	Portable bool
	// Loops, if set, are the threads that run the devices' operations over io_uring, along with their other work. Close
	// them after the pool.
	Loops *uring.Loops
	// Depth is the number of operations that a device has in flight at once.
	Depth int
	// Overwrite formats devices that are not empty.
	Overwrite bool
	// OnFormat, if set, is called for each device to be formatted, before the first write to it; made is set if the
	// file was created for the pool.
	OnFormat func(path string, made bool)
	// Preallocate, if set, makes Format write all of the files that it creates, and is called with the bytes written so
	// far and in all. An error that it returns ends Format.
	Preallocate func(done, total int64) error
}

// DefaultOptions returns direct I/O at depth 256, over io_uring where the kernel allows it.
func DefaultOptions() Options { return Options{Pool: ctl.DefaultConfig(), Depth: 256} }

// Foreign is the error for a device that holds data which is not a pool.
type Foreign struct {
	Path   string
	Offset int64 // of the first nonzero byte
}

func (e *Foreign) Error() string {
	return fmt.Sprintf("%s holds data that is not a pool (byte %d is not zero); name another file, or discard its "+
		"content with: farflash flash format --overwrite %s; if it was a pool whose beginning was overwritten, copy "+
		"its "+
		"files out with: farflash flash salvage %s DIR", e.Path, e.Offset, e.Path, e.Path)
}

// errPool is the error for formatting an existing pool.
var errPool = errors.New("is already a pool")

// ErrMissing is the error for a device that does not exist, or has no size, when none was given.
var ErrMissing = errors.New("does not exist, or has no size")

// State is the state of a device.
type State uint8

// The states.
const (
	Missing State = iota // no file, or an empty file
	Empty                // all zeros
	Formatted
)

// Probe returns the state of a device. A device that is neither empty nor a pool yields a Foreign error.
func Probe(path string) (State, error) {
	st, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Missing, nil
	case err != nil:
		return 0, err
	case !st.Mode().IsRegular() && st.Mode()&(fs.ModeDevice|fs.ModeCharDevice) != fs.ModeDevice:
		// opening a FIFO would block until it has a writer
		return 0, fmt.Errorf("%s is neither a file nor a block device", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	state, err := probe(path, f)
	return state, errors.Join(err, f.Close())
}

// chunk is the number of bytes examined at once.
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
			return Formatted, nil // an unreadable one, of another version, is refused by Open
		}
	}
	for at := int64(0); at < size; {
		// Skip holes, as reported by SEEK_DATA; a file system without support reports everything as data.
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

// mostSegments is the number of segments above which they are larger than by default, up to mostPages.
const (
	mostSegments = 1 << 17
	mostPages    = 1 << 16
)

// Fit returns a pool's layout and its devices' sizes in bytes, such that at least size bytes can be in use. given holds
// the sizes of existing devices; 0 marks one to be created. If size is zero, every device must exist, and all their
// space is used.
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
			// At least about 128 segments, so that the five held back are a small share, of at most 8 MiB. Larger ones
			// only if there are too many, because each takes memory.
			l.Segment = 16
			for l.Segment < ctl.DefaultLayout().Segment && total/Page/int64(2*l.Segment) >= 128 ||
				l.Segment < mostPages && total/Page/int64(l.Segment) > mostSegments {
				l.Segment *= 2
			}
			l.OverProvision = ctl.DefaultLayout().OverProvision
		}
		return l.Shape(sizes...)
	}
	if size == 0 || free == 0 {
		shape, err := attempt(0)
		if err == nil && uint64(shape.Capacity)*Page < size {
			err = fmt.Errorf("a pool on these devices has a capacity of %d bytes, less than the requested %d; give a "+
				"smaller --size, or more devices", shape.Capacity*Page, size)
		}
		return shape, sizes, err
	}
	if size > 1<<50 {
		return media.Shape{}, nil, fmt.Errorf("%d bytes exceed the maximum size of a pool; give at most 1PiB", size)
	}
	// Search for the smallest size that suffices, in steps of 1/64, because the overhead of a layout is not
	// proportional to its size.
	need := max(int64(0), int64(size)-have) / int64(free)
	var last error
	for each := max(need, 1<<20); each <= 4*max(need, 1<<20)+(64<<20); each += max(each/64, 1<<18) &^ (Page - 1) {
		each = each &^ (Page - 1)
		shape, err := attempt(each)
		if last = err; err == nil && uint64(shape.Capacity)*Page >= size {
			return shape, sizes, nil
		}
	}
	return media.Shape{}, nil, fmt.Errorf("no layout of these devices has a capacity of %d bytes: %w", size, last)
}

// Page is the controller's page size, in bytes.
const Page = ctl.Page

// Format creates an empty pool in which size bytes can be in use, or as many as fit if size is 0. Files are created or
// extended as needed. After an error, files that were created are removed, and files that were empty are empty again.
func Format(o Options, size uint64, paths ...string) (media.Shape, error) {
	if len(paths) == 0 {
		return media.Shape{}, errors.New("a pool needs at least one device")
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
			// another process has locked it, so it is not ours to remove
			if made && !errors.Is(err, syscall.EWOULDBLOCK) {
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
			// Probe again now that it is locked: another process may have been faster.
			var state State
			if state, err = probe(path, f.File); err == nil && state == Formatted {
				err = fmt.Errorf("%s %w", path, errPool)
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
		err = o.allocate(paths, given, sizes, devices)
	}
	if err == nil {
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

// allocate writes the files that were created or extended, if that is wanted.
func (o *Options) allocate(paths []string, given, sizes []int64, devices []device.Device) error {
	if o.Preallocate == nil {
		return nil
	}
	done, total := int64(0), int64(0)
	for i := range devices {
		if given[i] == 0 {
			total += sizes[i]
		}
	}
	for i, d := range devices {
		f, isFile := d.(*device.File)
		if given[i] > 0 || !isFile {
			continue
		}
		if err := preallocate(paths[i], f, func(n int64) error {
			done += n
			return o.Preallocate(done, total)
		}); err != nil {
			return err
		}
	}
	return nil
}

func (o *Options) begin(path string, made bool) {
	if o.OnFormat != nil {
		o.OnFormat(path, made)
	}
}

// create creates an empty file if may is set and the file does not exist, and reports whether it did.
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

// vacant returns the size of a device that may be formatted; 0 if it must be created.
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
		return 0, fmt.Errorf("%s %w; empty it with: farflash flash format --overwrite %s", path, errPool,
			path)
	}
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	n, err := f.Seek(0, 2)
	return n &^ (Page - 1), errors.Join(err, f.Close())
}

// Open opens a pool. ring reports whether its devices use io_uring.
func Open(o Options, paths ...string) (pool *ctl.Pool, ring bool, err error) {
	for _, path := range paths {
		state, err := Probe(path)
		switch {
		case err != nil:
			return nil, false, err
		case state == Missing:
			return nil, false, fmt.Errorf("%s %w; create a pool with: farflash flash format --size 10GiB %s", path,
				ErrMissing, path)
		case state == Empty:
			return nil, false, fmt.Errorf("%s is empty; create a pool on it with: farflash flash format %s", path,
				path)
		}
	}
	ring = !o.Portable && available()
	err = o.open(device.Mode{Cached: o.Cached}, ring, paths, func(devices ...device.Device) (err error) {
		pool, err = ctl.Open(o.Pool, devices...)
		return err
	})
	return pool, ring && err == nil, err
}

// Examine opens a pool for reading only, in whatever state it is. Nothing is written to its devices before its Repair,
// which needs them open for writing, and so not readOnly. progress is that of ctl.Examine.
func Examine(o Options, readOnly bool, progress func(done, all int64) error, paths ...string) (pool *ctl.Examined,
	err error) {
	for _, path := range paths {
		state, err := Probe(path)
		var foreign *Foreign // or a pool whose superblocks are damaged
		switch {
		case errors.As(err, &foreign):
		case err != nil:
			return nil, err
		case state == Missing:
			return nil, fmt.Errorf("%s %w", path, ErrMissing)
		case state == Empty:
			return nil, fmt.Errorf("%s is empty: there is no pool on it", path)
		}
	}
	mode := device.Mode{Cached: o.Cached, ReadOnly: readOnly}
	err = o.open(mode, !o.Portable && available(), paths, func(devices ...device.Device) (err error) {
		pool, err = ctl.Examine(o.Pool, progress, devices...)
		return err
	})
	return pool, err
}

// open opens devices and gives them to use, which owns them if it returns no error.
func (o *Options) open(mode device.Mode, ring bool, paths []string, use func(...device.Device) error) (err error) {
	devices := make([]device.Device, 0, len(paths))
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
		err = use(devices...)
	}
	if err != nil {
		for _, d := range devices {
			err = errors.Join(err, d.Close())
		}
		return fmt.Errorf("%s: %w", strings.Join(paths, ", "), err)
	}
	return nil
}

// MaxThreads is the most threads that Threads starts.
const MaxThreads = 255

// DefaultThreads returns half of GOMAXPROCS, at least 1.
func DefaultThreads() int { return min(max(1, runtime.GOMAXPROCS(0)/2), MaxThreads) }

// Threads starts n threads for devices and sockets (Options.Loops), DefaultThreads if n is 0. It returns nil if
// io_uring is unavailable or o is Portable.
func Threads(o Options, n int) (*uring.Loops, error) {
	if o.Portable || !available() {
		return nil, nil
	}
	if n == 0 {
		n = DefaultThreads()
	}
	return uring.Start(n, o.Depth)
}

// available reports whether this process can create rings.
func available() bool {
	r, err := uring.New(2)
	return err == nil && r.Close() == nil
}
