// Package accounts measures each workload, job, tenant, namespace, volume and initiator separately.
//
// Its main type is Book: it receives every completed request, counts it for each division (a Scope), and fills the
// figures of each part into a result, under the names of the whole run's figures with a prefix,
// "tenant[2].read.latency.p99". A division with a single part is omitted, because its figures are the run's.
//
// If a warm-up must be excluded, a Book returns its counts in slices (Cut), like the run's own meter; they are merged
// and restored like that meter's.
//
// Fairness is Jain's index (Jain, Chiu, Hawe: "A Quantitative Measure of Fairness and Discrimination", DEC TR-301,
// 1984) of the tenants' bandwidths and progress, and the smallest slowdown over the largest, as in MQSim (Tavakkol et
// al., FAST 2018).
//
// It leaves out parts beyond the first 256 of a scope, with a warning, and the latency breakdown by part.
package accounts

import (
	"cmp"
	"slices"

	"farflash/block"
	"farflash/experiment/requests"
	"farflash/model/cosim"
	"farflash/numeric/stats"
	"farflash/scenario"
	"farflash/sim"
)

// MostParts is the largest number of parts of a scope with figures, mostHistograms the largest number of parts whose
// distributions are in the result.
const (
	MostParts      = 256
	mostHistograms = 64
)

// The scopes, in the order of their names in results.
const (
	workload = iota
	job
	tenant
	volume
	initiator
	namespace
	scopes
)

var scopeNames = [scopes]struct{ name, noun string }{
	{"workload", "workload"}, {"job", "job of a fio file"}, {"tenant", "tenant"}, {"volume", "volume of a trace"},
	{"initiator", "initiator"},
	{"namespace", "namespace of a local drive"},
}

// Book holds the accounts of a run.
type Book struct {
	s     *scenario.Scenario
	flows *requests.Flows
	scope [scopes]division
	// several means that some scope has, or may have, several parts.
	several bool
	job     []int32   // by flow
	item    []int32   // the workload's item
	owner   []int32   // the tenant
	at      []stretch // by tenant
	space   []int32   // the namespace, of a local drive
	// Volumes are found on first use, ordered by item and number.
	volumes []volumeKey
	last    volumeKey // the one found last
}

// stretch is the active period of a tenant: from its first arrival to its last completion.
type stretch struct{ first, last sim.Time }

// division is one scope.
type division struct {
	kept  bool // there are, or may be, several parts
	parts []*part
	names []string
	left  uint64 // requests of parts beyond the limit
}

// Latencies are kept for reads, for writes, and for all others together.
const (
	others = block.Write + 1
	kinds  = others + 1
)

// part holds the counts of one part.
type part struct {
	latency      [kinds]stats.Histogram
	count, bytes [block.Ops]int64
}

type volumeKey struct {
	item, number uint32
	part         int32
}

// New returns the accounts of a run with these flows, of a system with the given number of initiators; 0 without a
// system.
func New(s *scenario.Scenario, flows *requests.Flows, initiators int) *Book {
	b := &Book{s: s, flows: flows}
	names, of, named := s.Tenants()
	b.at = make([]stretch, len(names))
	jobs := len(flows.List) / flows.Copies()
	// Jobs are numbered in the order of the workload, regardless of their start times.
	order := make([]int32, jobs)
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(flows.Items[a], flows.Items[b]) })
	number := make([]int32, jobs)
	for k, i := range order {
		number[i] = int32(k)
	}
	for i := range flows.List {
		item := flows.Items[i]
		b.item, b.owner, b.job = append(b.item, int32(item)), append(b.owner, int32(of[item])),
			append(b.job, number[i%max(jobs, 1)])
		b.space = append(b.space, int32(s.Workload[item].Namespace))
	}
	add := func(scope int, n int, name func(i int) string) {
		x := &b.scope[scope]
		x.kept = n > 1
		for i := range min(n, MostParts) {
			if x.kept {
				x.parts, x.names = append(x.parts, nil), append(x.names, name(i))
			}
		}
	}
	add(workload, len(s.Workload), s.LoadName)
	if jobs > running(s) {
		add(job, jobs, func(i int) string { return flows.List[order[i]].Name })
	}
	if named {
		add(tenant, len(names), func(i int) string { return names[i] })
	}
	for i := range s.Workload {
		b.scope[volume].kept = b.scope[volume].kept || s.Workload[i].Trace != nil
	}
	b.last.item = ^uint32(0)
	add(initiator, initiators, func(i int) string { return "" })
	if x := s.DriveOf(0); x != nil && initiators == 0 {
		add(namespace, len(x.Namespaces), func(i int) string { return "" })
	}
	b.several = slices.ContainsFunc(b.scope[:], func(d division) bool { return d.kept })
	return b
}

// running is the number of active items of the workload.
func running(s *scenario.Scenario) (n int) {
	for i := range s.Workload {
		if s.Runs(i) {
			n++
		}
	}
	return n
}

