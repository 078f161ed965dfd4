package durability

import (
	"farflash/numeric/rng"
	"fmt"
	"math"
)

// Failures at once, as after a power cut: which of them lose data depends on how many
// sets of drives hold all shards of some chunk. Those are copysets (Cidon et al. 2013).

// logChoose is the logarithm of n over k, for k from 0 to n.
func logChoose(n, k int) float64 {
	k = min(k, n-k)
	s := 0.0
	for i := 1; i <= k; i++ {
		s += rng.Log(float64(n-k+i) / float64(i))
	}
	return s
}

// LossOfOne is the chance that a chunk on different nodes at random is lost when so many
// of the nodes fail at once: that more than Parity of its nodes are among them.
func LossOfOne(s Scheme, nodes, failed int) (float64, error) {
	if err := s.check(); err != nil {
		return 0, err
	}
	w := s.Width()
	if failed < 0 || failed > nodes || nodes < w {
		return 0, fmt.Errorf("%d of %d nodes fail, with %d shards on different ones: that cannot be", failed, nodes, w)
	}
	all, p := logChoose(nodes, w), 0.0
	for x := s.Parity + 1; x <= min(w, failed); x++ {
		if w-x <= nodes-failed {
			p += rng.Exp(logChoose(failed, x) + logChoose(nodes-failed, w-x) - all)
		}
	}
	return min(p, 1), nil
}

// LossAtOnce is the chance that any data are lost when so many nodes fail at once, with
// chunks on so many copysets at random: 1-(1-p)^copysets, p being LossOfOne. It takes
// copysets for independent, which those of a permutation nearly are.
func LossAtOnce(s Scheme, nodes, failed int, copysets float64) (float64, error) {
	p, err := LossOfOne(s, nodes, failed)
	if err != nil {
		return 0, err
	}
	return Any(p, copysets), nil
}

// Distinct is how many different ones of the possible copysets so many chunks use on
// average, each drawing one at random.
func Distinct(possible, chunks float64) float64 { return possible * Any(1/possible, chunks) }

// AllCopysets is how many copysets random placement can use: all sets of Width nodes.
func AllCopysets(s Scheme, nodes int) float64 { return rng.Exp(logChoose(nodes, s.Width())) }

// WindowCopysets is how many copysets there can be if a chunk's first node is random and
// the others are among the so many that follow it: nodes C(scatter, Width-1), as
// Facebook's HDFS limits the scatter width.
func WindowCopysets(s Scheme, nodes, scatter int) float64 {
	if scatter < s.Width()-1 {
		return 0
	}
	return float64(nodes) * rng.Exp(logChoose(scatter, s.Width()-1))
}

// FewestCopysets is how many copysets copyset replication makes for a scatter width: so
// many permutations of the nodes as reach it, each cut into sets of Width.
func FewestCopysets(s Scheme, nodes, scatter int) float64 {
	w := s.Width()
	if w < 2 {
		return float64(nodes)
	}
	permutations := max(1, (scatter+w-2)/(w-1))
	return float64(permutations) * math.Floor(float64(nodes)/float64(w))
}
