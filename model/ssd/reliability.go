package ssd

import (
	"fmt"

	"farflash/block"
	"farflash/model/ssd/decay"
	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/policy/ftl"
	"farflash/sim"
)

// Reliability is how flash errs and how the controller corrects it. Without it, the first read always succeeds.
type Reliability struct {
	// Curve is the raw bit error rate by wear, age and reads: that of a chip which was measured, or given, what fit
	// says.
	Curve decay.Curve
	// Fit is the curve's coefficients and exponents, with curve: given.
	Fit *decay.Fit
	// Scale is what the curve's error rate is multiplied by: other chips, or worse pages than the mean.
	Scale float64
	// Cycles is the number of erases of each block before time 0.
	Cycles int
	// Retention is the age of the drive's data at time 0.
	Retention units.Days
	// Reads is how often each page that the drive holds data in at time 0 was read since, on average over its block.
	Reads float64
	// Acceleration is how many times faster data age than time passes: the effect of heat (Arrhenius), or a way to
	// see months in a run of seconds.
	Acceleration float64
	// Codeword is how much of the user's data a codeword protects; a read of less reads one.
	Codeword units.Bytes
	// Correctable is how many wrong bits of a codeword are corrected.
	Correctable int
	// Retries is how many times a page is read again, with other reference voltages, until its codewords can be
	// corrected.
	Retries int
	// RetryLatency is the additional array time of each retry.
	RetryLatency units.Duration
	// Gain is the share of wrong bits that remain after each retry.
	Gain units.Fraction
	// Refresh moves data before they become unreadable. Without the section nothing does.
	Refresh *Refresh
}

// Refresh moves the data of blocks that are getting bad, as Cai et al. proposed ("Flash Correct-and-Refresh", ICCD
// 2012). A read looks at its own block.
type Refresh struct {
	// At is the share of the code's correctable bits that are wrong, on average, when a block's data are moved.
	At units.Fraction
	// Patrol is how often a block is checked, one after the other, even if it is never read. 0 is never.
	Patrol units.Duration
}

// DefaultReliability is a fresh drive with the codes and retries of the literature: 72 bits a codeword of 1 KiB (Park
// et al., "Reducing Solid-State Drive Read Latency by Optimizing Read-Retry", ASPLOS 2021), and half of the wrong
// bits left by each further try (Jiao et al., "The Design and Implementation of a Capacity-Variant Storage System",
// FAST 2024). That there are eight is assumed.
func DefaultReliability() Reliability {
	return Reliability{Scale: 1, Acceleration: 1, Codeword: units.KiB, Correctable: 72, Retries: 8, Gain: 0.5}
}

// DefaultRefresh moves data when half of what the code corrects is wrong on average.
func DefaultRefresh() Refresh { return Refresh{At: 0.5} }

// mostRetries bounds the retries, so that their number and one more fit a byte.
const mostRetries = 100

func (r *Reliability) validate(c *Config) error {
	var bad units.Faults
	bad.Hold(r.Curve <= decay.Given, "curve", "%d is not possible; use tlc-72-layers or given", r.Curve)
	bad.Hold(r.Curve != decay.Given || r.Fit != nil, "fit",
		"curve: given needs it; give base, wear, wear_power and so on")
	bad.Hold(r.Curve == decay.Given || r.Fit == nil, "fit",
		"the curve is %v, which has its own; set curve: given or leave it out", r.Curve)
	if r.Fit != nil {
		bad.Within("fit", r.Fit.Validate())
	}
	bad.Hold(r.Scale >= 0 && r.Scale <= 1e6, "scale", "%v is not possible; use 0 to 1000000", r.Scale)
	bad.Hold(r.Cycles >= 0 && r.Cycles <= 1e7, "cycles", "%d is not possible; use 0 to 10000000", r.Cycles)
	bad.Hold(r.Retention >= 0 && r.Retention <= 1000*units.DaysPerYear, "retention",
		"%v is not possible; use 0d to 1000y", r.Retention)
	bad.Hold(r.Reads >= 0 && r.Reads <= 1e12, "reads", "%v is not possible; use 0 to 1e12", r.Reads)
	bad.Hold(r.Acceleration >= 0 && r.Acceleration <= 1e9, "acceleration", "%v is not possible; use 0 to 1e9",
		r.Acceleration)
	bad.Hold(r.Codeword >= 64 && r.Codeword <= 64*units.KiB, "codeword",
		"%v is not possible; use 64B to 64KiB, 1KiB to 4KiB are usual", r.Codeword)
	bad.Hold(r.Correctable >= 0 && int64(r.Correctable) <= 8*int64(r.Codeword), "correctable",
		"%d bits of %v are not possible; use 0 to %d", r.Correctable, r.Codeword, 8*int64(r.Codeword))
	bad.Hold(r.Retries >= 0 && r.Retries <= mostRetries, "retries", "%d is not possible; use 0 to %d", r.Retries,
		mostRetries)
	bad.Hold(r.RetryLatency >= 0 && r.RetryLatency <= units.Second, "retry_latency",
		"%v is not possible; use 0s to 1s", r.RetryLatency)
	bad.Hold(r.Gain >= 0 && r.Gain <= 1, "gain", "%v is not possible; use 0%% to 100%%", r.Gain)
	bad.Hold(!c.Collection.Copyback, "",
		"with collection.copyback pages move without being read, so their errors would add up unseen; leave one of "+
			"them out")
	if f := r.Refresh; f != nil {
		bad.Hold(f.At > 0 && f.At <= 1, "refresh.at", "%v is not possible; use more than 0%% and at most 100%%", f.At)
		bad.Hold(f.Patrol == 0 || f.Patrol >= units.Microsecond, "refresh.patrol",
			"%v is not possible; use at least 1us, or 0s for never", f.Patrol)
	}
	return bad.Err()
}

