package initiator_test

import (
	"sync"
	"testing"

	"farflash/flash/nbd"
	"farflash/flash/nvme"
	"farflash/flash/nvme/nvmetest"
)

// still is a volume that answers each read with the same memory, so that only the initiator and the protocol cost
// anything.
type still struct{ *nvmetest.Memory }

var block = make([]byte, 1<<20)

// Start implements nbd.Volume.
func (still) Start(tasks []*nbd.Task) {
	for _, t := range tasks {
		if t.Kind == nbd.Read {
			t.Pieces = append(t.Pieces, nbd.Piece{Data: block[:t.Length]})
		}
		t.Done(t)
	}
}

// Release implements nbd.Volume.
func (still) Release(*nbd.Task) {}

// TestAllocations bounds the objects that a call allocates on a warm queue, the server's in the same process included.
func TestAllocations(t *testing.T) {
	_, _, addr := serve(t, nvme.DefaultConfig(), nil, nvmetest.Space(1, still{nvmetest.NewMemory(1 << 24)}))
	n := space(t, dial(t, addr, config(1)), 1)
	b := make([]byte, 4096)
	for name, call := range map[string]func() error{
		"read":  func() error { _, err := n.ReadAt(b, 8192); return err },
		"write": func() error { _, err := n.WriteAt(b, 8192); return err },
		"flush": n.Flush,
	} {
		for range 100 {
			if err := call(); err != nil {
				t.Fatal(err)
			}
		}
		var err error
		got := testing.AllocsPerRun(2000, func() {
			if e := call(); e != nil {
				err = e
			}
		})
		if err != nil || got > 1 && !raced {
			t.Errorf("%s: %v objects a call, %v", name, got, err)
		}
	}
}

// BenchmarkRead measures reads of 4 KiB by one goroutine and by many.
func BenchmarkRead(b *testing.B) {
	_, _, addr := serve(b, nvme.DefaultConfig(), nil, nvmetest.Space(1, still{nvmetest.NewMemory(1 << 24)}))
	n := space(b, dial(b, addr, config(1)), 1)
	for _, x := range []struct {
		name  string
		users int
	}{{"1", 1}, {"32", 32}} {
		b.Run(x.name, func(b *testing.B) {
			b.ReportAllocs()
			var running sync.WaitGroup
			for i := range x.users {
				running.Go(func() {
					p := make([]byte, 4096)
					for k := i; k < b.N; k += x.users {
						if _, err := n.ReadAt(p, 4096); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			running.Wait()
		})
	}
}
