package accounts

import (
	"fmt"

	"farflash/block"
	"farflash/numeric/stats"
	"farflash/result"
)

// Fill fills in the figures of each part over a measured time in seconds; count is the total number of completed
// requests.
func (b *Book) Fill(r *result.Result, span float64, count int64) {
	for k := range b.scope {
		d := &b.scope[k]
		if len(d.parts) < 2 {
			continue
		}
		name := scopeNames[k].name
		if d.names[0] != "" {
			r.Parts = append(r.Parts, result.Parts{Scope: name, Names: d.names})
		}
		sum := int64(d.left)
		for i, p := range d.parts {
			if p != nil {
				sum += p.fill(r, fmt.Sprintf("%s[%d]", name, i), span, len(d.parts) <= mostHistograms)
			}
		}
		if d.left > 0 {
			r.Warn("figures per %s cover only the first %d; %d requests belong to the rest", name, len(d.parts), d.left)
		}
		r.Check("requests by "+name+" are all", d.left > 0 && sum >= count || sum == count,
			fmt.Sprintf("they add up to %d of %d", sum, count))
	}
	b.share(r, span)
}

// fill fills in the figures of one part, and returns its number of requests.
func (p *part) fill(r *result.Result, name string, span float64, distributions bool) (count int64) {
	var all stats.Histogram
	bytes := int64(0)
	for op := range p.count {
		count, bytes = count+p.count[op], bytes+p.bytes[op]
		if p.count[op] == 0 {
			continue
		}
		of := name + "." + block.Op(op).String()
		Rates(r, of, p.count[op], p.bytes[op], span)
		if op > int(block.Write) {
			continue
		}
		latencies(r, of, &p.latency[op], distributions)
	}
	for k := range p.latency {
		all.Merge(&p.latency[k])
	}
	if count > 0 {
		Rates(r, name+".all", count, bytes, span)
		latencies(r, name+".all", &all, false)
	}
	return count
}

func latencies(r *result.Result, name string, h *stats.Histogram, distribution bool) {
	r.SetLatencies(name, h)
	if !distribution {
		r.DropHistogram(name + ".latency")
	}
}

// Rates fills in the number and bytes of requests completed within a time in seconds, and their rates.
func Rates(r *result.Result, name string, count, bytes int64, span float64) {
	r.Set(name+".count", float64(count))
	r.Set(name+".bytes", float64(bytes))
	if span > 0 {
		r.Set(name+".iops", float64(count)/span)
		r.Set(name+".bandwidth", float64(bytes)/span)
	}
}

// share fills in the fairness of the bandwidth between tenants, or between workloads if there are no tenants.
func (b *Book) share(r *result.Result, span float64) {
	d := b.tenants()
	if span <= 0 || len(d.parts) < 2 {
		return
	}
	var x []float64
	for _, p := range d.parts {
		sum := 0.0
		if p != nil {
			for _, n := range p.bytes {
				sum += float64(n)
			}
		}
		x = append(x, sum)
	}
	if v, ok := Jain(x); ok {
		r.Set("fairness.bandwidth", v)
	}
}

// tenants returns the scope for fairness.
func (b *Book) tenants() *division {
	if b.scope[tenant].kept {
		return &b.scope[tenant]
	}
	return &b.scope[workload]
}

// Jain is Jain's index of shares, from 1/n, where one has all, to 1, where all are equal; ok is false if all shares are
// 0.
func Jain(x []float64) (float64, bool) {
	sum, squares := 0.0, 0.0
	for _, v := range x {
		sum += v
		squares += float64(v * v)
	}
	if squares == 0 {
		return 0, false
	}
	return sum * sum / (float64(len(x)) * squares), true
}
