package bench

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"farflash/flash/device"
	"farflash/flash/uring"
	"farflash/internal/patience"
	"farflash/numeric/rng"
)

// TestKVFile verifies a store's file on a device, with a cache of very few pages, against bytes in memory.
func TestKVFile(t *testing.T) {
	const size, slots = 64 * device.Grain, 32 * device.Grain
	dev := device.NewMem(size)
	draw := rng.NewStream(1, "file")
	f := newKVFile(submitting(dev), slots, 3*device.Grain)
	want := make([]byte, size)
	for step := range 20000 {
		switch draw.IntN(4) {
		case 0: // a part before the slots
			at := draw.IntN(slots - 5000)
			b := make([]byte, draw.IntN(5000)+1)
			for i := range b {
				b[i] = byte(draw.Uint64())
			}
			copy(want[at:], b)
			if err := f.Write(b, at, draw.IntN(2) == 0); err != nil {
				t.Fatal(err)
			}
		case 1: // a slot
			at := slots + draw.IntN(16)*2*device.Grain
			b := make([]byte, draw.IntN(2*device.Grain)+1)
			b[0], b[len(b)-1] = byte(step), byte(step)
			clear(want[at:][:(len(b)+device.Grain-1)/device.Grain*device.Grain])
			copy(want[at:], b)
			if err := f.Write(b, at, false); err != nil {
				t.Fatal(err)
			}
		case 2:
			at, old := draw.IntN(slots/8)*8, draw.Uint64()
			now := binary.LittleEndian.Uint64(want[at:])
			mask := draw.Uint64()
			if draw.IntN(2) == 0 {
				old = now
			}
			got, err := f.CompareSwapBits(at, old, ^uint64(0), 7, mask, false)
			if err != nil || got != now {
				t.Fatalf("step %d: %x, not %x: %v", step, got, now, err)
			}
			if old == now {
				binary.LittleEndian.PutUint64(want[at:], now&^mask|7&mask)
			}
		case 3:
			at := draw.IntN(slots - 9000)
			b := make([]byte, draw.IntN(9000)+1)
			if draw.IntN(2) == 0 {
				at, b = slots+draw.IntN(16)*2*device.Grain, b[:min(len(b), 2*device.Grain)]
			}
			if _, err := f.ReadAt(b, at); err != nil || !bytes.Equal(b, want[at:][:len(b)]) {
				t.Fatalf("step %d: other bytes at %d: %v", step, at, err)
			}
		}
	}
	got := make([]byte, size)
	dev.Peek(0, got)
	if !bytes.Equal(got, want) {
		t.Error("the device has other bytes: the cache does not write through")
	}
	if f.reads.Load() == 0 {
		t.Error("no reads are counted")
	}
}

// quickKV is a small measurement in this process.
func quickKV(t *testing.T) KVConfig {
	c := DefaultKVConfig()
	c.Dir, c.Keys, c.Space, c.Value, c.Clients, c.Depth = t.TempDir(), 200, 100, 5000, 2, 2
	c.Rounds, c.Time, c.Threads = 1, 100*time.Millisecond, 1
	r, err := uring.New(2)
	if err != nil {
		c.Systems = c.Systems[:2]
	} else {
		r.Close()
	}
	return c
}

// TestKV runs each workload of YCSB on all systems. Values are checked as they are read.
func TestKV(t *testing.T) {
	for letter, kinds := range map[string]string{"a": "hit put", "c": "hit", "d": "hit insert", "e": "insert scan",
		"f": "hit modify"} {
		t.Run(letter, func(t *testing.T) {
			c := quickKV(t)
			var err error
			if c.Workload, err = YCSB(letter); err != nil {
				t.Fatal(err)
			}
			r, err := RunKV(c)
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Ratios) != len(c.Systems)-1 || len(r.Outcomes) != len(c.Systems) {
				t.Fatalf("%+v", r)
			}
			for _, o := range r.Outcomes {
				m := o.Rounds[0]
				if m.Rate <= 0 || m.P99 < m.P50 {
					t.Errorf("%v: %+v", o.System, m)
				}
				for name := range m.Kinds {
					if !strings.Contains(kinds, name) {
						t.Errorf("%v: %s in workload %s", o.System, name, letter)
					}
				}
				switch one := math.Abs(m.Network-1) < 1e-9; {
				case o.System != KVVerbs && letter != "f" && !one:
					t.Errorf("%v: %v requests an operation", o.System, m.Network)
				case o.System == KVVerbs && letter == "c" && m.Network != 2: // the bucket, and the value
					t.Errorf("%v requests a get", m.Network)
				}
			}
		})
	}
}

// TestKVMisses verifies that gets of keys that are not there are measured apart, by one read of a bucket.
func TestKVMisses(t *testing.T) {
	c := quickKV(t)
	c.Misses, c.Systems = 1, []KVSystem{KVVerbs}
	r, err := RunKV(c)
	if err != nil {
		t.Fatal(err)
	}
	m := r.Outcomes[0].Rounds[0]
	if len(m.Kinds) != 1 || m.Kinds["miss"].Count == 0 || m.Network != 1 {
		t.Errorf("%+v", m)
	}
	if a := r.Outcomes[0].Apart(); len(a) != 1 || a[0].Name != "miss" || a[0].P50.Median != m.Kinds["miss"].P50 {
		t.Errorf("%+v", a)
	}
}

