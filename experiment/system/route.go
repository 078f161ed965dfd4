package system

import (
	"fmt"
	"slices"
	"strings"

	"farflash/internal/spelling"
	"farflash/model/cosim"
	"farflash/model/fabric"
	"farflash/model/nvmf"
	"farflash/numeric/units"
	"farflash/scenario"
)

// extent is the unit that hash routing keeps together, unless it is a zone.
const extent = units.MiB

// routing converts the scenario's route for the models.
func routing(s *scenario.Scenario) cosim.Route {
	r := cosim.Route{Unit: extent, MaxTransfer: s.NVMf.MaxTransfer}
	if z := s.DriveOf(0).ZonesOf(0); z.Count > 0 {
		r.Unit = units.Bytes(z.Size) // a zone is on a single drive
	}
	if s.Protocol == nvmf.Flows {
		r.MaxTransfer = 1 << 40 // a flow has the length of its request
	}
	r.Initiator = []cosim.Spread{cosim.ByTurn, cosim.ByVolume, cosim.ByHash, cosim.ByFlow}[s.Route.Initiator]
	r.Drive = []cosim.Spread{cosim.ByHash, cosim.ByStripe, cosim.ByVolume, cosim.ByTarget}[s.Route.Target.By]
	if s.Route.Target.By == scenario.ByStripe {
		r.Unit = s.Route.Target.Stripe
	}
	return r
}

// ownPairs reports whether queue pairs persist, so that connections can have their own.
func ownPairs(s *scenario.Scenario, protocol nvmf.Protocol) bool {
	return protocol.Capsules() && s.Fabric.QueuePairs.Life == fabric.Persistent
}

// describeTargets describes a system's targets.
func describeTargets(s *scenario.Scenario) string {
	var parts []string
	for i := range s.Targets {
		g := &s.Targets[i]
		name := s.DriveOf(i).Preset
		if name == "" {
			name = s.DriveOf(i).Timing.Cell.String()
		}
		text := fmt.Sprintf("%s x %s", spelling.Plural(g.Count, "target"), spelling.Plural(g.SSDs, "drive"))
		if !slices.Contains(parts, name) {
			text += " (" + name + ")"
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}
