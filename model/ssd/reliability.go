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

// Reliability is the model of flash errors and of their correction by the controller. Without it, the first read always
// succeeds.
type Reliability struct {
	// Curve is the raw bit error rate by wear, age and reads: that of a measured chip, or given, the one in fit.
	Curve decay.Curve
	Fit   *decay.Fit // Fit is the curve's coefficients and exponents, with curve: given.
	// Scale multiplies the curve's error rate, for other chips or for pages worse than the mean.
	Scale     float64
	Cycles    int        // Cycles is the number of erases of each block before time 0.
	Retention units.Days // Retention is the age of the drive's data at time 0.
	// Reads is the mean number of reads of a page at time 0, since its data were written.
	Reads float64
	// Acceleration is how many times faster data age than time passes: the effect of heat (Arrhenius), or months in a
	// run of seconds.
	Acceleration float64
	// Codeword is the user data that a codeword protects; smaller reads read a whole codeword.
	Codeword units.Bytes
	// Correctable is the number of wrong bits that can be corrected in a codeword.
	Correctable int
	// Retries is how many times a page can be read again, with other reference voltages, until its codewords can be
	// corrected.
	Retries      int
	RetryLatency units.Duration // RetryLatency is the additional array time of each retry.
	Gain         units.Fraction // Gain is the share of wrong bits that remain after each retry.
	Refresh      *Refresh       // Refresh moves data before they become unreadable. The default is none.
}

// Refresh moves the data of deteriorating blocks (Cai et al., "Flash Correct-and-Refresh", ICCD 2012). Each read checks
// its own block.
type Refresh struct {
	// At is the mean share of the code's correctable bits that are wrong when a block's data are moved.
	At units.Fraction
	// Patrol is the time between two checks of the patrol, which visits all blocks in turn, even those never read. 0 is
	// never.
	Patrol units.Duration
}

// DefaultReliability is a fresh drive: 72 bits a codeword of 1 KiB (Park et al., ASPLOS 2021), half of the wrong bits
// left by each further try (Jiao et al., FAST 2024), and eight retries (assumed).
func DefaultReliability() Reliability {
	return Reliability{Scale: 1, Acceleration: 1, Codeword: units.KiB, Correctable: 72, Retries: 8, Gain: 0.5}
}

// DefaultRefresh moves data when half of the correctable bits are wrong on average.
func DefaultRefresh() Refresh { return Refresh{At: 0.5} }

// mostRetries bounds the retries so that their number plus one fits in a byte.
const mostRetries = 100

func (r *Reliability) validate(c *Config) error {
	var bad units.Faults
	bad.Hold(r.Curve <= decay.Given, "curve", "%d is not possible; use tlc-72-layers or given", r.Curve)
	bad.Hold(r.Curve != decay.Given || r.Fit != nil, "fit",
		"curve: given needs it; give base, wear, wear_power and so on")
	bad.Hold(r.Curve == decay.Given || r.Fit == nil, "fit",
		"the curve is %v, which has its own fit; set curve: given or leave it out", r.Curve)
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
		"with collection.copyback pages move without being read, so their errors would accumulate; leave one of "+
			"them out")
	if f := r.Refresh; f != nil {
		bad.Hold(f.At > 0 && f.At <= 1, "refresh.at", "%v is not possible; use more than 0%% and at most 100%%", f.At)
		bad.Hold(f.Patrol == 0 || f.Patrol >= units.Microsecond, "refresh.patrol",
			"%v is not possible; use at least 1us, or 0s for never", f.Patrol)
	}
	return bad.Err()
}

// errs is the state of a drive's error model.
type errs struct {
	cfg      Reliability
	fit      decay.Fit
	code     decay.Code
	left     []float64 // share of the wrong bits left at each try
	random   rng.Stream
	limit    float64    // error rate at which a block's data are moved; 0: never
	reads    []uint32   // by block of a plane: page reads since it was opened
	since    []sim.Time // by superblock: when it was opened, plus 1; 0: before time 0
	lost     hash[uint32]
	due      sim.Time // when the patrol next checks a block
	next     int      // superblock that it checks next
	underway uint64   // pages being retried

	ErrorCounts
}

