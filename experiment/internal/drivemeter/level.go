package drivemeter

import (
	"farflash/model/ssd"
	"farflash/numeric/units"
	"farflash/policy/ftl"
	"farflash/policy/ftl/waf"
	"farflash/scenario"
	"farflash/workload/synth"
)

// Preconditioned returns the configuration of a group's drives, with preconditioning.free by-load resolved.
func Preconditioned(s *scenario.Scenario, group int) ssd.Config {
	c := s.DriveOf(group).Config
	if p := &c.Preconditioning; p.Fill == ssd.FillSteady && p.Free == ssd.FreeByLoad {
		p.Free = ssd.FreeStart
		if c.Collection.Preemptible && demand(s, &c) > behindHost {
			p.Free = ssd.FreeHard
		}
	}
	return c
}

// behindHost is the mean die utilisation up to which collection keeps up in the gaps between host requests. Above it
// the gaps are too short, and bursts leave none.
const behindHost = 0.75

// demand is the utilisation that the workload demands, including the moves that its writes cause, of the dies or of
// collection.moves_per_plane, whichever is higher; 1 and more exceeds the drives. Traces, fio jobs and MQSim flows are
// unknown, and count as 0.
func demand(s *scenario.Scenario, c *ssd.Config) float64 {
	g, t := &c.Geometry, &c.Timing
	drives := 1
	if s.HostRAID != nil {
		drives = max(drives, s.HostRAID.Drives)
	}
	if len(s.Targets) > 0 {
		drives = 0
		for i := range s.Targets {
			drives += s.Targets[i].Count * s.Targets[i].SSDs
		}
	}
	copies := 1.0 // of the workload
	if len(s.Targets) > 0 && s.Route.Initiator == scenario.InitiatorEach {
		copies = float64(s.Initiators)
	}
	mean := func(list *[4]units.Duration) float64 {
		sum := 0.0
		for page := range g.PagesPerBlock {
			sum += float64(list[t.Cell.PageType(page)])
		}
		return sum / float64(g.PagesPerBlock)
	}
	data := float64(t.Data(g.PageSize))
	read, latency := mean(&t.Read)+data, mean(&t.Program)+data
	program := float64(mean(&t.Program)/float64(g.PlanesPerDie)) + data // planes program in parallel
	move := read + 2*latency                                            // its program alternates with one of the host's
	if c.Scheduling.ReadsInTurn {                                       // a die's planes read one after the other
		move += float64(read * float64(g.PlanesPerDie-1) / 2)
	}
	amplified := amplification(c)
	page := float64(g.PageSize)
	busy, moving, writes := 0.0, 0.0, false // dies, and moves in flight
	for i := range s.Workload {
		l := &s.Workload[i]
		w := l.Synthetic
		if w == nil || w.Writes == nil && w.Reads == nil {
			continue
		}
		many := float64(l.Count()) * copies
		for op, f := range []*synth.Flow{w.Reads, w.Writes} {
			if f == nil {
				continue
			}
			share := 1.0 // of the requests of the stream
			if w.Reads != nil && w.Writes != nil && (l.Closed > 0 || w.Interarrival.Mean > 0) {
				share = float64(w.ReadFraction)
				if op == 1 {
					share = 1 - share
				}
			}
			size := float64(f.Size.Mean)
			if x, err := f.Size.Mix.Mean(); err == nil && f.Size.Mix != "" {
				size = x
			}
			takes, moves := max(1, size/page)*read, 0.0
			if op == 1 {
				takes = size / page * (float64(amplified*program) + float64((amplified-1)*read))
				moves = size / page * (amplified - 1) * move
				writes = writes || share > 0
			}
			rate := 0.0
			switch {
			case l.Closed > 0 && share == 0:
			case l.Closed > 0 && l.Think != nil:
				rate = many * share * float64(l.Closed) * float64(l.Think.Every) / float64(l.Think.Time)
			case l.Closed > 0 && op == 1 && !l.FUA && c.Cache.Mode != ssd.CacheOff && c.Cache.Mode != ssd.CacheRead:
				return 1 // it uses all bandwidth of the flash
			case l.Closed > 0 && op == 1:
				rate = many * share * float64(l.Closed) / latency
			case l.Closed > 0:
				rate = many * share * float64(l.Closed) / read
			case w.Interarrival.Mean > 0:
				rate = many * share / float64(w.Interarrival.Mean)
			case f.Interarrival.Mean > 0:
				rate = many / float64(f.Interarrival.Mean)
			}
			busy += float64(rate * takes)
			moving += float64(rate * moves)
		}
	}
	if !writes {
		return 0
	}
	demand := busy / float64(g.Dies()*drives)
	if c.Mapping.Allocation == ssd.AllocateDynamic {
		demand = max(demand, moving/float64(c.Collection.MovesPerPlane*float64(g.Planes()*drives)))
	}
	return demand
}

// amplification is the closed-form write amplification of random writes at collection.start free.
func amplification(c *ssd.Config) float64 {
	p := waf.Policy{Victim: c.Collection.Victim, Choices: max(c.Collection.Choices, 1),
		Window: float64(c.Collection.Window)}
	alpha := (1 - float64(c.Collection.Start)) / (1 - float64(c.OverProvisioning)) /
		max(float64(c.Preconditioning.Occupancy), 1e-9)
	const pages = 256 // the result hardly depends on larger block sizes
	if x, err := p.WAF(alpha, pages); err == nil {
		return x
	}
	if x, err := (waf.Policy{Victim: ftl.Greedy}).WAF(alpha, pages); err == nil {
		return x
	}
	return 1
}
