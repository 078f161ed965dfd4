package trace

import (
	"fmt"

	"farflash/numeric/units"
	"farflash/workload/trace/record"
)

// recordedDecoder reads the recordings of a server; see package record. Each begins with the header, so they can be
// joined. One-sided accesses are of any bytes, and drives have sectors: a request is for all sectors that it touches.
type recordedDecoder struct {
	csv     csvDecoder
	begun   bool
	rounded int64 // requests that were not for whole sectors
}

func (d *recordedDecoder) decode(line []byte, e *event) (bool, error) {
	if string(line) == record.Header {
		d.begun = true
		return false, nil
	}
	if !d.begun {
		return false, fmt.Errorf("the first line is not %q", record.Header)
	}
	ok, err := d.csv.decode(line, e)
	const sector = int64(units.Sector)
	if !ok || err != nil || e.size == 0 || e.offset%sector == 0 && e.size%sector == 0 || e.offset > maxAddress-e.size {
		return ok, err // an address that is too large is reported as it is
	}
	d.rounded++
	end := (e.offset + e.size + sector - 1) / sector * sector
	e.offset -= e.offset % sector
	e.size = end - e.offset
	return true, nil
}
