package system

import (
	"cmp"
	"fmt"
	"strings"

	"farflash/experiment"
	"farflash/experiment/internal/drivemeter"
	"farflash/internal/spelling"
	"farflash/model/nvmf"
	"farflash/numeric/units"
	"farflash/result"
	"farflash/sim"
)

// watchOver installs stall detection on a coupled system.
func (x *coupled) watchOver() {
	x.stall = experiment.Watch{
		Until: x.s.Measure.Until.Time, Waits: x.waits,
		Patience: func() sim.Time {
			h := &x.s.NVMf.Host
			return max(x.net.Patience(), units.Second, h.IOTimeout, h.KeepAlive, 2*x.s.NVMf.Period())
		},
		Moves: func() uint64 { return drivemeter.Moves(x.host, x.drives) + x.net.Moves() },
		Pending: func() bool {
			return x.host.Expects() || x.traffic != nil && x.traffic.More() || x.net.Mends(x.eng.Now()) ||
				x.sys.Reconnects() || x.findable()
		},
	}
}

// findable reports whether a controller that was given up will be found again.
func (x *coupled) findable() (found bool) {
	x.sys.Removed(func(initiator, target int32, _ sim.Time) {
		found = found || x.s.NVMf.Host.Rediscovery > 0 && x.unlinked(initiator, target) == nil
	})
	return found
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
	for _, more := range []string{x.stranded(), x.net.Waits()} {
		if more != "" {
			text += "; " + more
		}
	}
	return text
}

// unlinked returns the hosts of an initiator and a target that no path connects; nil if one does.
func (x *coupled) unlinked(initiator, target int32) (hosts []int32) {
	for p := range x.sys.Paths() {
		from, to := x.sys.PathNodes(initiator, target, p)
		if x.net.Net.Linked(from, to) {
			return nil
		}
		hosts = append(hosts, from, to)
	}
	return hosts
}

// severed counts commands whose end points have lost their path, and names the hosts that cannot be reached.
func (x *coupled) severed() (commands int, text string) {
	var hosts []int32
	for _, b := range x.sys.Outstanding() {
		if ends := x.unlinked(b.Initiator, b.Target); ends != nil {
			commands += b.Count
			hosts = append(hosts, ends...)
		}
	}
	if commands > 0 {
		text = x.net.Severed(hosts)
	}
	return commands, text
}

// losses reports what became of the controllers that initiators lost. One that was given up fails the run.
func (x *coupled) losses(r *result.Result) {
	k := &x.sys.Counters.Failures
	if x.s.NVMf.KeepAliveTimer != nvmf.NoTimer {
		r.Set("nvmf.expired", float64(k.Expired))
	}
	if k.Losses == 0 {
		return
	}
	r.Set("nvmf.timeouts", float64(k.Timeouts))
	r.Set("nvmf.losses", float64(k.Losses))
	r.Set("nvmf.retries", float64(k.Retries))
	r.Set("nvmf.reconnect.attempts", float64(k.Attempts))
	r.Set("nvmf.reconnects", float64(k.Connected))
	r.Set("nvmf.unreachable", x.sys.Unreachable().Microseconds())
	r.Set("nvmf.failed", float64(k.Pathless))
	h := &x.s.NVMf.Host
	switch {
	case k.Removed > 0 && x.sys.Paths() > 1 && k.Pathless == 0:
		r.Warn("%s given up after %v (nvmf.host.ctrl_loss); other paths took their commands",
			spelling.Plural(int(k.Removed), "path"), h.CtrlLoss)
		return
	case k.Removed > 0:
	case k.Pathless > 0 && h.FastIOFail > 0:
		r.Warn("%d commands failed: their controllers were lost for longer than %v (nvmf.host.fast_io_fail), or they had "+
			"been repeated %d times (nvmf.host.max_retries)", k.Pathless, h.FastIOFail, h.MaxRetries)
		return
	case k.Pathless > 0:
		r.Check("every command ends well", false, fmt.Sprintf("%s failed: they had been repeated %d times "+
			"(nvmf.host.max_retries)", spelling.Plural(int(k.Pathless), "command"), h.MaxRetries))
		return
	default:
		return
	}
	const most = 3
	text, n := "", 0
	var hosts []int32
	x.sys.Removed(func(initiator, target int32, lost sim.Time) {
		from, to := x.sys.InitiatorNode(initiator), x.sys.TargetNode(target)
		hosts = append(hosts, x.unlinked(initiator, target)...)
		if n++; n <= most {
			text += fmt.Sprintf("; initiator %d (%s) lost target %d (%s) at %v", initiator, x.net.Net.NodeName(from),
				target, x.net.Net.NodeName(to), lost)
		}
	})
	if n == 0 {
		r.Warn("%s failed: %s given up after %v (nvmf.host.ctrl_loss), and found again (nvmf.host.rediscovery)",
			spelling.Plural(int(k.Pathless), "command"), spelling.Plural(int(k.Removed), "controller"), h.CtrlLoss)
		return
	}
	if n > most {
		text += "; ..."
	}
	if hosts != nil {
		text += "; " + x.net.Severed(hosts)
	}
	r.Check("every target can be reached", false, fmt.Sprintf("%s given up after %v (nvmf.host.ctrl_loss), and %s "+
		"failed%s", spelling.Plural(n, "controller"), h.CtrlLoss, spelling.Plural(int(k.Pathless), "command"), text))
}

// stranded describes commands that no path can take.
func (x *coupled) stranded() string {
	if n := x.sys.Stranded(); n > 0 {
		return fmt.Sprintf("no path can take %s (nvmf.multipath.ana)", spelling.Plural(n, "command"))
	}
	return ""
}

// endless reports requests that did not complete. Those to a host that is cut off permanently fail the run.
func (x *coupled) endless(r *result.Result, interrupted bool) {
	left := x.host.Issued() - x.host.Ended()
	if left == 0 || interrupted {
		return
	}
	n, who := x.severed()
	ends := x.s.Measure.Until.Time > 0 || x.s.Measure.Until.Steady
	gave := cmp.Or(x.stranded(), x.net.GaveUp())
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
