package ssd

// fifo is a queue of transactions from which the scheduler picks, mostly at the front; but a multi-plane command is
// filled up from anywhere in it. The fields that picking compares are in the queue itself, eight bytes an entry, so
// that a scan touches few cache lines.
type fifo struct {
	buf  []waiter // length a power of two
	head uint32
	n    uint32
}

// waiter is a transaction in a queue, with the fields that picking compares.
type waiter struct {
	txn int32
	spot
}

// spot is the position of a transaction within its lane: the page within its block, the die within the lane, the plane
// within the die. They share one word, because the scheduler compares page and die at once.
type spot uint32

const (
	spotDie  spot = 0xff << 16
	spotPage spot = 0xffff
)

func newSpot(die, plane int32) spot { return spot(die)<<16 | spot(plane)<<24 }

func (s spot) die() uint8      { return uint8(s >> 16) }
func (s spot) plane() uint8    { return uint8(s >> 24) }
func (s spot) planeBit() uint8 { return 1 << (s >> 24 & 7) } // bit in a set of a die's planes

// at returns the i-th entry from the front.
func (f *fifo) at(i uint32) *waiter { return &f.buf[(f.head+i)&uint32(len(f.buf)-1)] }

func (f *fifo) push(w waiter) {
	if f.n == uint32(len(f.buf)) {
		bigger := make([]waiter, max(8, 2*len(f.buf)))
		for i := range f.n {
			bigger[i] = *f.at(i)
		}
		f.buf, f.head = bigger, 0
	}
	f.n++
	*f.at(f.n - 1) = w
}

// pushFront inserts an entry before all others.
func (f *fifo) pushFront(w waiter) {
	f.push(w) // makes space for an entry
	f.head--
	*f.at(0) = w
}

// remove removes the i-th entry by moving whichever side of it is shorter.
func (f *fifo) remove(i uint32) {
	if 2*i < f.n {
		for ; i > 0; i-- {
			*f.at(i) = *f.at(i - 1)
		}
		f.head++
	} else {
		for ; i+1 < f.n; i++ {
			*f.at(i) = *f.at(i + 1)
		}
	}
	f.n--
}
