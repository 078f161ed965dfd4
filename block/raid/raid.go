// Package raid combines several members into one volume, like software RAID in a host: stripes (level 0), mirrors (1),
// and stripes with one (5) or two (6) rotating parities.
//
// Its main type is [Raid], a plain state machine: [Raid.Begin] takes a request and issues commands to members, and
// [Raid.Ended] takes their completions and issues further commands until the request is complete. [Device] presents it
// on top of block.Devices as one block.Device.
//
// A write of a whole row of stripes writes data and parity. A smaller write reads first: either the old data and the
// old parity, to update the parity (read-modify-write), or the rest of the row, to recompute the parity
// (reconstruct-write), whichever reads fewer chunks. A small write costs four commands with one parity and six with two
// (Patterson, Gibson and Katz, "A Case for Redundant Arrays of Inexpensive Disks", SIGMOD 1988; Chen et al., "RAID:
// High-Performance, Reliable Secondary Storage", ACM Computing Surveys 26(2), 1994). Writes of the same row are
// serialised. The layout of data and parity is Linux' left-symmetric one. Data of a failed member is computed from as
// many other members as a row has data; a rebuild proceeds row by row, at a given rate, onto a replacement. A read of a
// mirror goes to the member with the fewest outstanding commands.
//
// It leaves out content (buffers are ignored, so parity is not computed), the time to compute parity, a journal or
// bitmap against the write hole after a crash, and the merging of adjacent commands to one member.
package raid

import (
	"fmt"

	"farflash/block"
	"farflash/internal/fifo"
	"farflash/internal/slab"
	"farflash/numeric/units"
)

// Config describes a volume.
type Config struct {
	// Level is the RAID level: 0, 1, 5 or 6.
	Level int
	// Chunk is the number of consecutive bytes on one member before the next one.
	Chunk units.Bytes
	// Copies is the number of members that hold the same data, with level 1. With more members than copies, the volume
	// stripes over mirrors (level 10).
	Copies int
	// Failed lists the members that have failed before the run begins.
	Failed []int
	// Rebuild is the rate at which the first failed member is rebuilt onto a replacement. 0 is no rebuild.
	Rebuild units.ByteRate
	// MaxTransfer is the largest command to a member; 0 is any size.
	MaxTransfer units.Bytes
}

// DefaultConfig returns level 5 with chunks of 64 KiB.
func DefaultConfig() Config { return Config{Level: 5, Chunk: 64 * units.KiB, Copies: 2} }

// parities returns the number of parity members per row.
func (c *Config) parities() int {
	switch c.Level {
	case 5:
		return 1
	case 6:
		return 2
	}
	return 0
}

// Data returns the number of members whose space is available for data, out of the given number.
func (c *Config) Data(members int) int {
	if c.Level == 1 {
		return members / max(c.Copies, 1)
	}
	return members - c.parities()
}

// Validate checks the volume for the given number of members. Its errors name fields.
func (c *Config) Validate(members int) error {
	var f units.Faults
	f.Hold(c.Level == 0 || c.Level == 1 || c.Level == 5 || c.Level == 6, "level",
		"%d is not possible; use 0, 1, 5 or 6", c.Level)
	f.Hold(c.Chunk > 0 && c.Chunk%units.Sector == 0 && c.Chunk <= units.GiB, "chunk",
		"%v is not possible; use a multiple of 512B up to 1GiB", c.Chunk)
	f.Hold(c.Rebuild >= 0, "rebuild", "%v is not possible; use a rate such as 200MB/s, or 0 for no rebuild", c.Rebuild)
	f.Hold(c.MaxTransfer >= 0 && c.MaxTransfer%units.Sector == 0, "max_transfer",
		"%v is not possible; use a multiple of 512B", c.MaxTransfer)
	least := map[int]int{0: 1, 1: 2, 5: 3, 6: 4}[c.Level]
	f.Hold(members >= least && members <= 255, "level",
		"%d members are not possible with level %d; use %d to 255", members, c.Level, least)
	if c.Level == 1 {
		f.Hold(c.Copies >= 2 && c.Copies <= members && members%c.Copies == 0, "copies",
			"%d copies do not divide %d members evenly; use a number that does, such as 2", c.Copies, members)
	}
	gone := make(map[int]bool, len(c.Failed))
	for i, m := range c.Failed {
		f.Hold(m >= 0 && m < members && !gone[m], fmt.Sprintf("failed[%d]", i),
			"%d is not possible; use members 0 to %d, each at most once", m, members-1)
		gone[m] = true
	}
	f.Hold(c.Rebuild == 0 || len(c.Failed) > 0, "rebuild",
		"no member has failed, so no rebuild is possible; list one in failed, or omit rebuild")
	if f.Err() == nil {
		switch {
		case c.Level == 1:
			for g := 0; g < members; g += c.Copies {
				left := c.Copies
				for m := g; m < g+c.Copies; m++ {
					if gone[m] {
						left--
					}
				}
				f.Hold(left > 0, "failed", "members %d to %d hold all copies of the same data, and all have failed", g,
					g+c.Copies-1)
			}
		default:
			f.Hold(len(gone) <= c.parities(), "failed",
				"%d members have failed, but level %d survives only %d; list fewer", len(gone), c.Level, c.parities())
		}
	}
	return f.Err()
}

