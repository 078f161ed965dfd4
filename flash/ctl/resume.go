package ctl

import (
	"slices"

	"farflash/flash/ctl/media"
	"farflash/flash/ctl/remains"
)

// After a crash a session goes on with the log as it was left: first it logs what its recovery decided, which are the
// writes that were dropped. The next recovery, if it begins with the same checkpoint, decides nothing about them again:
// later marks would make it take them for durable.

// recordSpans is numbers of records, in order, as ranges of a first and one after the last.
type recordSpans [][2]uint64

// add adds a number that is above all others.
func (s *recordSpans) add(number uint64) {
	if n := len(*s); n > 0 && (*s)[n-1][1] == number {
		(*s)[n-1][1]++
		return
	}
	*s = append(*s, [2]uint64{number, number + 1})
}

func (s recordSpans) has(number uint64) bool {
	_, found := slices.BinarySearchFunc(s, number, func(x [2]uint64, number uint64) int {
		switch {
		case x[1] <= number:
			return -1
		case x[0] > number:
			return 1
		}
		return 0
	})
	return found
}

// take adds the ranges of records that drop others. Those of several records can be in any order.
func (s *recordSpans) take(records []media.Record) (any bool) {
	for _, rec := range records {
		if rec.Kind == media.Drop {
			*s = append(*s, [2]uint64{rec.PPA, rec.PPA + uint64(rec.Count)})
		}
		any = any || rec.Kind == media.Drop || rec.Kind == media.Resume
	}
	return any
}

func (s recordSpans) sort() {
	slices.SortFunc(s, func(a, b [2]uint64) int { return int(int64(a[0] - b[0])) })
}

// readDrops finds the records of the chain that earlier recoveries dropped, and the generation that no checkpoint of
// theirs can have. They begin a session, and a page that is lost is given the session of the one after it.
func (r *recovery) readDrops(session uint64, chain []remains.Link) error {
	for i := range chain {
		if chain[i].Session == session {
			continue
		}
		session = chain[i].Session
		more := true
		for n := i; n < len(chain) && (more || n < i+2); n++ {
			err := r.left().Records(chain[n:n+1], func(_ *remains.Link, records []media.Record) error {
				more = r.drops.take(records)
				for _, rec := range records {
					if rec.Kind == media.Resume {
						r.coming = max(r.coming, rec.PPA+2)
					}
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
	}
	r.drops.sort()
	return nil
}

// mayResume reports whether the log has space for what resume writes, if that many of its pages are in use.
func (r *recovery) mayResume(inUse uint64) bool {
	pages := (1+len(r.decided)+media.RecordsPerPage-1)/media.RecordsPerPage + 1
	return inUse+uint64(pages)+logSlack < uint64(r.shape.LogPages)
}

// resume logs the decisions of recovery. Only the last of the pages says that all before it are durable: if it is
// missing, the next recovery decides again. An empty page repeats it, so that no single one can be lost.
func (r *recovery) resume() error {
	records := []media.Record{{Kind: media.Resume, PPA: r.coming}}
	for _, x := range r.decided {
		records = append(records, media.Record{Kind: media.Drop, PPA: x[0], Count: uint32(x[1] - x[0])})
	}
	for len(records) > media.RecordsPerPage {
		if err := r.announce(r.mark, records[:media.RecordsPerPage]); err != nil {
			return err
		}
		records = records[media.RecordsPerPage:]
	}
	if err := r.logPage(r.next, records); err != nil {
		return err
	}
	if err := r.announce(r.next, nil); err != nil {
		return err
	}
	r.durable = r.next
	return nil
}
