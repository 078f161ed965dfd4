package drivemeter

import (
	"fmt"

	"farflash/block"
	"farflash/block/raid"
	"farflash/result"
)

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
