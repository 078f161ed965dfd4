package hostile

import (
	"errors"
	"math"
	"slices"
	"testing"
)

// TestCheck verifies that Check passes errors and refusals that say what they should.
func TestCheck(t *testing.T) {
	check := Check(t, "pump")
	check("error", func() error { return errors.New("pump: -1 bar is not possible") }, "-1 bar")
	check("refusal", func() error { panic("pump: there is no pipe 7") }, "no pipe 7")
}

// TestDraws verifies what each draw takes from the input, and that it is 0 once the input is used up.
func TestDraws(t *testing.T) {
	c := Code{0x12, 200, 1, 2, 3, 4, 5, 6, 7, 8, 159, 160, 3, 239, 27, 240, 0x80, 0, 0, 0, 0, 0, 0, 1, 127, 128, 13}
	for i, want := range []int64{0x12, 200 % 7, 0x0102030405060708, 159 % 16, edges[3], edges[27%len(edges)],
		math.MinInt64 + 1} {
		if !c.More() {
			t.Fatal("the input is used up")
		}
		var got int64
		switch i {
		case 0:
			got = int64(c.Byte())
		case 1:
			got = int64(c.Below(7))
		case 2:
			got = int64(c.Word())
		default:
			got = c.Int()
		}
		if got != want {
			t.Errorf("draw %d is %d, want %d", i, got, want)
		}
	}
	if x, y := c.Float(), c.Float(); x != 127./64 || y != floats[13%len(floats)] {
		t.Errorf("%v and %v are drawn", x, y)
	}
	if c.More() || c.Byte() != 0 || c.Below(3) != 0 || c.Word() != 0 || c.Int() != 0 || c.Float() != 0 {
		t.Error("an input that is used up yields something")
	}
}

// TestEdges verifies that the numbers on both sides of the widths of integers, of floats' exact integers, and of the
// sizes of sectors and pages can be drawn.
func TestEdges(t *testing.T) {
	for _, x := range []int64{0, 1, -1, math.MaxInt32, math.MaxInt32 + 1, math.MinInt32, math.MaxUint32,
		math.MaxUint32 + 1, math.MaxInt64, math.MinInt64, math.MaxInt64 - 511, math.MaxInt64 / 2, 0xff, 0x100, 0x1ff,
		0x200, -0x200, 0x1000, 0xffff, 0x10000, 0x100000, 0x1ffffffffffe00, 0x40000000000000} {
		if !slices.Contains(edges[:], x) {
			t.Errorf("%d (%#x) is never drawn", x, x)
		}
	}
	for _, x := range []float64{math.Inf(1), math.Inf(-1), -1, 0.5, 1e300, -1e300} {
		if !slices.Contains(floats[:], x) {
			t.Errorf("%v is never drawn", x)
		}
	}
	if !slices.ContainsFunc(floats[:], math.IsNaN) {
		t.Error("NaN is never drawn")
	}
}

// TestChangeSteps verifies that a change takes two bytes for the field and what its value needs, and that there is none
// without input.
func TestChangeSteps(t *testing.T) {
	var x struct {
		On    bool
		Count int
		Part  *struct{ Width int }
	}
	c := Code{0, 0, 0, 1, 9, 0, 2, 0, 3, 5, 0, 0}
	for i, left := range []int{10, 7, 5, 2, 0, 0} {
		c.Change(&x, 1)
		if len(c) != left {
			t.Fatalf("step %d leaves %d bytes, not %d", i, len(c), left)
		}
		if x.On != (i < 4) || (x.Count == 9) != (i > 0) || (x.Part != nil) != (i > 1) ||
			i > 1 && (x.Part.Width == 5) != (i > 2) {
			t.Errorf("after step %d: %+v", i, x)
		}
	}
	x.Part = nil
	c = Code{1, 0, 7} // field 256 of three, which is the second
	if c.Change(&x, 1); x.Count != 7 || len(c) > 0 {
		t.Errorf("field 256 of three: %+v", x)
	}
}
