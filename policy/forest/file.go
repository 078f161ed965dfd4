package forest

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
)

// A forest's file consists of the line below; then, with all numbers little-endian and 32 bits wide unless stated
// otherwise, the names of the inputs and of the outputs, the notes, the figures of the outputs and the inputs (64-bit
// floating point), the trees' roots, the nodes, an equal number of leaves' ends, and the leaves, each list after its
// length and each text after its length in bytes; and the SHA-256 of all of that.
const fileHead = "farflash/forest/1\n"

// Encode writes the forest as a file. The same forest yields the same bytes.
func (f *Forest) Encode() []byte {
	b := []byte(fileHead)
	count := func(n int) { b = binary.LittleEndian.AppendUint32(b, uint32(n)) }
	text := func(s string) {
		count(len(s))
		b = append(b, s...)
	}
	numbers := func(list []float64) {
		count(len(list))
		for _, v := range list {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
		}
	}
	for _, names := range [][]string{f.Inputs, f.Outputs} {
		count(len(names))
		for _, s := range names {
			text(s)
		}
	}
	count(len(f.Notes))
	for _, x := range f.Notes {
		text(x.Name)
		text(x.Value)
	}
	for _, list := range [][]float64{f.OutOfBag, f.Importance, f.Low, f.High} {
		numbers(list)
	}
	count(len(f.roots))
	for _, v := range f.roots {
		count(int(v))
	}
	count(len(f.nodes))
	for _, n := range f.nodes {
		b = binary.LittleEndian.AppendUint32(b, uint32(n.input))
		count(int(n.next))
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(n.threshold))
	}
	for _, v := range f.ends {
		count(int(v))
	}
	numbers(f.leaves)
	sum := sha256.Sum256(b)
	return append(b, sum[:]...)
}

// Checksum returns the checksum of a forest's file, in hexadecimal.
func Checksum(file []byte) string { return hex.EncodeToString(file[max(0, len(file)-sha256.Size):]) }

// Decode reads a forest from a file's bytes. The result is safe to use: every path from a root leads to a leaf.
func Decode(file []byte) (*Forest, error) {
	if !bytes.HasPrefix(file, []byte(fileHead)) {
		if bytes.HasPrefix(file, []byte("farflash/forest/")) {
			return nil, errors.New("the model was written by another version of farflash; train it again with farflash predict train")
		}
		return nil, errors.New("not a farflash model: the header is missing")
	}
	end := len(file) - sha256.Size
	if end < len(fileHead) {
		return nil, errors.New("the model is truncated")
	}
	if sum := sha256.Sum256(file[:end]); !bytes.Equal(sum[:], file[end:]) {
		return nil, errors.New("the model is damaged: checksum mismatch")
	}
	f := new(Forest)
	if err := f.decode(&reader{b: file[len(fileHead):end]}); err != nil {
		return nil, fmt.Errorf("the model is damaged: %w", err)
	}
	return f, nil
}

// reader parses a file. Its first error is sticky.
type reader struct {
	b   []byte
	err error
}

// take returns the next n bytes, or nil if there are fewer.
func (r *reader) take(n int) []byte {
	if r.err == nil && (n < 0 || n > len(r.b)) {
		r.err = errors.New("unexpected end of file")
	}
	if r.err != nil {
		return nil
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

func (r *reader) word() uint32 {
	if b := r.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

// count reads the length of a list whose elements have at least the given size: a length that exceeds the file is an
// error, and allocates no memory.
func (r *reader) count(size int) int {
	n := int64(r.word())
	if r.err == nil && n*int64(size) > int64(len(r.b)) {
		r.err = errors.New("a list extends past the end of the file")
	}
	if r.err != nil {
		return 0
	}
	return int(n)
}

func (r *reader) number() float64 {
	if b := r.take(8); b != nil {
		return math.Float64frombits(binary.LittleEndian.Uint64(b))
	}
	return 0
}

func (r *reader) numbers() []float64 {
	out := make([]float64, r.count(8))
	for i := range out {
		out[i] = r.number()
	}
	return out
}

func (r *reader) names() []string {
	out := make([]string, r.count(4))
	for i := range out {
		out[i] = string(r.take(r.count(1)))
	}
	return out
}

func (f *Forest) decode(r *reader) error {
	f.Inputs, f.Outputs = r.names(), r.names()
	f.Notes = make([]Note, r.count(8))
	for i := range f.Notes {
		f.Notes[i].Name = string(r.take(r.count(1)))
		f.Notes[i].Value = string(r.take(r.count(1)))
	}
	f.OutOfBag, f.Importance, f.Low, f.High = r.numbers(), r.numbers(), r.numbers(), r.numbers()
	f.roots = make([]int32, r.count(4))
	for i := range f.roots {
		f.roots[i] = int32(r.word())
	}
	f.nodes = make([]node, r.count(16))
	for i := range f.nodes {
		f.nodes[i].input, f.nodes[i].next = int32(r.word()), int32(r.word())
		f.nodes[i].threshold = r.number()
	}
	f.ends = make([]int32, len(f.nodes))
	if len(r.b) < 4*len(f.ends) {
		return errors.New("unexpected end of file")
	}
	for i := range f.ends {
		f.ends[i] = int32(r.word())
	}
	f.leaves = r.numbers()
	switch {
	case r.err != nil:
		return r.err
	case len(r.b) > 0:
		return fmt.Errorf("%d trailing bytes", len(r.b))
	}
	return f.valid()
}

// valid reports violations of the invariants of a grown forest. The successor of a node always has a higher index, so
// that every path ends.
func (f *Forest) valid() error {
	inputs, outputs := len(f.Inputs), len(f.Outputs)
	switch {
	case inputs == 0 || outputs == 0 || inputs > mostColumn || outputs > mostColumn:
		return fmt.Errorf("invalid shape: %d inputs and %d outputs", inputs, outputs)
	case len(f.OutOfBag) != outputs || len(f.Importance) != inputs || len(f.Low) != inputs || len(f.High) != inputs:
		return errors.New("the statistics do not match the inputs and outputs")
	case len(f.roots) == 0 || len(f.roots) > mostTrees:
		return fmt.Errorf("invalid number of trees: %d", len(f.roots))
	case len(f.nodes) > mostNodes:
		return fmt.Errorf("too many nodes: %d", len(f.nodes))
	}
	for i, root := range f.roots {
		if root < 0 || int(root) >= len(f.nodes) {
			return fmt.Errorf("tree %d: root out of range", i)
		}
	}
	for i := range f.nodes {
		n := &f.nodes[i]
		leaf := int(n.next) == i
		switch {
		case n.input < 0 || int(n.input) >= inputs:
			return fmt.Errorf("node %d: input out of range", i)
		case leaf && (!math.IsInf(n.threshold, 1) || f.ends[i] < 0 || int(f.ends[i]) > len(f.leaves)-outputs):
			return fmt.Errorf("node %d: invalid leaf", i)
		case !leaf && (int(n.next) < i || int(n.next) >= len(f.nodes)-1):
			return fmt.Errorf("node %d: successor out of range", i)
		case math.IsNaN(n.threshold):
			return fmt.Errorf("node %d: threshold is NaN", i)
		}
	}
	for _, v := range f.leaves {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return errors.New("an output is not finite")
		}
	}
	return nil
}
