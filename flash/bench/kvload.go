package bench

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	farclient "farflash/flash/client"
	"farflash/flash/kv"
	"farflash/flash/verbs"
	"farflash/internal/usage"
	"farflash/numeric/rng"
	"farflash/numeric/stats"
	"farflash/numeric/units"
	"farflash/workload/synth"
)

// now returns the time of a measurement.
func now() time.Time { return time.Now() }

// startKV starts the servers.
func startKV(c *KVConfig) (*kvBench, error) {
	b := &kvBench{cfg: c, newest: make([]inserts, kvSystems)}
	cpus, err := allowed()
	if err != nil {
		return nil, err
	}
	b.all = numbers(cpus)
	servers := b.all
	if b.clients = b.all; c.Pinned && len(c.Server) > 0 && len(cpus) > 1 {
		b.clients, servers = halves(cpus)
	}
	in, out, end, err := launch(c.Server, servers, serveKV)
	if err != nil {
		return nil, err
	}
	b.end = end
	b.ask, b.told = json.NewEncoder(out), json.NewDecoder(in)
	if err = b.ask.Encode(c); err == nil {
		err = b.told.Decode(&b.kvGreeting)
	}
	if err == nil && b.Error != "" {
		err = errors.New(b.Error)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("bench: the servers: %w", err), b.end())
	}
	return b, nil
}

// state queries the servers' state, after a number of connections has ended there.
func (b *kvBench) state(ended int) (a state, err error) {
	if err = b.ask.Encode(question{Ended: ended}); err == nil {
		err = b.told.Decode(&a)
	}
	if err == nil && a.Error != "" {
		err = errors.New(a.Error)
	}
	a.Spent += usage.CPU()
	return a, err
}

// dial connects a client to a system. network counts its requests.
func (b *kvBench) dial(s KVSystem, network *atomic.Int64) (table, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if s != KVVerbs {
		nc, err := net.Dial("tcp", b.Addresses[s])
		if err != nil {
			return nil, err
		}
		b.made++
		if _, err := nc.Write(binary.LittleEndian.AppendUint32(nil, uint32(b.cfg.Depth))); err != nil {
			return nil, errors.Join(err, nc.Close())
		}
		return newKVRemote(nc, b.cfg.Depth, network), nil
	}
	cfg := farclient.DefaultConfig()
	cfg.Named = true
	c, err := farclient.Dial(ctx, b.Addresses[s], cfg)
	if err != nil {
		return nil, err
	}
	f, err := c.Open("store", verbs.RemoteRead|verbs.RemoteWrite|verbs.RemoteAtomic)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	r, err := kv.NewRemote(c, f)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	store, err := kv.Open(ctx, counted{r, network}, r, r.Options())
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return &kvLocal{store, c.Close}, nil
}

// each runs workers, Depth of each client, between begin and end.
func (b *kvBench) each(s KVSystem, network *atomic.Int64, begin, end func() error,
	work func(t table, worker int) error) (err error) {
	c := b.cfg
	tables := make([]table, 0, c.Clients)
	defer func() {
		for _, t := range tables {
			err = errors.Join(err, t.close())
		}
		_, wrong := b.state(b.made)
		err = errors.Join(err, wrong)
	}()
	for range c.Clients {
		t, err := b.dial(s, network)
		if err != nil {
			return err
		}
		tables = append(tables, t)
	}
	if err := begin(); err != nil {
		return err
	}
	errs := make([]error, c.Clients*c.Depth)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() { asking(func() { errs[i] = work(tables[i/c.Depth], i) }) })
	}
	all.Wait()
	return errors.Join(append(errs, end())...)
}

// appendKey appends a key: its number in digits. Keys that are not there begin otherwise.
func appendKey(b []byte, n int64, there bool) []byte {
	head := byte('k')
	if !there {
		head = 'm'
	}
	at := len(b)
	b = append(b, "k000000000000000"...)
	b[at] = head
	for i := at + kvKey - 1; n > 0; i-- {
		b[i] = '0' + byte(n%10)
		n /= 10
	}
	return b
}

