package drivemeter

import (
	"fmt"

	"farflash/experiment"
	"farflash/model/ssd"
	"farflash/scenario"
	"farflash/scenario/shape"
)

// Livelock detects a drive that collects indefinitely while no request completes. Each page that collection moves
// changes an entry of the map. If the map is cached in a cache so small that hardly two of these entries share one of
// its pages, a map page is written for each move, and collection uses at least as much space as it frees. Such a
// drive makes no progress, or only after hours when by chance a victim is empty enough. The zero value is ready for
// use.
type Livelock struct {
	done uint64  // completed requests
	then []round // the drives' state when that was found unchanged; empty if it has changed
}

type round struct{ collected, written float64 }

// livelockRounds is the number of times that a drive may collect all its blocks without a completion, while it moves
// at least livelockShare pages per page that the host writes: a request as large as the drive may take that many
// rounds. The worst case of a drive with progress moves 16,000 pages per page, but takes a seventh of a round per
// request.
const (
	livelockRounds = 8
	livelockShare  = 1000
)

// Look checks for the condition and must be called regularly. Its error has the cause's position and the remedy.
func (v *Livelock) Look(s *scenario.Scenario, drives []*ssd.Drive, now *experiment.RunState) error {
	if s.Measure.Until.Time > 0 {
		return nil // the run has a time limit, and counts uncompleted requests
	}
	if now.Done != v.done || now.Begun == now.Done {
		v.done, v.then = now.Done, v.then[:0]
		return nil
	}
	fresh := len(v.then) == 0 // no completion since the last call
	for i, d := range drives {
		var x round
		x.collected, x.written = d.Rounds()
		if fresh {
			v.then = append(v.then, x)
			continue
		}
		if rounds := x.collected - v.then[i].collected; rounds > livelockRounds &&
			rounds > livelockShare*(x.written-v.then[i].written) {
			path, at := where(s, "ssd")
			help := ""
			if x := s.SameDrive(); x != nil && !x.Mapping.Ideal {
				path, at = where(s, "ssd.mapping.cmt_capacity", "ssd.mapping", "ssd")
				help = fmt.Sprintf(" Each moved page changes an entry of the map, whose cache of %v is so "+
					"small that nearly every move writes a page of the map;"+
					" raise ssd.mapping.cmt_capacity, or set ssd.mapping.ideal.", x.Mapping.CMTCapacity)
			}
			return &shape.Error{At: at,
				Msg: fmt.Sprintf("%s: livelock of collection on drive %d at %v: it has emptied each of its blocks "+
					"%.0f times, "+
					"on average, while none of %d outstanding requests completed."+
					"%s More ssd.over_provisioning and ssd.collection.victim: greedy help too", path, i, now.At, rounds,
					now.Begun-now.Done, help)}
		}
	}
	return nil
}
