package cosim

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"farflash/block"
	"farflash/model/nvmf"
	"farflash/numeric/units"
	"farflash/sim"
	"farflash/workload/flows"
)

// Acceleration is how the arrivals of writes at drives go on from one iteration to the next.
type Acceleration uint8

// The accelerations. Relax and Aitken follow Irons and Tuck (1969), Anderson is Anderson's mixing (1965).
const (
	NoAcceleration Acceleration = iota // the arrivals of the last iteration
	Relax                              // a constant share of the change
	Aitken                             // a share that follows from the last two changes
	Anderson                           // the best mix of the last four iterations
)

var accelerationNames = units.Names[Acceleration]{"none", "relaxation", "aitken", "anderson"}

// String is the acceleration's name in scenarios.
func (a Acceleration) String() string { return accelerationNames.Name(a) }

// MarshalText writes the acceleration's name.
func (a Acceleration) MarshalText() ([]byte, error) { return accelerationNames.Marshal(a) }

// UnmarshalText reads an acceleration's name.
func (a *Acceleration) UnmarshalText(text []byte) error { return accelerationNames.Unmarshal(text, a) }

// IterativeConfig says how drives and network are simulated in turns.
type IterativeConfig struct {
	Threshold, StableRange float64 // of Conv_C, as shares
	StableFor              int
	Weights                [3]float64 // of mean, median and 90th percentile
	Most                   int        // iterations
	Full                   bool       // go on after it has converged
	Acceleration           Acceleration
	Relaxation             float64
	DriveDepth             int  // commands in a drive at once
	FirstWithoutWrites     bool // no write comes to its drive in the first iteration
	WritesToDeparture      bool // a write's delay is from its arrival to its departure from the drive
}

// Job is one request's part for one drive: one flow in the network and one command of a drive.
type Job struct {
	Arrival sim.Time // A of SNIS
	Request int32    // what it is a part of, numbered from 0
	Drive   int32
	Command block.Request
}

// Turn is what an iteration came to.
type Turn struct {
	// ConvC is SNIS' equation 3, and the distances its parts; 0 in the first iteration.
	ConvC, Mean, Median, P90 float64
	// Throughput has the requests' throughput, size over delay, at the shares of ThroughputShares,
	// in bytes per second.
	Throughput []float64
	// Pauses is how many pauses switches have sent.
	Pauses uint64
	// Settled is the time up to which nothing can change in later iterations: what happens depends on
	// what has happened before, and up to here all arrivals are those of the iteration before.
	Settled sim.Time
	// Changed is how many writes have come to their drives at another time than in the iteration
	// before.
	Changed int
}

// ThroughputShares are the quantiles of Turn.Throughput.
var ThroughputShares = []float64{0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99}

// Iterative is SNIS (Jia et al., IPCCC 2022, section III-C): the drives are simulated with the arrivals that are known,
// then the network with the departures that this gives, and again with the arrivals that this
// gives, until the throughput of requests no longer changes.
//
// An iteration is Begin, Storage for each drive, which may run at the same time, Network, and Finish; or Undo if it
// is given up before.
type Iterative struct {
	cfg      IterativeConfig
	jobs     []Job
	requests int
	byDrive  [][]int32  // jobs
	sa       []sim.Time // arrivals at drives, SA of SNIS: those of the next iteration once one has ended
	simulated
	before  simulated  // of the iteration before
	slowest []int32    // the job that a request waited for longest
	delay   []sim.Time // by request
	values  []float64  // throughputs, sorted
	last    [3]float64
	ended   int       // iterations
	past    []mixture // for accelerations
	omega   float64

	Turns []Turn
	// Converged is the index of the iteration in which it converged, -1 if it has not.
	Converged int
	// Fixed is the iteration that gave what the one before gave to the picosecond, -1 if none has.
	Fixed int
}

