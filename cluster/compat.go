package cluster

// What SURGE does differently from a real cluster and is about its nodes and links stands here; package cluster/reserve has
// what is about bids and rates. Beside it, control messages never queue (control.queued: false), receivers' links are debited by their senders at
// the moment they send (uch.port), and the sender's link is not charged for the last frame of a replica (uch.try): UCH-CCP's columns of tables 2
// and 3 rest on these.

// surgeOrder puts a group's targets into the order in which they get to run at this moment. SURGE's nodes are goroutines:
// at each tick of its clock they run one after the other in an order of their own, and each does all that is due. So targets that bid for several
// gateways at the same tick are in the same order for all of them, and bids that begin at the same time are taken in that
// order. At the start of a run, when all gateways ask at once, they so choose the same targets of each group, and leave the others to who asks
// next; with an order of its own for each gateway Replicast-M's start is slower, by a seventh of what it does in 30 ms at 1 MiB. The
// columns of Replicast-M and -H in tables 2 and 3.
func (c *Cluster) surgeOrder(group int32, targets []int32) {
	x := c.seed ^ uint64(c.eng.Now())*0x9e3779b97f4a7c15 ^ uint64(group)<<48
	for k := len(targets) - 1; k > 0; k-- {
		// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
		x += 0x9e3779b97f4a7c15
		z := x
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		z ^= z >> 31
		i := int(z % uint64(k+1))
		targets[k], targets[i] = targets[i], targets[k]
	}
}
