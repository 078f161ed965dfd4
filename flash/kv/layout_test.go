package kv_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"farflash/flash/kv"
	"farflash/internal/patience"
)

// TestGeometry: a geometry has places for its keys, and impossible ones are refused.
func TestGeometry(t *testing.T) {
	for _, x := range []struct {
		keys       uint64
		key, value int
		entry      uint32
		slot       uint32
	}{{1, 1, 0, 64, 4096}, {1000, 48, 4000, 64, 4096}, {1000, 49, 4001, 128, 4096}, {1 << 20, 240, 65536, 256, 69632}} {
		g, err := kv.NewGeometry(x.keys, x.key, x.value, kv.Data, 7)
		if err != nil {
			t.Error(err)
			continue
		}
		if g.Entry != x.entry || g.Slot != x.slot || g.Key() < x.key || g.Value(x.key) < x.value ||
			g.Places()*2 < x.keys*3 || g.Slots*8 < x.keys*9 {
			t.Errorf("%+v: %+v", x, g)
		}
		if first, err := g.First(); err != nil || len(first) != 4096 {
			t.Errorf("%+v: %d bytes, %v", g, len(first), err)
		}
	}
	for _, x := range []struct {
		keys       uint64
		key, value int
		want       string
	}{{0, 1, 1, "0 keys"}, {1 << 24, 1, 1, "use 1 to 14913080"}, {1, 0, 1, "keys of up to 0 bytes"},
		{1, 241, 1, "use 1 to 240"}, {1, 1, -1, "values of up to -1"}, {1, 1, 1<<20 + 1, "use 0 to 1048576"}} {
		_, err := kv.NewGeometry(x.keys, x.key, x.value, kv.Async, 1)
		if err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%+v: %v", x, err)
		}
	}
	bad := shape(kv.Async)
	bad.Entry = 65
	if _, err := bad.First(); err == nil {
		t.Error("entries of 65 bytes have a first page")
	}
}

// TestCapacity: a store has places for the keys that it was made for, whatever their names.
func TestCapacity(t *testing.T) {
	ctx := context.Background()
	for seed := range uint64(3) {
		g, err := kv.NewGeometry(20000, 16, 0, kv.Async, seed)
		if err != nil {
			t.Fatal(err)
		}
		s := opened(t, &direct{mem: made(t, g), name: 1})
		for i := range 20000 {
			if err := s.Put(ctx, fmt.Appendf(nil, "key:%012d", i), nil); err != nil {
				t.Fatalf("seed %d: key %d: %v", seed, i, err)
			}
		}
		u, err := s.Use(ctx)
		if err != nil || u.Keys != 20000 || u.Members != 1 || u.Slots < 20000 {
			t.Errorf("seed %d: %+v, %v", seed, u, err)
		}
		n := 0
		if err := s.Scan(ctx, []byte("key:00000001"), func(key, value []byte, lost bool) error {
			n++
			return nil
		}); err != nil || n != 10000 {
			t.Errorf("seed %d: %d keys begin like the 10,000, %v", seed, n, err)
		}
	}
}

// TestFiles: a file that is no store, or shorter than its store, or in use, is said to be that.
func TestFiles(t *testing.T) {
	g := shape(kv.Async)
	open := func(mem []byte) error {
		m := &direct{mem: mem, name: 1}
		_, err := kv.Open(context.Background(), short{m}, m, kv.DefaultOptions())
		return err
	}
	if err := open(make([]byte, g.Size())); !errors.Is(err, kv.ErrFormat) {
		t.Errorf("zeros: %v", err)
	}
	mem := made(t, g)
	if err := open(mem[:len(mem)-4096]); err == nil || !strings.Contains(err.Error(), "shorter than its store") {
		t.Errorf("a file that is too short: %v", err)
	}
	if err := kv.Create(&direct{mem: mem}, g); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("a second store in a file: %v", err)
	}
}

// short is memory that ends.
type short struct{ *direct }

func (s short) ReadAt(b []byte, off int64) (int, error) {
	if off+int64(len(b)) > int64(len(s.mem)) {
		return 0, errors.New("beyond the end")
	}
	return s.direct.ReadAt(b, off)
}

