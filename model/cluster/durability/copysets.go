package durability

import (
	"farflash/numeric/rng"
	"fmt"
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

// LossOfOne returns the probability that a chunk on distinct random nodes is lost when the given number of nodes fail
// simultaneously: that more than Parity of its nodes are among them.
func LossOfOne(s Scheme, nodes, failed int) (float64, error) {
	if err := s.check(); err != nil {
		return 0, err
	}
	w := s.Width()
	if failed < 0 || failed > nodes || nodes < w {
		return 0, fmt.Errorf("%d of %d nodes cannot fail with %d shards on different ones", failed, nodes, w)
	}
	all, p := logChoose(nodes, w), 0.0
	for x := s.Parity + 1; x <= min(w, failed); x++ {
		if w-x <= nodes-failed {
			p += rng.Exp(logChoose(failed, x) + logChoose(nodes-failed, w-x) - all)
		}
	}
	return min(p, 1), nil
}

// LossAtOnce returns the probability that any data is lost when the given number of nodes fail simultaneously, with
// chunks on random copysets: 1-(1-p)^copysets, where p is LossOfOne. It treats copysets as independent, which those of
// a permutation nearly are.
func LossAtOnce(s Scheme, nodes, failed int, copysets float64) (float64, error) {
	p, err := LossOfOne(s, nodes, failed)
	if err != nil {
		return 0, err
	}
	return Any(p, copysets), nil
}

// Distinct returns the expected number of distinct copysets in use when each chunk draws one of the possible ones at
// random.
func Distinct(possible, chunks float64) float64 { return possible * Any(1/possible, chunks) }

// AllCopysets returns the number of copysets that random placement can use: all sets of Width nodes.
func AllCopysets(s Scheme, nodes int) float64 { return rng.Exp(logChoose(nodes, s.Width())) }

// WindowCopysets returns the number of possible copysets if a chunk's first node is random and the others are among the
// scatter nodes that follow it: nodes C(scatter, Width-1), as Facebook's HDFS limits the scatter width.
func WindowCopysets(s Scheme, nodes, scatter int) float64 {
	if scatter < s.Width()-1 {
		return 0
	}
	return float64(nodes) * rng.Exp(logChoose(scatter, s.Width()-1))
}

// FewestCopysets returns the number of copysets that copyset replication creates for a scatter width: enough
// permutations of the nodes to reach it, each cut into sets of Width.
func FewestCopysets(s Scheme, nodes, scatter int) float64 {
	w := s.Width()
	if w < 2 {
		return float64(nodes)
	}
	permutations := max(1, (scatter+w-2)/(w-1))
	return float64(permutations) * math.Floor(float64(nodes)/float64(w))
}
