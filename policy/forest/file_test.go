package forest_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"

	"farflash/internal/patience"
	"farflash/policy/forest"
)

// model returns a small forest and its file.
func model(t testing.TB) (*forest.Forest, []byte) {
	t.Helper()
	f, err := forest.Grow(friedman(60, 1, 2), forest.Config{Trees: 3, Leaf: 4, Seed: 1}, 1)
	if err != nil {
		t.Fatal(err)
	}
	f.Notes = []forest.Note{{"drive", "src-ssd-a"}, {"rows", "60"}}
	return f, f.Encode()
}

// sealed appends the correct checksum to a body.
func sealed(body []byte) []byte {
	sum := sha256.Sum256(body)
	return append(slices.Clone(body), sum[:]...)
}

// TestFile verifies that a file is read back and predicts the same bits.
func TestFile(t *testing.T) {
	f, file := model(t)
	back, err := forest.Decode(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(back.Encode(), file) {
		t.Error("written again it is another file")
	}
	if !slices.Equal(back.Notes, f.Notes) || !slices.Equal(back.Inputs, f.Inputs) ||
		!slices.Equal(back.Importance, f.Importance) || back.Trees() != 3 {
		t.Errorf("read back: %+v", back.Notes)
	}
	s := friedman(50, 2, 2)
	a, b := make([]float64, 2), make([]float64, 2)
	for row := range s.Rows() {
		f.Predict(s.X(row), a)
		back.Predict(s.X(row), b)
		if !slices.Equal(a, b) {
			t.Fatalf("row %d: %v and %v", row, a, b)
		}
	}
}

// TestFileDamaged verifies that every byte matters, and that truncated files and other versions are reported.
func TestFileDamaged(t *testing.T) {
	_, file := model(t)
	for i := range file {
		bad := slices.Clone(file)
		bad[i] ^= 0x10
		if _, err := forest.Decode(bad); err == nil {
			t.Fatalf("byte %d of %d can be changed", i, len(file))
		}
	}
	for n := range file {
		if _, err := forest.Decode(file[:n]); err == nil {
			t.Fatalf("%d of %d bytes are enough", n, len(file))
		}
	}
	for text, want := range map[string]string{
		"":                         "not a farflash model",
		"farflash/forest/2\n":      "another version",
		"farflash/forest/1\n":      "truncated",
		string(file[:len(file)-1]): "checksum",
		string(sealed(file[:100])): "unexpected end of file",
		string(sealed(append(slices.Clone(file[:len(file)-32]), 0))): "1 trailing bytes",
	} {
		if _, err := forest.Decode([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: error %v, want %q", text, err, want)
		}
	}
}

// TestFileCrooked verifies that trees that do not end, or lead out of the file, are rejected even if the checksum is
// right.
func TestFileCrooked(t *testing.T) {
	_, file := model(t)
	body := file[:len(file)-32]
	// The nodes start where a list has their length; the first is a split whose right side is the next word.
	f, _ := forest.Decode(file)
	head := binary.LittleEndian.AppendUint32(nil, uint32(f.Nodes()))
	nodes := bytes.LastIndex(body, head) + 4
	next := func(i int) int { return int(binary.LittleEndian.Uint32(body[nodes+16*i+4:])) }
	leaf, split := 0, 1
	for next(leaf) != leaf {
		leaf++
	}
	for next(split) == split {
		split++
	}
	ends := nodes + 16*f.Nodes()
	if first := int32(binary.LittleEndian.Uint32(body[nodes:])); first < 0 || first > 9 {
		t.Fatalf("the first node is by input %d", first)
	}
	set := func(at int, v uint32) []byte {
		b := slices.Clone(body)
		binary.LittleEndian.PutUint32(b[at:], v)
		return sealed(b)
	}
	nan := slices.Clone(body)
	binary.LittleEndian.PutUint64(nan[nodes+8:], math.Float64bits(math.NaN()))
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"a circle":      {set(nodes+16*split+4, 0), "successor out of range"},
		"outside":       {set(nodes+4, 1<<20), "successor out of range"},
		"input":         {set(nodes, 10), "input out of range"},
		"no input":      {set(nodes, 0xffffffff), "input out of range"},
		"leaf":          {set(nodes+16*leaf+12, 0), "invalid leaf"},
		"no outputs":    {set(ends+4*leaf, 1<<30), "invalid leaf"},
		"no threshold":  {sealed(nan), "threshold is NaN"},
		"root":          {set(nodes-8, 1<<30), "root out of range"},
		"a longer list": {set(nodes-4, 1<<31), "past the end of the file"},
	} {
		if _, err := forest.Decode(c.file); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
}

// FuzzDecode verifies for arbitrary bytes that reading ends, allocates no more memory than the file, and that a decoded
// forest can be used and written.
func FuzzDecode(f *testing.F) {
	_, file := model(f)
	f.Add(file[:len(file)-32], false)
	f.Add(file, true)
	f.Add([]byte("farflash/forest/1\n"), false)
	f.Fuzz(func(t *testing.T, body []byte, whole bool) {
		defer patience.Limit()()
		if !whole {
			body = sealed(body)
		}
		m, err := forest.Decode(body)
		if err != nil {
			return
		}
		m.Predict(make([]float64, len(m.Inputs)), make([]float64, len(m.Outputs)))
		if !bytes.Equal(m.Encode(), body) {
			t.Error("written again it is another file")
		}
	})
}