// TestArguments: keys and values that do not fit are refused, by each operation.
func TestArguments(t *testing.T) {
	ctx := context.Background()
	s := opened(t, &direct{mem: made(t, shape(kv.Async)), name: 1})
	long := bytes.Repeat([]byte("k"), 49)
	_, _, get := s.Get(ctx, long, nil)
	_, del := s.Delete(ctx, nil)
	big := make([]byte, 4096-24-1+1)
	must := func(name string, err error) {
		t.Helper()
		if !errors.Is(err, kv.ErrTooLong) {
			t.Errorf("%s: %v", name, err)
		}
	}
	must("get", get)
	must("delete", del)
	must("put", s.Put(ctx, []byte("k"), big))
	set := func([]byte, bool) ([]byte, kv.Action) { return big, kv.Set }
	must("update of none", s.Update(ctx, []byte("k"), set))
	if err := s.Put(ctx, []byte("k"), big[1:]); err != nil {
		t.Errorf("the largest value: %v", err)
	}
	must("update", s.Update(ctx, []byte("k"), set))
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := s.Put(ctx, []byte("k"), nil); !errors.Is(err, kv.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if err := s.Close(); !errors.Is(err, kv.ErrClosed) {
		t.Errorf("a second Close: %v", err)
	}
}

// FuzzFile: whatever other clients have left in the file, operations end with a result or an error, and touch nothing
// beyond the file.
func FuzzFile(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, []byte("abc"))
	f.Add(bytes.Repeat([]byte{0xFF}, 400), []byte("k"))
	f.Fuzz(func(t *testing.T, left, key []byte) {
		defer patience.Limit()()
		g := shape(kv.Class(len(left) % 3))
		d := &direct{mem: made(t, g), name: 1}
		o := kv.DefaultOptions()
		o.Workers = 0
		o.Pause = func(context.Context, int) error {
			if o.Patience -= time.Millisecond; o.Patience < 0 {
				return errors.New("waited long enough")
			}
			return nil
		}
		// Twelve bytes are a place, between the members and the slots, and a word.
		for ; len(left) >= 12; left = left[12:] {
			at := 4096 + (int64(left[0])|int64(left[1])<<8)%3000*8
			copy(d.mem[at:], left[4:12])
		}
		s, err := kv.Open(context.Background(), d, d, o)
		if err != nil {
			return
		}
		ctx := context.Background()
		for range 2 {
			_ = s.Put(ctx, key, key)
			_, _, _ = s.Get(ctx, key, nil)
			_ = s.Scan(ctx, nil, func(_, _ []byte, _ bool) error { return nil })
			_, _ = s.Delete(ctx, key)
		}
		_ = s.Collect(ctx)
		_ = s.Close()
	})
}

// TestNoAllocations: gets and puts of a key that is there allocate nothing.
func TestNoAllocations(t *testing.T) {
	if testing.Short() {
		t.Skip("short tests run under the race detector, which has pools forget what they hold")
	}
	ctx := context.Background()
	s := opened(t, &direct{mem: made(t, shape(kv.Async)), name: 1})
	key, value, got := []byte("a key"), make([]byte, 4000), make([]byte, 4096)
	for name, do := range map[string]func() error{
		"put": func() error { return s.Put(ctx, key, value) },
		"get": func() error { _, _, err := s.Get(ctx, key, got[:0]); return err },
	} {
		if n := testing.AllocsPerRun(1000, func() {
			if err := do(); err != nil {
				t.Fatal(err)
			}
		}); n > 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}

// BenchmarkGet is a get without a network.
func BenchmarkGet(b *testing.B) {
	benchmark(b, func(s *kv.Store, key, value []byte) error {
		_, _, err := s.Get(context.Background(), key, value[:0])
		return err
	})
}

// BenchmarkPut is a put without a network.
func BenchmarkPut(b *testing.B) {
	benchmark(b, func(s *kv.Store, key, value []byte) error {
		return s.Put(context.Background(), key, value[:4000])
	})
}

func benchmark(b *testing.B, do func(s *kv.Store, key, value []byte) error) {
	s := opened(b, &direct{mem: made(b, shape(kv.Async)), name: 1})
	key, value := []byte("a key"), make([]byte, 4096)
	if err := s.Put(context.Background(), key, value[:4000]); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := do(s, key, value); err != nil {
			b.Fatal(err)
		}
	}
}

// TestPendingRemoval: in a full store a key takes the place of one whose removal another client has not called durable
// yet.
func TestPendingRemoval(t *testing.T) {
	ctx := context.Background()
	g := shape(kv.Durable)
	d := &direct{mem: made(t, g), name: 1}
	s := opened(t, d)
	for i := range 30 {
		if err := s.Put(ctx, fmt.Appendf(nil, "key %d", i), nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Put(ctx, []byte("more"), nil); !errors.Is(err, kv.ErrFull) {
		t.Errorf("a key too many: %v", err)
	}
	if ok, err := s.Delete(ctx, []byte("key 7")); !ok || err != nil {
		t.Fatal(ok, err)
	}
	marked := 0
	for at := g.Size() - int64(g.Slots)*int64(g.Slot) - 4096; marked == 0; at += int64(g.Entry) {
		if w := le64(d.mem[at:]); w>>62 == 0 && w>>24&(1<<24-1) != 0 && at%(16*int64(g.Entry)) != 0 {
			putLE64(d.mem[at:], w|1<<61)
			marked++
		}
	}
	if err := s.Put(ctx, []byte("more"), nil); err != nil {
		t.Errorf("a key in the place of one that is being removed: %v", err)
	}
	if _, ok, err := s.Get(ctx, []byte("more"), nil); !ok || err != nil {
		t.Error(ok, err)
	}
}
