package ratecontrol

// The waiting commands are in a treap ordered by their first address and augmented with the greatest end of each
// subtree, so that the k commands that overlap a range are found in O(height + k) (Cormen et al., Introduction to
// Algorithms, section 14.3; Seidel and Aragon, 1996). Ranks come from the treap's own generator and depend only on the
// number of earlier commands, which keeps runs reproducible.

// first reports whether slot a precedes slot b in the tree.
func (q *Queues) first(a, b int32) bool {
	x, y := &q.slots[a], &q.slots[b]
	return x.lo < y.lo || x.lo == y.lo && a < b
}

// update recomputes the greatest end of a subtree.
func (q *Queues) update(i int32) {
	x := &q.slots[i]
	x.most = x.hi
	if x.left != 0 {
		x.most = max(x.most, q.slots[x.left].most)
	}
	if x.right != 0 {
		x.most = max(x.most, q.slots[x.right].most)
	}
}

// insert adds a slot to the tree.
func (q *Queues) insert(i int32) {
	q.seed ^= q.seed << 13 // xorshift: Marsaglia, 2003
	q.seed ^= q.seed >> 17
	q.seed ^= q.seed << 5
	x := &q.slots[i]
	x.rank, x.most = q.seed, x.hi
	q.root = q.put(q.root, i)
}

func (q *Queues) put(at, i int32) int32 {
	if at == 0 {
		return i
	}
	x := &q.slots[at]
	if q.slots[i].rank > x.rank {
		q.slots[i].left, q.slots[i].right = q.split(at, i)
		q.update(i)
		return i
	}
	if q.first(i, at) {
		x.left = q.put(x.left, i)
	} else {
		x.right = q.put(x.right, i)
	}
	x.most = max(x.most, q.slots[i].hi)
	return at
}

// split divides a tree into the parts before and after a slot.
func (q *Queues) split(at, i int32) (left, right int32) {
	if at == 0 {
		return 0, 0
	}
	x := &q.slots[at]
	if q.first(i, at) {
		left, x.left = q.split(x.left, i)
		right = at
	} else {
		x.right, right = q.split(x.right, i)
		left = at
	}
	q.update(at)
	return left, right
}

// remove removes a slot from the tree.
func (q *Queues) remove(at, i int32) int32 {
	x := &q.slots[at]
	if at == i {
		return q.join(x.left, x.right)
	}
	if q.first(i, at) {
		x.left = q.remove(x.left, i)
	} else {
		x.right = q.remove(x.right, i)
	}
	q.update(at)
	return at
}

// join merges two trees, the first of which precedes the second.
func (q *Queues) join(left, right int32) int32 {
	switch {
	case left == 0:
		return right
	case right == 0:
		return left
	case q.slots[left].rank > q.slots[right].rank:
		q.slots[left].right = q.join(q.slots[left].right, right)
		q.update(left)
		return left
	}
	q.slots[right].left = q.join(left, q.slots[right].left)
	q.update(right)
	return right
}

// overlapping appends to found the slots that overlap a range, in order of addresses.
func (q *Queues) overlapping(at int32, lo, hi int64) {
	for at != 0 {
		x := &q.slots[at]
		if x.most <= lo {
			return
		}
		q.overlapping(x.left, lo, hi)
		if x.lo >= hi {
			return
		}
		if x.hi > lo {
			q.found = append(q.found, at)
		}
		at = x.right
	}
}
