package columnar

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
)

// open opens a table. The library makes room for as long a footer as the file's end says, of gigabytes in a damaged
// one of few bytes, so that is looked at before.
func open(r io.ReaderAt, size int64) (*parquet.File, error) {
	const magic, ends = 4, 8 // the first bytes of the file, and its last: the footer's length and the same again
	var end [ends]byte
	if size < magic+ends {
		return nil, fmt.Errorf("damaged file: %d bytes are no table", size)
	}
	if _, err := r.ReadAt(end[:], size-ends); err != nil {
		return nil, err
	}
	if footer := int64(binary.LittleEndian.Uint32(end[:])); footer > size-magic-ends {
		return nil, fmt.Errorf("damaged file: %d bytes of description are to be before its end, and there are %d",
			footer, size-magic-ends)
	}
	return parquet.OpenFile(r, size)
}
