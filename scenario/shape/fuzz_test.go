package shape

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"farflash/internal/patience"
)

// FuzzSet applies arbitrary --set text to a file: it must be rejected, or the path must have a value.
func FuzzSet(f *testing.F) {
	for _, s := range []string{"a=1", "list[0].a=2", "list[*].b=x", "a.b.c=[1, 2", "=", "a[-1]=1",
		"a[99999999999999999999]=1", "list[1].a=&x *x", "list=[]"} {
		f.Add(s)
	}
	type item struct {
		A int
		B string
	}
	type file struct {
		A    int
		List []item
	}
	lang := Language{}
	f.Fuzz(func(t *testing.T, set string) {
		defer patience.Limit()()
		c, err := ParseChange(set)
		if err != nil {
			return
		}
		top, err := Parse("a.yaml", []byte("a: 0\nlist: [{a: 1}, {b: x}]\n"))
		if err != nil {
			t.Fatal(err)
		}
		if err := lang.Apply(top, reflect.TypeFor[file](), []Change{c}); err != nil {
			if strings.TrimSpace(err.Error()) == "" {
				t.Error("an error says nothing")
			}
			return
		}
		var x file
		d := lang.Decoder()
		d.Decode(top, &x, "")
	})
}

// TestBounds verifies that any file is read in bounded time, with error messages of bounded length.
func TestBounds(t *testing.T) {
	type file struct{ A int }
	lang := Language{}
	decode := func(text string) error {
		top, err := Parse("a.yaml", []byte(text))
		if err != nil {
			return err
		}
		var x file
		d := lang.Decoder()
		d.Decode(top, &x, "")
		if len(d.Errs) == 0 {
			return nil
		}
		return d.Errs
	}
	var keys, anchors strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&keys, "k%d: 1\n", i)
		fmt.Fprintf(&anchors, "k%d: &x%d 1\n", i, i)
	}
	for _, x := range []struct{ name, text, want string }{
		{"large", strings.Repeat("#\n", maxBytes/2+1), "larger than 16 MiB"},
		{"keys", keys.String(), "99900 more errors"},
		{"anchors", anchors.String(), "99900 more errors"},
		{"values", "a: [" + strings.Repeat("x,", 500_000) + "]", "some 500001 values"},
		{"deep", strings.Repeat("[", 1_000_000), "exceeded max depth"},
		{"key", strings.Repeat("x", 1_000_000) + ": 1", "xxx ... xxx"},
		{"value", "a: " + strings.Repeat("x", 1_000_000), "xxx ... xxx"},
		{"tag", strings.Repeat("!", 1_000_000), "!!! ... !!!"},
		{"int", "a: 2147483648", "a: 2147483648 is not possible; use at most 2147483647"},
		{"int64", "a: 99999999999999999999", "a: 99999999999999999999 is not possible"},
	} {
		err := decode(x.text)
		if err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %.200v; want %q", x.name, err, x.want)
		} else if n := len(err.Error()); n > 100*maxMessage {
			t.Errorf("%s: the error has %d bytes", x.name, n)
		}
	}
}
