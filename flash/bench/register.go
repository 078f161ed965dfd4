package bench

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"farflash/flash/cfs"
	"farflash/flash/ctl"
	"farflash/flash/extent"
	"farflash/flash/pool"
	"farflash/flash/server"
	"farflash/flash/verbs"
)

// RegisterConfig configures Register. DefaultRegister returns the defaults.
type RegisterConfig struct {
	Dir    string  // where a pool's file is created; it is removed afterwards
	Sizes  []int64 // in bytes
	Rounds int
	Note   func(string)
	Stop   func() error // if set, called before each size; an error from it ends the run
}

// DefaultRegister returns a configuration for 1 MiB to 10 GiB.
func DefaultRegister() RegisterConfig {
	return RegisterConfig{Dir: ".", Sizes: []int64{1 << 20, 16 << 20, 256 << 20, 1 << 30, 10 << 30}, Rounds: 5}
}

// Registered is the time until peers can access this many bytes, in microseconds.
type Registered struct {
	Size int64 `json:"size"`
	// File is for a file in a pool: to open it, pin it and register it. No page is read and no memory is allocated for
	// pages.
	File Spread `json:"file_us"`
	// Memory is for memory without any page present, as for a NIC that handles page faults; Pinned has all pages
	// present and locked, as other NICs need.
	Memory Spread `json:"memory_us"`
	Pinned Spread `json:"pinned_us"`
	// Skipped is why memory was not pinned, "" if it was.
	Skipped string `json:"skipped,omitempty"`
}

// available is the memory that can be allocated without harm to others, in bytes: MemAvailable in /proc/meminfo.
func available() int64 {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "MemAvailable:" {
			n, err := strconv.ParseInt(f[1], 10, 64)
			if err != nil {
				return 0
			}
			return n << 10
		}
	}
	return 0
}

// Register measures the cost of registration.
func Register(c RegisterConfig) (out []Registered, err error) {
	if len(c.Sizes) == 0 || c.Rounds < 1 || c.Rounds > 1000 {
		return nil, fmt.Errorf("bench: %d sizes and %d rounds; use at least 1 size and 1 to 1000 rounds", len(c.Sizes), c.Rounds)
	}
	for _, n := range c.Sizes {
		if n < ctl.Page || n > 1<<50 || n%ctl.Page != 0 {
			return nil, fmt.Errorf("bench: registration of %d bytes; use multiples of %d", n, ctl.Page)
		}
	}
	dir, err := os.MkdirTemp(c.Dir, "farflash-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	// Files are thin, so a small pool can hold files of any size.
	path := filepath.Join(dir, "pool")
	o := pool.DefaultOptions()
	o.Pool.Frames = 256
	if _, err := pool.Format(o, 32<<20, path); err != nil {
		return nil, err
	}
	p, _, err := pool.Open(o, path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	if err := cfs.Format(p, cfs.Config{Now: time.Now}); err != nil {
		return nil, err
	}
	tree, err := cfs.Open(p, cfs.Config{Now: time.Now})
	if err != nil {
		return nil, err
	}
	var key [16]byte
	if _, err := rand.Read(key[:]); err != nil {
		return nil, err
	}
	adapter, err := verbs.NewAdapter(key)
	if err != nil {
		return nil, err
	}
	domain, files := adapter.NewDomain(1), server.Tree(tree, cfs.Cred{})
	for i, size := range c.Sizes {
		if c.Stop != nil && c.Stop() != nil {
			return nil, c.Stop()
		}
		name := fmt.Sprintf("/%d", i)
		f, err := tree.Create(cfs.Cred{}, name, 0o600, size)
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			return nil, err
		}
		r := Registered{Size: size}
		if size > available()/2 {
			r.Skipped = fmt.Sprintf("%d bytes exceed half of the available memory", size)
		}
		var file, bare, pinned []float64
		for range c.Rounds {
			before := p.Stats().Misses
			us, err := registerFile(p, files, domain, name)
			if err != nil {
				return nil, err
			}
			if n := p.Stats().Misses - before; n != 0 {
				return nil, fmt.Errorf("bench: registering a file read %d pages", n)
			}
			file = append(file, us)
			if us, err = registerMemory(domain, size, false); err != nil {
				return nil, err
			}
			bare = append(bare, us)
			if r.Skipped != "" {
				continue
			}
			us, err = registerMemory(domain, size, true)
			if errors.Is(err, errLocked) {
				r.Skipped = err.Error()
				continue
			}
			if err != nil {
				return nil, err
			}
			pinned = append(pinned, us)
		}
		r.File, r.Memory = spread(file), spread(bare)
		if r.Skipped == "" {
			r.Pinned = spread(pinned)
		}
		if c.Note != nil {
			c.Note(fmt.Sprintf("%d bytes: a file %.1f us, memory %.1f us, pinned %.1f us", size, r.File.Median,
				r.Memory.Median, r.Pinned.Median))
		}
		out = append(out, r)
	}
	return out, nil
}

func since(begin time.Time) float64 { return float64(time.Since(begin)) / float64(time.Microsecond) }

// registerFile does the work of a server when a client opens a file.
func registerFile(p *ctl.Pool, files server.Files, d *verbs.Domain, name string) (us float64, err error) {
	begin := time.Now()
	f, err := files.Open(name, verbs.RemoteRead|verbs.RemoteWrite|verbs.RemoteAtomic)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	e, err := extent.New(p, f.Base, f.Size, nil)
	if err != nil {
		return 0, err
	}
	r, err := d.Register(verbs.RegionConfig{Store: e, Length: f.Size, Rights: f.Rights, Allowed: verbs.AllSemantics})
	if err != nil {
		return 0, err
	}
	us = since(begin)
	r.Deregister()
	return us, nil
}

var errLocked = errors.New("this process may not lock that much memory")

func registerMemory(d *verbs.Domain, size int64, pin bool) (us float64, err error) {
	begin := time.Now()
	m, err := syscall.Mmap(-1, 0, int(size), syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_ANON|syscall.MAP_PRIVATE|syscall.MAP_NORESERVE)
	if err != nil {
		return 0, fmt.Errorf("bench: mapping %d bytes: %w", size, err)
	}
	defer func() { err = errors.Join(err, syscall.Munmap(m)) }()
	if pin {
		if err := syscall.Mlock(m); err != nil {
			return 0, fmt.Errorf("%w: %w", errLocked, err)
		}
	}
	r, err := d.Register(verbs.RegionConfig{Memory: m, Rights: verbs.RemoteRead | verbs.RemoteWrite})
	if err != nil {
		return 0, err
	}
	us = since(begin)
	r.Deregister()
	return us, nil
}
