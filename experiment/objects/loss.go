package objects

import (
	"fmt"
	"math"

	"farflash/model/cluster"
	"farflash/model/cluster/uses"
	"farflash/numeric/stats"
	"farflash/result"
)

// fillLoss fills in the breakdown of the measured time, of the disks and of the cluster's bottleneck, and the balance
// of disks. The mean over disks weights each by its speed, like the bound.
func fillLoss(r *result.Result, c *cluster.Cluster, last, from *slice) {
	spent := since(last.spent, from.spent)
	disks := shares(spent, c.Speeds())
	rows, bound := []string{"disks"}, disks
	v := [][]float64{disks[:]}
	if links := since(last.links, from.links); len(links) > 0 {
		bound = shares(links, nil)
		rows, v = append(rows, c.Binding()), append(v, bound[:])
	}
	names := make([]string, uses.Count)
	for u := range uses.Count {
		names[u] = uses.Use(u).String()
	}
	r.Set("cluster.bound.used", bound[uses.Work])
	for u := int(uses.Work) + 1; u < uses.Count; u++ {
		if bound[u] > 0 || u == int(uses.Idle) {
			r.Set("cluster.loss."+names[u], bound[u])
		}
	}
	for k := range v {
		v[k] = rounded(v[k])
	}
	r.SetMatrix("cluster.spent", rows, names, v)
	fillTargets(r, c, spent, names)
}

// fillTargets fills in the same for each target's disk, and the deviation of disks, and of groups of them, from the
// mean.
func fillTargets(r *result.Result, c *cluster.Cluster, disks []uses.Spent, names []string) {
	targets := make([]string, len(disks))
	v := make([][]float64, len(disks))
	busy := make([]float64, len(disks))
	for t := range disks {
		x := shares(disks[t:t+1], nil)
		targets[t], busy[t] = fmt.Sprint(t), x[uses.Work]+x[uses.Repair]
		v[t] = rounded(x[:])
	}
	r.SetMatrix("cluster.target.time", targets, names, v)
	spread(r, "cluster.imbalance.target", busy)
	n := c.Groups()
	if n == 0 {
		return
	}
	groups, rows, use := make([]string, n), make([][]float64, n), make([]float64, n)
	size := len(busy) / n
	for t, x := range busy {
		use[t/size] += x / float64(size)
	}
	for g := range groups {
		groups[g], rows[g] = fmt.Sprint(g), []float64{stats.Micro(use[g])}
	}
	spread(r, "cluster.imbalance.group", use)
	r.SetMatrix("cluster.group.busy", groups, []string{"disk"}, rows)
}

// since returns the time spent between the ends of two slices.
func since(last, from []uses.Spent) []uses.Spent {
	out := append([]uses.Spent(nil), last...)
	for i := range from {
		for u := range out[i] {
			out[i][u] -= from[i][u]
		}
	}
	return out
}

// shares returns the shares of time by use, as a weighted mean; without weights all count equally.
func shares(list []uses.Spent, weights []float64) (out [uses.Count]float64) {
	sum := 0.0
	for i := range list {
		w := 1.0
		if weights != nil {
			w = weights[i]
		}
		sum += w
		all := float64(list[i].All())
		for u, t := range list[i] {
			out[u] += float64(w * (float64(t) / all))
		}
	}
	for u := range out {
		out[u] /= sum
	}
	return out
}

func rounded(x []float64) []float64 {
	out := make([]float64, len(x))
	for i := range x {
		out[i] = stats.Micro(x[i])
	}
	return out
}

// spread sets the excess of the maximum over the mean, and the spread around the mean.
func spread(r *result.Result, prefix string, use []float64) {
	mean, most := 0.0, 0.0
	for _, x := range use {
		mean += x / float64(len(use))
		most = max(most, x)
	}
	if mean == 0 {
		return
	}
	square := 0.0
	for _, x := range use {
		square += float64((x - mean) * (x - mean))
	}
	r.Set(prefix+".max", most/mean)
	r.Set(prefix+".cv", math.Sqrt(square/float64(len(use)))/mean)
}
