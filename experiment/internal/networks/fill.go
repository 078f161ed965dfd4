package networks

import (
	"fmt"
	"math"
	"slices"

	"farflash/internal/spelling"
	"farflash/model/fabric"
	"farflash/model/fabric/spread"
	"farflash/model/fabric/topo"
	"farflash/numeric/stats"
	"farflash/numeric/units"
	"farflash/result"
	"farflash/scenario"
	"farflash/sim"
)

// finish fills a result with the measurements.
func (m *Meter) finish(r *result.Result, interrupted bool) {
	last := &m.before
	if len(m.from.ports) == 0 {
		m.from.ports = make([]portState, len(last.ports))
	} else {
		r.WarmUp = result.WarmUp{UntilS: m.from.at.Seconds(), Explain: "the time that the scenario says"}
	}
	r.SimulatedS = last.at.Seconds()
	r.Summary = m.Summary()
	r.Limits = m.Limits()
	m.fill(r, last, interrupted)
}

// FillPart fills in the results of a network that is part of a larger model, whose warm-up is already in the result.
func (m *Meter) FillPart(r *result.Result, interrupted bool) {
	if len(m.from.ports) == 0 {
		m.from.ports = make([]portState, len(m.before.ports))
		if r.WarmUp.UntilS > 0 {
			r.Warn("figures of the network include the warm-up; set measure.warm_up to a time to leave it out there too")
		}
	}
	m.fill(r, &m.before, interrupted)
}

// FillWhole fills in the results of a network from the start of the run.
func (m *Meter) FillWhole(r *result.Result, interrupted bool) {
	m.from = fabricState{ports: make([]portState, len(m.before.ports))}
	m.fill(r, &m.before, interrupted)
}

// fill fills in everything except the parts that a system provides itself.
func (m *Meter) fill(r *result.Result, last *fabricState, interrupted bool) {
	m.totals(r, last)
	m.flows(r)
	m.collectives(r)
	m.overTime(r)
	m.byPort(r, last)
	m.layout(r)
	m.checks(r, last)
	m.warn(r, last, interrupted)
}

// totals fills in the network's own figures after the warm-up.
func (m *Meter) totals(r *result.Result, last *fabricState) {
	now, was := &last.counters, &m.from.counters
	span := (last.at - m.from.at).Seconds()
	var marks, hops, taken, paused uint64
	most, queue := 0.0, units.Bytes(0)
	for i := range last.ports {
		a, b := &m.from.ports[i], &last.ports[i]
		p := m.Net.Port(int32(i))
		marks += b.marks - a.marks
		taken += b.taken - a.taken
		paused += uint64(b.paused - a.paused)
		hops += p.Packets
		if span > 0 {
			most = max(most, (b.busy-a.busy).Seconds()/span)
		}
		if m.Graph.Nodes[p.Node].Kind == topo.Switch {
			queue = max(queue, p.MaxQueue)
		}
	}
	r.Set("fabric.pause.count", float64(now.Pauses-was.Pauses))
	r.Set("fabric.pause.time", units.Duration(paused).Seconds())
	r.Set("fabric.ecn.marks", float64(marks))
	r.Set("fabric.cnp.count", float64(now.CNPsSent-was.CNPsSent))
	r.Set("fabric.drops", float64(now.DropCount()-was.DropCount()))
	r.Set("fabric.packet_hops", float64(hops))
	r.Set("fabric.retransmits", float64(now.Retransmits-was.Retransmits))
	r.Set("fabric.timeouts", float64(now.Timeouts-was.Timeouts))
	r.Set("fabric.nacks", float64(now.Nacks-was.Nacks))
	r.Set("fabric.queue.max", float64(queue))
	r.Set("fabric.deadlocks", float64(now.Deadlocks))
	if m.s.Fabric.LoadBalancing.Choice != spread.Hash {
		r.Set("fabric.reordered", float64(now.Overtaken-was.Overtaken))
		r.Set("fabric.reordered.max", float64(now.Reordered))
	}
	if now.Pulls > 0 {
		r.Set("fabric.pulls", float64(now.Pulls-was.Pulls))
	}
	if m.s.Fabric.Trimming.Enabled {
		r.Set("fabric.trimmed", float64(now.Trimmed-was.Trimmed))
	}
	if span > 0 {
		r.Set("fabric.goodput", float64(taken)*8/span)
		r.Set("fabric.utilisation.max", most)
	}
	r.Set("sim.events", float64(last.counters.Events))
}

