package client_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"farflash/flash/cfs"
	"farflash/flash/client"
	"farflash/flash/pool"
	"farflash/flash/server"
	"farflash/flash/verbs"
)

// Serves a file of a pool. A client writes to it durably, reads it back, and uses part of it as a counter.
func Example() {
	if err := example(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// disk has 1048576 bytes
	// read "hello, flash"
	// found 0, then 5
	// stopped
}

func example() error {
	// The server; farflash flash serve does the same.
	dir, err := os.MkdirTemp("", "farflash-example-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "data.img")
	if _, err := pool.Format(pool.DefaultOptions(), 4<<20, path); err != nil {
		return err
	}
	opened, _, err := pool.Open(pool.DefaultOptions(), path)
	if err != nil {
		return err
	}
	if err := cfs.Format(opened, cfs.Config{}); err != nil {
		return err
	}
	tree, err := cfs.Open(opened, cfs.Config{})
	if err != nil {
		return err
	}
	file, err := tree.Create(cfs.Cred{}, "disk", 0o600, 1<<20)
	if err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	cfg := server.DefaultConfig()
	cfg.Pool, cfg.Files, cfg.Address = opened, server.Tree(tree, cfs.Cred{}), "127.0.0.1:0"
	s, err := server.New(cfg)
	if err != nil {
		return err
	}
	if err := s.Listen(); err != nil {
		return err
	}
	address, _, _ := s.Addresses()

	// The client.
	c, err := client.Dial(context.Background(), address, client.DefaultConfig())
	if err != nil {
		return err
	}
	f, err := c.Open("disk", verbs.RemoteRead|verbs.RemoteWrite|verbs.RemoteAtomic)
	if err != nil {
		return err
	}
	fmt.Println("disk has", f.Size(), "bytes")
	if _, err := f.WriteDurable([]byte("hello, flash"), 1000); err != nil { // on flash when this returns
		return err
	}
	b := make([]byte, 12)
	if _, err := f.ReadAt(b, 1000); err != nil {
		return err
	}
	fmt.Printf("read %q\n", b)
	first, err := f.FetchAdd(4096, 5, true)
	if err != nil {
		return err
	}
	second, err := f.CompareSwap(4096, 5, 9, true)
	if err != nil {
		return err
	}
	fmt.Printf("found %d, then %d\n", first, second)
	if err := c.Close(); err != nil {
		return err
	}

	if err := s.Drain(time.Second); err != nil {
		return err
	}
	if err := opened.Close(); err != nil {
		return err
	}
	fmt.Println("stopped")
	return nil
}