// fillValue fills a value for a key. Its beginning says which.
func fillValue(b, key []byte) { copy(b, key) }

// load puts all keys.
func (b *kvBench) load(s KVSystem) error {
	c := b.cfg
	var network, next atomic.Int64
	none := func() error { return nil }
	return b.each(s, &network, none, none, func(t table, _ int) error {
		value, key := make([]byte, c.Value), []byte(nil)
		for {
			n := next.Add(1) - 1
			if n >= c.Keys {
				return nil
			}
			key = appendKey(key[:0], n, true)
			fillValue(value, key)
			if err := t.put(key, value); err != nil {
				return err
			}
		}
	})
}

// kind is a kind of operation, as its latencies are kept.
type kind uint8

const (
	hit kind = iota
	miss
	put
	insert
	scanned
	modified
	kinds
)

var kindNames = [kinds]string{"hit", "miss", "put", "insert", "scan", "modify"}

// choice draws operations and keys.
type choice struct {
	c       *KVConfig
	draw    rng.Stream
	ranks   synth.Ranks
	scatter synth.Scatter
	newest  *inserts
}

func newChoice(c *KVConfig, name string, newest *inserts) choice {
	return choice{c: c, draw: rng.NewStream(c.Seed, name), ranks: synth.NewRanks(c.Keys, zipfTheta),
		scatter: synth.NewScatter(c.Keys, c.Seed, "keys"), newest: newest}
}

// inserts numbers the keys that are inserted.
type inserts struct {
	mu    sync.Mutex
	begun int64
	ended int64 // all before it are there
	after map[int64]bool
}

// begin returns the number of the next one.
func (x *inserts) begin() int64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.begun++
	return x.begun - 1
}

// end says that one is there.
func (x *inserts) end(n int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.after == nil {
		x.after = map[int64]bool{}
	}
	for x.after[n] = true; x.after[x.ended]; x.ended++ {
		delete(x.after, x.ended)
	}
}

// count is how many are there, without gaps.
func (x *inserts) count() int64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.ended
}

// operation draws a kind; hit stands for gets.
func (x *choice) operation() kind {
	m, u := &x.c.Workload.Mix, x.draw.Float64()
	for _, o := range [...]struct {
		share float64
		kind  kind
	}{{m.Get, hit}, {m.Put, put}, {m.Insert, insert}, {m.Scan, scanned}, {m.Modify, modified}} {
		if u -= o.share; u < 0 {
			return o.kind
		}
	}
	return hit // of shares whose sum is below 1 by rounding
}

// key draws the number of a key that is there.
func (x *choice) key() int64 {
	switch x.c.Workload.Keys {
	case Zipf:
		return x.scatter.At(x.ranks.Next(&x.draw) - 1)
	case Latest:
		return x.inserted(x.newest.count() - x.ranks.Next(&x.draw))
	}
	return x.draw.IntN(x.c.Keys)
}

// inserted is the number of the n-th key that was inserted. Those before the first are keys that were loaded, and those
// beyond the space are inserted again, from the first on.
func (x *choice) inserted(n int64) int64 {
	if n < 0 {
		return x.c.Keys + n
	}
	return x.c.Keys + n%x.c.Space
}

// during measures a system for a time.
func (b *kvBench) measure(s KVSystem, round int) (m KVMeasured, err error) {
	for length := b.cfg.Time; ; length *= 2 { // on a busy machine a short measurement may finish no operation
		if m, err = b.during(s, round, length); !errors.Is(err, errNoCompletion) || length > time.Hour {
			return m, err
		}
	}
}