// ended returns the completed flows, and the number of flows that started after the warm-up and have not completed.
func (m *Meter) ended() (flows *census, unfinished float64) {
	m.unfinished = make([]float64, m.groups())
	known := m.Others == nil
	own := m.ownLedgers()
	for i := range m.Net.Messages() {
		x := &m.Net.Messages()[i]
		switch {
		case !known && m.Others(int32(i)) || !m.Net.Known(int32(i)) || x.Posted == sim.Forever:
		case x.Acked == sim.Forever && x.Posted >= m.from.at:
			unfinished++
			m.unfinished[m.groupOf(int32(i))]++
		case x.Acked != sim.Forever && !known:
			f := m.flow(int32(i))
			own[f.Group].add(f.Start, f.FCT, f.Size, float64(f.FCT)/float64(f.Ideal))
		}
	}
	if !known {
		m.own = own
		return take(own, false), unfinished
	}
	return take(m.ledgers(-1), m.from.at != m.warm), unfinished
}

// flows fills in completion times and slowdowns of the flows that started after the warm-up.
func (m *Meter) flows(r *result.Result) {
	c, unfinished := m.ended()
	if c.count == 0 && unfinished == 0 && m.Others != nil {
		return
	}
	r.Set("flow.count", float64(c.count))
	r.Set("flow.unfinished", unfinished)
	r.Set("flow.bytes", float64(c.bytes))
	if c.count == 0 {
		return
	}
	if c.coarse {
		r.Warn("with more than %d flows, completion times and slowdowns are from histograms, whose buckets are up "+
			"to 1/64 of the value wide", exactFlows)
	}
	fct, h := c.times()
	fct.fill(r, "flow.fct")
	r.SetHistogram("flow.fct", h)
	var rows []string
	var v [][]float64
	for k, has := range c.sizes() {
		if !has {
			continue
		}
		b := c.slowdowns(k)
		rows = append(rows, fmt.Sprintf("up to %v", units.Bytes(1)<<k))
		row := []float64{float64(b.count()), b.mean()}
		for _, q := range []result.Quantile{{Share: 0.5}, {Share: 0.95}, {Share: 0.99}} {
			x := math.NaN()
			if q.Known(b.count()) {
				x = b.quantile(q.Share)
			}
			row = append(row, x)
		}
		v = append(v, append(row, b.most()))
	}
	slow := c.slowdowns(-1)
	slow.fill(r, "flow.slowdown")
	r.SetMatrix("flow.slowdown", rows, []string{"flows", "mean", "p50", "p95", "p99", "max"}, v)
	m.byGroup(r, c)
}

// overTime fills in series of the network as a whole and of the first queue pairs.
func (m *Meter) overTime(r *result.Result) {
	n := len(m.slices)
	good, queue, paused, marks := make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)
	from := sim.Time(0)
	for i := range m.slices {
		x := &m.slices[i]
		span := (x.end - from).Seconds() // 0 yields no number
		good[i], marks[i] = stats.Ratio(x.taken*8, span), stats.Ratio(x.marks, span)
		paused[i] = stats.Ratio(x.paused, span*float64(len(x.ports)))
		queue[i] = x.queue
		from = x.end
	}
	r.SetSeries("fabric.goodput", m.width, good)
	r.SetSeries("fabric.queue", m.width, queue)
	r.SetSeries("fabric.ecn.marks", m.width, marks)
	r.SetSeries("fabric.pause.time", m.width, paused)
	for k, q := range m.follow {
		if q >= m.Net.Pairs() {
			continue
		}
		rate := make([]float64, n)
		for i := range m.slices {
			rate[i] = float64(m.slices[i].rates[k])
			if rate[i] == 0 {
				rate[i] = math.NaN()
			}
		}
		r.SetSeries(fmt.Sprintf("flow[%d].rate", q), m.width, rate)
		if m.s.Measure.Progress {
			m.progress(r, k, q)
		}
	}
}