// errs is what a drive knows of its flash's errors.
type errs struct {
	cfg      Reliability
	fit      decay.Fit
	code     decay.Code
	left     []float64 // share of the wrong bits at each try
	random   rng.Stream
	limit    float64    // error rate at which a block's data are moved; 0: never
	reads    []uint32   // of a block of a plane, since it was last begun
	since    []sim.Time // when a superblock was begun, plus 1; 0: before time 0
	lost     hash[uint32]
	due      sim.Time // of the patrol
	next     int      // superblock that it looks at
	underway uint64   // pages that are being read again

	ErrorCounts
}

// ErrorCounts is what happened to pages that were read. Each counts page reads unless it says otherwise.
type ErrorCounts struct {
	Sensed        uint64  // pages that were read, for whatever reason
	Retried       uint64  // of those, the ones that had to be read again
	Retries       uint64  // how often that was
	Uncorrectable uint64  // those that no try corrected
	Lost          uint64  // logical pages whose data are gone: nothing but the host's own writes help them
	RateSum       float64 // of the raw bit error rates of all that were read
}

// String is short for a drive whose flash never erred.
func (c ErrorCounts) String() string {
	if c == (ErrorCounts{}) {
		return "0"
	}
	return fmt.Sprintf("%d sensed, %d of them again, %d times; %d not corrected, %d lost, rates %v", c.Sensed,
		c.Retried, c.Retries, c.Uncorrectable, c.Lost, c.RateSum)
}

func newErrs(c *Config, seed uint64, name string) *errs {
	r := c.Reliability
	if r == nil {
		return nil
	}
	e := &errs{
		cfg: *r, fit: r.Curve.Fit(), code: decay.NewCode(8*int(r.Codeword), r.Correctable),
		random: rng.NewStream(seed, name+"/errors"),
		reads:  make([]uint32, c.Geometry.Planes()*c.Geometry.BlocksPerPlane),
	}
	if r.Fit != nil {
		e.fit = *r.Fit
	}
	left := 1.0
	for range r.Retries + 1 {
		e.left = append(e.left, left)
		left *= float64(r.Gain)
	}
	if f := r.Refresh; f != nil {
		e.limit, e.due = e.code.Limit(float64(f.At)), f.Patrol
	}
	return e
}

// begun notes that the first page of a block of a pool is handed out: what it holds is young from now on.
func (d *Drive) blockBegun(pool, blk int) {
	e := d.errs
	e.since[pool*d.cfg.Geometry.BlocksPerPlane+blk] = d.eng.Now() + 1
	for _, plane := range d.pools.planes(pool) {
		e.reads[int(plane)*d.cfg.Geometry.BlocksPerPlane+blk] = 0
	}
}

const picosecondsPerDay = 86400 * 1e12

// rate is the raw bit error rate of a block of a plane now, and what it would be if its data were just written.
func (d *Drive) rate(pool, blk int, plane int32) (now, fresh float64) {
	e, blocks := d.errs, d.cfg.Geometry.BlocksPerPlane
	since := e.since[pool*blocks+blk]
	days := float64(float64(d.eng.Now()-max(since-1, 0))*e.cfg.Acceleration) / picosecondsPerDay
	reads := float64(e.reads[int(plane)*blocks+blk]) / float64(d.pagesPerBlock)
	if since == 0 {
		days += float64(e.cfg.Retention)
		reads += e.cfg.Reads
	}
	cycles := float64(e.cfg.Cycles + d.ftl.Wear(ftl.Block(pool*blocks+blk)))
	return min(float64(e.cfg.Scale*e.fit.Rate(cycles, days, reads)), 0.5),
		min(float64(e.cfg.Scale*e.fit.Rate(cycles, 0, 0)), 0.5)
}

