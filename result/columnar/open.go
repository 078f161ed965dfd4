package columnar

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
)

// open opens a table. The library allocates as many bytes for the footer as the end of the file specifies, which can be
// gigabytes in a small damaged file, so open checks that length first.
func open(r io.ReaderAt, size int64) (*parquet.File, error) {
	const magic, ends = 4, 8 // the leading magic number, and the trailer: the footer's length and the magic number
	var end [ends]byte
	if size < magic+ends {
		return nil, fmt.Errorf("damaged file: %d bytes are too few for a table", size)
	}
	if _, err := r.ReadAt(end[:], size-ends); err != nil {
		return nil, err
	}
	if footer := int64(binary.LittleEndian.Uint32(end[:])); footer > size-magic-ends {
		return nil, fmt.Errorf("damaged file: its footer should have %d bytes, and %d bytes precede the end",
			footer, size-magic-ends)
	}
	return parquet.OpenFile(r, size)
}