// simulated holds the results of one iteration, by job.
type simulated struct {
	// Departures from drives, arrivals at and departures from the network: SD, NA and ND of SNIS.
	sd, na, nd []sim.Time
	// How long each was held before its drive took it and how long the drive worked for others, and when its first
	// packet was sent.
	held, waited, begun []sim.Time
	stored              []sim.Time // what storage was given
}

// each visits the times that there are.
func (s *simulated) each(f func(*[]sim.Time)) {
	for _, x := range []*[]sim.Time{&s.sd, &s.na, &s.nd, &s.held, &s.waited, &s.begun, &s.stored} {
		f(x)
	}
}

// NewIterative prepares the iterations. first has the time at which each write comes to its drive in the first
// iteration; nil is its arrival.
func NewIterative(cfg IterativeConfig, jobs []Job, drives int, first func(job int) sim.Time) (*Iterative, error) {
	it := &Iterative{cfg: cfg, jobs: jobs, byDrive: make([][]int32, drives), Converged: -1, Fixed: -1,
		omega: cfg.Relaxation}
	n := len(jobs)
	it.sa = make([]sim.Time, n)
	it.each(func(x *[]sim.Time) { *x = make([]sim.Time, n) })
	for i := range jobs {
		j := &jobs[i]
		if j.Command.Op > block.Write {
			return nil, fmt.Errorf("request %d is a %v: drives and network in turns know reads and writes",
				j.Request+1, j.Command.Op)
		}
		it.byDrive[j.Drive] = append(it.byDrive[j.Drive], int32(i))
		it.sa[i], it.na[i] = j.Arrival, j.Arrival
		if j.Command.Op == block.Write && first != nil {
			it.sa[i] = first(i)
		}
		it.requests = max(it.requests, int(j.Request)+1)
	}
	it.delay = make([]sim.Time, it.requests)
	it.slowest = make([]int32, it.requests)
	it.values = make([]float64, it.requests)
	return it, nil
}

// Jobs is how many there are.
func (it *Iterative) Jobs() int { return len(it.jobs) }

// byTime orders jobs by time and number.
func byTime(list []int32, at []sim.Time) {
	slices.SortFunc(list, func(a, b int32) int { return cmp.Or(cmp.Compare(at[a], at[b]), cmp.Compare(a, b)) })
}

// Begin begins an iteration.
func (it *Iterative) Begin() {
	it.before = it.simulated
	it.each(func(x *[]sim.Time) { *x = slices.Clone(*x) })
}

// Undo discards an iteration that was begun and not finished; results are those of the previous one again.
func (it *Iterative) Undo() {
	it.simulated = it.before
	it.Turns = it.Turns[:it.ended]
}

// Storage simulates a drive, which make makes on an engine. Different drives may be simulated at the same
// time.
func (it *Iterative) Storage(drive int, make func(*sim.Engine, func(block.Completion)) (block.Device, error)) error {
	list := it.byDrive[drive]
	if it.withoutWrites() {
		list = it.readsOf(list)
	}
	byTime(list, it.sa)
	eng := sim.New()
	r := &replay{it: it, eng: eng, list: list, self: eng.NewComponent()}
	r.target = eng.AddHandler(r)
	var err error
	if r.dev, err = make(eng, r.completed); err != nil {
		return err
	}
	if r.queue, err = r.dev.Open(block.QueueConfig{Depth: min(it.cfg.DriveDepth+1, 65536), Class: block.Medium,
		Weight: 1}); err != nil {
		return err
	}
	r.await()
	eng.Run(sim.Forever)
	if r.err == nil && r.done != len(list) {
		r.err = fmt.Errorf("drive %d: %d of %d requests have not completed and nothing is left to happen", drive,
			len(list)-r.done, len(list))
	}
	return r.err
}

// withoutWrites reports whether drives see no writes in the iteration that is under way.
func (it *Iterative) withoutWrites() bool {
	return it.cfg.FirstWithoutWrites && it.ended == 0
}

