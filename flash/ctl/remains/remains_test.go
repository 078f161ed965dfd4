package remains

import (
	"testing"

	"farflash/flash/ctl/media"
	"farflash/flash/device"
	"farflash/numeric/rng"
)

// TestWrittenOver has a power cut leave one grain and the parity of a checkpoint that was being written over an older
// one of the same slot. CRC-32C is linear: the parity of the one and the remaining grains of the other make a grain
// that has a valid checksum and belongs to neither.
func TestWrittenOver(t *testing.T) {
	shape := media.Shape{UUID: media.UUID{3, 1}, Pages: 64, LogPages: 8, Capacity: 1}
	var n int64
	for grains := int64(4000); ; grains += 100 { // an even number of grains, in one group
		shape.Grains = []int64{grains}
		if n = media.BodyPages(shape.AllSegments(), shape.Pages); n%2 == 0 && n < media.Group {
			break
		}
	}
	if err := shape.Check(); err != nil {
		t.Fatal(err)
	}
	dev := device.NewMem(shape.Grains[0] * device.Grain)
	draw := rng.NewStream(1, "written over")
	start := shape.CheckpointStart(1) + media.Headers
	write := func(generation uint64, which func(i int64) bool) {
		body := media.Body{Segments: make([]media.Segment, shape.AllSegments()), Pages: shape.Pages,
			Entries: make([][]media.Entry, shape.AllSegments())}
		for i := range body.Segments {
			body.Segments[i] = media.Segment{Use: media.Filled, Order: generation}
			body.Entries[i] = make([]media.Entry, shape.Pages)
			for k := range body.Entries[i] {
				body.Entries[i][k] = media.Entry{Page: uint64(1 + draw.IntN(1<<20)), Sum: uint32(draw.Uint64())}
			}
		}
		page, parity := device.Aligned(device.Grain), device.Aligned(device.Grain)
		put := func(i int64, b []byte) {
			if err := device.Do(dev, device.Write, (start+i)*device.Grain, b); err != nil {
				t.Fatal(err)
			}
		}
		for i := range n {
			body.EncodePage(page, i, shape.UUID, generation)
			media.Parity(parity, page)
			if which(i) {
				put(i, page)
			}
		}
		if which(n) {
			put(n, parity)
		}
	}
	p := &Pool{Shape: shape, Devices: []device.Device{dev}}
	header := &media.Header{Generation: 5}
	write(5, func(int64) bool { return true })
	if s := p.Snapshot(1, header); s.Err != nil || len(s.Lost)+len(s.Rebuilt)+len(s.Parity) > 0 {
		t.Fatalf("whole: %v, %v, %v, %v", s.Err, s.Lost, s.Rebuilt, s.Parity)
	}
	dev.Corrupt((start + 2) * device.Grain)
	if s := p.Snapshot(1, header); s.Err != nil || len(s.Rebuilt) != 1 || s.Rebuilt[0] != 2 {
		t.Fatalf("one grain lost: %v, %v, %v", s.Err, s.Lost, s.Rebuilt)
	}
	dev.Corrupt((start + 2) * device.Grain)
	write(7, func(i int64) bool { return i == 2 || i == n })
	s := p.Snapshot(1, header)
	if s.Err == nil || !s.Lost[2] || len(s.Rebuilt) > 0 {
		t.Errorf("one grain and the parity are of a later checkpoint: %v, %v, %v", s.Err, s.Lost, s.Rebuilt)
	}
	dev.Corrupt((start + 1) * device.Grain)
	if s := p.Snapshot(1, nil); s.Header.Generation != 5 || !s.Lost[1] || !s.Lost[2] || len(s.Lost) != 2 {
		t.Errorf("without a header: generation %d, %v", s.Header.Generation, s.Lost)
	}
}
