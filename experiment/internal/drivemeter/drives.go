// Package drivemeter has the measurements that all experiments with drives share: Meter observes a host and its
// drives in slices, FillDrives fills in the drives' statistics.
//
// It leaves out what runs the drives (packages drive, system and objects).
package drivemeter

import (
	"farflash/experiment"
	"farflash/model/ssd"
	"farflash/scenario"
	"farflash/scenario/shape"
	"fmt"
)

// InterruptEvery is the number of requests after which a host checks whether the context has ended.
const InterruptEvery = 256

// Capacities returns the capacities of a device's namespaces in bytes, for the namespaces of the scenario's drive.
func Capacities(s *scenario.Scenario, capacity func(namespace int) int64) []int64 {
	out := make([]int64, max(len(s.DriveOf(0).Namespaces), 1))
	for i := range out {
		out[i] = capacity(i)
	}
	return out
}

// where returns the first of some paths of a drive that the scenario sets, with its position, or else that of targets,
// which have their own drives.
func where(s *scenario.Scenario, paths ...string) (path string, at shape.Position) {
	for _, path = range append(paths, "targets") {
		if at = s.Where(path); at != (shape.Position{}) {
			break
		}
	}
	return path, at
}

// Full is the error for drives that have run full and stopped with requests outstanding. Only drives with MQSim's rules
// do; check rejects it for ours. A run that ends by time reports no error, and counts no requests as stuck.
func Full(s *scenario.Scenario, drives []*ssd.Drive, now *experiment.RunState) error {
	if now.Stuck == 0 {
		return nil
	}
	for i, d := range drives {
		x := s.SameDrive()
		if d.Full() == 0 || x == nil || x.Compat != scenario.CompatMQSim {
			continue
		}
		if s.Measure.Until.Time > 0 {
			now.Stuck = 0 // uncompleted requests are counted
			return nil
		}
		path, at := where(s, "ssd.compat")
		return &shape.Error{At: at,
			Msg: fmt.Sprintf("%s: %v: drive %d is full at %v, as the peer's would be: %d writes wait for a free "+
				"page, and collection cannot "+
				"empty any block, so %d of %d requests never complete. With compat the peer's namespaces may exceed "+
				"the flash, and its mapping pages are never collected; write less "+
				"(fewer requests, or measure.until), give more ssd.over_provisioning or "+
				"ssd.geometry.blocks_per_plane, or leave compat out",
				path, x.Compat, i, now.At, d.Full(), now.Stuck, now.Begun)}
	}
	return nil
}
