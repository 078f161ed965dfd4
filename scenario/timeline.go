package scenario

import (
	"fmt"

	"farflash/cosim"
	"farflash/nvmf"
	"farflash/sim"
)

// Slice is something that takes a time in a system's timeline.
type Slice struct {
	// Group and Lane say what did it, such as "initiator 3" and "requests", or "target 0" and
	// "drive 1, channel 2".
	Group, Lane string
	Name        string
	Begin, End  sim.Time
	Request     uint64
}

// timeline tells of the first requests of a run.
type timeline struct {
	y    *remote
	tell func(Slice) error
	left int
}

// timelineRequests is how many requests a timeline shows. A viewer is slow beyond, and nobody looks at more.
const timelineRequests = 20_000

func newTimeline(_ *Scenario, y *remote, tell func(Slice) error) *timeline {
	return &timeline{y: y, tell: tell, left: timelineRequests}
}

// request tells of a request that has ended: its way as the initiator sees it, and what the drive and the two NICs
// did for it.
func (t *timeline) request(x *cosim.Sample, trip *cosim.Trip) error {
	if t.left == 0 {
		return nil
	}
	t.left--
	name := fmt.Sprintf("%v %d", x.Op, x.ID)
	initiator, target := fmt.Sprintf("initiator %d", trip.Initiator), fmt.Sprintf("target %d", trip.Target)
	slices := []Slice{{Group: initiator, Lane: "requests", Name: name, Begin: x.Arrival, End: x.Finished}}
	at := trip.Submitted
	for k, d := range trip.Stage {
		stage := nvmf.Stage(k)
		if d == 0 || stage == nvmf.AtInitiator {
			continue
		}
		_ = at
		_ = d
	}
	if trip.DriveOut > trip.DriveIn && trip.DriveIn > 0 {
		slices = append(slices, Slice{Group: target, Lane: fmt.Sprintf("drive %d", trip.Drive), Name: name, Begin: trip.DriveIn, End: trip.DriveOut})
	}
	if trip.NetOut > trip.NetIn && trip.NetIn > 0 {
		group := target
		if trip.Op.String() == "write" {
			group = initiator
		}
		slices = append(slices, Slice{Group: group, Lane: "NIC", Name: name, Begin: trip.NetIn, End: trip.NetOut})
	}
	for _, s := range slices {
		s.Request = x.ID
		if err := t.tell(s); err != nil {
			return err
		}
	}
	return nil
}
