package ssd

// fifo is a queue of transactions that the scheduler picks from: mostly at the front,
// but a command is filled up from anywhere in it. What picking looks at stands in the
// queue itself, eight bytes an entry, so that a scan stays within few cache lines.
type fifo struct {
	buf  []waiter // a power of two
	head uint32
	n    uint32
}

type waiter struct {
	txn int32
	spot
}

// spot is where in its lane a transaction goes: the page within its block, the die within the lane, the plane within
// the die. They are in one word, because what is looked for is all that has the same page and die.
type spot uint32

const (
	spotDie  spot = 0xff << 16
	spotPage spot = 0xffff
)

func newSpot(die, plane int32) spot { return spot(die)<<16 | spot(plane)<<24 }

func (s spot) die() uint8      { return uint8(s >> 16) }
func (s spot) plane() uint8    { return uint8(s >> 24) }
func (s spot) planeBit() uint8 { return 1 << (s >> 24 & 7) } // of a die's planes

// at is the i-th entry from the front.
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

// pushFront puts an entry before all others.
func (f *fifo) pushFront(w waiter) {
	f.push(w) // for the room
	f.head--
	*f.at(0) = w
}

// remove takes the i-th entry out, moving whichever side of it is shorter.
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