// Counters count a volume's events since it was made.
type Counters struct {
	FullRows    uint64 // writes of whole rows
	Modified    uint64 // read-modify-writes
	Rebuilt     uint64 // reconstruct-writes: parity from the rest of the row
	Bare        uint64 // writes of rows all of whose parity members have failed
	Degraded    uint64 // reads, and rows of writes, that needed data computed from other members
	Waited      uint64 // rows that waited for another operation on the same row
	RebuiltRows uint64 // rows rebuilt
	Ended       uint64 // commands completed
	// Commands and Bytes are the commands to members, by operation, including the reads that only writes or the rebuild
	// need.
	Commands, Bytes [block.Ops]uint64
}

// Raid is a volume. It is not safe for concurrent use.
type Raid struct {
	cfg      Config
	members  int
	data     int   // data members per row
	rows     int64 // chunks per member
	chunk    int64
	most     int64 // largest command, in bytes
	failed   []bool
	rebuild  int   // the member being rebuilt; -1: none
	rebuilt  int64 // rows rebuilt so far
	moving   bool  // a row is being rebuilt
	under    []int32
	turn     int32
	requests slab.Slab[request]
	ops      slab.Slab[op]
	buckets  []bucket
	issue    func(member int, part block.Request)
	done     func(tag uint64, status block.Status)
	Counters Counters
}

// request is an outstanding request.
type request struct {
	tag    uint64
	left   int32
	status block.Status
}

// op is a part of a request, in up to two steps: reads, then writes.
type op struct {
	parent    int32 // 0: of the rebuild
	left      int32
	row       int64
	from, to  int64 // range of the row's data
	next      int32 // in the same bucket
	kind      uint8
	second    bool // the reads are complete
	force     bool
	placement uint8
	status    block.Status
}

// The kinds of ops.
const (
	direct   uint8 = iota // a single step without row lock
	writeRow              // locks its row
	rebuildRow
)

// bucket lists the ops that hold or wait for rows, in order of arrival. Different rows in one bucket do not wait for
// each other.
type bucket struct{ head, tail int32 }

const buckets = 1024

// New makes a volume of members of each bytes. issue submits a command to a member; the command's tag belongs to the
// volume and must come back through Ended, never from inside issue. done reports the completion of a request.
func New(cfg Config, members int, each int64, issue func(member int, part block.Request),
	done func(tag uint64, status block.Status)) (*Raid, error) {
	if err := cfg.Validate(members); err != nil {
		return nil, err
	}
	x := &Raid{cfg: cfg, members: members, chunk: int64(cfg.Chunk), rows: each / int64(cfg.Chunk),
		failed: make([]bool, members), rebuild: -1, under: make([]int32, members),
		buckets: make([]bucket, buckets), issue: issue, done: done, most: int64(cfg.Chunk)}
	if cfg.MaxTransfer > 0 {
		x.most = min(x.most, int64(cfg.MaxTransfer))
	}
	x.data = cfg.Data(members)
	if x.rows == 0 {
		return nil, units.Wrong("chunk", "members of %v are smaller than a chunk of %v", units.Bytes(each), cfg.Chunk)
	}
	for _, m := range cfg.Failed {
		x.failed[m] = true
	}
	if cfg.Rebuild > 0 {
		x.rebuild = cfg.Failed[0]
	}
	return x, nil
}

