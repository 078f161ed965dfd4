package reply

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
)

// task is a task whose answer is a few slices.
type task struct {
	Output[task]
	number   int
	want     []byte
	released int
}

// make returns an output of slices of random lengths, empty ones among them, except the last.
func (x *task) make(r *rand.Rand, number int, lent bool) {
	x.Begin()
	x.Task, x.number, x.Lent, x.want, x.released = x, number, lent, nil, 0
	x.Head = append(x.Head, byte(number), 1, 2, 3)
	x.Vec = append(x.Vec, x.Head)
	for range r.IntN(3) {
		x.Vec = append(x.Vec, bytes.Repeat([]byte{byte(r.Uint32())}, r.IntN(5)))
	}
	x.Vec = append(x.Vec, []byte{byte(number), 9})
	x.want = slices.Concat(x.Vec...)
}

// TestQueue sends random outputs in random parts, and copies lent memory at random: the bytes arrive in order, each
// task is sent once, as soon as its last byte is, and lent memory is returned once and not used afterwards.
func TestQueue(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		var q Queue[task]
		var want, got []byte
		var order []int
		left, spare := 0, []*task{}
		release := func(x *task) {
			x.released++
			if !x.Lent && x.released == 1 { // the volume uses its memory for something else
				return
			}
			t.Fatalf("seed %d: task %d is released %d times", seed, x.number, x.released)
		}
		next := 0
		for step := range 60 {
			switch k := r.IntN(4); {
			case k == 0 && step < 50:
				x := new(task)
				if n := len(spare); n > 0 {
					x, spare = spare[n-1], spare[:n-1]
				}
				x.make(r, next, r.IntN(2) == 0)
				want, next, left = append(want, x.want...), next+1, left+1
				q.Push(&x.Output)
			case k == 1:
				was := map[int]bool{}
				var memory [][]byte
				for i := range q.N {
					if o := *q.At(i); o.Lent {
						was[o.Task.number] = true
						memory = append(memory, o.Vec[o.at:]...)
					}
				}
				q.Detach(release)
				for _, v := range memory { // whoever owns it may change it now
					clear(v)
				}
				for i := range q.N {
					if o := *q.At(i); o.Lent || was[o.Task.number] && (o.Task.released != 1 || len(o.Vec) != 1) {
						t.Fatalf("seed %d: %+v after Detach", seed, o)
					}
				}
			default:
				most := 1 + r.IntN(6)
				vec := q.Vectors(nil, most)
				if len(vec) > most {
					t.Fatalf("seed %d: %d slices, at most %d", seed, len(vec), most)
				}
				all := slices.Concat(vec...)
				n := r.IntN(len(all) + 1)
				got = append(got, all[:n]...)
				before := len(order)
				q.Sent(n, func(x *task) { order = append(order, x.number); spare = append(spare, x) })
				left -= len(order) - before
				for _, x := range spare {
					if x.buffer != nil {
						x.Free()
					}
					if x.Clear(); len(x.Vec) != 0 || x.buffer != nil {
						t.Fatalf("seed %d: %+v after Clear", seed, x.Output)
					}
				}
				if int(q.N) != left || !bytes.HasPrefix(want, got) {
					t.Fatalf("seed %d: %d outputs of %d; got %x of %x", seed, q.N, left, got, want)
				}
			}
		}
		for q.N > 0 {
			all := slices.Concat(q.Vectors(nil, 3)...)
			got = append(got, all...)
			q.Sent(len(all), func(x *task) { order = append(order, x.number) })
		}
		if !bytes.Equal(got, want) || len(order) != next || !slices.IsSorted(order) {
			t.Fatalf("seed %d: %x, want %x; tasks in the order %v of %d", seed, got, want, order, next)
		}
	}
}

// TestMemory verifies that an output keeps its memory until it is cleared, and then none, nor the slices of others.
func TestMemory(t *testing.T) {
	var o Output[task]
	b := o.Memory(5000)
	if len(b) != 5000 || len(o.buffer.B) != 16<<10 {
		t.Errorf("%d bytes of %d", len(b), len(o.buffer.B))
	}
	o.Vec = append(o.Vec, b, []byte("another's"))
	held := o.Vec
	o.Clear()
	if o.buffer != nil || len(o.Vec) != 0 || held[0] != nil || held[1] != nil {
		t.Errorf("%+v, %v", o, held)
	}
	o.Free() // twice is harmless
	o.Vec, o.Head, o.Last = append(o.Vec, b), append(o.Head, 1), true
	if o.Detach(func(*task) { t.Error("what is not lent is released") }); len(o.Vec) != 1 || o.buffer != nil {
		t.Errorf("%+v", o)
	}
	if o.Begin(); len(o.Vec)+len(o.Head)+o.at != 0 || o.Last || o.Lent {
		t.Errorf("%+v", o)
	}
}
