package ratecontrol

import (
	"farflash/block"
	"farflash/numeric/units"
)

// Slice is the time for which Quotas are given: SPDK_BDEV_QOS_TIMESLICE_IN_USEC.
const Slice = units.Millisecond

// Quotas limit a tenant's reads and writes as SPDK's bdev layer does (lib/bdev: bdev_set_qos_limit). Each limit gives a
// quota for every slice of time, rounded down. A command starts while all quotas that apply to it have something left,
// however large it is; an overdraft is paid by the slices that follow. An unused remainder is lost. The
// caller supplies the time, which must not decrease.
type Quotas struct {
	each  [limits]int64 // for a slice; 0: no limit
	left  [limits]int64 // of the present one
	slice int64         // its number
}

// The limits.
const (
	ofCommands = iota
	ofBytes
	ofReads
	ofWrites
	limits
)

// NewQuotas returns quotas for limits of commands, of bytes, and of read and written bytes per second; 0 is none.
func NewQuotas(commands, bytes, reads, writes int64) Quotas {
	var q Quotas
	for k, rate := range [limits]int64{commands, bytes, reads, writes} {
		least := int64(512) // SPDK_BDEV_QOS_MIN_BYTE_PER_TIMESLICE
		if k == ofCommands {
			least = 1
		}
		if rate > 0 {
			q.each[k] = max(rate/int64(units.Second/Slice), least)
		}
	}
	q.left = q.each
	return q
}

// Take starts a command now and reports true, unless a quota is used up. Only reads and writes are limited.
func (q *Quotas) Take(now units.Duration, op block.Op, bytes int64) bool {
	if op > block.Write {
		return true
	}
	q.advance(int64(now / Slice))
	takes := [limits]int64{ofCommands: 1, ofBytes: bytes}
	if op == block.Read {
		takes[ofReads] = bytes
	} else {
		takes[ofWrites] = bytes
	}
	for k, n := range takes {
		if n > 0 && q.each[k] > 0 && q.left[k] <= 0 {
			return false
		}
	}
	for k, n := range takes {
		q.left[k] -= n
	}
	return true
}

// advance gives the quotas of the slices up to number to.
func (q *Quotas) advance(to int64) {
	if to == q.slice {
		return
	}
	for k, each := range q.each {
		n, left := to-q.slice, q.left[k]
		switch {
		case each == 0:
			left = 0
		case left > 0 || n > -left/each+1: // the debt is paid before the last of them
			left = each
		default:
			left += n * each
		}
		q.left[k] = left
	}
	q.slice = to
}

// Next returns the start of the next slice.
func (q *Quotas) Next(now units.Duration) units.Duration { return (now/Slice + 1) * Slice }