// progress fills in the acknowledged and in-flight bytes of the k-th followed queue pair, number q.
func (m *Meter) progress(r *result.Result, k, q int) {
	through, flight := make([]float64, len(m.slices)), make([]float64, len(m.slices))
	from, was := sim.Time(0), uint64(0)
	for i := range m.slices {
		x := &m.slices[i]
		through[i] = stats.Ratio(float64(x.acked[k]-was)*8, (x.end - from).Seconds())
		flight[i] = float64(x.flight[k])
		from, was = x.end, x.acked[k]
	}
	r.SetSeries(fmt.Sprintf("flow[%d].throughput", q), m.width, through)
	r.SetSeries(fmt.Sprintf("flow[%d].in_flight", q), m.width, flight)
}

// Limits of a result: the busiest ports, and columns over time.
const (
	mostRows = 2048
	mostCols = 64
)

// byPort fills in the activity of each port, over time and in total.
func (m *Meter) byPort(r *result.Result, last *fabricState) {
	order := make([]int, len(last.ports))
	for i := range order {
		order[i] = i
	}
	if len(order) > mostRows {
		slices.SortStableFunc(order,
			func(a, b int) int { return int(last.ports[b].bytes>>10) - int(last.ports[a].bytes>>10) })
		order = order[:mostRows]
		slices.Sort(order)
		r.Warn("figures per port cover only the %d busiest of %d ports", mostRows, len(last.ports))
	}
	every := (len(m.slices) + mostCols - 1) / mostCols
	var cols []string
	for first := 0; first < len(m.slices); first += every {
		cols = append(cols, fmt.Sprintf("%.9g", m.slices[min(first+every, len(m.slices))-1].end.Seconds()))
	}
	rows := make([]string, len(order))
	use, queue, paused, sum := make([][]float64, len(order)), make([][]float64, len(order)),
		make([][]float64, len(order)), make([][]float64, len(order))
	var depths [][]float64
	var deep []string
	for k, i := range order {
		p := m.Net.Port(int32(i))
		rows[k] = m.Net.PortName(int32(i))
		from := sim.Time(0)
		for first := 0; first < len(m.slices); first += every {
			var x portSlice
			end := from
			for _, y := range m.slices[first:min(first+every, len(m.slices))] {
				x.busy += y.ports[i].busy
				x.paused += y.ports[i].paused
				x.queue, end = y.ports[i].queue, y.end
			}
			span := (end - from).Seconds()
			u, t := 0.0, 0.0
			if span > 0 {
				u, t = min(1, float64(x.busy)/span), float64(x.paused)/span // a slice's figures are rounded
			}
			use[k] = append(use[k], stats.Micro(u))
			paused[k] = append(paused[k], stats.Micro(t))
			queue[k] = append(queue[k], float64(x.queue))
			from = end
		}
		x, y := &last.ports[i], &m.from.ports[i]
		span := float64(last.at - m.from.at)
		sum[k] = []float64{stats.Micro(float64(x.busy-y.busy) / max(span, 1)), float64(x.pauses - y.pauses),
			(x.paused - y.paused).Microseconds(), p.Longest.Microseconds(), float64(x.marks - y.marks),
			float64(p.Drops), float64(p.MaxQueue)}
		if m.Graph.Nodes[p.Node].Kind == topo.Switch && p.MaxQueue > 0 {
			deep = append(deep, rows[k])
			depths = append(depths, m.depths(i))
		}
	}
	r.SetMatrix("fabric.link.utilisation", rows, cols, use)
	r.SetMatrix("fabric.link.queue", rows, cols, queue)
	r.SetMatrix("fabric.link.paused", rows, cols, paused)
	r.SetMatrix("fabric.link.totals", rows,
		[]string{"utilisation", "pauses", "paused_us", "longest_pause_us", "ecn_marks", "drops", "queue_max_bytes"},
		sum)
	if len(deep) > 0 {
		r.SetMatrix("fabric.queue.histogram", deep, depthNames(), depths)
	}
	var hosts []string
	var good [][]float64
	if len(m.Hosts) <= mostRows {
		span := (last.at - m.from.at).Seconds()
		at := int32(-1) // node of the last row; a host's ports are adjacent
		for i := range last.ports {
			p := m.Net.Port(int32(i))
			if m.Graph.Nodes[p.Node].Kind != topo.Host || span == 0 {
				continue
			}
			if p.Node != at {
				at = p.Node
				hosts = append(hosts, m.Graph.Nodes[at].Name)
				good = append(good, []float64{0})
			}
			good[len(good)-1][0] += float64(last.ports[i].taken-m.from.ports[i].taken) * 8 / span
		}
		r.SetMatrix("fabric.host.goodput", hosts, []string{"received"}, good)
	}
}

