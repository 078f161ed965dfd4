package columnar

import (
	"io"

	"farflash/numeric/units"
)

// Chunk is one row of chunks.parquet. Times are in picoseconds of simulated time.
type Chunk struct {
	ID          int64  // counted from 1 in order of completion
	Op          string // put, get, write or exchange
	Gateway     int32
	Target      int32 // -1 for several targets; written as null
	Size        int64 // bytes
	Begun, Done units.Duration
}

// chunkRow is the Parquet schema of Chunk. The names are those of the documented columns.
type chunkRow struct {
	ID      int64  `parquet:"id,delta"`
	Op      string `parquet:"op,dict"`
	Gateway int32  `parquet:"gateway,dict"`
	Target  *int32 `parquet:"target,optional"`
	Size    int64  `parquet:"size,dict"`
	Begun   int64  `parquet:"begun_ps,delta"`
	Done    int64  `parquet:"done_ps,delta"`
}

// ChunkWriter writes chunks.parquet.
type ChunkWriter struct{ rows[chunkRow] }

// NewChunkWriter starts a file on w. The caller must call Close, which does not close w.
func NewChunkWriter(w io.Writer) *ChunkWriter { return &ChunkWriter{newRows[chunkRow]("chunks", w)} }

// Add writes one chunk.
func (w *ChunkWriter) Add(x Chunk) error {
	r := chunkRow{ID: x.ID, Op: x.Op, Gateway: x.Gateway, Size: x.Size, Begun: int64(x.Begun), Done: int64(x.Done)}
	if x.Target >= 0 {
		r.Target = &x.Target
	}
	return w.add(r)
}

// Close writes the buffered rows and the footer.
func (w *ChunkWriter) Close() error { return w.close() }

// ReadChunks calls f for every chunk of a file, in file order, until f returns an error.
func ReadChunks(r io.ReaderAt, size int64, f func(Chunk) error) error {
	return readRows("chunks", r, size, func(x chunkRow) error {
		c := Chunk{x.ID, x.Op, x.Gateway, -1, x.Size, units.Duration(x.Begun), units.Duration(x.Done)}
		if x.Target != nil {
			c.Target = *x.Target
		}
		return f(c)
	})
}
