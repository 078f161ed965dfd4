package hostile

import (
	"errors"
	"testing"
)

// recorder notes whether a test would have failed.
type recorder struct {
	testing.TB
	failed bool
}

func (*recorder) Helper()                 {}
func (r *recorder) Errorf(string, ...any) { r.failed = true }

func TestRefused(t *testing.T) {
	var list []int
	for _, c := range []struct {
		name  string
		f     func()
		want  string
		fault bool
	}{
		{"returns", func() {}, "", false},
		{"refuses", func() { panic("queue: Push of nil") }, "queue: Push of nil", false},
		{"refuses with an error", func() { panic(errors.New("the clock ends")) }, "the clock ends", false},
		{"another package's", func() { panic("list: empty") }, "list: empty", true},
		{"a fault", func() { list[0]++ }, "runtime error: index out of range [0] with length 0", true},
	} {
		r := &recorder{TB: t}
		if got := Refused(r, "queue", c.f); got != c.want || r.failed != c.fault {
			t.Errorf("%s: %q, a fault: %v", c.name, got, r.failed)
		}
	}
}

func TestCode(t *testing.T) {
	c := Code{3, 200, 1, 255, 1, 2, 3, 4, 5, 6, 7, 8, 9}
	if a, b, x := c.Int(), c.Int(), c.Int(); a != 3 || b != 1 || x != 0x0102030405060708 {
		t.Errorf("%d, %d, %#x", a, b, x)
	}
	if !c.More() || c.Below(4) != 1 || c.More() || c.Word() != 0 || c.Int() != 0 {
		t.Error("at the end of the input")
	}
}

func TestChange(t *testing.T) {
	type part struct{ Share float64 }
	var x struct {
		Count  int8
		Size   uint16
		On     bool
		Name   string
		Part   *part
		Parts  []part
		Of     [2]float32
		hidden int
	}
	seen := map[string]bool{}
	for i := range 5000 {
		c := Code{byte(i >> 8), byte(i), byte(i * 7), byte(i >> 4), byte(i * 3), 0, byte(i >> 6), 200, byte(i >> 2)}
		c.Change(&x, 3)
		seen["count"] = seen["count"] || x.Count < 0
		seen["size"] = seen["size"] || x.Size > 1000
		seen["on"] = seen["on"] || x.On
		seen["name"] = seen["name"] || x.Name != ""
		seen["part"] = seen["part"] || x.Part != nil && x.Part.Share > 0
		seen["parts"] = seen["parts"] || len(x.Parts) > 1
		seen["of"] = seen["of"] || x.Of[1] != x.Of[1]
	}
	if len(seen) != 7 || x.hidden != 0 {
		t.Errorf("%v", seen)
	}
	for what, is := range seen {
		if !is {
			t.Errorf("%s was never changed", what)
		}
	}
}
