package units

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

// TestFieldErrors splits errors and prefixes their paths.
func TestFieldErrors(t *testing.T) {
	if Within("a", nil) != nil || FieldErrors(nil) != nil || new(Faults).Err() != nil {
		t.Error("nothing wrong is an error")
	}
	var c Faults
	c.Hold(true, "x", "not said")
	c.Hold(false, "ports[2].rate", "%d is not possible", 3)
	c.Within("inner", errors.Join(Wrong("", "as a whole"), fmt.Errorf("wrapped: %w", Wrong("[1]", "first")),
		errors.New("plain: text")))
	got := FieldErrors(Within("outer", c.Err()))
	want := [][2]string{{"outer.ports[2].rate", "3 is not possible"}, {"outer.inner", "as a whole"},
		{"outer.inner", "wrapped: [1]: first"}, {"outer.inner", "plain: text"}}
	if len(got) != len(want) {
		t.Fatalf("%d errors: %v", len(got), got)
	}
	for i, w := range want {
		if got[i].Path != w[0] || got[i].Msg != w[1] {
			t.Errorf("%d: %q, not %q", i, got[i], w)
		}
	}
	// The original error remains accessible behind a path.
	if err := Within("outer", Within("inner", fmt.Errorf("preparing: %w", context.Canceled))); !errors.Is(err,
		context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v is not an end of a context", err)
	}
	if s := Wrong("a.b", "c").Error(); s != "a.b: c" {
		t.Error(s)
	}
	if s := Wrong("", "c").Error(); s != "c" {
		t.Error(s)
	}
}

type gait uint8

var gaits = Names[gait]{"", "walk", "trot"}

// TestNames parses and prints an enumeration that starts at 1.
func TestNames(t *testing.T) {
	for i, name := range []string{"walk", "trot"} {
		v := gait(9)
		if err := gaits.Unmarshal([]byte(name), &v); err != nil || v != gait(i+1) || gaits.Name(v) != name {
			t.Errorf("%s is %d, %v", name, v, err)
		}
		if b, err := gaits.Marshal(v); err != nil || string(b) != name {
			t.Errorf("%d is written as %s, %v", v, b, err)
		}
	}
	for _, v := range []gait{0, 3} {
		if b, err := gaits.Marshal(v); err == nil {
			t.Errorf("%d is written as %s", v, b)
		}
	}
	if gaits.Name(3) != "(3)" {
		t.Error(gaits.Name(3))
	}
	v := gait(1)
	var text *TextError
	for bad, want := range map[string]string{"": `"" is not possible; use walk or trot`,
		"trott": `"trott" is not possible; use walk or trot (did you mean trot?)`} {
		err := gaits.Unmarshal([]byte(bad), &v)
		if !errors.As(err, &text) || err.Error() != want || v != 1 {
			t.Errorf("%q: %v; %d", bad, err, v)
		}
	}
}
