//go:build invariants

package ssd

// checkEvery is after how many events of a small drive its laws are tested; a large one takes as many more as an
// eighth of its pages, because a test walks them all.
const checkEvery = 509

// watch counts a drive's events since its laws were tested.
type watch struct{ events int64 }

// happened is called at the end of every event. It stops the program if a law does not hold.
func (d *Drive) happened() {
	if d.events++; d.events < checkEvery+d.cfg.Geometry.Pages()/8 {
		return
	}
	d.events = 0
	for _, c := range d.Checks() {
		if !c.OK {
			panic("ssd: " + c.Name + ": " + c.Detail)
		}
	}
}
