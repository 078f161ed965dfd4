// Package receives has the receives that several queue pairs of a host share (a shared receive queue), and the times
// for which a sender waits whose message found none.
//
// Its main type is Book, which counts them by pool. It follows the InfiniBand specification, volume 1, chapters 10.2.9
// (shared receive queues) and 9.7.5.2.8 (RNR NAK).
//
// It leaves out messages, packets and timers, which are package fabric's, and the memory that receives refer to.
package receives

import (
	"fmt"

	"farflash/numeric/units"
)

// Timers are the times that an RNR NAK can name, in the order of their encodings from 1 on; the longest has 0.
var Timers = func() (out [32]units.Duration) {
	for i, t := range [...]int64{1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536,
		2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152, 65536} {
		out[i] = units.Duration(t) * 10 * units.Microsecond
	}
	return out
}()

// Nearest returns the timer nearest to a time, the shorter of two.
func Nearest(t units.Duration) units.Duration {
	best := Timers[0]
	for _, x := range Timers[1:] {
		if max(x-t, t-x) < max(best-t, t-best) {
			best = x
		}
	}
	return best
}

// Book has the pools of a network, and which of them its queue pairs' messages take from.
type Book struct {
	pools []pool
	of    []int32 // by queue pair: its pool, plus 1; shorter than there are queue pairs
	Used  bool    // Used: some queue pair takes from a pool.
}

// pool is a number of posted receives.
type pool struct {
	timer        units.Duration
	posted, most int
	host         int32 // whose pool it is, plus 1; 0 until known
}

// Add adds a pool of that many receives, all posted, and returns its number. RNR NAKs name timer.
func (b *Book) Add(count int, timer units.Duration) (int32, error) {
	if count < 1 || Nearest(timer) != timer {
		return -1, fmt.Errorf("%d receives with an RNR timer of %v are not possible; use 1 or more, and a time such as %v",
			count, timer, Nearest(timer))
	}
	b.pools = append(b.pools, pool{timer: timer, posted: count, most: count})
	return int32(len(b.pools) - 1), nil
}

// Assign makes a queue pair's messages to a host take from a pool, all of whose queue pairs must lead there.
func (b *Book) Assign(q, pool, host int32) error {
	p := &b.pools[pool]
	if p.host != 0 && p.host != host+1 {
		return fmt.Errorf("queue pair %d leads to node %d, and those that share pool %d to node %d", q, host, pool,
			p.host-1)
	}
	for int(q) >= len(b.of) {
		b.of = append(b.of, 0)
	}
	b.of[q], p.host, b.Used = pool+1, host+1, true
	return nil
}

// Drop makes a queue pair's messages take from no pool.
func (b *Book) Drop(q int32) { b.of[q] = 0 }

// Of returns the pool that a queue pair's messages take from, -1 if none.
func (b *Book) Of(q int32) int32 {
	if int(q) >= len(b.of) {
		return -1
	}
	return b.of[q] - 1
}

// Pools returns the number of pools.
func (b *Book) Pools() int { return len(b.pools) }

// Take takes a receive of a pool, if one is posted.
func (b *Book) Take(pool int32) bool {
	p := &b.pools[pool]
	if p.posted == 0 {
		return false
	}
	p.posted--
	return true
}

// Post posts a receive again that was taken.
func (b *Book) Post(pool int32) {
	p := &b.pools[pool]
	if p.posted++; p.posted > p.most {
		panic(fmt.Sprintf("fabric: %d receives of pool %d are posted; it has %d", p.posted, pool, p.most))
	}
}

// Posted returns how many of a pool are posted.
func (b *Book) Posted(pool int32) int { return b.pools[pool].posted }

// Timer returns the time that a pool's RNR NAKs name.
func (b *Book) Timer(pool int32) units.Duration { return b.pools[pool].timer }
