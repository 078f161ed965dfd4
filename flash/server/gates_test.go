package server

import (
	"testing"

	"farflash/flash/qos"
)

// TestGatesForget verifies that accesses queue on when their export gets its first limit, and that gates remember only
// exports that are open or have a limit.
func TestGatesForget(t *testing.T) {
	g, err := newGates(map[string]qos.Limit{"slow": {Bytes: 1}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer g.close()
	var began []any
	open := func(name string) *gate {
		x := g.of(name)
		x.begin = func(what any) { began = append(began, what) }
		return x
	}
	a, b, c := open("a"), open("a"), open("c")
	a.enter(4096, "first") // fills the depth
	for _, x := range []*gate{b, c, a} {
		x.enter(1, x)
	}
	if err := g.set("a", qos.Limit{Operations: 1, Class: qos.Latency}); err != nil {
		t.Fatal(err)
	}
	if g.waiting() != 3 || len(began) != 1 {
		t.Fatalf("%d wait, %v have begun", g.waiting(), began)
	}
	a.leave(4096)
	if len(began) != 2 || began[1] != b { // of the latency class now
		t.Fatalf("%v have begun", began)
	}
	b.leave(1)
	if len(began) != 3 || began[2] != c {
		t.Fatalf("%v have begun", began)
	}
	c.leave(1)
	if g.waiting() != 1 {
		t.Fatalf("%d wait", g.waiting())
	}
	if err := g.set("a", qos.Limit{}); err != nil || len(began) != 4 {
		t.Fatalf("%v have begun, %v", began, err)
	}
	for _, x := range []*gate{a, b, c} {
		x.release()
	}
	if err := g.set("never open", qos.Limit{}); err != nil {
		t.Fatal(err)
	}
	if len(g.shares) != 2 || g.shares["a"] == nil || g.shares["slow"] == nil {
		t.Errorf("it remembers %v", g.shares)
	}
	if err := g.set("a", qos.Limit{Bytes: -1}); err == nil || len(g.limits()) != 1 {
		t.Errorf("%v, %v", err, g.limits())
	}
}
