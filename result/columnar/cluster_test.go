package columnar

import (
	"bytes"
	"testing"

	"farflash/numeric/units"
)

func TestChunks(t *testing.T) {
	row := func(i int) Chunk {
		return Chunk{ID: int64(i + 1), Op: []string{"put", "write"}[i%2], Gateway: int32(i % 7),
			Target: int32(i%4) - 1, Size: int64(i%3) << 14, Begun: units.Duration(i) * 1000,
			Done: units.Duration(i)*1000 + 5}
	}
	for _, n := range []int{0, 1, chunk, 2*chunk + 17} {
		var file bytes.Buffer
		w := NewChunkWriter(&file)
		for i := range n {
			if err := w.Add(row(i)); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		i := 0
		err := ReadChunks(bytes.NewReader(file.Bytes()), int64(file.Len()), func(x Chunk) error {
			if x != row(i) {
				t.Fatalf("chunk %d is %+v, want %+v", i, x, row(i))
			}
			i++
			return nil
		})
		if err != nil || i != n {
			t.Fatalf("%d of %d chunks came back: %v", i, n, err)
		}
	}
}
