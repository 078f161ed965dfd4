package cc

import (
	"fmt"
	"math"

	"farflash/numeric/rng"
	"farflash/numeric/units"
)

// PINT configures HPCC on probabilistic telemetry (Ben Basat et al., "PINT: Probabilistic In-band Network Telemetry",
// SIGCOMM 2020) as in HPCC's ns-3 (CC_MODE 10): a packet carries the maximum utilisation along its path, averaged by
// switches and encoded logarithmically in one or two bytes.
type PINT struct {
	// TargetUtilisation is the target utilisation of links (eta). 0.95 (HPCC, SIGCOMM 2019).
	TargetUtilisation units.Fraction
	// MaxStage is the number of consecutive additive increases before a multiplicative one. 5 (HPCC, SIGCOMM 2019); 0
	// in the experiments of run.py.
	MaxStage int
	// RateAI is added at every update. 80Mbps for 100G hosts (HPCC, SIGCOMM 2019).
	RateAI units.BitRate
	// LogBase is the base of the encoded utilisation, 1.0002 to 2. 1.05 (run.py).
	LogBase float64
	// Probability is the share of acknowledgements that are used. 1 (run.py); the paper goes down to 1/256.
	Probability units.Fraction
	Window      Window // Window bounds the data in flight; scaled in HPCC's experiments.
}

// defaultPINT is HPCC-PINT using every acknowledgement.
func defaultPINT() PINT {
	return PINT{TargetUtilisation: 0.95, MaxStage: 5, RateAI: 80 * units.Mbps, LogBase: 1.05, Probability: 1,
		Window: WindowScaled}
}

// validate reports invalid settings.
func (c PINT) validate() error {
	var f faults
	f.share("target_utilisation", c.TargetUtilisation)
	f.rate("rate_ai", c.RateAI)
	f.count("max_stage", c.MaxStage)
	f.Hold(codable(c.LogBase), "log_base", notCodable, c.LogBase)
	f.share("probability", c.Probability)
	f.window(c.Window)
	return f.Err()
}

// pintUnits is the number of units in a utilisation of 1: the reference's greatest number of concurrent flows.
const pintUnits = 512

// Codec converts utilisations to exponents of a base and back.
type Codec struct {
	base   float64
	factor float64 // 1 / ln base
	powers [1024]float64
}

const notCodable = "%v is not possible; it must be 1.0002 to 2"

// codable reports whether 16 bits hold the exponents of a base that utilisations need.
func codable(base float64) bool { return base >= 1.0002 && base <= 2 }

// NewCodec returns the codec of 16 bits with a base of 1.0002 to 2.
func NewCodec(base float64) (*Codec, error) {
	if !codable(base) {
		return nil, units.Wrong("pint.log_base", notCodable, base)
	}
	c := &Codec{base: base, factor: 1 / rng.Log(base)}
	for i := range c.powers {
		c.powers[i] = rng.Pow(base, float64(i))
	}
	return c, nil
}

// power returns base to the p.
func (c *Codec) power(p uint16) float64 {
	if int(p) < len(c.powers) {
		return c.powers[p]
	}
	return rng.Pow(c.base, float64(p))
}

// encode returns the exponent of u in units of 1/512, rounded up or down at random so that the decoded mean is
// unbiased. A utilisation up to 1/512 is 0. It draws one random number.
func (c *Codec) encode(u float64, r *rng.Stream) uint16 {
	n := max(1, math.Ceil(min(u*pintUnits, math.MaxUint32)))
	log := rng.Log(n) * c.factor
	up, down := uint16(min(math.Ceil(log), math.MaxUint16)), uint16(min(math.Floor(log), math.MaxUint16))
	high, low := c.power(up), c.power(down)
	if up == down {
		high *= c.base
	}
	if float64(sixteen(r)) < (n-low)/(high-low)*65536 {
		return up
	}
	return down
}

// decode returns the utilisation of the code p.
func (c *Codec) decode(p uint16) float64 { return c.power(p) / pintUnits }

// Bytes returns the header bytes of an encoded utilisation: 1 or 2.
func (c *Codec) Bytes() units.Bytes {
	most := rng.Log(pintUnits*pintUnits) * c.factor
	if most <= 256 {
		return 1
	}
	return 2
}

// sixteen draws 16 random bits.
func sixteen(r *rng.Stream) uint32 { return uint32(r.Uint64() >> 48) }

// pint is HPCC-PINT's sender.
type pint struct {
	limits
	c         PINT
	eta       float64
	threshold uint32 // of 65536
	seed      uint64
	codec     *Codec
	qps       []pintState
}

type pintState struct {
	round     uint64 // an acknowledgement beyond this ends the round trip; 0 before the first
	reference units.BitRate
	stage     int
	random    rng.Stream
}

// newPINT returns HPCC-PINT. Rates stay at or above minRate. The seed is the trial's: each queue pair samples with an
// independent stream.
func newPINT(c PINT, minRate units.BitRate, seed uint64) (Algorithm, error) {
	if err := possible("pint", minRate, c); err != nil {
		return nil, err
	}
	codec, err := NewCodec(c.LogBase)
	if err != nil {
		return nil, err
	}
	return &pint{limits: limits{minRate, c.Window}, c: c, eta: float64(c.TargetUtilisation),
		threshold: uint32(65536 * float64(c.Probability)), seed: seed, codec: codec}, nil
}

// Wants asks for acknowledgements with PINT's byte, and for new rates to apply at once.
func (*pint) Wants() Wants { return Wants{Acks: true, PINT: true, Repace: true} }

// Start sets line rate. A reused index continues its random stream.
func (p *pint) Start(q int32, s *Sender) {
	for i := int32(len(p.qps)); i <= q; i++ {
		p.qps = append(p.qps, pintState{random: rng.NewStream(p.seed, fmt.Sprintf("cc/pint[%d]", i))})
	}
	p.qps[q] = pintState{reference: s.Line, random: p.qps[q].random}
	p.start(s)
}

// React handles acknowledgements, or a random sample of them.
func (p *pint) React(q int32, s *Sender, x *Signal) {
	if x.Kind != Ack {
		return
	}
	st := &p.qps[q]
	if p.threshold < 65536 && sixteen(&st.random) >= p.threshold {
		return
	}
	full := x.Acked > st.round
	if st.round == 0 {
		st.round = x.Next
		return
	}
	load := p.codec.decode(x.Power) / p.eta
	r, stage := nextRate(p.limits, st.reference, load, st.stage, p.c.MaxStage, p.c.RateAI, s)
	p.set(s, r)
	if full {
		st.reference, st.stage = r, stage
		st.round = max(st.round, x.Next)
	}
}
