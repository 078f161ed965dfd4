package kv_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"farflash/flash/kv"
	"farflash/numeric/rng"
)

// TestCrash ends the server in the middle of things, several times, with any pages on flash beside those that must be.
// A durable store goes on as if only those were cut off that were in the middle. One of the class Data has a value of
// each key that it once had, whole; an asynchronous one may have lost values, and says so.
func TestCrash(t *testing.T) {
	worlds := 1500
	if testing.Short() {
		worlds = 150
	}
	lost := 0
	for seed := range uint64(worlds) {
		g := shape(kv.Class(seed % 3))
		w, h := created(t, g, seed, faults{drop: 60, stall: 60, die: 600, writeOut: 10}), &history{}
		draw := rng.NewStream(seed, "crashes")
		for range 3 {
			w.end = w.now + 100 + int(draw.IntN(1500))
			err := play(w, h, seed, 4, 12, 5, plain)
			if err != nil && !(g.Class == kv.Async && errors.Is(err, kv.ErrLost)) {
				t.Fatal(err)
			}
			w.crash()
			w.ready, w.idle = nil, make(chan struct{})
		}
		w.drop, w.stall, w.die = 0, 0, 0
		w.run(func(p *peer) {
			s, err := kv.Open(context.Background(), p, p, p.options())
			if err != nil {
				t.Error(err)
				return
			}
			for k := range 5 {
				x := input{op: "get", key: fmt.Sprint("key ", k)}
				err := h.do(w, 9, s, x)
				switch {
				case g.Class == kv.Async && errors.Is(err, kv.ErrLost):
					lost++
					if err := s.Put(context.Background(), []byte(x.key), []byte("again")); err != nil {
						t.Error(err)
					}
				case err != nil:
					t.Errorf("seed %d: %s after crashes: %v", seed, x.key, err)
				case g.Class == kv.Data:
					once(t, h, seed, x.key)
				}
			}
			if err := s.Collect(context.Background()); err != nil {
				t.Error(err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		if g.Class == kv.Durable && !linear(t, h) {
			t.Fatalf("seed %d: not linearisable over crashes", seed)
		}
		if t.Failed() {
			return
		}
	}
	if lost == 0 {
		t.Error("nothing was ever lost, so this test cannot see a loss")
	}
}

// once checks that the last get of a key found a value that some client wrote.
func once(t *testing.T, h *history, seed uint64, key string) {
	t.Helper()
	y := h.all[len(h.all)-1].Output.(output)
	if !y.ok {
		return
	}
	for _, x := range h.all {
		in := x.Input.(input)
		if in.key == key && (in.op == "put" && in.value == y.value || in.op == "add" && !strings.Contains(y.value, ".")) {
			return
		}
	}
	t.Errorf("seed %d: %s has %q, which no client wrote", seed, key, y.value)
}