// Capacity returns the volume's size in bytes.
func (x *Raid) Capacity() int64 { return x.rows * int64(x.data) * x.chunk }

// Under returns the number of commands outstanding at members.
func (x *Raid) Under() (n uint64) {
	for _, u := range x.under {
		n += uint64(u)
	}
	return n
}

// Asked returns the number of commands issued to members.
func (x *Raid) Asked() (n uint64) {
	for _, c := range x.Counters.Commands {
		n += c
	}
	return n
}

// Inside returns the number of outstanding requests.
func (x *Raid) Inside() int { return x.requests.Len() }

// dead reports whether a member lacks a row: it has failed, and the rebuild has not reached the row. Writes skip such a
// member too, because the rebuild will write the row.
func (x *Raid) dead(member int, row int64) bool {
	return x.failed[member] && (member != x.rebuild || row >= x.rebuilt)
}

// holder returns the member with a row's j-th data chunk or, from j = data on, its parities.
func (x *Raid) holder(row int64, j int) int {
	switch x.cfg.Level {
	case 5, 6:
		p := x.members - 1 - int(row%int64(x.members))
		if j >= x.data {
			return (p + j - x.data) % x.members
		}
		return (p + x.members - x.data + j) % x.members
	case 1:
		return j * x.cfg.Copies // the first of the copies
	}
	return j
}

// Begin starts a request. Its completion is reported by done, never from inside Begin.
func (x *Raid) Begin(r block.Request) {
	p := x.requests.Take()
	*x.requests.At(p) = request{tag: r.Tag, left: 1}
	r.Data = nil // content is not modelled
	size := x.Capacity()
	switch {
	case r.Op >= block.Ops:
		x.single(p, block.Request{Op: block.Read}) // of no length, which a member rejects as Invalid too
	case r.Namespace != 0 || r.Append || r.Op.OfZone() ||
		r.Op != block.Flush && (r.Offset < 0 || r.Length <= 0 || r.Offset%512 != 0 || r.Length%512 != 0):
		// a member rejects it for the same reason
		x.single(p, block.Request{Op: r.Op, Offset: r.Offset, Length: r.Length, Namespace: r.Namespace,
			Append: r.Append})
	case r.Op != block.Flush && r.Offset > size-r.Length:
		x.single(p, block.Request{Op: block.Read, Offset: 1<<62 - 512, Length: 512}) // out of range on the member too
	case r.Op == block.Flush:
		o := x.open(p, &r)
		for m := range x.members {
			if !x.failed[m] || m == x.rebuild {
				x.send(m, o, block.Request{Op: block.Flush})
			}
		}
	case r.Op == block.Trim && x.cfg.parities() > 0:
		x.trim(p, &r)
	case x.cfg.parities() == 0 && (r.Op != block.Write || !x.Rebuilding()):
		x.plain(p, &r)
	case r.Op == block.Read:
		x.each(&r, func(row, from, to int64) { x.readRow(x.open(p, &r), row, from, to) })
	default:
		x.each(&r, func(row, from, to int64) {
			o := x.open(p, &r)
			v := x.ops.At(o)
			v.kind, v.row, v.from, v.to = writeRow, row, from, to
			x.hold(o)
		})
	}
	x.close(p)
}

// open starts a part of a request.
func (x *Raid) open(parent int32, r *block.Request) int32 {
	x.requests.At(parent).left++
	o := x.ops.Take()
	*x.ops.At(o) = op{parent: parent, force: r.ForceUnit, placement: r.Placement}
	return o
}

// close drops a reference to a request, held by Begin or by a part. The last one completes it.
func (x *Raid) close(p int32) {
	q := x.requests.At(p)
	if q.left--; q.left > 0 {
		return
	}
	tag, status := q.tag, q.status
	x.requests.Give(p)
	x.done(tag, status)
}

// single sends a command to the first working member, for a request that only needs a status.
func (x *Raid) single(p int32, r block.Request) {
	o := x.open(p, &r)
	for m := range x.members {
		if !x.failed[m] {
			x.send(m, o, r)
			return
		}
	}
	x.send(x.rebuild, o, r)
}

