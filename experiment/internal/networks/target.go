package networks

import (
	"farflash/model/fabric/cc"
	"farflash/model/fabric/topo"
	"farflash/numeric/units"
	"farflash/result"
	"farflash/sim"
)

// ends are the nodes of a message.
type ends struct{ src, dst int32 }

// warnTarget warns of a target delay of Swift below the round trip of an empty path that is used: each packet would be
// late, and the window stay where flow scaling makes up for the difference, or at its least.
func (m *Meter) warnTarget(r *result.Result) {
	x := m.s.Fabric.Settings()
	c := &x.CongestionControl
	if c.Algorithm != cc.SchemeSwift {
		return
	}
	used := map[ends]bool{}
	for _, t := range m.tallied {
		for p := range t.pairs {
			used[p] = true
		}
	}
	if m.Pairs != nil {
		m.Pairs(func(src, dst int32) { used[ends{src, dst}], used[ends{dst, src}] = true, true })
	}
	routes := m.Graph.Route(nil)
	var worst ends
	var trip, short sim.Time
	hops := 0
	for p := range used {
		t, n := emptyTrip(routes, p, x.Payload+x.Header, x.Acks.Size, x.SwitchLatency)
		target := c.Swift.TargetDelay + sim.Time(n)*c.Swift.TargetPerHop
		by := t - target
		first := p.src < worst.src || p.src == worst.src && p.dst < worst.dst // whatever the order of the map
		if t > 0 && by >= 0 && (trip == 0 || by > short || by == short && first) {
			worst, trip, short, hops = p, t, by, n
		}
	}
	if trip > 0 {
		enough := (trip-sim.Time(hops)*c.Swift.TargetPerHop)/units.Microsecond + 1
		r.Warn("fabric.congestion_control.swift: target_delay with target_per_hop, %v, is not above the round trip of an empty "+
			"path, %v from %s to %s, so windows do not grow to the path's rate; use a target_delay of %v and the queueing "+
			"that you accept", c.Swift.TargetDelay+sim.Time(hops)*c.Swift.TargetPerHop, trip, m.Net.NodeName(worst.src),
			m.Net.NodeName(worst.dst), enough*units.Microsecond)
	}
}

// emptyTrip returns the time of a full packet and its acknowledgement that wait nowhere, and the number of switches on
// the path; 0 without one.
func emptyTrip(routes *topo.Routes, p ends, data, ack units.Bytes, latency sim.Time) (sim.Time, int) {
	there, ok := routes.Path(p.src, p.dst)
	back, ok2 := routes.Path(p.dst, p.src)
	if !ok || !ok2 || there.Hops == 0 {
		return 0, 0
	}
	return there.Delay + back.Delay + sim.Time(there.Hops+back.Hops-2)*latency +
		routes.Serialisation(p.src, p.dst, data, units.Picosecond) +
		routes.Serialisation(p.dst, p.src, ack, units.Picosecond), there.Hops - 1
}