// reread is told that a read's data have left the chip, and reports whether the page must be read again. If nothing
// helps, the data count as spoilt.
func (d *Drive) reread(t int32) bool {
	e, x := d.errs, d.txns.At(t)
	known := x.pinned || x.origin == fromMove // to the translation layer
	var pool, blk int
	if known {
		pool, blk, _ = d.split(x.page)
		e.reads[int(x.plane)*d.cfg.Geometry.BlocksPerPlane+blk]++
	}
	if x.tries == 0 {
		var p float64
		if known {
			var fresh float64
			p, fresh = d.rate(pool, blk, x.plane)
			if e.limit > 0 && p > e.limit && fresh < e.limit {
				d.renew(pool, blk)
				x = d.txns.At(t)
			}
		} else {
			p = min(float64(e.cfg.Scale*e.fit.Rate(float64(e.cfg.Cycles),
				float64(e.cfg.Retention)+float64(float64(d.eng.Now())*e.cfg.Acceleration)/picosecondsPerDay,
				e.cfg.Reads)), 0.5)
		}
		words := max(1, int((units.Bytes(x.load())+e.cfg.Codeword-1)/e.cfg.Codeword))
		x.needs = e.tries(p, words)
		e.Sensed++
		e.RateSum += p
		if x.needs > 0 {
			e.Retried++
			e.underway++
		}
	}
	if x.needs == 0 {
		return false
	}
	if x.tries < x.needs && int(x.tries) < e.cfg.Retries {
		x.tries++
		e.Retries++
		d.flashed[opRead]++
		d.moved += int64(x.load())
		return true
	}
	e.underway--
	if int(x.needs) > e.cfg.Retries {
		e.Uncorrectable++
		for y := x; ; y = d.txns.At(y.pair) {
			y.spoilt = true
			if !y.shared && !y.joined || y.pair == 0 {
				break
			}
		}
	}
	x.tries, x.needs = 0, 0
	return false
}

// tries is how often a page is read again until all of its codewords are corrected; one more than it can be if none
// of that helps. The wrong cells are the same ones at each try, so one number decides: each try fails with its own
// probability, and one that fails has had all before it fail.
func (e *errs) tries(p float64, words int) uint8 {
	u := e.random.Float64()
	for k, left := range e.left {
		if u >= e.code.AnyFails(float64(p*left), words) {
			return uint8(k)
		}
	}
	return uint8(len(e.left))
}

// renew has the data of a superblock moved.
func (d *Drive) renew(pool, blk int) {
	if d.ftl.Renew(ftl.Block(pool*d.cfg.Geometry.BlocksPerPlane + blk)) {
		d.collect(pool)
		d.noteCollecting(pool)
	}
}

// patrol looks at the blocks that have come due since a command came last, in turn. It has no events of its own: a
// drive at rest would never come to rest.
//
//go:noinline
func (d *Drive) patrol() {
	e, blocks := d.errs, d.cfg.Geometry.BlocksPerPlane
	if e.due == 0 {
		return
	}
	every := e.cfg.Refresh.Patrol
	all := d.pools.count() * blocks
	for n := 0; e.due <= d.eng.Now(); n++ {
		if n == all { // each was looked at just now
			e.due = d.eng.Now() + every
			return
		}
		e.due += every
		pool, blk := e.next/blocks, e.next%blocks
		if e.next++; e.next == all {
			e.next = 0
		}
		for _, plane := range d.pools.planes(pool) {
			if now, fresh := d.rate(pool, blk, plane); now > e.limit && fresh < e.limit {
				d.renew(pool, blk)
				break
			}
		}
	}
}

// spoiltRead ends a host's read that nothing corrected.
func (d *Drive) spoiltRead(request int32) {
	if request != 0 {
		d.requests.At(request).done.Status = block.ReadFault
	}
}

// lose notes that a logical page's data are gone.
//
//go:noinline
func (d *Drive) lose(l uint32) {
	if _, ok := d.errs.lost.get(l); !ok {
		d.errs.lost.set(l, 1)
		d.errs.Lost++
	}
}

// found notes that a logical page is written or trimmed: what was lost of it is of no concern any more.
//
//go:noinline
func (d *Drive) found(l uint32) { d.errs.lost.remove(l) }

// isLost reports whether a logical page's data are gone.
func (d *Drive) isLost(l uint32) bool {
	_, ok := d.errs.lost.get(l)
	return ok
}

// retryTime is how much longer a command of some reads takes because one of them tries again.
func (d *Drive) retryTime(txns []int32) sim.Time {
	for _, t := range txns {
		if d.txns.At(t).tries > 0 {
			return d.errs.cfg.RetryLatency
		}
	}
	return 0
}