// readsOf are the reads among jobs. The writes take no time.
func (it *Iterative) readsOf(list []int32) []int32 {
	var reads []int32
	for _, j := range list {
		if it.jobs[j].Command.Op == block.Read {
			reads = append(reads, j)
			continue
		}
		it.stored[j], it.sd[j] = it.sa[j], it.sa[j]
	}
	return reads
}

// replay gives a drive its commands at their times, as a target does.
type replay struct {
	it      *Iterative
	eng     *sim.Engine
	self    sim.Component
	target  sim.Target
	dev     block.Device
	queue   block.QueueID
	list    []int32
	next    int
	waiting []int32
	inside  int
	done    int
	err     error
}

func (r *replay) await() {
	if r.next < len(r.list) {
		r.eng.Schedule(r.self, r.target, r.it.sa[r.list[r.next]], 0, 0)
	}
}

// Handle implements sim.Handler: commands arrive.
func (r *replay) Handle(sim.Event) {
	for r.next < len(r.list) && r.it.sa[r.list[r.next]] <= r.eng.Now() {
		j := r.list[r.next]
		r.next++
		if len(r.waiting) > 0 || !r.enter(j) {
			r.waiting = append(r.waiting, j)
		}
	}
	r.await()
}

func (r *replay) enter(j int32) bool {
	c := r.it.jobs[j].Command
	c.Tag = uint64(j)
	if r.inside >= r.it.cfg.DriveDepth || !r.dev.Submit(r.queue, c) {
		return false
	}
	r.inside++
	r.it.stored[j], r.it.held[j] = r.it.sa[j], r.eng.Now()-r.it.sa[j]
	return true
}

func (r *replay) completed(c block.Completion) {
	j := int32(c.Tag)
	if c.Status != block.OK && c.Status != block.ReadFault && r.err == nil {
		r.err = fmt.Errorf("request %d: %v", r.it.jobs[j].Request+1, c.Status)
		r.eng.Stop()
	}
	r.it.sd[j] = r.eng.Now()
	r.it.waited[j] = min(c.Waited, r.it.sd[j]-r.it.stored[j]-r.it.held[j])
	r.inside--
	r.done++
	for len(r.waiting) > 0 && r.enter(r.waiting[0]) {
		r.waiting = r.waiting[1:]
	}
}

// Network simulates the network: run is given a flow for each job, in order of their starts, and returns when the
// first packet of each was sent and its last byte delivered, and how many pauses switches have sent.
func (it *Iterative) Network(ends func(job *Job) (src, dst int32), class uint8,
	run func([]flows.Flow) (func(flow int) (begun, delivered sim.Time), uint64, error)) error {
	order := make([]int32, len(it.jobs))
	for i := range it.jobs {
		order[i] = int32(i)
		if it.jobs[i].Command.Op == block.Read {
			it.na[i] = it.sd[i]
		}
	}
	byTime(order, it.na)
	list := make([]flows.Flow, len(order))
	for k, i := range order {
		j := &it.jobs[i]
		src, dst := ends(j)
		list[k] = flows.Flow{Src: src, Dst: dst, Class: class, Size: units.Bytes(j.Command.Length), Start: it.na[i]}
	}
	times, pauses, err := run(list)
	if err != nil {
		return err
	}
	for k, i := range order {
		begun, t := times(k)
		if t == sim.Forever {
			return fmt.Errorf("request %d never arrived: what was sent of it was lost", it.jobs[i].Request+1)
		}
		it.begun[i], it.nd[i] = begun, t
	}
	it.Turns = append(it.Turns, Turn{Pauses: pauses})
	return nil
}

// Delays are the requests' delays in the iteration that was simulated last, by request.
func (it *Iterative) Delays() []sim.Time { return it.delay }

