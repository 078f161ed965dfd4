package block_test

import (
	"fmt"
	"strings"
	"testing"

	"farflash/block"
)

// The names appear in scenarios, traces, metrics and errors.
func TestNames(t *testing.T) {
	for _, c := range []struct {
		value fmt.Stringer
		want  string
	}{
		{block.Read, "read"}, {block.Write, "write"}, {block.Trim, "trim"}, {block.Flush, "flush"},
		{block.Reset, "reset"}, {block.Finish, "finish"}, {block.Open, "open"}, {block.Close, "close"},
		{block.Ops, "(8)"}, {block.Op(255), "(255)"},
		{block.Urgent, "urgent"}, {block.High, "high"}, {block.Medium, "medium"}, {block.Low, "low"},
		{block.Classes, "(4)"},
		{block.OK, "ok"}, {block.OutOfRange, "address out of range"}, {block.Invalid, "invalid field"},
		{block.WriteFault, "write fault"}, {block.ReadFault, "unrecovered read error"},
		{block.PathError, "host path error"},
		{block.ZoneBoundary, "zone boundary error"}, {block.ZoneFull, "zone is full"},
		{block.ZoneInvalidWrite, "zone invalid write"}, {block.TooManyActive, "too many active zones"},
		{block.TooManyOpen, "too many open zones"},
		{block.ZoneTransition, "invalid zone state transition"}, {block.StatusCounts, "(12)"},
	} {
		if got := c.value.String(); got != c.want {
			t.Errorf("%T(%d) is written %q, want %q", c.value, c.value, got, c.want)
		}
	}
}

func TestClassText(t *testing.T) {
	for class := range block.Classes {
		text, err := class.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		back := block.Classes
		if err := back.UnmarshalText(text); err != nil || back != class {
			t.Errorf("%v is written %q, which is read as %v, %v", class, text, back, err)
		}
	}
	for _, text := range []string{"", "High", "normal", "(4)"} {
		class := block.Medium
		if err := class.UnmarshalText([]byte(text)); err == nil ||
			!strings.Contains(err.Error(), "use urgent, high, medium or low") {
			t.Errorf("%q: error %v", text, err)
		}
		if class != block.Medium {
			t.Errorf("%q changed the value to %v", text, class)
		}
	}
}

func Example() {
	r := block.Request{Op: block.Write, Offset: 4096, Length: 8192, Placement: 2}
	fmt.Printf("%v of %d bytes at %d, placement hint %d\n", r.Op, r.Length, r.Offset, r.Placement)
	fmt.Println(block.QueueConfig{Depth: 64, Class: block.High, Weight: 1}.Class)
	// Output:
	// write of 8192 bytes at 4096, placement hint 2
	// high
}
