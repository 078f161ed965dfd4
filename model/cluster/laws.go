package cluster

import (
	"fmt"

	"farflash/numeric/units"
)

// Check verifies the conservation laws and returns the first violation.
func (c *Cluster) Check() error {
	for _, law := range []func() error{c.checkChunks, c.checkBytes, c.checkPieces} {
		if err := law(); err != nil {
			return err
		}
	}
	return nil
}

// checkChunks verifies that each chunk begun is done, dropped, failed or in flight, and that each one done has been
// acknowledged by its quorum.
func (c *Cluster) checkChunks() error {
	under := uint64(0)
	for i := range c.tasks.Items {
		if t := &c.tasks.Items[i]; t.live && t.mends == 0 && !t.told {
			under++
		}
	}
	k := &c.Counters
	begun, done := k.Begun+k.Gets.Begun+k.Updates.Begun, k.Done+k.Gets.Done+k.Updates.Done
	if begun != done+k.Dropped+k.Failed+under {
		return fmt.Errorf("%d chunks begun, but %d done, %d given up, %d failed and %d under way", begun, done,
			k.Dropped, k.Failed, under)
	}
	if k.Arrived > 0 {
		waiting := uint64(0)
		for g := range c.load.waiting {
			waiting += uint64(c.load.waiting[g].Len())
		}
		if k.Arrived != begun+waiting {
			return fmt.Errorf("%d chunks came, but %d were begun and %d wait", k.Arrived, begun, waiting)
		}
	}
	if asked := c.quorum(); k.Replicas < k.Done*uint64(asked) {
		return fmt.Errorf("%d chunks are done with %d replicas acknowledged, of %d each", k.Done, k.Replicas, asked)
	}
	return nil
}

// checkBytes verifies both sides of the bytes written. The bytes handed to disks are the pieces of stored chunks, the
// pieces of chunks in flight, and the waste of abandoned attempts; and each of these bytes is written, queued at a
// disk, or lost with its target. Repairs are counted separately.
func (c *Cluster) checkBytes() error {
	k := &c.Counters
	var under units.Bytes
	for i := range c.tasks.Items {
		if t := &c.tasks.Items[i]; t.live {
			under += units.Bytes(t.pieces) * c.pieceAt(int32(i))
		}
	}
	if k.Put.Handed != k.Kept+k.Wasted+under {
		return fmt.Errorf("disks were given %d B to write, but %d B are of chunks that are put, %d B of attempts "+
			"that were given up and %d B of chunks under way", k.Put.Handed, k.Kept, k.Wasted, under)
	}
	var waiting [3]units.Bytes
	wait := func(i int32) {
		if j := &c.jobs.Items[i]; !j.read && !j.void {
			n := 0
			switch {
			case j.repairs:
				n = 1
			case j.updates:
				n = 2
			}
			waiting[n] += j.size
		}
	}
	for i := range c.disks {
		d := &c.disks[i]
		for _, list := range [][]int32{d.queue.All(), d.held.All()} {
			for _, i := range list {
				wait(i)
			}
		}
		if d.current >= 0 {
			wait(d.current)
		}
		if d.drive != nil {
			for _, i := range d.drive.inside {
				wait(i)
			}
		}
	}
	for n, v := range []*Volume{&k.Put, &k.Mended, &k.Renewed} {
		if v.Handed != v.Written+v.Dropped+waiting[n] {
			return fmt.Errorf("disks were given %d B to write (%s), but %d B are written, %d B went with their "+
				"targets and %d B wait", v.Handed, [...]string{"by gateways", "to make pieces again", "of parts"}[n],
				v.Written, v.Dropped, waiting[n])
		}
	}
	return nil
}

// checkPieces verifies that each piece lost to a failure has been rebuilt, was replaced with its chunk, is gone with
// its chunk, or is missing; that every stored chunk got all its pieces; and that no piece is recorded at a target that
// is known to have lost it.
func (c *Cluster) checkPieces() error {
	k, p := &c.Counters, &c.kept
	if k.Kept != k.wholes {
		return fmt.Errorf("all %d pieces of chunks that are put are %d B, and %d B were kept", c.copies, k.wholes,
			k.Kept)
	}
	if p.version == nil {
		return nil
	}
	missing := c.Missing()
	if k.PiecesLost != k.Repaired+k.Replaced+k.PiecesGone+uint64(missing) {
		return fmt.Errorf("%d pieces were lost, but %d were made again, %d replaced, %d are gone with their chunks "+
			"and %d missing", k.PiecesLost, k.Repaired, k.Replaced, k.PiecesGone, missing)
	}
	for i, t := range p.targets {
		if t >= 0 && p.fell[i] < c.targets[t].known {
			return fmt.Errorf("piece %d of chunk %d is taken to be at target %d, which has lost it", i%p.copies,
				i/p.copies, t)
		}
	}
	under := 0
	for i := range c.fix.active.Items {
		if c.fix.active.Items[i].live {
			under++
		}
	}
	if under != c.fix.under {
		return fmt.Errorf("%d pieces are being made again and %d streams are taken", under, c.fix.under)
	}
	return nil
}