// Times are the arrivals at and departures from the drive and the network of a job in the iteration that was
// simulated last.
func (it *Iterative) Times(job int) (sa, sd, na, nd sim.Time) {
	return it.stored[job], it.sd[job], it.na[job], it.nd[job]
}

// Part is the job that a request waited for longest in the iteration that was simulated last.
func (it *Iterative) Part(request int) int { return int(it.slowest[request]) }

// Stages are where the delay of a request went in the iteration that was simulated last: those of its Part.
func (it *Iterative) Stages(request int) (s [nvmf.Stages]sim.Time) {
	i := it.slowest[request]
	s[nvmf.AtTarget] = it.held[i]
	s[nvmf.DriveWait] = it.waited[i]
	s[nvmf.Flash] = it.sd[i] - it.stored[i] - it.held[i] - it.waited[i]
	if it.jobs[i].Command.Op == block.Write {
		s[nvmf.NetworkOut] = it.delay[request] - (it.sd[i] - it.stored[i])
		return s
	}
	s[nvmf.TXQ] = it.begun[i] - it.na[i]
	s[nvmf.NetworkBack] = it.nd[i] - it.begun[i]
	return s
}

// Finish ends an iteration and reports whether another is to follow.
func (it *Iterative) Finish() bool {
	size := make([]int64, it.requests)
	clear(it.delay)
	for i := range it.jobs {
		j := &it.jobs[i]
		d := it.nd[i] - j.Arrival
		switch {
		case j.Command.Op == block.Read || it.withoutWrites():
		case it.cfg.WritesToDeparture:
			d = it.sd[i] - j.Arrival
		default:
			d += it.sd[i] - it.sa[i]
		}
		if d >= it.delay[j.Request] {
			it.delay[j.Request], it.slowest[j.Request] = d, int32(i)
		}
		size[j.Request] += j.Command.Length
	}
	sum := 0.0
	for r, d := range it.delay {
		it.values[r] = float64(size[r]) / max(d.Seconds(), 1e-12)
		sum += it.values[r]
	}
	slices.Sort(it.values)
	now := [3]float64{sum / float64(len(it.values)), it.quantile(0.5), it.quantile(0.9)}
	n := len(it.Turns) - 1
	t := &it.Turns[n]
	for _, s := range ThroughputShares {
		t.Throughput = append(t.Throughput, it.quantile(s))
	}
	if n > 0 {
		var rd [3]float64
		for k := range rd {
			rd[k] = RelativeDistance(now[k], it.last[k])
			t.ConvC += float64(it.cfg.Weights[k] * rd[k])
		}
		t.Mean, t.Median, t.P90 = rd[0], rd[1], rd[2]
	}
	it.last = now
	if it.Converged < 0 && it.stable(n) {
		it.Converged = n
	}
	it.update(n)
	it.ended++
	return n+1 < it.cfg.Most && (it.Converged < 0 || it.cfg.Full)
}

// quantile is the smallest throughput that at least a share of requests do not exceed.
func (it *Iterative) quantile(share float64) float64 {
	i := int(math.Ceil(share*float64(len(it.values)))) - 1
	return it.values[min(max(i, 0), len(it.values)-1)]
}

// RelativeDistance is SNIS' equation 4.
func RelativeDistance(x, y float64) float64 {
	if m := max(x, y); m > 0 {
		return math.Abs(x-y) / m
	}
	return 0
}

// stable reports whether iteration n has converged by one of SNIS' two conditions.
func (it *Iterative) stable(n int) bool {
	if n == 0 {
		return false
	}
	if it.Turns[n].ConvC < it.cfg.Threshold {
		return true
	}
	// The first has none before it.
	if n-it.cfg.StableFor < 1 {
		return false
	}
	for k := n - it.cfg.StableFor + 1; k <= n; k++ {
		if math.Abs(it.Turns[k].ConvC-it.Turns[k-1].ConvC) > it.cfg.StableRange {
			return false
		}
	}
	return true
}
