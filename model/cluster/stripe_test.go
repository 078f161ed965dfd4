package cluster

import (
	"testing"

	"farflash/numeric/rng"
	"farflash/numeric/units"
)

// TestStripe verifies reads and writes of partial overwrites, computed by hand for 4+2 of 64 KiB (pieces of 16 KiB).
func TestStripe(t *testing.T) {
	const k = units.KiB
	for _, x := range []struct {
		name         string
		size, offset units.Bytes
		read, write  [6]units.Bytes
	}{
		{"a part of a piece: it and the parity are read", 4 * k, 4 * k, [6]units.Bytes{4 * k, 0, 0, 0, 4 * k, 4 * k},
			[6]units.Bytes{4 * k, 0, 0, 0, 4 * k, 4 * k}},
		{"a piece: the same, for the other three are no less", 16 * k, 16 * k,
			[6]units.Bytes{0, 16 * k, 0, 0, 16 * k, 16 * k}, [6]units.Bytes{0, 16 * k, 0, 0, 16 * k, 16 * k}},
		{"two pieces: the other two are less than these and the parity", 32 * k, 32 * k,
			[6]units.Bytes{16 * k, 16 * k}, [6]units.Bytes{0, 0, 16 * k, 16 * k, 16 * k, 16 * k}},
		{"all: nothing is read", 64 * k, 0, [6]units.Bytes{},
			[6]units.Bytes{16 * k, 16 * k, 16 * k, 16 * k, 16 * k, 16 * k}},
		{"the end of one and the begin of the next, of which no part is the same", 12 * k, 12 * k,
			[6]units.Bytes{4 * k, 8 * k, 0, 0, 12 * k, 12 * k}, [6]units.Bytes{4 * k, 8 * k, 0, 0, 12 * k, 12 * k}},
		{"a piece and a half: the rest is less", 24 * k, 24 * k, [6]units.Bytes{16 * k, 8 * k, 0, 16 * k},
			[6]units.Bytes{0, 8 * k, 16 * k, 0, 16 * k, 16 * k}},
		{"at the end of the chunk, where less is left", 24 * k, 48 * k,
			[6]units.Bytes{0, 0, 0, 16 * k, 16 * k, 16 * k}, [6]units.Bytes{0, 0, 0, 16 * k, 16 * k, 16 * k}},
	} {
		s := layout{chunk: 64 * k, data: 4, parity: 2, size: x.size}.at(int64(x.offset / x.size))
		if [6]units.Bytes(s.read[:6]) != x.read || [6]units.Bytes(s.write[:6]) != x.write {
			t.Errorf("%s: %v read and %v written, not %v and %v", x.name, s.read[:6], s.write[:6], x.read, x.write)
		}
	}
}

// TestStripeLaws verifies that all of a part is written, that parity covers at least the largest range of any piece,
// and that reads do not exceed either method's.
func TestStripeLaws(t *testing.T) {
	s := rng.NewStream(3, "stripes")
	for range 20_000 {
		l := layout{data: 1 + int(s.IntN(8)), parity: int(s.IntN(4))}
		l.chunk = units.Bytes(l.data) + units.Bytes(s.IntN(5000))
		l.size = 1 + units.Bytes(s.IntN(int64(l.chunk)))
		x := l.at(s.IntN(l.places()))
		var data, most, read units.Bytes
		for k := range l.data {
			data += x.write[k]
			most = max(most, x.write[k])
		}
		for k := range mostPieces {
			if read += x.read[k]; x.read[k] < 0 || x.read[k] > l.piece() || x.write[k] < 0 || x.write[k] > l.piece() {
				t.Fatalf("%+v: %+v", l, x)
			}
		}
		parity := most
		if l.parity > 0 {
			parity = x.write[l.data]
		}
		if data != l.size || parity < most || parity > l.piece() {
			t.Fatalf("%+v: %v of data and %v of parity are written", l, data, parity)
		}
		if l.parity > 0 && (read > data+units.Bytes(l.parity)*parity || read > units.Bytes(l.data)*parity) {
			t.Fatalf("%+v: %v is read", l, read)
		}
	}
}

// TestStripeMean: with 4+2, a quarter of a piece at a time reads and writes three quarters of a piece.
func TestStripeMean(t *testing.T) {
	read, written := layout{chunk: 64 * units.KiB, data: 4, parity: 2, size: 4 * units.KiB}.mean()
	if read != 0.75 || written != 0.75 {
		t.Errorf("%v and %v", read, written)
	}
}
