package shape_test

import (
	"errors"
	"strings"
	"testing"

	"farflash/numeric/units"
	"farflash/scenario/shape"
)

// order is a document.
type order struct {
	Name  string
	Size  units.Bytes
	Parts []part
}

type part struct {
	Name  string
	Count int
}

func (o *order) Word() string { return "the order" }
func (p *part) SetDefault()   { p.Count = 1 }
func (p *part) Short() string { return "name" }
func loaded(text string, changes ...shape.Change) (*order, shape.Set, error) {
	o := &order{Size: 4 * units.KiB}
	set, err := shape.ParseDocument(shape.Source{File: "order.yaml", Text: []byte(text)}, o, changes...)
	return o, set, err
}

// TestDocument verifies that files other than scenarios are read by the same rules.
func TestDocument(t *testing.T) {
	o, set, err := loaded("name: a\nparts: [bolt, {name: nut, count: 3}]\n",
		shape.Change{Path: "size", Value: "8KiB", Flag: "--size"})
	if err != nil {
		t.Fatal(err)
	}
	if o.Size != 8*units.KiB || len(o.Parts) != 2 || o.Parts[0] != (part{"bolt", 1}) || o.Parts[1] != (part{"nut", 3}) {
		t.Errorf("%+v", o)
	}
	if p := set["parts[1].count"]; p.String() != "order.yaml:2:34" {
		t.Errorf("parts[1].count stands at %v", p)
	}
	text := shape.WriteDocument(o, set, []string{"name"})
	again, _, err := loaded("name: a\n" + text)
	if err != nil || again.Size != o.Size || again.Parts[1] != o.Parts[1] || strings.Contains(text, "name: a\n") {
		t.Errorf("%v\n%s", err, text)
	}
	for _, c := range []struct{ text, want string }{
		{"nam: a", `order.yaml:1:1: unknown key "nam" in the order; did you mean "name"?`},
		{"parts: [{count: x}]", `order.yaml:1:17: parts[0].count: "x" is not a whole number`},
		{"[a]", "order.yaml:1:1: the order is a list; a mapping is expected, with the keys name, size, parts"},
	} {
		if _, _, err := loaded(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.text, err)
		}
	}
	if _, _, err := loaded("name: a", shape.Change{Path: "size", Value: "big", Flag: "--size"}); err == nil ||
		!strings.HasPrefix(err.Error(), "--size:1:1: size: ") {
		t.Errorf("%v", err)
	}
	err = shape.Locate(set, errors.Join(units.Wrong("parts[1].weight", "too much"), units.Wrong("name", "bad"), nil))
	if want := "order.yaml:1:7: name: bad\norder.yaml:2:15: parts[1].weight: too much"; err == nil ||
		err.Error() != want {
		t.Errorf("%v", err)
	}
	if err := shape.Locate(set, nil); err != nil {
		t.Error(err)
	}
}