// send issues commands to a member for a range, split at the largest transfer.
func (x *Raid) send(member int, o int32, r block.Request) {
	r.Tag = uint64(member)<<32 | uint64(o)
	if r.Length <= x.most || r.Op == block.Trim {
		x.count(member, o, &r)
		x.issue(member, r)
		return
	}
	for end := r.Offset + r.Length; r.Offset < end; r.Offset += x.most {
		part := r
		part.Length = min(x.most, end-r.Offset)
		x.count(member, o, &part)
		x.issue(member, part)
	}
}

func (x *Raid) count(member int, o int32, r *block.Request) {
	x.ops.At(o).left++
	x.under[member]++
	x.Counters.Commands[r.Op]++
	x.Counters.Bytes[r.Op] += uint64(r.Length)
}

// at returns a command for a range of a row on a member.
func (x *Raid) at(o int32, op block.Op, row, from, to int64) block.Request {
	v := x.ops.At(o)
	r := block.Request{Op: op, Offset: row*x.chunk + from, Length: to - from}
	if op == block.Write {
		r.ForceUnit, r.Placement = v.force, v.placement
	}
	return r
}

// each calls visit for the rows of a request.
func (x *Raid) each(r *block.Request, visit func(row, from, to int64)) {
	width := int64(x.data) * x.chunk
	for at, end := r.Offset, r.Offset+r.Length; at < end; {
		row := at / width
		to := min(end-row*width, width)
		visit(row, at-row*width, to)
		at = row*width + to
	}
}

// plain executes a request without parity, on stripes or mirrors.
func (x *Raid) plain(p int32, r *block.Request) {
	o := x.open(p, r)
	x.each(r, func(row, from, to int64) {
		for j := from / x.chunk; j*x.chunk < to; j++ {
			lo, hi := max(from-j*x.chunk, 0), min(to-j*x.chunk, x.chunk)
			first := x.holder(row, int(j))
			switch {
			case x.cfg.Level == 0:
				x.send(first, o, x.at(o, r.Op, row, lo, hi))
			case r.Op == block.Read:
				x.send(x.nearest(first, row), o, x.at(o, r.Op, row, lo, hi))
			default:
				x.mirror(o, r.Op, row, first, lo, hi)
			}
		}
	})
}

// mirror writes or trims a range of a row on all working copies.
func (x *Raid) mirror(o int32, op block.Op, row int64, first int, lo, hi int64) {
	for m := first; m < first+x.cfg.Copies; m++ {
		if !x.dead(m, row) {
			x.send(m, o, x.at(o, op, row, lo, hi))
		}
	}
}

// nearest returns the copy to read from: the one with the fewest outstanding commands, rotating among equals.
func (x *Raid) nearest(first int, row int64) int {
	best := -1
	n := x.cfg.Copies
	x.turn++
	for k := range n {
		m := first + (k+int(x.turn))%n
		if !x.dead(m, row) && (best < 0 || x.under[m] < x.under[best]) {
			best = m
		}
	}
	return best
}

// trim trims whole rows on all members. A partial row is not trimmed, because that would invalidate its parity.
func (x *Raid) trim(p int32, r *block.Request) {
	width := int64(x.data) * x.chunk
	first, end := (r.Offset+width-1)/width, (r.Offset+r.Length)/width
	if first >= end {
		x.single(p, block.Request{Op: block.Read, Length: 512}) // it still needs a completion
		return
	}
	o := x.open(p, r)
	for m := range x.members {
		if !x.failed[m] || m == x.rebuild {
			x.send(m, o, block.Request{Op: block.Trim, Offset: first * x.chunk, Length: (end - first) * x.chunk})
		}
	}
}

// cover returns the part of the row's j-th data chunk within a range; empty if lo >= hi.
func (x *Raid) cover(j int, from, to int64) (lo, hi int64) {
	return max(from-int64(j)*x.chunk, 0), min(to-int64(j)*x.chunk, x.chunk)
}

