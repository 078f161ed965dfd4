package networks

import (
	"fmt"

	"farflash/model/cosim"
	"farflash/result"
	"farflash/workload/flows"
)

// mostGroups is the number of a scenario's flow sources with figures of their own; further ones are only in the totals.
const mostGroups = 32

// groups is the number of groups of flows that are distinguished. The last one collects those beyond the limit.
func (y *Network) groups() int { return max(1, min(len(y.s.Flows), mostGroups+1)) }

// Watch records the groups of posted flows.
func (y *Network) Watch(t *cosim.Traffic) {
	if y.groups() > 1 {
		t.OnPosted = y.posted
	}
	t.Enough = y.enough
}

// enough reports whether the context is cancelled.
func (y *Network) enough() bool { return y.ctx != nil && y.ctx.Err() != nil }

// posted records the group of a message.
func (y *Network) posted(message int32, f *flows.Flow) {
	if y.groups() == 1 {
		return
	}
	for int(message) >= len(y.group) {
		y.group = append(y.group, 0)
	}
	y.group[message] = min(f.Group, mostGroups)
}

// groupOf returns the group of a message.
func (y *Network) groupOf(message int32) uint16 {
	if int(message) >= len(y.group) {
		return 0
	}
	return y.group[message]
}

// ledgers returns the ledgers of a group, or of all if group is negative.
func (m *Meter) ledgers(group int) (out []*ledger) {
	if m.own != nil {
		if group >= 0 {
			return m.own[group : group+1]
		}
		return m.own
	}
	for _, t := range m.tallied {
		for g := range t.ended {
			if group < 0 || g == group {
				out = append(out, &t.ended[g])
			}
		}
	}
	return out
}

// ownLedgers returns ledgers for the flows of a system, which are counted at the end.
func (m *Meter) ownLedgers() (out []*ledger) {
	shared := &shelf{limit: exactFlows}
	for range m.groups() {
		out = append(out, &ledger{warm: m.from.at, shared: shared})
	}
	return out
}

// byGroup fills in the figures of each group, if there are several, after the totals.
func (m *Meter) byGroup(r *result.Result, all *census) {
	n := m.groups()
	if n < 2 {
		return
	}
	names := result.Parts{Scope: "flows"}
	sum := 0
	for g := range n {
		c := take(m.ledgers(g), all.whole)
		sum += c.count
		if g == mostGroups {
			r.Warn("figures per group of flows cover only the first %d groups; %d flows are in others", mostGroups,
				c.count)
			continue
		}
		names.Names = append(names.Names, m.s.FlowName(g))
		name := fmt.Sprintf("flows[%d]", g)
		r.Set(name+".count", float64(c.count))
		r.Set(name+".unfinished", m.unfinished[g])
		r.Set(name+".bytes", float64(c.bytes))
		if c.count == 0 {
			continue
		}
		fct, h := c.times()
		fct.fill(r, name+".fct")
		r.SetHistogram(name+".fct", h)
		slow := c.slowdowns(-1)
		slow.fill(r, name+".slowdown")
	}
	r.Parts = append(r.Parts, names)
	r.Check("flows by group are all", sum == all.count, fmt.Sprintf("they add up to %d of %d", sum, all.count))
}

// fill fills in the mean and the quantiles.
func (f *found) fill(r *result.Result, name string) {
	r.Set(name+".mean", f.mean())
	for _, q := range result.FlowQuantiles {
		if q.Known(f.count()) {
			r.Set(name+"."+q.Name, f.quantile(q.Share))
		}
	}
	r.Set(name+".max", f.most())
}
