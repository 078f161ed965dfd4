package trace

import (
	"fmt"

	"farflash/workload/trace/record"
)

// recordedDecoder reads the recordings of a server; see package record. Each begins with the header, so they can be
// joined.
type recordedDecoder struct {
	csv   csvDecoder
	begun bool
}

func (d *recordedDecoder) decode(line []byte, e *event) (bool, error) {
	if string(line) == record.Header {
		d.begun = true
		return false, nil
	}
	if !d.begun {
		return false, fmt.Errorf("the first line is not %q", record.Header)
	}
	return d.csv.decode(line, e)
}
