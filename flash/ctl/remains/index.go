package remains

import (
	"fmt"

	"farflash/flash/ctl/media"
	"farflash/flash/device"
)

// Outline is a log page without its records: its position, and the numbers of records of it and of the page before.
type Outline struct {
	Number, Session, First, Mark uint64
	Back, Sum                    uint32
	Records, Again               uint16
}

// Index is the outlines of all valid log pages. It takes a hundredth of the log's size, and the records a multiple.
type Index struct {
	pages         []Outline // by place in the ring; number 0: none
	Highest, Mark uint64    // of all
}

// Index reads the outlines of the log. Among its pages are those of earlier passes through the ring.
func (p *Pool) Index() Index {
	x := Index{pages: make([]Outline, p.Shape.LogPages)}
	p.Span(p.Shape.LogStart(), p.Shape.LogPages, func(i int64, grain []byte) {
		l, n, again, sum, err := media.InspectLogPage(grain, p.Shape.UUID)
		if err != nil || l.Number%uint64(p.Shape.LogPages) != uint64(i) {
			return // never written, torn or misplaced: the log ends where this page is needed
		}
		x.pages[i] = Outline{Number: l.Number, Session: l.Session, First: l.First, Mark: l.Mark, Back: l.Back, Sum: sum,
			Records: uint16(n), Again: uint16(again)}
		x.Highest, x.Mark = max(x.Highest, l.Number), max(x.Mark, l.Mark)
	})
	return x
}

// Page returns the outline of a page, and whether it is valid.
func (x *Index) Page(number uint64) (*Outline, bool) {
	o := &x.pages[number%uint64(len(x.pages))]
	return o, o.Number == number && number > 0
}

// Link is a page of a chain, whose records are in the page From: in it, or in the page after it.
type Link struct {
	Number, From         uint64
	First, Mark, Session uint64
	Sum                  uint32 // the Back that the next page must have
	Records              uint16
}

// Upto returns the number of the record after the last.
func (l *Link) Upto() uint64 { return l.First + uint64(l.Records) }

// readAhead is the number of log pages that Records reads at once.
const readAhead = 64

// Records reads the records of a chain again, and calls fn for each page, in order, until it returns an error.
func (p *Pool) Records(chain []Link, fn func(l *Link, records []media.Record) error) error {
	buf := device.Aligned(readAhead * device.Grain)
	size := uint64(p.Shape.LogPages)
	var page media.LogPage
	from, upto := uint64(0), uint64(0) // the pages in buf
	have := uint64(0)
	for i := range chain {
		l := &chain[i]
		if l.From < from || l.From >= upto {
			n := min(readAhead, size-l.From%size, chain[len(chain)-1].From+1-l.From)
			p.SpanInto(buf[:n*device.Grain], p.Shape.LogStart()+int64(l.From%size), func(j int64, grain []byte) {
				if grain == nil { // it could be read before
					clear(buf[j*device.Grain:][:device.Grain])
				}
			})
			from, upto = l.From, l.From+n
		}
		if have != l.From {
			var err error
			page, _, err = media.DecodeLogPage(buf[(l.From-from)*device.Grain:][:device.Grain], p.Shape.UUID)
			if err != nil || page.Number != l.From {
				return fmt.Errorf("page %d of the log, which was right before: %w", l.From, media.ErrForeign)
			}
			have = l.From
		}
		records := page.Records
		if l.From != l.Number {
			records = page.Again
		}
		if err := fn(l, records); err != nil {
			return err
		}
	}
	return nil
}
