package drive

import (
	"fmt"

	"farflash/experiment"
	"farflash/model/ssd"
	"farflash/scenario"
	"farflash/scenario/shape"
)

// Vain notices a drive that collects without end while no request does. Each page that collection moves changes an
// entry of the map. Where the map is cached and the cache is small, so that hardly two of these entries are in one of
// its pages, that page is written for each, and collection takes as much space as it gives, or more. Such a drive
// goes on for as long as anybody watches it, or for hours until by chance a victim is empty enough. The zero value is
// ready.
type Vain struct {
	done uint64  // requests that had ended
	then []round // what each drive had done when that was found not to have changed; empty if it has
}

type round struct{ collected, written float64 }

// vainRounds is how often a drive may collect all its blocks while no request ends, if it moves vainShare pages and
// more for each that the host writes: a request that is as long as the drive may take as many rounds. The worst that
// was seen to do something moves 16,000 pages for each, but takes a seventh of a round for a request.
const (
	vainRounds = 8
	vainShare  = 1000
)

// Look is to be called now and then. The error says where the drive is and what would help.
func (v *Vain) Look(s *scenario.Scenario, drives []*ssd.Drive, now *experiment.Standing) error {
	if s.Measure.Until.Time > 0 {
		return nil // it ends, and what did not is counted
	}
	if now.Done != v.done || now.Begun == now.Done {
		v.done, v.then = now.Done, v.then[:0]
		return nil
	}
	fresh := len(v.then) == 0 // since the last look none has ended
	for i, d := range drives {
		var x round
		x.collected, x.written = d.Rounds()
		if fresh {
			v.then = append(v.then, x)
			continue
		}
		if rounds := x.collected - v.then[i].collected; rounds > vainRounds &&
			rounds > vainShare*(x.written-v.then[i].written) {
			path, at := where(s, "ssd")
			help := ""
			if x := s.SameDrive(); x != nil && !x.Mapping.Ideal {
				path, at = where(s, "ssd.mapping.cmt_capacity", "ssd.mapping", "ssd")
				help = fmt.Sprintf(" Each page that is moved changes an entry of the map, whose cache of %v holds so "+
					"few that a page of the map is written for nearly each;"+
					" raise ssd.mapping.cmt_capacity, or set ssd.mapping.ideal.", x.Mapping.CMTCapacity)
			}
			return &shape.Error{At: at,
				Msg: fmt.Sprintf("%s: drive %d collects in vain at %v: it has emptied each of its blocks %.0f times, "+
					"on average, while none of %d requests under way ended."+
					"%s More ssd.over_provisioning and ssd.collection.victim: greedy help too", path, i, now.At, rounds,
					now.Begun-now.Done, help)}
		}
	}
	return nil
}