// Queue depths are counted by powers of two from 1 KB on.
const depthBins = 16

func depthNames() []string {
	out := []string{"empty"}
	for i := range depthBins {
		out = append(out, fmt.Sprintf("up to %dKB", 1<<i))
	}
	return out
}

// depths is the distribution of a port's queue depth over the samples after the warm-up.
func (m *Meter) depths(port int) []float64 {
	out := make([]float64, depthBins+1)
	for i := range m.slices {
		if m.slices[i].end <= m.from.at {
			continue
		}
		q := int64(m.slices[i].ports[port].queue)
		k := 0
		for q > 0 && k < depthBins {
			k++
			if q <= int64(units.KB)<<(k-1) {
				break
			}
		}
		out[k]++
	}
	return out
}

// layout fills in the positions of nodes for a picture.
func (m *Meter) layout(r *result.Result) {
	if len(m.Graph.Nodes) > mostRows {
		return
	}
	points := m.Graph.Layout()
	rows := make([]string, len(points))
	v := make([][]float64, len(points))
	for i, p := range points {
		rows[i] = m.Graph.Nodes[i].Name
		v[i] = []float64{stats.Micro(p.X), stats.Micro(p.Y), float64(m.Graph.Nodes[i].Tier)}
	}
	r.SetMatrix("fabric.layout", rows, []string{"x", "y", "tier"}, v)
}

// checks adds the conservation laws.
func (m *Meter) checks(r *result.Result, last *fabricState) {
	c := &last.counters
	inFlight := uint64(0)
	for i := range m.Net.Messages() {
		if x := &m.Net.Messages()[i]; m.Net.Known(int32(i)) && x.Posted != sim.Forever && x.Acked == sim.Forever {
			inFlight++
		}
	}
	name := "flows conserved"
	if m.Others != nil {
		name = "messages conserved"
	}
	detail := fmt.Sprintf("posted %d = completed %d + in flight %d", c.Posted, c.Completed, inFlight)
	if c.Abandoned > 0 {
		detail += fmt.Sprintf(" + ended with their queue pairs %d", c.Abandoned)
	}
	r.Check(name, c.Posted == c.Completed+inFlight+c.Abandoned, detail)
	err := m.Net.Check()
	detail = fmt.Sprintf("%d bytes of payload sent = %d received + %d of no use + %d lost + the rest in flight",
		c.Sent, c.Received, c.Wasted, c.Lost)
	if err != nil {
		detail = err.Error()
	}
	r.Check("bytes conserved", err == nil, detail)
	open := m.Net.PausedNow()
	r.Check("pauses conserved", c.Paused == c.Unpaused+open,
		fmt.Sprintf("%d pauses took effect = %d ended + %d last", c.Paused, c.Unpaused, open))
	// A lossy link also loses pause frames.
	lossy := slices.ContainsFunc(m.Graph.Links, func(l topo.Link) bool { return l.Loss > 0 })
	if m.s.Fabric.PFC.Enabled && m.s.Fabric.PFC.Headroom.Kind == fabric.HeadroomAuto &&
		len(m.s.Fabric.Failures) == 0 && !lossy {
		n := c.Drops[fabric.DropBuffer]
		if m.s.Fabric.Watchdog.Action == fabric.WatchdogReport || n == 0 {
			r.Check("nothing lost for want of room", n == 0, fmt.Sprintf("%d packets dropped by switches", n))
		}
	}
}