// ErrorCounts counts page reads with errors, unless stated otherwise.
type ErrorCounts struct {
	Sensed        uint64  // pages that were read, for any reason
	Retried       uint64  // those of them that had to be retried
	Retries       uint64  // number of retries
	Uncorrectable uint64  // those that no retry corrected
	Lost          uint64  // logical pages whose data are lost until the host rewrites or trims them
	RateSum       float64 // sum of the raw bit error rates of all pages read
}

// String is short for a drive whose flash has had no error.
func (c ErrorCounts) String() string {
	if c == (ErrorCounts{}) {
		return "0"
	}
	return fmt.Sprintf("%d sensed, %d of them again, %d times; %d not corrected, %d lost, rates %v", c.Sensed,
		c.Retried, c.Retries, c.Uncorrectable, c.Lost, c.RateSum)
}

// newErrs returns the error model of a drive, or nil if its flash has no errors.
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

// blockBegun records that the first page of a block of a pool is handed out: its data are new from now on.
func (d *Drive) blockBegun(pool, blk int) {
	e := d.errs
	e.since[pool*d.cfg.Geometry.BlocksPerPlane+blk] = d.eng.Now() + 1
	for _, plane := range d.pools.planes(pool) {
		e.reads[int(plane)*d.cfg.Geometry.BlocksPerPlane+blk] = 0
	}
}

const picosecondsPerDay = 86400 * 1e12

// rate returns the raw bit error rate of a block of a plane now, and the rate it would have with freshly written data.
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

// reread is called when a read's data have left the chip, and reports whether the page must be read again. If no retry
// is left, the data are marked as spoilt.
func (d *Drive) reread(t int32) bool {
	e, x := d.errs, d.txns.At(t)
	known := x.pinned || x.origin == fromMove // the translation layer knows the page
	var pool, blk int
	if known {
		pool, blk, _ = d.split(x.page)
		e.reads[int(x.plane)*d.cfg.Geometry.BlocksPerPlane+blk]++
	}
	// The first try decides how many the page needs.
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
		// All grains that share the page are lost.
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

// tries draws how many retries a page needs until all of its codewords are corrected, or one more than there are if
// none suffices. The same cells are wrong at every try, so a single random number decides: each try fails with its own
// probability, and a try is reached only if all before it failed.
func (e *errs) tries(p float64, words int) uint8 {
	u := e.random.Float64()
	for k, left := range e.left {
		if u >= e.code.AnyFails(float64(p*left), words) {
			return uint8(k)
		}
	}
	return uint8(len(e.left))
}

// renew asks for the data of a superblock to be moved.
func (d *Drive) renew(pool, blk int) {
	if d.ftl.Renew(ftl.Block(pool*d.cfg.Geometry.BlocksPerPlane + blk)) {
		d.collect(pool)
		d.noteCollecting(pool)
	}
}

// patrol checks, in turn, the blocks that have come due since the last command. It runs on commands, without events of
// its own, because these would keep an idle drive from ever becoming idle.
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
		if n == all { // each has just been checked
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

// spoiltRead fails a host read whose data could not be corrected.
func (d *Drive) spoiltRead(request int32) {
	if request != 0 {
		d.requests.At(request).done.Status = block.ReadFault
	}
}

// lose records that a logical page's data are lost.
//
//go:noinline
func (d *Drive) lose(l uint32) {
	if _, ok := d.errs.lost.get(l); !ok {
		d.errs.lost.set(l, 1)
		d.errs.Lost++
	}
}

// found clears the loss of a logical page that is written or trimmed.
//
//go:noinline
func (d *Drive) found(l uint32) { d.errs.lost.remove(l) }

// isLost reports whether a logical page's data are lost.
func (d *Drive) isLost(l uint32) bool {
	_, ok := d.errs.lost.get(l)
	return ok
}

// retryTime returns the additional array time of a read command in which at least one read is a retry.
func (d *Drive) retryTime(txns []int32) sim.Time {
	for _, t := range txns {
		if d.txns.At(t).tries > 0 {
			return d.errs.cfg.RetryLatency
		}
	}
	return 0
}
