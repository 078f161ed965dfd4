package scenario

import (
	"fmt"
	"math"

	"farflash/cluster"
	"farflash/result"
	"farflash/sim"
)

// fillLoss fills in where targets' time went in the measured time, and how evenly their disks were used.
func fillLoss(r *result.Result, cfg *cluster.Config, last, from *clusterSlice, span sim.Time) {
	var sum [4]float64
	targets := make([]string, cfg.Targets)
	shares := make([][]float64, cfg.Targets)
	disks := make([]float64, cfg.Targets)
	for t := range targets {
		a, b := &last.spent[t], &cluster.Spent{}
		if from.spent != nil {
			b = &from.spent[t]
		}
		targets[t] = fmt.Sprint(t)
		disks[t] = float64(a.Disk-b.Disk) / float64(span)
		lost := [4]float64{float64(a.Receiving-b.Receiving) / float64(span), float64(a.Reserved-b.Reserved) / float64(span), float64(a.Tentative-b.Tentative) / float64(span), float64(a.Nothing-b.Nothing) / float64(span)}
		shares[t] = []float64{round(disks[t])}
		for k, x := range lost {
			sum[k] += x
			shares[t] = append(shares[t], round(x))
		}
	}
	for k, name := range []string{"receiving", "reserved", "tentative", "idle"} {
		r.Set("cluster.loss."+name, sum[k]/float64(cfg.Targets))
	}
	r.SetMatrix("cluster.target.time", targets, []string{"disk", "receiving", "reserved", "tentative", "idle"}, shares)
	spread(r, "cluster.imbalance.target", disks)
	if last.counters.Bids.Asked == 0 {
		return // the protocol has no groups
	}
	groups := make([]float64, cfg.Targets/cfg.Group)
	names := make([]string, len(groups))
	rows := make([][]float64, len(groups))
	for t, x := range disks {
		groups[t/cfg.Group] += x / float64(cfg.Group)
	}
	for g := range groups {
		names[g], rows[g] = fmt.Sprint(g), []float64{round(groups[g])}
	}
	spread(r, "cluster.imbalance.group", groups)
	r.SetMatrix("cluster.group.busy", names, []string{"disk"}, rows)
}

// spread sets by how much the busiest is above the mean, and how far all are from it.
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