// warn adds warnings for readers of the figures.
func (m *Meter) warn(r *result.Result, last *fabricState, interrupted bool) {
	c := &last.counters
	if interrupted && m.Others == nil {
		r.Warn("incomplete: the run was interrupted at %v of simulated time, after %d flows", last.at,
			last.counters.Completed)
	}
	for _, text := range m.stuck {
		r.Warn("%s", text)
	}
	if m.more > 0 {
		r.Warn("%d more pauses were longer than fabric.watchdog.after", m.more)
	}
	if n := c.DropCount(); n > 0 {
		for reason, k := range c.Drops {
			if k > 0 {
				r.Warn("%d packets lost: %v", k, fabric.DropReason(reason))
			}
		}
	}
	what := "flows"
	if m.Others != nil {
		what = "messages"
	}
	e := m.Net.Endless()
	if e.Hung > 0 {
		r.Warn("%d %s never complete: their packets were lost, and they have no retransmission timer "+
			"(fabric.recovery.timeout)", e.Hung, what)
	}
	if e.Broken > 0 {
		r.Warn("%d %s never complete: %s", e.Broken, what, m.GaveUp())
	}
	if c.Timeouts > 0 && c.Wasted > c.Received {
		r.Warn("%.0f %% of the payload that arrived was duplicate: %d retransmission timers (fabric.recovery: "+
			"timeout, short_timeout) expired, most of them before an acknowledgement could arrive; use times above the "+
			"round trip under load",
			100*float64(c.Wasted)/float64(c.Wasted+c.Received), c.Timeouts)
	}
	m.warnTarget(r)
	if circle := m.Net.Hazard(); circle != "" {
		r.Warn("pauses can deadlock in a cycle of this network's paths: %s", circle)
	}
}

// Summary describes the network in one line.
func (m *Meter) Summary() string {
	x := m.s.Fabric
	text := fmt.Sprintf("%s, %s, %s", spelling.Plural(len(m.Hosts), "host"),
		spelling.Plural(len(m.Graph.Nodes)-len(m.Hosts), "switch"), spelling.Plural(len(m.Graph.Links), "link"))
	if x.Topology.File == "" {
		text += fmt.Sprintf(" of %v", x.HostLink)
		between := slices.ContainsFunc(m.Graph.Links, func(l topo.Link) bool {
			return m.Graph.Nodes[l.A].Kind == topo.Switch && m.Graph.Nodes[l.B].Kind == topo.Switch
		})
		if between && x.UpLink != x.HostLink {
			text += fmt.Sprintf(" and %v", x.UpLink)
		}
	}
	text += ", " + x.CongestionControl.Algorithm.String()
	if !x.PFC.Enabled {
		text += ", no PFC"
	}
	if x.Compat != scenario.FabricCompatNone {
		text += ", compat: " + x.Compat.String()
	}
	return text
}

// Limits returns the models' omissions that a reader should know.
func (m *Meter) Limits() []string {
	out := []string{
		"Hosts' software, PCIe and memory take no time.",
		"Switches store and forward; control traffic (class 0) takes no space in their buffers.",
	}
	if m.s.Fabric.QueuePairs.Life == fabric.Persistent {
		out = append(out, "Messages between two hosts share queue pairs (fabric.queue_pairs), so a small one waits "+
			"behind a large one posted before it.")
	}
	if m.s.Fabric.Compat != scenario.FabricCompatNone {
		out = append(out, fmt.Sprintf("compat: %s reproduces deviations of a simulator that real networks do not have.", m.s.Fabric.Compat))
	}
	return out
}
