package durability

import (
	"fmt"
	"math"
)

// Repair selects how many drives of a group are rebuilt concurrently.
type Repair uint8

// Kinds of rebuilds.
const (
	Parallel Repair = iota // every failed drive is rebuilt independently: rate i/Rebuild with i failed
	Serial                 // one after another: rate 1/Rebuild
)

// Config is a redundancy group: Width drives, each with a shard of all the group's data, which is lost when more than
// Parity of them have failed.
type Config struct {
	Scheme  Scheme
	MTTF    Hours // mean time to failure of a drive
	Rebuild Hours // mean time from a drive's failure, or from its turn, until its content is restored; may be +Inf
	Repair  Repair
}

// DefaultConfig is three replicas on drives of 1.5% AFR (assumed) that are rebuilt in ten hours (assumed).
func DefaultConfig() Config {
	life, _ := mttf(0.015) // the rate is in range
	return Config{Scheme: Replicas(3), MTTF: life, Rebuild: 10}
}

func (c Config) check() error {
	if err := c.Scheme.check(); err != nil {
		return err
	}
	switch {
	case !(c.MTTF > 0) || math.IsInf(float64(c.MTTF), 0):
		return fmt.Errorf("invalid mean time to failure, %v h; it must be positive and finite", c.MTTF)
	case !(c.Rebuild > 0):
		return fmt.Errorf("invalid mean rebuild time, %v h; it must be positive", c.Rebuild)
	case c.Repair > Serial:
		return fmt.Errorf("repair %d is neither parallel nor serial", c.Repair)
	}
	return nil
}

// Chain is the Markov chain of the number of failed drives in a group, from 0 to Parity, with data loss beyond.
// Lifetimes and rebuild times are exponential.
type Chain struct {
	cfg  Config
	fail []float64 // per hour, with i drives failed
	mend []float64
}

// New returns the chain of a group.
func New(cfg Config) (*Chain, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	c := &Chain{cfg: cfg}
	for i := range cfg.Scheme.Parity + 1 {
		c.fail = append(c.fail, float64(cfg.Scheme.Width()-i)/float64(cfg.MTTF))
		atOnce := float64(i)
		if cfg.Repair == Serial {
			atOnce = min(atOnce, 1)
		}
		c.mend = append(c.mend, atOnce/float64(cfg.Rebuild))
	}
	return c, nil
}

// MTTDL returns the exact mean time to data loss of a group whose drives all work initially. It solves the chain's
// linear system by forward elimination: the mean time from i to i+1 failed drives is T(i) = (1 + mend(i) T(i-1)) /
// fail(i), and MTTDL is their sum. There is no subtraction, so it is exact to rounding however rare a loss is.
func (c *Chain) MTTDL() Hours {
	sum, step := 0.0, 0.0
	for i, f := range c.fail {
		step = (1 + float64(c.mend[i]*step)) / f
		sum += step
	}
	return Hours(sum)
}

// Approximation returns the usual formula for rebuilds that are much faster than failures:
//
//	MTTF^(m+1) / (n (n-1) ... (n-m) Rebuild^m), times m! if rebuilds run in parallel
//
// For m = 1 it is MTTF^2 / (n (n-1) MTTR), for m = 2 and serial repair MTTF^3 / (n (n-1) (n-2) MTTR^2), the textbook
// formulas for RAID-5 and RAID-6. It is always less than MTTDL.
func (c *Chain) Approximation() Hours {
	t := 1 / c.fail[0]
	for i := 1; i < len(c.fail); i++ {
		t *= c.mend[i] / c.fail[i]
	}
	return Hours(t)
}

// lossWithin returns the probability that a group whose drives all work initially loses data within t. It is exact: the
// transition matrix over a short time is computed by uniformisation, and then squared until it covers t. All terms are
// positive and row sums are kept at 1, so tiny probabilities keep their digits.
func (c *Chain) lossWithin(t Hours) float64 {
	if !(t > 0) {
		return 0
	}
	n := len(c.fail) + 1 // states; the last one is data loss
	fastest := 0.0
	for i, f := range c.fail {
		fastest = max(fastest, f+c.mend[i])
	}
	squarings, span := 0, float64(t)*fastest
	for span > 1 {
		span /= 2
		squarings++
	}
	// step is the chain that makes a move at the fastest state's rate, sometimes to itself.
	step := newMatrix(n)
	for i, f := range c.fail {
		step[i][i] = (fastest - (f + c.mend[i])) / fastest
		step[i][i+1] = f / fastest
		if i > 0 {
			step[i][i-1] = c.mend[i] / fastest
		}
	}
	step[n-1][n-1] = 1
	// The first n terms are needed to reach the loss state at all; 24 more reduce the error to 1/24!.
	p := newMatrix(n)
	power, weight := identity(n), 1.0
	for k := range n + 24 {
		if k > 0 {
			power, weight = power.times(step), weight*span/float64(k)
		}
		for i := range p {
			for j := range p[i] {
				p[i][j] += float64(weight * power[i][j])
			}
		}
	}
	p.normalise() // divides by exp(span), the sum of the weights
	for range squarings {
		p = p.times(p)
		p.normalise()
	}
	return p[0][n-1]
}

// Nines returns the nines of the group's durability over a year.
func (c *Chain) Nines() float64 { return nines(c.lossWithin(Year)) }

type matrix [][]float64

func newMatrix(n int) matrix {
	m := make(matrix, n)
	for i := range m {
		m[i] = make([]float64, n)
	}
	return m
}

func identity(n int) matrix {
	m := newMatrix(n)
	for i := range m {
		m[i][i] = 1
	}
	return m
}

func (m matrix) times(o matrix) matrix {
	out := newMatrix(len(m))
	for i, row := range m {
		for k, a := range row {
			if a == 0 {
				continue
			}
			for j, b := range o[k] {
				out[i][j] += float64(a * b)
			}
		}
	}
	return out
}

// normalise scales each row to sum 1. Otherwise each squaring would double the error of the sums.
func (m matrix) normalise() {
	for _, row := range m {
		sum := 0.0
		for _, x := range row {
			sum += x
		}
		for j := range row {
			row[j] /= sum
		}
	}
}
