package objects

import (
	"fmt"

	"farflash/experiment/internal/drivemeter"
	"farflash/model/cluster"
	"farflash/model/ssd"
	"farflash/numeric/units"
	"farflash/result"
	"farflash/scenario"
	"farflash/sim"
)

// attach creates the drives of an object cluster's targets, all from one image.
func attach(s *scenario.Scenario, c *cluster.Cluster, eng *sim.Engine, seed uint64, watch ssd.Watch) ([]*ssd.Drive,
	error) {
	if s.SSD == nil {
		return nil, nil
	}
	image, err := ssd.Prepare(s.SSD.Config, seed, "ssd", watch)
	if err != nil {
		return nil, units.Within("ssd", err)
	}
	most := flashCeiling(&s.SSD.Config)
	drives := make([]*ssd.Drive, s.ObjectCluster.Targets*s.ObjectCluster.Disk.Count)
	for t := range drives {
		if drives[t], err = drivemeter.New(image, eng, c.Sink(t), seed, t); err != nil {
			return nil, units.Within("ssd", err)
		}
		if err := c.Attach(t, drives[t], most); err != nil {
			return nil, fmt.Errorf("ssd: %w", err)
		}
	}
	return drives, nil
}

// flashCeiling is the highest sustained rate of a drive: the least of its host link, its channels and its dies, without
// any collection, with all planes of all dies busy.
func flashCeiling(c *ssd.Config) cluster.Ceiling {
	g, t := c.Geometry, &c.Timing
	link := float64(c.Host.LaneRate) * float64(c.Host.Lanes)
	channels := float64(g.Channels) * float64(t.TransferRate) * float64(t.Width)
	most := min(link, channels)
	page := float64(g.Dies()*g.PlanesPerDie) * float64(g.PageSize)
	program, read := 0.0, 0.0
	for k := range t.Cell.Bits() {
		program += t.Program[k].Seconds() / float64(t.Cell.Bits())
		read += t.Read[k].Seconds() / float64(t.Cell.Bits())
	}
	return cluster.Ceiling{Write: units.ByteRate(min(most, page/program)), Read: units.ByteRate(min(most, page/read))}
}

// driveStats returns the statistics of all drives up to a time.
func driveStats(drives []*ssd.Drive, at sim.Time) (sum ssd.Stats) {
	for i, d := range drives {
		if x := d.StatsAt(at); i == 0 {
			sum = x
		} else {
			sum.Add(&x)
		}
	}
	return sum
}

// fillDrives fills in the statistics of an object cluster's drives.
func fillDrives(s *scenario.Scenario, r *result.Result, drives []*ssd.Drive, last, from *slice) {
	if len(drives) == 0 {
		return
	}
	drivemeter.FillDrives(r, s.SSD, drives, last.drives.Since(&from.drives), last.at-from.at)
	drivemeter.CheckDrives(r, drives)
}