// readRow reads a range of a row, reconstructing the data of failed members from the others.
func (x *Raid) readRow(o int32, row, from, to int64) {
	lost, lo, hi := false, x.chunk, int64(0)
	for j := range x.data {
		if a, b := x.cover(j, from, to); a < b && x.dead(x.holder(row, j), row) {
			lost, lo, hi = true, min(lo, a), max(hi, b)
		}
	}
	if lost {
		x.Counters.Degraded++
		x.survivors(o, row, lo, hi, from, to)
		return
	}
	for j := range x.data {
		if a, b := x.cover(j, from, to); a < b {
			x.send(x.holder(row, j), o, x.at(o, block.Read, row, a, b))
		}
	}
}

// survivors reads a range from as many members of a row as it has data, data before parities, extended by a requested
// range of the row's data.
func (x *Raid) survivors(o int32, row, lo, hi, from, to int64) {
	need := x.data
	for j := 0; j < x.members && need > 0; j++ {
		m := x.holder(row, j)
		if x.dead(m, row) {
			continue
		}
		need--
		a, b := lo, hi
		if j < x.data {
			if c, d := x.cover(j, from, to); c < d {
				a, b = min(a, c), max(b, d)
			}
		}
		x.send(m, o, x.at(o, block.Read, row, a, b))
	}
}

// hold queues a part for its row, and starts it unless an earlier one holds the row.
func (x *Raid) hold(o int32) {
	v := x.ops.At(o)
	b := &x.buckets[v.row%buckets]
	waits := false
	for k := b.head; k != 0; k = x.ops.At(k).next {
		waits = waits || x.ops.At(k).row == v.row
	}
	if b.head == 0 {
		b.head = o
	} else {
		x.ops.At(b.tail).next = o
	}
	b.tail = o
	if waits {
		x.Counters.Waited++
		return
	}
	x.start(o)
}

// release unlocks a row and starts the next part that waits for it.
func (x *Raid) release(o int32) {
	row, next := x.ops.At(o).row, x.ops.At(o).next
	b := &x.buckets[row%buckets]
	before := int32(0)
	for k := b.head; k != o; k = x.ops.At(k).next {
		before = k
	}
	if before == 0 {
		b.head = next
	} else {
		x.ops.At(before).next = next
	}
	if b.tail == o {
		b.tail = before
	}
	for k := next; k != 0; k = x.ops.At(k).next {
		if x.ops.At(k).row == row {
			x.start(k)
			return
		}
	}
}

// start starts a part that holds its row: with reads, or with writes if no reads are needed.
func (x *Raid) start(o int32) {
	v := x.ops.At(o)
	row, from, to := v.row, v.from, v.to
	if v.kind == rebuildRow {
		if x.cfg.Level == 1 {
			first := x.rebuild / x.cfg.Copies * x.cfg.Copies
			x.send(x.nearest(first, row), o, x.at(o, block.Read, row, 0, x.chunk))
			return
		}
		x.survivors(o, row, 0, x.chunk, 0, 0)
		return
	}
	if x.cfg.Level == 1 { // the row lock only separates it from the rebuild
		x.store(o)
		return
	}
	lo, hi := x.span(from, to)
	parities, touched, rest := 0, 0, 0
	touchedGone, restGone := false, false
	for j := range x.members {
		m := x.holder(row, j)
		gone := x.dead(m, row)
		switch a, b := x.cover(j, from, to); {
		case j >= x.data:
			if !gone {
				parities++
			}
		default:
			if a < b {
				touched++
				touchedGone = touchedGone || gone
			}
			if a >= b || a > lo || b < hi {
				rest++
				restGone = restGone || gone
			}
		}
	}
	c := &x.Counters
	switch {
	case parities == 0:
		c.Bare++
		x.store(o)
	case rest == 0:
		c.FullRows++
		x.store(o)
	case !touchedGone && (restGone || touched+parities <= rest):
		c.Modified++
		for j := range x.members {
			m := x.holder(row, j)
			a, b := lo, hi
			if j < x.data {
				a, b = x.cover(j, from, to)
			}
			if a < b && !x.dead(m, row) {
				x.send(m, o, x.at(o, block.Read, row, a, b))
			}
		}
	case !restGone:
		c.Rebuilt++
		for j := range x.data {
			a, b := x.cover(j, from, to)
			switch {
			case a >= b:
				a, b = lo, hi
			case a > lo: // one command for the parts of the chunk before and after the range
				if b < hi {
					b = hi
				} else {
					b = a
				}
				a = lo
			case b < hi:
				a, b = b, hi
			default:
				continue
			}
			x.send(x.holder(row, j), o, x.at(o, block.Read, row, a, b))
		}
	default: // partly overwritten or untouched data is lost and must be reconstructed first
		c.Degraded++
		x.survivors(o, row, lo, hi, 0, 0)
	}
}