// Sign sets the workload, job and tenant of a request.
func (b *Book) Sign(x *cosim.Sample) {
	x.Workload, x.Job, x.Tenant = b.item[x.Flow], b.job[x.Flow], b.owner[x.Flow]
}

// Add counts a completed request; by is its initiator in a system.
func (b *Book) Add(x *cosim.Sample, latency sim.Time, by int32) {
	if b.several {
		b.add(x, latency, by)
	}
}

func (b *Book) add(x *cosim.Sample, latency sim.Time, by int32) {
	if t := &b.at[b.owner[x.Flow]]; t.last == 0 {
		*t = stretch{x.Arrival, x.Finished}
	} else {
		t.first, t.last = min(t.first, x.Arrival), max(t.last, x.Finished)
	}
	b.count(workload, b.item[x.Flow], x, latency)
	b.count(job, b.job[x.Flow], x, latency)
	b.count(tenant, b.owner[x.Flow], x, latency)
	if b.scope[volume].kept {
		b.count(volume, b.volume(uint32(b.item[x.Flow]), x.Volume), x, latency)
	}
	b.count(initiator, by, x, latency)
	b.count(namespace, b.space[x.Flow], x, latency)
}

func (b *Book) count(scope int, number int32, x *cosim.Sample, latency sim.Time) {
	d := &b.scope[scope]
	switch {
	case !d.kept:
		return
	case int(number) >= len(d.parts):
		d.left++
		return
	}
	p := d.parts[number]
	if p == nil {
		p = new(part)
		d.parts[number] = p
	}
	p.count[x.Op]++
	p.bytes[x.Op] += x.Size
	p.latency[min(x.Op, others)].Record(latency)
}

// Own is the active time of each tenant after the warm-up, which ends at from, in seconds: from its first arrival to
// the end of its last request. Other tenants may start or continue outside of it, which does not affect its rate. It is
// nil for a single tenant.
func (b *Book) Own(from sim.Time) []float64 {
	if !b.several {
		return nil
	}
	out := make([]float64, len(b.at))
	for i, t := range b.at {
		out[i] = max(0, t.last-max(t.first, from)).Seconds()
	}
	return out
}

// volume is the index of a workload's volume, in order of appearance.
func (b *Book) volume(item, number uint32) int32 {
	if b.last.item == item && b.last.number == number {
		return b.last.part
	}
	key := volumeKey{item: item, number: number}
	i, known := slices.BinarySearchFunc(b.volumes, key, func(a, b volumeKey) int {
		return cmp.Or(cmp.Compare(a.item, b.item), cmp.Compare(a.number, b.number))
	})
	if !known {
		d := &b.scope[volume]
		key.part = int32(len(b.volumes))
		b.volumes = slices.Insert(b.volumes, i, key)
		if len(d.parts) < MostParts {
			d.parts, d.names = append(d.parts, nil), append(d.names, b.flows.VolumeName(int(item), number))
		}
	}
	b.last = b.volumes[i]
	return b.last.part
}

// Slice holds the counts of a slice of time.
type Slice struct{ scope [scopes][]packed }

// packed is a part within a slice.
type packed struct {
	latency      [kinds]stats.Packed
	count, bytes [block.Ops]int64
}

// Cut ends a slice: the accounts are empty afterwards.
func (b *Book) Cut() *Slice {
	out := new(Slice)
	for k := range b.scope {
		d := &b.scope[k]
		if !d.kept {
			continue
		}
		list := make([]packed, len(d.parts))
		for i, p := range d.parts {
			if p == nil {
				continue
			}
			list[i] = packed{count: p.count, bytes: p.bytes}
			for op := range p.latency {
				list[i].latency[op] = p.latency[op].Pack()
			}
			p.count, p.bytes = [block.Ops]int64{}, [block.Ops]int64{}
		}
		out.scope[k] = list
	}
	return out
}

// Join adds the following slice.
func (s *Slice) Join(o *Slice) {
	for k := range s.scope {
		a, b := s.scope[k], o.scope[k]
		for len(a) < len(b) { // volumes that appeared later
			a = append(a, packed{})
		}
		for i := range b {
			for op := range b[i].count {
				a[i].count[op] += b[i].count[op]
				a[i].bytes[op] += b[i].bytes[op]
			}
			for op := range b[i].latency {
				a[i].latency[op] = stats.Join(&a[i].latency[op], &b[i].latency[op])
			}
		}
		s.scope[k] = a
	}
}

// Back restores a slice to the accounts.
func (b *Book) Back(s *Slice) {
	for k := range s.scope {
		d := &b.scope[k]
		for i := range s.scope[k] {
			x := &s.scope[k][i]
			if x.count == [block.Ops]int64{} {
				continue
			}
			if d.parts[i] == nil {
				d.parts[i] = new(part)
			}
			p := d.parts[i]
			for op := range x.count {
				p.count[op] += x.count[op]
				p.bytes[op] += x.bytes[op]
			}
			for op := range x.latency {
				p.latency[op].Unpack(&x.latency[op])
			}
		}
	}
}
