package reserve

import "farflash/sim"

// Intersect chooses for a gateway that sends one multicast to all replicas: the earliest window that at least replicas
// of the offers have in common, and that begins no earlier than an acceptance can have been sent. The picks, appended
// to dst, all have the same window: at most the accepted width, and at least the needed one. If more offers qualify,
// those that begin first are chosen. It returns false, and appends no picks, if there is no such window.
func (d *Durations) Intersect(now sim.Time, o *Offers, replicas int, dst []Pick) ([]Pick, bool) {
	soonest := now + d.Control
	if d.Compat.onlyNeighbours() {
		return d.intersectNeighbours(soonest, o, replicas, dst)
	}
	for i := range o.list {
		// The earliest common window begins where the last of its offers does, or as soon as possible.
		begin := max(o.list[i].Window.Left, soonest)
		n, end := 0, begin+d.Accepted
		kept := len(dst)
		for j := range o.list {
			f := &o.list[j]
			if f.Rejected || f.Window.Left > begin || f.Window.Right-begin < d.Needed {
				continue
			}
			dst = append(dst, Pick{Server: f.Server})
			end = min(end, f.Window.Right)
			if n++; n == replicas {
				return common(dst, kept, Window{begin, end}), true
			}
		}
		dst = dst[:kept]
	}
	return dst, false
}

// intersectNeighbours is Intersect as SURGE implements it.
func (d *Durations) intersectNeighbours(soonest sim.Time, o *Offers, replicas int, dst []Pick) ([]Pick, bool) {
	last := len(o.list) - replicas
	if d.Compat.skipsLast() {
		last--
	}
	for k := 0; k <= last; k++ {
		begin := max(o.list[k+replicas-1].Window.Left, soonest)
		end := begin + d.Accepted
		for _, f := range o.list[k : k+replicas] {
			end = min(end, f.Window.Right)
		}
		if end-begin < d.Needed {
			continue
		}
		kept := len(dst)
		for _, f := range o.list[k : k+replicas] {
			dst = append(dst, Pick{Server: f.Server})
		}
		return common(dst, kept, Window{begin, end}), true
	}
	return dst, false
}

// common sets the window of all picks from index from on.
func common(dst []Pick, from int, w Window) []Pick {
	for i := from; i < len(dst); i++ {
		dst[i].Window = w
	}
	return dst
}
