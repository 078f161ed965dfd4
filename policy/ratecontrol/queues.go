package ratecontrol

import (
	"fmt"
	"math"

	"farflash/block"
)

const (
	ReadQueue  = 0 // RSQ
	WriteQueue = 1 // WSQ: writes, and other commands that change data
)

// Queues are the read and the write submission queue of one drive, which share a completion queue and a queue depth
// (SRC, section III-A), fetched by weighted round robin. A command that overlaps waiting ones is fetched after them.
// Queues do not allocate once they have held their largest number of commands.
type Queues struct {
	depth  int32
	strict bool // the shares bind even while one queue has nothing to fetch
	weight [2]int32
	token  [2]int32 // remaining in this round
	share  [2]int32 // of the depth
	inside [2]int32 // commands fetched from each and not done
	held   [2]bool
	acted  bool // see Acted
	turn   uint8
	list   [2]fifo
	slots  []slot // index 0 means none
	spare  int32  // head of the free slots
	edges  []edge // index 0 means none
	unused int32  // head of the free edges
	root   int32  // of the tree of waiting commands
	seed   uint32
	last   uint32  // number of the latest command
	found  []int32 // scratch
}

// slot is a command that waits or is in the drive.
type slot struct {
	lo, hi      int64 // address range, with the space in the upper bits
	most        int64 // the greatest hi of its subtree
	left, right int32 // children in the tree
	next        int32 // in its queue, or in the free list
	id          int32
	after       int32 // number of commands that must be done before it may be fetched
	before      int32 // edges to commands that wait for it
	number      uint32
	rank        uint32
	queue       uint8 // queue in which it waits
	fetched     bool
	kind        uint8 // queue whose token it takes
}

// edge means that a command waits for another.
type edge struct{ to, next int32 }

// fifo is a queue of slots.
type fifo struct{ head, tail, n int32 }

// beyond is the exclusive upper limit of addresses within a space.
const beyond = int64(1) << 54

// NewQueues returns the queues of a drive, with weights of 1. depth is clamped to 1 to 2^31-1.
func NewQueues(depth int) *Queues {
	q := &Queues{depth: int32(min(max(depth, 1), math.MaxInt32)), slots: make([]slot, 1), edges: make([]edge, 1),
		seed: 1}
	q.SetWeights(1, 1)
	return q
}

// kindOf returns the queue of an operation.
func kindOf(op block.Op) uint8 {
	if op == block.Read {
		return ReadQueue
	}
	return WriteQueue
}

// SetWeights sets weights, clamped to 1 to 2^31-1; a change starts a new round.
func (q *Queues) SetWeights(read, write int) {
	w := [2]int32{int32(min(max(read, 1), math.MaxInt32)), int32(min(max(write, 1), math.MaxInt32))}
	if w == q.weight {
		return
	}
	q.weight, q.token = w, w
	d := int64(q.depth)
	sum := int64(w[0]) + int64(w[1])
	reads := min(max((d*int64(w[0])+sum/2)/sum, 1), max(d-1, 1))
	q.share = [2]int32{int32(reads), int32(max(d-reads, 1))}
}

// SetPartition sets when the shares of the depth bind.
func (q *Queues) SetPartition(p Partition) { q.strict = p == Always }

// Weights returns the weights of both queues.
func (q *Queues) Weights() (read, write int) { return int(q.weight[0]), int(q.weight[1]) }

// Tokens returns the remaining tokens of both queues in this round.
func (q *Queues) Tokens() (read, write int) { return int(q.token[0]), int(q.token[1]) }

// noQueue is the refusal of a queue.
const noQueue = "ratecontrol: no such queue; use ReadQueue or WriteQueue"

// Hold stops fetching from a queue while held is set.
func (q *Queues) Hold(queue int, held bool) {
	if uint(queue) > WriteQueue {
		panic(noQueue)
	}
	q.held[queue] = held
}

// Waiting returns the number of commands that wait in a queue.
func (q *Queues) Waiting(queue int) int {
	if uint(queue) > WriteQueue {
		panic(noQueue)
	}
	return int(q.list[queue].n)
}

// Inside returns the number of a queue's fetched commands that are not done.
func (q *Queues) Inside(queue int) int {
	if uint(queue) > WriteQueue {
		panic(noQueue)
	}
	return int(q.inside[queue])
}

// Acted reports whether weights or a hold ever decided anything: a command for which the depth had a place waited for
// its queue's share, its turn or its release. If not, commands were fetched as from a single queue.
func (q *Queues) Acted() bool { return q.acted }

// First returns the command at the head of a queue, if any.
func (q *Queues) First(queue int) (id int32, ok bool) {
	if uint(queue) > WriteQueue {
		panic(noQueue)
	}
	l := &q.list[queue]
	if l.n == 0 {
		return 0, false
	}
	return q.slots[l.head].id, true
}

// Push adds the command id and returns its ticket for Done. Spaces never overlap.
func (q *Queues) Push(id int32, op block.Op, space uint8, offset, length int64) (ticket int32) {
	// A command that overlaps a waiting one follows it into its queue, so that both are fetched in order of arrival,
	// and takes a token of the queue of its own kind. A command that overlaps waiting ones in both queues joins the
	// queue of the latest, and waits until all of them are done.
	i := q.take()
	x := &q.slots[i]
	q.last++
	base := int64(space) * beyond
	offset = min(max(offset, 0), beyond)
	*x = slot{lo: base + offset, hi: base + min(offset+min(max(length, 0), beyond), beyond), id: id, number: q.last,
		kind: kindOf(op)}
	x.queue = x.kind
	if x.lo < x.hi {
		q.found = q.found[:0]
		q.overlapping(q.root, x.lo, x.hi)
		q.follow(i)
		q.insert(i)
	}
	l := &q.list[x.queue]
	if l.n == 0 {
		l.head = i
	} else {
		q.slots[l.tail].next = i
	}
	l.tail = i
	l.n++
	return i
}

