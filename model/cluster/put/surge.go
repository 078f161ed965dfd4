package put

import (
	"farflash/numeric/rng"
	"farflash/sim"
)

// SURGE's deviations from a real cluster that concern nodes and links; those that concern bids and rates are in package
// model/cluster/reserve. In addition, control messages never queue (control.queued: false), senders debit receivers'
// links at the moment they send (unicast.port), and the sender's link is not charged for the last frame of a replica
// (unicast.send). UCH-CCP's columns of tables 2 and 3 rest on these.

// surgeOrder permutes a group's targets into the order in which a gateway that asks now receives their bids. SURGE's
// nodes are goroutines. A bid stays in the channel from its target to its gateway until the gateway runs again; the
// gateway then receives from its non-empty channels in the order that reflect.Select draws at random (recvNextEvent in
// its runner.go). Suppose that nodes run one after the other, in an order that is drawn anew at each tick of the clock
// and is the same for all, and that each does all its pending work when it runs. Then a gateway's turn is anywhere
// among those of its group's targets: it receives the bids of the targets that ran before it, in any order, and at its
// next turn those of the others, in any order. So the order is partly common to all gateways that ask at the same tick
// and partly each gateway's own. It matters because bids of an idle group begin at the same time, and the first ones
// are chosen.
//
// With one order for all, gateways that ask at the same tick choose the same targets and leave the others to later
// gateways, which helps Replicast-M and hurts Replicast-H; with independent orders it is the reverse. In runs of
// SURGE's own engine (model 8, 90 gateways and targets, the first bids, 24 threads on 2 cores), 28% of the pairs of
// bids that begin at the same time are in opposite orders at two gateways; the fraction would be 0 with one order for
// all, 42% by this rule, and 50% with independent orders. The order affects the columns of Replicast-M and -H in tables
// 2 and 3: most at 1 MiB, and for Replicast-M at 128 KiB and 1000 MiB/s.
func surgeOrder(seed uint64, now sim.Time, c Compat, group, gateway int32, targets []int32) {
	x := rng.SplitMix(seed ^ uint64(now)*rng.Golden ^ uint64(group)<<48)
	shuffle(&x, targets)
	if c == CompatSURGEHead {
		// this build is compared only with its models' code, where a bid goes straight to its gateway: one order for
		// all
		return
	}
	x ^= rng.SplitMix(gateway+1) << 40
	turn := below(&x, len(targets)+1)
	shuffle(&x, targets[:turn])
	shuffle(&x, targets[turn:])
}

// shuffle permutes targets at random.
func shuffle(x *rng.SplitMix, targets []int32) {
	for k := len(targets) - 1; k > 0; k-- {
		i := below(x, k+1)
		targets[k], targets[i] = targets[i], targets[k]
	}
}

// below returns a random number in [0, n).
func below(x *rng.SplitMix, n int) int { return int(x.Next() % uint64(n)) }
