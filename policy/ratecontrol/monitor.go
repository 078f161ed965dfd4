package ratecontrol

import (
	"math/bits"

	"farflash/block"
	"farflash/numeric/units"
)

// Monitor computes the features of the requests to a drive in a sliding window: SRC's workload monitor (section III-C).
// It does not allocate once the window has held its largest number of requests.
type Monitor struct {
	window units.Duration
	began  units.Duration
	of     [2]arrived // by block.Read, block.Write
}

// arrived are the requests of one direction.
type arrived struct {
	ring      []arrival // its length is a power of two, or 0
	head, n   int
	size, gap moments // gaps are between neighbours that are both in the window, ps
}

type arrival struct {
	at    units.Duration
	bytes int64
}

// moments are sums of non-negative numbers and of their squares.
type moments struct {
	sum    int64
	hi, lo uint64 // 128-bit sum of the squares
}

func (m *moments) add(x int64) {
	h, l := bits.Mul64(uint64(x), uint64(x))
	carry := uint64(0)
	m.sum += x
	m.lo, carry = bits.Add64(m.lo, l, 0)
	m.hi, _ = bits.Add64(m.hi, h, carry)
}

func (m *moments) remove(x int64) {
	h, l := bits.Mul64(uint64(x), uint64(x))
	borrow := uint64(0)
	m.sum -= x
	m.lo, borrow = bits.Sub64(m.lo, l, 0)
	m.hi, _ = bits.Sub64(m.hi, h, borrow)
}

// of returns the mean and the squared coefficient of variation of n numbers; the latter is 0 for fewer than two.
func (m *moments) of(n int) (mean, scv float64) {
	if n == 0 {
		return 0, 0
	}
	mean = float64(m.sum) / float64(n)
	if n < 2 || m.sum == 0 {
		return mean, 0
	}
	square := float64(float64(m.hi)*0x1p64) + float64(m.lo)
	return mean, max(0, float64(square/float64(n))/float64(mean*mean)-1)
}

// NewMonitor returns a monitor from now on, with a window of positive length.
func NewMonitor(window, now units.Duration) *Monitor {
	if window <= 0 {
		panic("ratecontrol: monitor window must be positive")
	}
	return &Monitor{window: window, began: now}
}

// mostBytes is far more than a request can have, and so little that a window's sum fits into 63 bits.
const mostBytes = 1 << 40

// Arrived records a read or write of 0 to 2^40 bytes, at times that do not decrease.
func (m *Monitor) Arrived(now units.Duration, op block.Op, bytes int64) {
	if op > block.Write {
		return
	}
	if bytes < 0 || bytes > mostBytes {
		panic("ratecontrol: Monitor.Arrived of a size that is not within 0 to 2^40")
	}
	a := &m.of[op]
	a.forget(now - m.window)
	if a.n == len(a.ring) {
		a.grow()
	}
	if a.n > 0 {
		gap := now - a.at(a.n-1).at
		if gap < 0 {
			panic("ratecontrol: Monitor.Arrived at a time before that of an earlier request")
		}
		a.gap.add(int64(gap))
	}
	a.n++
	*a.at(a.n - 1) = arrival{now, bytes}
	a.size.add(bytes)
}

// Features returns those of the window that ends now, or since the start.
func (m *Monitor) Features(now units.Duration) Features {
	span := min(m.window, now-m.began).Seconds()
	var f Features
	for i := range m.of {
		a := &m.of[i]
		a.forget(now - m.window)
		x := &f.Of[i]
		x.Size, x.SizeSCV = a.size.of(a.n)
		x.Interarrival = m.window.Seconds()
		if a.n > 1 {
			const second = 1 / float64(units.Second)
			mean, scv := a.gap.of(a.n - 1)
			x.Interarrival, x.InterarrivalSCV = mean*second, scv
		}
		if span > 0 {
			x.Speed = float64(a.size.sum) / span
		}
	}
	if all := m.of[block.Read].n + m.of[block.Write].n; all > 0 {
		f.ReadShare = float64(m.of[block.Read].n) / float64(all)
	}
	return f
}

// at returns the i-th request in the window.
func (a *arrived) at(i int) *arrival { return &a.ring[(a.head+i)&(len(a.ring)-1)] }

// forget removes requests from before a given time.
func (a *arrived) forget(before units.Duration) {
	for a.n > 0 && a.at(0).at < before {
		x := *a.at(0)
		a.size.remove(x.bytes)
		if a.n > 1 {
			a.gap.remove(int64(a.at(1).at - x.at))
		}
		a.head = (a.head + 1) & (len(a.ring) - 1)
		a.n--
	}
}

func (a *arrived) grow() {
	ring := make([]arrival, max(256, 2*len(a.ring)))
	for i := range a.n {
		ring[i] = *a.at(i)
	}
	a.ring, a.head = ring, 0
}