// follow chooses the queue of a command by the waiting ones that it overlaps.
func (q *Queues) follow(i int32) {
	if len(q.found) == 0 {
		return
	}
	x := &q.slots[i]
	in := [2]bool{}
	behind := uint32(1 << 31)
	for _, k := range q.found {
		y := &q.slots[k]
		in[y.queue] = true
		if d := x.number - y.number; d < behind {
			behind, x.queue = d, y.queue
		}
	}
	if !in[0] || !in[1] {
		return // they are all ahead of it in its queue
	}
	for _, k := range q.found {
		e := q.unused
		if e != 0 {
			q.unused = q.edges[e].next
		} else {
			e = int32(len(q.edges))
			q.edges = append(q.edges, edge{})
		}
		q.edges[e] = edge{to: i, next: q.slots[k].before}
		q.slots[k].before = e
		x.after++
	}
}

// Next returns the next command to fetch and its queue; ok is false if there is none.
func (q *Queues) Next() (id int32, queue int, ok bool) {
	// Waiting commands are fetched by weighted round robin: a queue has as many tokens as its weight; each fetched
	// command takes one, and when both queues have none left a new round starts. A queue without a command that can be
	// fetched yields its turn to the other, without losing tokens. While only one queue has commands, fetching takes no
	// tokens at all ("without manipulating the tokens"), so the turn and the round stay as they were. The queue depth is
	// divided in proportion to the weights, depending on the partition only while both queues have commands to fetch.
	if q.inside[0]+q.inside[1] >= q.depth {
		return 0, 0, false
	}
	can := [2]bool{q.ready(0), q.ready(1)}
	both := can[0] && can[1]
	q.acted = q.acted || both
	if both || q.strict {
		for k := range can {
			if can[k] && q.inside[k] >= q.share[k] {
				can[k], q.acted = false, true
			}
		}
	}
	from := q.turn
	switch {
	case can[from]:
		if both {
			q.pay(from)
		}
	case can[1-from]:
		from = 1 - from
	default:
		return 0, 0, false
	}
	l := &q.list[from]
	i := l.head
	x := &q.slots[i]
	l.head = x.next
	l.n--
	if x.lo < x.hi {
		q.root = q.remove(q.root, i)
	}
	q.inside[from]++
	x.fetched = true
	return x.id, int(from), true
}

// ready reports whether a queue has a command that can be fetched.
func (q *Queues) ready(k uint8) bool {
	l := &q.list[k]
	if l.n == 0 || q.slots[l.head].after != 0 {
		return false
	}
	q.acted = q.acted || q.held[k]
	return !q.held[k]
}

// pay takes the token for the first command of the queue at turn, and advances the turn.
func (q *Queues) pay(from uint8) {
	kind := q.slots[q.list[from].head].kind
	if q.token[kind] == 0 {
		// The command followed another into a queue of the other kind, and its own kind has no tokens left: start a new
		// round.
		q.token = q.weight
	}
	q.token[kind]--
	if q.token == [2]int32{} {
		q.token = q.weight
		q.turn = 1 - from
		return
	}
	if q.token[from] == 0 {
		q.turn = 1 - from
	}
}

// Done releases the place of a command that was fetched and is not done yet.
func (q *Queues) Done(ticket int32) {
	if uint(ticket) >= uint(len(q.slots)) || !q.slots[ticket].fetched {
		panic(q.notFetched(ticket))
	}
	x := &q.slots[ticket]
	x.fetched = false
	q.inside[x.queue]--
	for e := x.before; e != 0; {
		next := q.edges[e].next
		q.slots[q.edges[e].to].after--
		q.edges[e].next = q.unused
		q.unused = e
		e = next
	}
	x.next = q.spare
	q.spare = ticket
}

// notFetched is the refusal of a ticket.
//
//go:noinline
func (q *Queues) notFetched(ticket int32) string {
	return fmt.Sprintf("ratecontrol: Done of ticket %d, whose command Next has not returned, or is done", ticket)
}

func (q *Queues) take() int32 {
	if i := q.spare; i != 0 {
		q.spare = q.slots[i].next
		return i
	}
	q.slots = append(q.slots, slot{})
	return int32(len(q.slots) - 1)
}

// Check verifies the invariants of the queues.
func (q *Queues) Check() error {
	for k := range q.list {
		n, i := int32(0), q.list[k].head
		for ; n < q.list[k].n; n++ {
			if i == 0 || q.slots[i].queue != uint8(k) {
				return fmt.Errorf("queue %d: command %d of %d is not linked", k, n, q.list[k].n)
			}
			i = q.slots[i].next
		}
		if q.inside[k] < 0 || q.token[k] < 0 || q.token[k] > q.weight[k] {
			return fmt.Errorf("queue %d: invalid state: %d commands in the drive, %d tokens of %d", k, q.inside[k], q.token[k],
				q.weight[k])
		}
	}
	if n := q.inside[0] + q.inside[1]; n > q.depth {
		return fmt.Errorf("%d commands in the drive; the limit is %d", n, q.depth)
	}
	return nil
}
