package drive

import (
	"fmt"

	"farflash/block"
	"farflash/block/raid"
	"farflash/result"
)

// raidWords defines the metrics of a volume of several drives.
func raidWords(l *result.Lexicon) {
	for op, noun := range [...]string{"reads", "writes"} {
		op := block.Op(op)
		l.Metric("raid."+op.String()+".commands", "count",
			noun+" sent to members, also for parity and rebuild, warm-up included")
		l.Metric("raid."+op.String()+".bytes", "B", "bytes of "+noun+" sent to members")
	}
	l.Metric("raid.rows.full", "count", "full-stripe writes, which need no reads")
	l.Metric("raid.rows.modified", "count", "partial-stripe writes that read old data and parity (read-modify-write)")
	l.Metric("raid.rows.reconstructed", "count",
		"partial-stripe writes that read the rest of the stripe (reconstruct-write)")
	l.Metric("raid.rows.waited", "count", "partial-stripe writes that waited for another write of the same stripe")
	l.Metric("raid.degraded", "count", "reads and writes that computed a failed member's data")
	l.Metric("raid.rebuilt", "fraction", "share of the failed member rebuilt by the end; 1 without a rebuild")
}

// FillRAID fills in the statistics of a volume of several drives; nil: there is none.
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
	r.Check("volume: commands conserved", x.Asked() == c.Ended+x.Under(),
		fmt.Sprintf("given %d = ended %d + with members %d", x.Asked(), c.Ended, x.Under()))
}
