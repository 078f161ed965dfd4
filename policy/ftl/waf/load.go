package waf

import (
	"farflash/numeric/rng"
	"math"
	"math/bits"
)

// load draws the logical pages that an experiment writes.
type load struct {
	addresses rng.Stream
	starts    []int32   // first page of each class, and the end
	upTo      []float64 // cumulated writes of each class but the last
	apart     bool      // classes have streams of their own

	pages      int32
	sequential float64 // chance to start or continue with the sequential part
	run        int32   // its length; 0: the whole space
	at, left   int32   // next sequential page, pages left of the run
	runs       [][2]int32
	writers    *writers // nil: none
}

func (e Experiment) load() *load {
	l := &load{
		addresses: rng.NewStream(e.Seed, "addresses"),
		apart:     e.Layout == StreamsApart,
		pages:     int32(e.Blocks * e.Pages),
		run:       int32(e.Run),
		runs:      e.Runs,
	}
	if e.Writers != nil {
		l.writers = e.writers(l.pages)
	}
	space, writes := 0.0, 0.0
	for _, c := range e.Classes {
		l.starts = append(l.starts, int32(math.Round(float64(space*float64(l.pages)))))
		space += c.Space
		writes += c.Writes
		l.upTo = append(l.upTo, writes)
	}
	l.starts = append(l.starts, l.pages)
	l.upTo = l.upTo[:len(l.upTo)-1]
	l.sequential = e.Sequential
	if e.Run > 0 {
		// A run starts between random pages, with the probability that yields the share of pages.
		q := e.Sequential / float64(e.Run)
		l.sequential = q / (q + 1 - e.Sequential)
	}
	return l
}

// next returns the next page to write.
func (l *load) next() int32 {
	if l.writers != nil {
		return l.writers.next(&l.addresses)
	}
	if l.left > 0 {
		l.left--
		l.at++
		return l.at
	}
	if l.runs != nil {
		r := l.runs[l.addresses.IntN(int64(len(l.runs)))]
		l.at, l.left = r[0], r[1]-1
		return l.at
	}
	if l.sequential > 0 && l.addresses.Float64() < l.sequential {
		if l.run > 0 {
			l.at = int32(l.addresses.IntN(int64(l.pages/l.run))) * l.run
			l.left = l.run - 1
			return l.at
		}
		if l.at++; l.at >= l.pages {
			l.at = 0
		}
		return l.at
	}
	class := 0
	if len(l.upTo) > 0 {
		u := l.addresses.Float64()
		for class < len(l.upTo) && u >= l.upTo[class] {
			class++
		}
	}
	first := l.starts[class]
	return first + int32(l.addresses.IntN(int64(l.starts[class+1]-first)))
}

// streamOf returns the stream that a page is written to.
func (l *load) streamOf(lpa int32) int {
	if !l.apart {
		return 0
	}
	class := 0
	for lpa >= l.starts[class+1] {
		class++
	}
	return class
}

func count(bitmap []uint64) int {
	n := 0
	for _, w := range bitmap {
		n += bits.OnesCount64(w)
	}
	return n
}