func (b *kvBench) during(s KVSystem, round int, length time.Duration) (m KVMeasured, err error) {
	c := b.cfg
	if len(b.clients) < len(b.all) {
		free, wrong := confine(b.clients, b.all)
		if wrong != nil {
			return m, wrong
		}
		defer func() { err = errors.Join(err, free()) }()
	}
	var network, begun atomic.Int64
	tooks := make([][kinds]stats.Histogram, c.Clients*c.Depth)
	var from time.Time
	var before, after state
	err = b.each(s, &network, func() (err error) {
		before, err = b.state(0)
		network.Store(0)
		from = now().Add(min(length/5, 200*time.Millisecond))
		return err
	}, func() (err error) {
		m.Network = float64(network.Load()) // without what closing needs
		after, err = b.state(0)
		return err
	}, func(t table, worker int) error {
		x := newChoice(c, fmt.Sprintf("round %d, worker %d", round, worker), &b.newest[s])
		w := &kvWorker{choice: x, t: t, value: make([]byte, c.Value)}
		for until := from.Add(length); ; {
			start := now()
			if start.After(until) {
				return nil
			}
			k, err := w.operate()
			if err != nil {
				return err
			}
			begun.Add(1)
			if end := now(); !start.Before(from) && !end.After(until) {
				tooks[worker][k].Record(units.Duration(end.Sub(start)) * units.Nanosecond)
			}
		}
	})
	if err != nil {
		return m, err
	}
	var all stats.Histogram
	var each [kinds]stats.Histogram
	for i := range tooks {
		for k := range kinds {
			all.Merge(&tooks[i][k])
			each[k].Merge(&tooks[i][k])
		}
	}
	if all.Count() == 0 {
		return m, errNoCompletion
	}
	n := float64(begun.Load())
	m = KVMeasured{Rate: float64(all.Count()) / length.Seconds(), P50: us(&all, 0.5), P99: us(&all, 0.99),
		CPU: float64((after.Spent - before.Spent).Microseconds()) / n, Network: m.Network / n,
		Kinds: map[string]Latencies{}}
	m.Reads = float64(after.Stores[s]-before.Stores[s]) / n
	for k := range kinds {
		if h := &each[k]; h.Count() > 0 {
			m.Kinds[kindNames[k]] = Latencies{h.Count(), us(h, 0.5), us(h, 0.99), us(h, 0.999)}
		}
	}
	return m, nil
}

// us is a quantile in microseconds.
func us(h *stats.Histogram, q float64) float64 {
	return float64(h.Quantile(q)) / float64(units.Microsecond)
}

// kvWorker does one operation after the other.
type kvWorker struct {
	choice
	t               table
	key, value, got []byte
}

// operate does one operation.
func (w *kvWorker) operate() (kind, error) {
	k := w.operation()
	switch k {
	case hit:
		there := w.c.Misses == 0 || w.draw.Float64() >= w.c.Misses
		w.key = appendKey(w.key[:0], w.choice.key(), there)
		ok, err := w.get()
		if !ok {
			k = miss
		}
		return k, err
	case put:
		w.key = appendKey(w.key[:0], w.choice.key(), true)
		return k, w.put()
	case insert:
		n := w.newest.begin()
		w.key = appendKey(w.key[:0], w.inserted(n), true)
		err := w.put()
		w.newest.end(n)
		return k, err
	case scanned:
		w.key = appendKey(w.key[:0], w.choice.key(), true)
		_, err := w.t.scan(w.key, int(w.draw.IntN(longestScan))+1)
		return k, err
	}
	w.key = appendKey(w.key[:0], w.choice.key(), true)
	if _, err := w.get(); err != nil {
		return k, err
	}
	return k, w.put()
}

// get gets a key, and checks its value.
func (w *kvWorker) get() (ok bool, err error) {
	if w.got, ok, err = w.t.get(w.key, w.got[:0]); err == nil && ok &&
		(len(w.got) != w.c.Value || !slices.Equal(w.got[:min(kvKey, w.c.Value)], w.key[:min(kvKey, w.c.Value)])) {
		err = fmt.Errorf("bench: %s has a value of %d bytes that begins with %.16q", w.key, len(w.got), w.got)
	}
	return ok, err
}

func (w *kvWorker) put() error {
	fillValue(w.value, w.key)
	return w.t.put(w.key, w.value)
}
