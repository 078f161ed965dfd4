package drive

import (
	"fmt"

	"farflash/block"
	"farflash/block/raid"
	"farflash/result"
)

// raidWords are the names of what a volume of several drives did.
func raidWords(l *result.Lexicon) {
	for op, noun := range [...]string{"reads", "writes"} {
		op := block.Op(op)
		l.Metric("raid."+op.String()+".commands", "count", noun+" that the volume asked of its members, from the beginning on; those that only parity or a rebuild needs are among them")
		l.Metric("raid."+op.String()+".bytes", "B", "bytes of them")
	}
	l.Metric("raid.rows.full", "count", "writes of whole rows of stripes, which read nothing")
	l.Metric("raid.rows.modified", "count", "writes of parts of rows that read the old data and parity (read-modify-write)")
	l.Metric("raid.rows.reconstructed", "count", "writes of parts of rows that read the rest of the row (reconstruct-write)")
	l.Metric("raid.rows.waited", "count", "writes of parts of rows that waited for another one of the same row")
	l.Metric("raid.degraded", "count", "reads and writes of rows for which what a failed member had was computed from the others")
	l.Metric("raid.rebuilt", "fraction", "share of the failed member that is rebuilt at the end; 1 if nothing is to be rebuilt")
}

// FillRAID fills in what a volume of several drives did; nil is none.
func FillRAID(r *result.Result, x *raid.Raid) {
	if x == nil {
		return
	}
	c := &x.Counters
	for op := block.Read; op <= block.Write; op++ {
		r.Set("raid."+op.String()+".commands", float64(c.Commands[op]))
		r.Set("raid."+op.String()+".bytes", float64(c.Bytes[op]))
	}
	r.Set("raid.rows.full", float64(c.FullRows))
	r.Set("raid.rows.modified", float64(c.Modified))
	r.Set("raid.rows.reconstructed", float64(c.Rebuilt))
	r.Set("raid.rows.waited", float64(c.Waited))
	r.Set("raid.degraded", float64(c.Degraded))
	r.Set("raid.rebuilt", x.Rebuilt())
	r.Check("volume: commands conserved", x.Asked() == c.Ended+x.Under(), fmt.Sprintf("given %d = ended %d + with members %d", x.Asked(), c.Ended, x.Under()))
}