// TestChoice verifies the shares of operations and keys against the definitions.
func TestChoice(t *testing.T) {
	c := DefaultKVConfig()
	c.Keys, c.Space = 1000, 50
	c.Workload = Workload{Mix{Get: 0.5, Put: 0.2, Insert: 0.1, Scan: 0.1, Modify: 0.1}, Zipf}
	var newest inserts
	x := newChoice(&c, "test", &newest)
	const n = 200000
	var count [kinds]float64
	keys := map[int64]float64{}
	for range n {
		count[x.operation()]++
		keys[x.key()]++
	}
	for k, want := range map[kind]float64{hit: 0.5, miss: 0, put: 0.2, insert: 0.1, scanned: 0.1, modified: 0.1} {
		if got := count[k] / n; math.Abs(got-want) > 0.005 {
			t.Errorf("%s: %v, not %v", kindNames[k], got, want)
		}
	}
	sum := 0.0
	for k := 1.0; k <= 1000; k++ {
		sum += math.Pow(k, -zipfTheta)
	}
	for rank := int64(1); rank <= 3; rank++ {
		want := math.Pow(float64(rank), -zipfTheta) / sum
		if got := keys[x.scatter.At(rank-1)] / n; math.Abs(got-want) > 0.05*want {
			t.Errorf("rank %d: %v, not %v", rank, got, want)
		}
	}
	c.Workload.Keys = Latest
	newest.ended = 120
	newer := 0.0
	for range n {
		k := x.key()
		if k < 0 || k >= c.Keys+c.Space {
			t.Fatalf("key %d", k)
		}
		if k == c.Keys+(120-1)%50 { // rank 1, 51, 101
			newer++
		}
	}
	want := 0.0
	for _, rank := range []float64{1, 51, 101} {
		want += math.Pow(rank, -zipfTheta) / sum
	}
	if got := newer / n; math.Abs(got-want) > 0.05*want {
		t.Errorf("the newest key: %v, not %v", got, want)
	}
	c.Workload.Keys = Uniform
	seen := map[int64]bool{}
	for range n {
		seen[x.key()] = true
	}
	if len(seen) != 1000 {
		t.Errorf("%d of 1000 keys", len(seen))
	}
}

// TestInserts verifies that keys count as there in the order of their numbers.
func TestInserts(t *testing.T) {
	var x inserts
	for want := range int64(3) {
		if n := x.begin(); n != want {
			t.Fatalf("%d, not %d", n, want)
		}
	}
	for i, n := range []int64{1, 0, 2} {
		if x.end(n); x.count() != []int64{0, 2, 3}[i] {
			t.Errorf("after %d: %d", n, x.count())
		}
	}
}

// TestYCSB verifies the shares of each workload.
func TestYCSB(t *testing.T) {
	for letter, want := range map[string]string{"a": "{0.5 0.5 0 0 0} zipf", "b": "{0.95 0.05 0 0 0} zipf",
		"c": "{1 0 0 0 0} zipf", "d": "{0.95 0 0.05 0 0} latest", "e": "{0 0 0.05 0.95 0} zipf",
		"f": "{0.5 0 0 0 0.5} zipf"} {
		w, err := YCSB(letter)
		if got := fmt.Sprint(w.Mix, " ", w.Keys); err != nil || got != want {
			t.Errorf("%s: %s, %v", letter, got, err)
		}
	}
	if _, err := YCSB("g"); err == nil {
		t.Error("there is a workload g")
	}
}

// TestKVLimits verifies that settings out of range are errors.
func TestKVLimits(t *testing.T) {
	for name, change := range map[string]func(*KVConfig){
		"no system": func(c *KVConfig) { c.Systems = nil }, "twice": func(c *KVConfig) { c.Systems[1] = KVVerbs },
		"shares": func(c *KVConfig) { c.Workload.Mix.Put = 0.1 }, "negative": func(c *KVConfig) { c.Workload.Mix.Put = -1 },
		"keys": func(c *KVConfig) { c.Keys = 15 }, "space": func(c *KVConfig) { c.Space = 0 },
		"value": func(c *KVConfig) { c.Value = 0 }, "large": func(c *KVConfig) { c.Value = 1<<20 + 1 },
		"memory": func(c *KVConfig) { c.Memory = 1 }, "clients": func(c *KVConfig) { c.Clients = 0 },
		"depth": func(c *KVConfig) { c.Depth = 17 }, "misses": func(c *KVConfig) { c.Misses = 1.1 },
		"spin": func(c *KVConfig) { c.Spin = -1 }, "threads": func(c *KVConfig) { c.Threads = -1 },
		"rounds": func(c *KVConfig) { c.Rounds = 0 }, "time": func(c *KVConfig) { c.Time = 0 },
	} {
		c := DefaultKVConfig()
		if change(&c); c.Validate() == nil {
			t.Errorf("%s: %+v is valid", name, c)
		}
	}
	c := DefaultKVConfig()
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
}

// FuzzKVRequest verifies that requests come back as they were sent, and that others are refused or bounded.
func FuzzKVRequest(f *testing.F) {
	f.Add([]byte("\x01\x00\x02\x00\x05\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00kkvvv"))
	f.Fuzz(func(t *testing.T, in []byte) {
		defer patience.Limit()()
		r := bytes.NewReader(in)
		q := new(kvAsked)
		for receiveKV(r, q) == nil {
			if used := len(in) - r.Len(); len(q.body) > used || q.key > len(q.body) {
				t.Fatalf("%d bytes, with a key of %d, of %d", len(q.body), q.key, used)
			}
		}
	})
}
