package networks

import (
	"fmt"

	"farflash/numeric/units"
	"farflash/result"
	"farflash/workload/flows"
)

// chorusFigures are the figures of collectives; each completed round counts.
type chorusFigures struct {
	n, unfinished   int
	sum, most       float64 // us
	plain, onBusses float64 // bytes per second, summed over rounds
}

func (x *chorusFigures) add(k *flows.Chorus) {
	rounds, of := k.Rounds()
	_, size := k.Hosts()
	x.unfinished += of
	for i := range rounds {
		end := rounds[i].End()
		if end == units.Forever {
			continue
		}
		took := end - rounds[i].Start
		x.unfinished--
		x.n++
		x.sum += took.Microseconds()
		x.most = max(x.most, took.Microseconds())
		rate := float64(size) / took.Seconds()
		x.plain += rate
		x.onBusses += float64(rate * k.Share())
	}
}

func (x *chorusFigures) fill(r *result.Result, prefix string) {
	r.Set(prefix+"collective.count", float64(x.n))
	r.Set(prefix+"collective.unfinished", float64(x.unfinished))
	if x.n == 0 {
		return
	}
	n := float64(x.n)
	r.Set(prefix+"collective.time.mean", x.sum/n)
	r.Set(prefix+"collective.time.max", x.most)
	r.Set(prefix+"collective.bandwidth", x.plain/n)
	r.Set(prefix+"collective.bus_bandwidth", x.onBusses/n)
}

// collectives fills in the results of collectives, if there are any, and the end times of their steps.
func (m *Meter) collectives(r *result.Result) {
	var all chorusFigures
	var rows []string
	var v [][]float64
	found := false
	for g, x := range m.reactive {
		k, ok := x.(*flows.Chorus)
		if !ok {
			continue
		}
		found = true
		all.add(k)
		if m.groups() > 1 && g < mostGroups {
			var own chorusFigures
			own.add(k)
			own.fill(r, fmt.Sprintf("flows[%d].", g))
		}
		rounds, _ := k.Rounds()
		steps := len(rounds[0].Steps)
		every := (steps + mostSteps - 1) / mostSteps
		for s := every - 1; s < steps && len(rows) < mostRows; s += every {
			sum, most, n := 0.0, 0.0, 0
			for i := range rounds {
				if at := rounds[i].Steps[s]; at != units.Forever {
					us := (at - rounds[i].Start).Microseconds()
					sum += us
					most = max(most, us)
					n++
				}
			}
			if n > 0 {
				rows = append(rows, fmt.Sprintf("%s step %d", m.s.FlowName(g), s+1))
				v = append(v, []float64{float64(n), sum / float64(n), most})
			}
		}
	}
	if !found {
		return
	}
	all.fill(r, "")
	if len(rows) > 0 {
		r.SetMatrix("collective.steps", rows, []string{"rounds", "mean_us", "max_us"}, v)
	}
}

// mostSteps is the largest number of steps of a collective in a result; with more, every second or every third step is
// shown.
const mostSteps = 256
