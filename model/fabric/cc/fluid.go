package cc

import (
	"math"

	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/sim"
)

// Bottleneck is the single link that all flows of the fluid model share.
type Bottleneck struct {
	Flows    int           // Flows is N, the number of long flows.
	Capacity units.BitRate // Capacity is C, the link's rate, headers included.
	Packet   units.Bytes   // Packet is the size of a packet on the wire.
	// CNPInterval is tau, the shortest time between two CNPs of a flow. 50us (SIGCOMM 2015). For a DCQCN that does not
	// cut at once, its decrease interval applies instead.
	CNPInterval sim.Time
	// KMin and KMax are the queues at which marking begins and at which every packet is marked; the probability rises
	// between them from 0 to PMax.
	KMin, KMax units.Bytes
	PMax       units.Fraction // PMax is in (0, 1].
}

// Equilibrium is the fixed point of the fluid model.
type Equilibrium struct {
	Queue        units.Bytes   // Queue is the queue at the bottleneck.
	Rate, Target units.BitRate // Rate is the rate of each flow, Target the target rate that it approaches.
	P            float64       // P is the probability that a packet is marked.
	Alpha        float64       // Alpha is alpha of each flow.
}

// FixedPoint solves DCQCN's fluid model for its fixed point (Zhu, Ghobadi, Misra, Padhye: "ECN or Delay: Lessons Learnt
// from Analysis of DCQCN and TIMELY", CoNEXT 2016). Left out: hyper increase, the lowest rate, and the bound of the
// target by the line rate.
func FixedPoint(c DCQCN, n Bottleneck) (Equilibrium, error) {
	tau := n.CNPInterval
	if !c.CutAtOnce {
		tau = c.RateDecreaseInterval
	}
	var f faults
	f.Within("dcqcn", c.validate())
	positive(&f, "flows", n.Flows)
	positive(&f, "capacity", n.Capacity)
	positive(&f, "packet", n.Packet)
	f.interval("cnp_interval", tau)
	f.share("pmax", n.PMax)
	f.Hold(c.RateAI != 0, "dcqcn.rate_ai", "%v is not possible; it must be above zero", c.RateAI)
	f.Hold(n.KMin >= 0 && n.KMax >= n.KMin, "kmax", "marking cannot start at %v and end at %v", n.KMin, n.KMax)
	if err := f.Err(); err != nil {
		return Equilibrium{}, err
	}
	b := newBalance(c, n, tau)
	// The bisection is over ln p, because p spans many powers of ten.
	low, high := -60.0, 0.0
	for range 200 {
		mid := (low + high) / 2
		if b.excess(rng.Exp(mid)) < 0 {
			low = mid
		} else {
			high = mid
		}
	}
	p := rng.Exp((low + high) / 2)
	t := b.terms(p)
	perSecond := func(packets float64) units.BitRate {
		return times(units.BitRate(8*n.Packet), packets)
	}
	out := Equilibrium{
		P: p, Alpha: t.alpha,
		Rate:   n.Capacity / units.BitRate(n.Flows),
		Target: perSecond(b.rate + float64(b.tau*b.ai*b.rate*(t.c+t.e)/t.a)),
	}
	share := min(1, p/float64(n.PMax))
	out.Queue = n.KMin + units.Bytes(math.Round(share*float64(n.KMax-n.KMin)))
	return out, nil
}

// With R and R_T in packets per second, B in packets, T the increase timer, tau the time between CNPs and tau' alpha's
// interval,
//
//	dalpha/dt = g/tau' ((1 - (1-p)^(tau' R)) - alpha)
//	dR_T/dt   = -(R_T - R)/tau a + R_AI R (c + e)
//	dR/dt     = -R alpha/(2 tau) a + (R_T - R)/2 R (b + d)
//
//	a = 1 - (1-p)^(tau R)      a CNP comes within tau
//	b = p / ((1-p)^-B - 1)     increases by bytes, for each packet
//	c = (1-p)^(F B) b          those beyond fast recovery
//	d = p / ((1-p)^(-T R) - 1) increases by time, for each packet
//	e = (1-p)^(F T R) d        those beyond fast recovery
//
// At rest R = C/N, alpha = 1 - (1-p)^(tau' R), R_T - R = tau R_AI R (c + e)/a, and
//
//	a^2 alpha = tau^2 R_AI R (b + d)(c + e)
//
// whose left side grows with p from 0 and whose right side shrinks, so that it has one solution. For small p it is
// close to the cube root of R_AI/(tau' R^2) (1/B + 1/(T R))^2. The queue is where the marking curve has p; where p
// exceeds PMax the queue stays at KMax. The round trip does not occur because delay does not move the fixed point; it
// only decides whether the point is stable.

// balance holds the model's constants in packets and seconds.
type balance struct {
	rate, ai       float64 // R and R_AI, packets per second
	tau, alphaTime float64 // tau and tau', seconds
	bytes          float64 // B, packets; 0 if there is no byte counter
	timer          float64 // T R, packets
	f              float64
}

func newBalance(c DCQCN, n Bottleneck, tau sim.Time) balance {
	bits := float64(8 * n.Packet)
	b := balance{
		rate: float64(n.Capacity) / float64(n.Flows) / bits,
		ai:   float64(c.RateAI) / bits,
		tau:  tau.Seconds(), alphaTime: c.AlphaInterval.Seconds(),
		bytes: float64(c.ByteCounter) / float64(n.Packet),
		f:     float64(c.FastRecovery),
	}
	b.timer = c.RateIncreaseTimer.Seconds() * b.rate
	if c.StageFromZero {
		b.f++
	}
	return b
}

// terms are the terms of the equations.
type terms struct{ a, b, c, d, e, alpha float64 }

func (b balance) terms(p float64) terms {
	ln := log1p(-p)
	t := terms{a: -expm1(b.tau * b.rate * ln), alpha: -expm1(b.alphaTime * b.rate * ln)}
	if b.bytes > 0 {
		t.b = p / expm1(-b.bytes*ln)
		t.c = rng.Exp(b.f*b.bytes*ln) * t.b
	}
	t.d = p / expm1(-b.timer*ln)
	t.e = rng.Exp(b.f*b.timer*ln) * t.d
	return t
}

// excess is positive where p exceeds the fixed point.
func (b balance) excess(p float64) float64 {
	t := b.terms(p)
	return float64(t.a*t.a*t.alpha) - float64(b.tau*b.tau*b.ai*b.rate*(t.b+t.d)*(t.c+t.e))
}

// log1p returns ln(1+x) for x > -1, accurate to a few units in the last place near 0 too.
func log1p(x float64) float64 {
	u := 1 + x
	if u == 1 {
		return x
	}
	return rng.Log(u) * (x / (u - 1))
}

// expm1 returns e^x - 1, with the same accuracy.
func expm1(x float64) float64 {
	if math.Abs(x) > 0.25 {
		return rng.Exp(x) - 1
	}
	sum, term := 0.0, 1.0
	for k := 1; k <= 14; k++ {
		term = float64(term * (x / float64(k)))
		sum += term
	}
	return sum
}
