package server

import (
	"testing"

	"farflash/flash/meter"
	"farflash/flash/nbd"
	"farflash/flash/qos"
)

// instant is a volume whose tasks are done at once. Like flash/nbd/volume, it keeps something of its own in a task.
type instant struct{ nbd.Volume }

type kept struct{ lent bool }

func (instant) Start(tasks []*nbd.Task) {
	for i, t := range tasks {
		tasks[i] = nil
		k, ok := t.Private.(*kept)
		if !ok {
			k = new(kept)
			t.Private = k
		}
		k.lent = t.Kind == nbd.Read
		t.Err = 0
		t.Done(t)
	}
}

func (instant) Release(t *nbd.Task) { t.Private.(*kept).lent = false }

// newCounted returns a counted volume, with a gate if there are limits, and one in `every` tasks traced, if not 0.
func newCounted(t testing.TB, limits map[string]qos.Limit, every int) (*counted, *meter.Meter) {
	m := meter.New(1)
	if every > 0 {
		m.Trace(every, 1, func(*meter.Trace) {})
	}
	g, err := newGates(limits, 0)
	if err != nil {
		t.Fatal(err)
	}
	c := &counted{Volume: instant{}, gate: g.of("disk"), use: m.Open("disk", "nbd")}
	if c.gate != nil {
		c.gate.begin = func(what any) { c.start(what.(*operation)) }
	}
	t.Cleanup(g.close)
	return c, m
}

var unlimited = map[string]qos.Limit{"disk": {Class: qos.Latency}}

// TestCounted verifies that a counted volume leaves a task as it got it, allocates nothing once a task has been used,
// also if others are traced, and counts it once.
func TestCounted(t *testing.T) {
	for name, x := range map[string]struct {
		limits map[string]qos.Limit
		every  int
	}{"free": {}, "others are traced": {every: 1 << 40}, "behind a gate": {limits: unlimited}} {
		c, m := newCounted(t, x.limits, x.every)
		ended := 0
		done := func(*nbd.Task) { ended++ }
		read := &nbd.Task{Kind: nbd.Read, Length: 4096}
		flush := &nbd.Task{Kind: nbd.Flush}
		tasks := make([]*nbd.Task, 2)
		once := func() {
			read.Done, flush.Done = done, done
			tasks[0], tasks[1] = read, flush
			c.Start(tasks)
			inner := read.Private.(*operation).inner.(*kept)
			if !inner.lent {
				t.Fatalf("%s: nothing is lent", name)
			}
			if c.Release(read); inner.lent {
				t.Fatalf("%s: not released", name)
			}
		}
		once()
		n := testing.AllocsPerRun(100, once)
		if x.limits == nil && n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
		s, _ := m.Samples()
		if ended != 204 || s[0].Operations[meter.Read] != 102 || s[0].Operations[meter.Flush] != 102 ||
			s[0].Outstanding != 0 {
			t.Errorf("%s: %d ended, %v counted, %d outstanding", name, ended, s[0].Operations, s[0].Outstanding)
		}
	}
}

// BenchmarkCounted is the cost of counting a task, all of it, without traces and with those of one task in a thousand.
func BenchmarkCounted(b *testing.B) {
	for name, every := range map[string]int{"untraced": 0, "traced": 1000} {
		b.Run(name, func(b *testing.B) {
			c, _ := newCounted(b, nil, every)
			done := func(t *nbd.Task) {
				if t.Sent != nil { // as its session does when the answer is sent
					t.Sent(true)
					t.Sent = nil
				}
			}
			task := &nbd.Task{Kind: nbd.Read, Length: 4096}
			tasks := make([]*nbd.Task, 1)
			b.ReportAllocs()
			for b.Loop() {
				task.Done, tasks[0] = done, task
				c.Start(tasks)
			}
		})
	}
}
