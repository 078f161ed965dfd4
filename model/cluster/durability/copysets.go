package durability

import (
	"farflash/numeric/rng"
	"math"
)

// Simultaneous failures, as after a power cut: which of them lose data depends on the number of sets of drives that
// hold all shards of some chunk. Those are copysets (Cidon et al. 2013).

// logChoose returns the logarithm of n over k, for k from 0 to n.
func logChoose(n, k int) float64 {
	k = min(k, n-k)
	s := 0.0
	for i := 1; i <= k; i++ {
		s += rng.Log(float64(n-k+i) / float64(i))
	}
	return s
}

// distinct returns the expected number of distinct copysets in use when each chunk draws one of the possible ones at
// random.
func distinct(possible, chunks float64) float64 { return possible * Any(1/possible, chunks) }

// allCopysets returns the number of copysets that random placement can use: all sets of Width nodes.
func allCopysets(s Scheme, nodes int) float64 { return rng.Exp(logChoose(nodes, s.Width())) }

// windowCopysets returns the number of possible copysets if a chunk's first node is random and the others are among the
// scatter nodes that follow it: nodes C(scatter, Width-1), as Facebook's HDFS limits the scatter width.
func windowCopysets(s Scheme, nodes, scatter int) float64 {
	if scatter < s.Width()-1 {
		return 0
	}
	return float64(nodes) * rng.Exp(logChoose(scatter, s.Width()-1))
}

// fewestCopysets returns the number of copysets that copyset replication creates for a scatter width: enough
// permutations of the nodes to reach it, each cut into sets of Width.
func fewestCopysets(s Scheme, nodes, scatter int) float64 {
	w := s.Width()
	if w < 2 {
		return float64(nodes)
	}
	permutations := max(1, (scatter+w-2)/(w-1))
	return float64(permutations) * math.Floor(float64(nodes)/float64(w))
}
