package kv_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"farflash/flash/kv"
	"farflash/internal/patience"
	"farflash/numeric/rng"
)

// input is one operation of a history.
type input struct {
	op    string // get, put, del, add
	key   string
	value string
}

// output is its result. unknown: it may or may not have been done.
type output struct {
	value   string // of a get; of an addition, the sum
	ok      bool
	unknown bool
}

// register is a key's value, as porcupine's model: the state is the value, preceded by "=" if there is one.
var register = porcupine.Model{
	Partition: func(all []porcupine.Operation) [][]porcupine.Operation {
		byKey := map[string][]porcupine.Operation{}
		for _, x := range all {
			k := x.Input.(input).key
			byKey[k] = append(byKey[k], x)
		}
		var parts [][]porcupine.Operation
		for _, k := range slices.Sorted(maps.Keys(byKey)) {
			parts = append(parts, byKey[k])
		}
		return parts
	},
	Init: func() any { return "" },
	Step: func(state, in, out any) (bool, any) {
		was, x, y := state.(string), in.(input), out.(output)
		switch x.op {
		case "get":
			return y.unknown || y.ok == (was != "") && (!y.ok || y.value == was[1:]), was
		case "put":
			return true, "=" + x.value
		case "del":
			return y.unknown || y.ok == (was != ""), ""
		}
		sum := strconv.Itoa(number(strings.TrimPrefix(was, "=")) + number(x.value))
		return y.unknown || y.value == sum, "=" + sum
	},
}

// number is the value of a register as a number; others count by their length.
func number(s string) int {
	if n, err := strconv.Atoi(s); err == nil {
		return n
	}
	return len(s)
}

// history collects the operations of all clients.
type history struct {
	all []porcupine.Operation
}

// do does an operation and records it, as if it never returned if its outcome is unknown.
func (h *history) do(w *world, client int, s *kv.Store, x input) error {
	began := w.now
	recorded := len(h.all)
	// Until it returns it may have been done: a client that dies in it leaves it so.
	h.all = append(h.all, porcupine.Operation{ClientId: client, Input: x, Output: output{unknown: true},
		Call: int64(began), Return: 1 << 60})
	y, err := ask(s, x)
	if err == nil {
		h.all[recorded].Output, h.all[recorded].Return = y, int64(w.now)
	}
	return err
}

// shape is that of a store which is too small in every respect.
func shape(class kv.Class) kv.Geometry {
	return kv.Geometry{Buckets: 2, Slots: 240, Entry: 64, Slot: 4096, Class: class, Seed: 1}
}

// faults are those of a world.
type faults struct{ drop, stall, long, die, writeOut int }

// play lets clients do random operations on a few keys in a world, and returns the errors that nothing explains.
func play(w *world, h *history, seed uint64, clients, operations, keys int,
	wrap func(p *peer) (kv.Memory, kv.Peers)) (failed error) {
	report := func(format string, args ...any) {
		failed = errors.Join(failed, fmt.Errorf("seed %d: "+format, append([]any{seed}, args...)...))
	}
	var all []func(p *peer)
	for c := range clients {
		all = append(all, func(p *peer) {
			draw := rng.NewStream(seed, fmt.Sprint("client ", c, " of ", w.instance))
			m, peers := wrap(p)
			s, err := kv.Open(context.Background(), m, peers, p.options())
			if err != nil {
				if !errors.Is(err, errFenced) {
					report("open: %w", err)
				}
				return
			}
			for i := range operations {
				if draw.IntN(16) == 0 {
					if err := s.Collect(context.Background()); err != nil {
						if !errors.Is(err, errFenced) {
							report("collect: %w", err)
						}
						return
					}
				}
				x := input{op: []string{"get", "get", "put", "del", "add", "add"}[draw.IntN(6)],
					key: fmt.Sprint("key ", draw.IntN(int64(keys)))}
				switch x.op {
				case "put":
					x.value = strings.Repeat(fmt.Sprint(c, ".", i, " "), 1+int(draw.IntN(100)))
				case "add":
					x.value = strconv.Itoa(1 << draw.IntN(20))
				}
				err := h.do(w, c, s, x)
				switch {
				case err == nil, errors.Is(err, kv.ErrUnknown), errors.Is(err, kv.ErrFull):
				case errors.Is(err, errFenced):
					return
				default:
					report("client %d: %s of %s: %w", c, x.op, x.key, err)
					return
				}
			}
			seen.add(s.Counters())
			if err := s.Close(); err != nil && !errors.Is(err, errFenced) {
				report("close: %w", err)
			}
		})
	}
	w.run(all...)
	return failed
}

// seen sums counters, by which a test knows that its subject occurred.
type tally kv.Counters

var seen tally

func (t *tally) add(c kv.Counters) {
	t.Retries += c.Retries
	t.Waits += c.Waits
	t.Repairs += c.Repairs
	t.Collected += c.Collected
	t.Leaked += c.Leaked
	t.Settled += c.Settled
}

// plain is a client as it is.
func plain(p *peer) (kv.Memory, kv.Peers) { return p, p }

// linear checks a history.
func linear(t *testing.T, h *history) bool {
	t.Helper()
	switch porcupine.CheckOperationsTimeout(register, h.all, 20*time.Second) {
	case porcupine.Ok:
		return true
	case porcupine.Unknown:
		t.Log("a history that was too long to check")
		return true
	}
	return false
}

// created returns a world with a store.
func created(t *testing.T, g kv.Geometry, seed uint64, f faults) *world {
	t.Helper()
	w := newWorld(g.Size(), seed)
	w.run(func(p *peer) {
		if err := kv.Create(p, g); err != nil {
			t.Error(err)
		}
	})
	w.drop, w.stall, w.die, w.writeOut = f.drop, f.stall, f.die, f.writeOut
	w.long = max(f.long, 300)
	w.clients, w.ready, w.idle = nil, nil, make(chan struct{})
	w.instance++
	return w
}

// TestLinearisable: histories of clients whose reads and writes are torn, whose connections are lost, who stop for as
// long as it takes others to fence them, and who die, are those of one register a key.
func TestLinearisable(t *testing.T) {
	worlds := 1000
	switch {
	case testing.Short():
		worlds = 60
	case patience.Long(t):
		worlds = 20000
	}
	for name, f := range map[string]faults{"none": {}, "lost": {drop: 30}, "stalls": {stall: 20},
		"deaths": {die: 150}, "all": {drop: 40, stall: 40, die: 400}} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(worlds) {
				g := shape(kv.Class(seed % 3))
				w, h := created(t, g, seed, f), &history{}
				if err := play(w, h, seed, 4+int(seed%3)*2, 12, 5, plain); err != nil {
					t.Fatal(err)
				}
				if !linear(t, h) {
					t.Fatalf("seed %d: not linearisable", seed)
				}
			}
		})
	}
	if min(seen.Retries, seen.Waits, seen.Repairs, seen.Collected, seen.Leaked, seen.Settled) == 0 {
		t.Errorf("something never happened: %+v", seen)
	}
}
