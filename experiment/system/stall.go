package system

import (
	"cmp"
	"fmt"
	"strings"

	"farflash/experiment"
	"farflash/experiment/internal/drivemeter"
	"farflash/numeric/units"
	"farflash/result"
	"farflash/sim"
)

// watchOver installs stall detection on a coupled system.
func (x *coupled) watchOver() {
	x.stall = experiment.Watch{
		Until: x.s.Measure.Until.Time, Waits: x.waits,
		Patience: func() sim.Time { return max(x.net.Patience(), units.Second) },
		Moves:    func() uint64 { return drivemeter.Moves(x.host, x.drives) + x.net.Moves() },
		Pending: func() bool {
			return x.host.Expects() || x.traffic != nil && x.traffic.More() || x.net.Mends(x.eng.Now())
		},
	}
}

// waits describes the outstanding requests and the targets that they wait for; "" if there are none.
func (x *coupled) waits() string {
	text := drivemeter.Waits(x.host, x.drives)
	if text == "" {
		return x.net.Waits()
	}
	const most = 3
	list := x.sys.Outstanding()
	for i, b := range list[:min(most, len(list))] {
		from, to := x.net.Net.NodeName(x.sys.InitiatorNode(b.Initiator)), x.net.Net.NodeName(x.sys.TargetNode(b.Target))
		text += fmt.Sprintf("; initiator %d (%s) waits for target %d (%s) since %v", b.Initiator, from, b.Target, to,
			b.Since)
		if i == most-1 && len(list) > most {
			text += "; ..."
		}
	}
	if net := x.net.Waits(); net != "" {
		text += "; " + net
	}
	return text
}

// severed counts commands whose end points have lost their path, and names the hosts that cannot be reached.
func (x *coupled) severed() (commands int, text string) {
	var hosts []int32
	for _, b := range x.sys.Outstanding() {
		from, to := x.sys.InitiatorNode(b.Initiator), x.sys.TargetNode(b.Target)
		if !x.net.Net.Connected(from, to) {
			commands += b.Count
			hosts = append(hosts, from, to)
		}
	}
	if commands > 0 {
		text = x.net.Severed(hosts)
	}
	return commands, text
}

// endless reports requests that did not complete. Those to a host that is cut off permanently fail the run.
func (x *coupled) endless(r *result.Result, interrupted bool) {
	left := x.host.Issued() - x.host.Ended()
	if left == 0 || interrupted {
		return
	}
	n, who := x.severed()
	ends := x.s.Measure.Until.Time > 0 || x.s.Measure.Until.Steady
	gave := x.net.GaveUp()
	text := strings.TrimSuffix(fmt.Sprintf("%s: %s", cmp.Or(who, gave), drivemeter.Left(x.host)), ": ")
	switch {
	case n == 0 && gave != "" && !ends:
		r.Check("every request ends", false, text)
	case n > 0 && (ends || x.net.Mends(x.eng.Now())):
		r.Warn("%s", text)
	case n > 0:
		r.Check("every request ends", false, text)
	case !ends:
		r.Warn("%d requests never completed: their packets were lost and not retransmitted", left)
	}
}
