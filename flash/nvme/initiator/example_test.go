package initiator_test

import (
	"context"
	"fmt"
	"net"
	"time"

	"farflash/flash/nvme"
	"farflash/flash/nvme/initiator"
	"farflash/flash/nvme/nvmetest"
	"farflash/flash/nvme/server"
)

// Serves a volume in memory as a namespace. A host writes to it durably, reads it back, and reads beyond its end.
func Example() {
	if err := example(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// namespace 1 has 1048576 bytes in blocks of 512
	// read "hello, flash"
	// nvme: namespace 1: read of 512 bytes at 1048576: nvme: LBA out of range, do not retry
}

func example() (err error) {
	// The server; farflash flash serve does the same with the files of a pool.
	cfg := nvme.DefaultConfig()
	cfg.Subsystems = []nvme.Subsystem{{Name: "nqn.2026-01.example:disk",
		Namespaces: []nvme.Namespace{nvmetest.Space(1, nvmetest.NewMemory(1<<20))}}}
	setting := server.DefaultConfig()
	if setting.Target, err = nvme.New(cfg); err != nil {
		return err
	}
	s, err := server.New(setting)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() { _ = s.Serve(l, 1) }()
	defer func() { _ = s.Shutdown() }()

	// The host.
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	mine := initiator.DefaultConfig()
	mine.Subsystem = "nqn.2026-01.example:disk"
	a, err := initiator.Dial(ctx, l.Addr().String(), mine)
	if err != nil {
		return err
	}
	defer func() { _ = a.Close() }()
	disk, err := a.Namespace(1)
	if err != nil {
		return err
	}
	fmt.Printf("namespace %d has %d bytes in blocks of %d\n", disk.ID(), disk.Size(), disk.Block())
	block := make([]byte, disk.Block())
	copy(block, "hello, flash")
	if _, err := disk.WriteDurable(block, 4096); err != nil {
		return err
	}
	if _, err := disk.ReadAt(block, 4096); err != nil {
		return err
	}
	fmt.Printf("read %q\n", block[:12])
	_, err = disk.ReadAt(block, disk.Size())
	fmt.Println(err)
	return nil
}