// span returns the range of a row's parities that changes with a range of its data.
func (x *Raid) span(from, to int64) (lo, hi int64) {
	if from/x.chunk == (to-1)/x.chunk {
		return from % x.chunk, (to-1)%x.chunk + 1
	}
	return 0, x.chunk
}

// store issues the writes of data and parities, after the reads.
func (x *Raid) store(o int32) {
	v := x.ops.At(o)
	v.second = true
	row, from, to := v.row, v.from, v.to
	if v.kind == rebuildRow {
		x.send(x.rebuild, o, x.at(o, block.Write, row, 0, x.chunk))
		return
	}
	if x.cfg.Level == 1 {
		for j := range x.data {
			if a, b := x.cover(j, from, to); a < b {
				x.mirror(o, block.Write, row, x.holder(row, j), a, b)
			}
		}
		return
	}
	lo, hi := x.span(from, to)
	for j := range x.members {
		m := x.holder(row, j)
		a, b := lo, hi
		if j < x.data {
			a, b = x.cover(j, from, to)
		}
		if a < b && !x.dead(m, row) {
			x.send(m, o, x.at(o, block.Write, row, a, b))
		}
	}
}

// Owner returns the tag of the request that a command belongs to, or false for a rebuild command.
func (x *Raid) Owner(tag uint64) (uint64, bool) {
	parent := x.ops.At(int32(uint32(tag))).parent
	if parent == 0 {
		return 0, false
	}
	return x.requests.At(parent).tag, true
}

// Ended handles the completion of a command.
func (x *Raid) Ended(tag uint64, status block.Status) {
	x.under[tag>>32]--
	x.Counters.Ended++
	o := int32(uint32(tag))
	v := x.ops.At(o)
	if status != block.OK {
		v.status = status
	}
	if v.left--; v.left > 0 {
		return
	}
	if v.kind != direct && !v.second && v.status == block.OK {
		x.store(o)
		if x.ops.At(o).left > 0 {
			return
		}
	}
	v = x.ops.At(o)
	parent, kind, failed := v.parent, v.kind, v.status
	if kind == rebuildRow { // before a waiting write of the row starts, because it must also go to the new member
		x.moving = false
		x.rebuilt++
		x.Counters.RebuiltRows++
	}
	if kind != direct {
		x.release(o)
	}
	x.ops.Give(o)
	if kind == rebuildRow {
		return
	}
	if failed != block.OK {
		x.requests.At(parent).status = failed
	}
	x.close(parent)
}

// Rebuild advances the rebuild. since is the time since its start. It returns the time of the next call, or false if
// the rebuild is complete or there is none.
func (x *Raid) Rebuild(since units.Duration) (next units.Duration, more bool) {
	if x.rebuild < 0 {
		return 0, false
	}
	due := func(row int64) units.Duration {
		return units.Duration(float64(row) * float64(x.chunk) / float64(x.cfg.Rebuild) * float64(units.Second))
	}
	if !x.moving && x.rebuilt < x.rows && due(x.rebuilt) <= since {
		x.moving = true
		o := x.ops.Take()
		*x.ops.At(o) = op{kind: rebuildRow, row: x.rebuilt}
		x.hold(o)
	}
	if x.rebuilt >= x.rows {
		return 0, false
	}
	row := x.rebuilt
	if x.moving {
		row++
	}
	// If the row is late, check again after the time of one chunk.
	return max(due(row), since+max(due(1), 1)), true
}

// Rebuilding reports whether a rebuild is in progress.
func (x *Raid) Rebuilding() bool { return x.rebuild >= 0 && x.rebuilt < x.rows }

// Rebuilt returns the rebuilt share of the member, 1 if there is no rebuild.
func (x *Raid) Rebuilt() float64 {
	if x.rebuild < 0 {
		return 1
	}
	return float64(x.rebuilt) / float64(x.rows)
}

// waiting is a command that a member's queue had no entry for.
type waiting struct {
	queue block.QueueID
	part  block.Request
}

type backlog = fifo.Ring[waiting]
