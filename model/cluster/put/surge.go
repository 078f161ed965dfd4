package put

import (
	"farflash/numeric/rng"
	"farflash/sim"
)

// What SURGE does differently from a real cluster and is about its nodes and links stands here; package
// model/cluster/reserve has what is about bids and rates. Beside it, control messages never queue (control.queued:
// false), receivers' links are debited by their senders at the moment they send (uch.port), and the sender's link is
// not charged for the last frame of a replica (uch.try): UCH-CCP's columns of tables 2 and 3 rest on these.

// surgeOrder puts a group's targets into the order in which a gateway that asks now will have their bids. SURGE's
// nodes are goroutines, and a bid stays where its target has put it, in a channel from that target to that gateway,
// until the gateway runs again; it then takes one after the other from those of its channels that have something,
// which reflect.Select draws at random (recvNextEvent in its runner.go). With nodes that run one after the other, in
// an order that is new at each tick of the clock and the same for all, and do all that is due when they run, a
// gateway's turn is anywhere among those of its group's targets: it takes the bids of those that ran before it, in
// any order, and the next time those of the others, in any order. So the order is partly that of all gateways that
// ask at the same tick and partly each gateway's own. Bids of an idle group begin at the same time, and which of them
// are first decides who is chosen.
//
// With one order for all, gateways that ask at the same tick choose the same targets and leave the others to who asks
// next, which helps Replicast-M and hurts Replicast-H; with an order of its own for each it is the reverse. In runs
// of SURGE's own engine (model 8, 90 gateways and targets, the first bids, 24 threads on 2 cores) 28 % of the pairs
// of bids that begin at the same time are in one order at one gateway and in the other at another; it would be 0 with
// one order for all, 42 % by this rule, and 50 % with an order of its own for each. The columns of Replicast-M and -H
// in tables 2 and 3: most at 1 MiB, and Replicast-M at 128 KiB and 1000 MiB/s.
func surgeOrder(seed uint64, now sim.Time, c Compat, group, gateway int32, targets []int32) {
	x := rng.SplitMix(seed ^ uint64(now)*rng.Golden ^ uint64(group)<<48)
	shuffle(&x, targets)
	if c == CompatSURGEHead {
		return // held against its models' code alone, in which a bid goes straight to its gateway: one order for all
	}
	x ^= rng.SplitMix(gateway+1) << 40
	turn := below(&x, len(targets)+1)
	shuffle(&x, targets[:turn])
	shuffle(&x, targets[turn:])
}

// shuffle puts targets into a random order.
func shuffle(x *rng.SplitMix, targets []int32) {
	for k := len(targets) - 1; k > 0; k-- {
		i := below(x, k+1)
		targets[k], targets[i] = targets[i], targets[k]
	}
}

// below is a random number below n.
func below(x *rng.SplitMix, n int) int { return int(x.Next() % uint64(n)) }
