//go:build invariants

package ssd

// checkEvery is the number of events of a small drive between two tests of its laws. For a large drive an eighth of its
// pages is added, because a test walks all of them.
const checkEvery = 509

// watch counts a drive's events since its last test.
type watch struct{ events int64 }

// happened is called at the end of every event. It panics if a law does not hold.
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
