package characterise

import "math/bits"

// footprint is a set of 512-byte sectors of any number of volumes: a bit for each 4 KiB block that is completely
// contained, and a byte per block for each MiB that has partial ones.
type footprint struct {
	regions map[region]*marks
	sectors int64
	last    region
	marks   *marks // of the region last touched
}

// region is one MiB of a volume.
type region struct {
	index  int64
	volume uint32
}

const (
	regionBits  = 20
	blockBits   = 12
	sectorBits  = 9
	blocks      = 1 << (regionBits - blockBits)
	wholeBlock  = 0xff
	blockSector = 1 << (blockBits - sectorBits)
)

type marks struct {
	whole  [blocks / 64]uint64
	pieces *[blocks]uint8 // nil until a block is partly touched
}

func (f *footprint) add(volume uint32, offset, size int64) {
	if size <= 0 {
		return
	}
	first := offset >> sectorBits
	end := (offset + size + 1<<sectorBits - 1) >> sectorBits
	const perRegion = int64(1) << (regionBits - sectorBits)
	for first < end {
		here := region{first / perRegion, volume}
		stop := min(end, (here.index+1)*perRegion)
		m := f.region(here)
		start := here.index * perRegion
		f.sectors += m.mark(int(first-start), int(stop-start))
		first = stop
	}
}

func (f *footprint) region(at region) *marks {
	if f.marks != nil && f.last == at {
		return f.marks
	}
	m := f.regions[at]
	if m == nil {
		if f.regions == nil {
			f.regions = make(map[region]*marks)
		}
		m = new(marks)
		f.regions[at] = m
	}
	f.last, f.marks = at, m
	return m
}

// mark adds sectors [from, to) of the region and returns how many were new.
func (m *marks) mark(from, to int) int64 {
	added := 0
	for from < to {
		b := from / blockSector
		stop := min(to, (b+1)*blockSector)
		want := uint8(wholeBlock) << (from % blockSector)
		if rest := stop - b*blockSector; rest < blockSector {
			want &= wholeBlock >> (blockSector - rest)
		}
		added += m.markBlock(b, want)
		from = stop
	}
	return int64(added)
}

func (m *marks) markBlock(b int, want uint8) int {
	word, bit := b/64, uint64(1)<<(b%64)
	if m.whole[word]&bit != 0 {
		return 0
	}
	have := uint8(0)
	if m.pieces != nil {
		have = m.pieces[b]
	}
	now := have | want
	if now == wholeBlock {
		m.whole[word] |= bit
	} else {
		if m.pieces == nil {
			m.pieces = new([blocks]uint8)
		}
		m.pieces[b] = now
	}
	return bits.OnesCount8(now) - bits.OnesCount8(have)
}

func (f *footprint) bytes() int64 { return f.sectors << sectorBits }
