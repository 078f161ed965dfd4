package objects

import (
	"farflash/internal/spelling"
	"farflash/model/cluster"
	"farflash/numeric/stats"
	"farflash/result"
)

// clusterLosses fills in losses and repairs, if any are possible.
func clusterLosses(r *result.Result, c *cluster.Cluster, slices []*slice, from *cluster.Counters) {
	cfg, k := c.Config(), &c.Counters
	if cfg.Link.Loss == 0 && len(cfg.Failures) == 0 {
		return
	}
	r.Set("cluster.lost", float64(k.Lost-from.Lost))
	r.Set("cluster.retried", float64(k.Retried-from.Retried))
	r.Set("cluster.failed", float64(k.Failed-from.Failed))
	if cfg.Quorum > 0 {
		r.Set("cluster.quorum.short", float64(k.Short-from.Short))
	}
	if cfg.Reads > 0 {
		r.Set("cluster.get.degraded", float64(k.Degraded-from.Degraded))
		r.Set("cluster.get.unavailable", float64(k.Unavailable-from.Unavailable))
	}
	if n := k.Failed - k.Unavailable; n > 0 {
		r.Warn("%s could not be put or got: too few targets were up, or messages were lost repeatedly",
			spelling.Plural(int(n), "chunk"))
	}
	if k.Unavailable > 0 {
		r.Warn("%s of chunks with too few pieces left", spelling.Plural(int(k.Unavailable), "read"))
	}
	if len(cfg.Failures) == 0 {
		return
	}
	missing := c.Missing()
	r.Set("cluster.repair.lost", float64(k.PiecesLost))
	r.Set("cluster.repair.done", float64(k.Repaired))
	r.Set("cluster.repair.replaced", float64(k.Replaced))
	r.Set("cluster.repair.missing", float64(missing))
	r.Set("cluster.repair.retried", float64(k.RepairRetried))
	r.Set("cluster.lost.chunks", float64(k.LostChunks))
	r.Set("cluster.lost.pieces", float64(k.PiecesGone))
	if c.RepairedAt > 0 {
		r.Set("cluster.repair.until", c.RepairedAt.Seconds())
	}
	for op, name := range []string{"cluster.put.rebuild", "cluster.get.rebuild"} {
		h := new(stats.Histogram)
		for _, y := range slices {
			h.Merge(&y.rebuild[op])
		}
		if h.Count() == 0 {
			continue
		}
		r.Set(name+".count", float64(h.Count()))
		r.Set(name+".mean", h.Mean()/1e6)
		r.Set(name+".p99", h.Quantile(0.99).Microseconds())
	}
	if missing > 0 {
		r.Warn("%s of chunks not rebuilt by the end of the run", spelling.Plural(missing, "piece"))
	}
	if k.LostChunks > 0 {
		r.Warn("%s lost: too few pieces were left to rebuild the others", spelling.Plural(int(k.LostChunks), "chunk"))
	}
}
