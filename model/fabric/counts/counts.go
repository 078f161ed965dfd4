// Package counts has the totals of a network: packets, bytes and events by their kind, and the reasons of losses. Parts
// of a network count separately, and their counts are added.
//
// Its main type is Counters. Counting, and the laws that relate counts, are package fabric's.
package counts

// Counters are totals over the whole network.
type Counters struct {
	Posted, Completed uint64 // messages
	Abandoned         uint64 // messages that ended with their queue pair
	PostedBytes       uint64
	Sent              uint64 // payload handed to links by hosts, retransmissions included
	Received          uint64 // payload that arrived in order, or was kept out of order
	Wasted            uint64 // payload that arrived in vain: duplicate, or dropped because out of order
	Lost              uint64 // payload dropped by the network
	Acks, Nacks, RNRs uint64 // RNRs: messages refused for want of a receive
	Duplicates        uint64
	Trimmed           uint64 // data packets whose payload was cut off
	Overtaken         uint64 // data packets that arrived before one that was sent earlier
	Reordered         uint64 // greatest distance of an overtaking packet from the expected one, in packets
	Marked            uint64 // data packets that arrived with a congestion mark
	CNPsSent, CNPs    uint64
	Pulls             uint64 // sent by receivers
	Retransmits       uint64 // packets
	Timeouts          uint64
	Broken            uint64 // queue pairs that gave up (setting.Recovery.Retries)
	Pauses, Resumes   uint64 // decisions of switches
	Paused, Unpaused  uint64 // their effects
	Refreshes, Frames uint64
	Storms, Deadlocks uint64 // ports that stayed paused too long, and cycles of them that wait for each other
	Drops             [reasons]uint64
	Events            uint64 // handled
}

// Reason is why a packet was lost.
type Reason uint8

const (
	Buffer    Reason = iota // a switch had no space
	Corrupted               // on a lossy link
	NoRoute                 // towards a link that is down
	LinkDown                // on or before a link that went down
	reasons
)

var names = [...]string{"no room in the buffer", "corrupted on the link", "no way to go", "the link went down"}

func (r Reason) String() string { return names[r] }

// Add adds the counts of o; the maximum in Reordered is combined as a maximum.
func (c *Counters) Add(o *Counters) {
	for _, x := range [...][2]*uint64{
		{&c.Posted, &o.Posted}, {&c.Completed, &o.Completed}, {&c.Abandoned, &o.Abandoned},
		{&c.PostedBytes, &o.PostedBytes}, {&c.Sent, &o.Sent}, {&c.Received, &o.Received},
		{&c.Wasted, &o.Wasted}, {&c.Lost, &o.Lost}, {&c.Acks, &o.Acks}, {&c.Nacks, &o.Nacks}, {&c.RNRs, &o.RNRs},
		{&c.Duplicates, &o.Duplicates}, {&c.Marked, &o.Marked},
		{&c.CNPsSent, &o.CNPsSent}, {&c.Pulls, &o.Pulls}, {&c.CNPs, &o.CNPs}, {&c.Retransmits, &o.Retransmits},
		{&c.Timeouts, &o.Timeouts}, {&c.Broken, &o.Broken}, {&c.Pauses, &o.Pauses},
		{&c.Resumes, &o.Resumes}, {&c.Paused, &o.Paused}, {&c.Unpaused, &o.Unpaused}, {&c.Refreshes, &o.Refreshes},
		{&c.Frames, &o.Frames},
		{&c.Storms, &o.Storms}, {&c.Deadlocks, &o.Deadlocks},
		{&c.Overtaken, &o.Overtaken}, {&c.Trimmed, &o.Trimmed}, {&c.Events, &o.Events},
	} {
		*x[0] += *x[1]
	}
	c.Reordered = max(c.Reordered, o.Reordered)
	for i := range c.Drops {
		c.Drops[i] += o.Drops[i]
	}
}

// DropCount returns the number of packets lost, for all reasons.
func (c *Counters) DropCount() uint64 {
	sum := uint64(0)
	for _, d := range c.Drops {
		sum += d
	}
	return sum
}
