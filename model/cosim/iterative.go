package cosim

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"farflash/block"
	"farflash/model/nvmf"
	"farflash/numeric/units"
	"farflash/sim"
	"farflash/workload/flows"
)

// Acceleration is how the arrivals of writes at drives are carried from one iteration to the next.
type Acceleration uint8

// The accelerations. Relax and Aitken follow Irons and Tuck (1969), Anderson is Anderson's mixing (1965).
const (
	NoAcceleration Acceleration = iota // the arrivals of the last iteration
	Relax                              // a constant share of the change
	Aitken                             // a share computed from the last two changes
	Anderson                           // the best mix of the last four iterations
)

var accelerationNames = units.Names[Acceleration]{"none", "relaxation", "aitken", "anderson"}

func (a Acceleration) String() string { return accelerationNames.Name(a) }

func (a Acceleration) MarshalText() ([]byte, error) { return accelerationNames.Marshal(a) }

func (a *Acceleration) UnmarshalText(text []byte) error { return accelerationNames.Unmarshal(text, a) }

// IterativeConfig configures the alternating simulation of drives and network.
type IterativeConfig struct {
	Threshold, StableRange float64 // of Conv_C, as shares
	StableFor              int
	Weights                [3]float64 // of mean, median and 90th percentile
	Most                   int        // largest number of iterations
	Full                   bool       // continue after convergence
	Acceleration           Acceleration
	Relaxation             float64
	DriveDepth             int  // largest number of commands in a drive at once
	FirstWithoutWrites     bool // drives receive no writes in the first iteration
	WritesToDeparture      bool // a write's delay is from its arrival to its departure from the drive
}

// Job is the part of a request for one drive: one flow and one command.
type Job struct {
	Arrival sim.Time // A of SNIS
	Request int32    // the request it belongs to, numbered from 0
	Drive   int32
	Command block.Request
}

// Turn is the outcome of an iteration.
type Turn struct {
	// ConvC is equation 3 of SNIS, and the distances are its parts; 0 in the first iteration.
	ConvC, Mean, Median, P90 float64
	// Throughput is the requests' throughput, size over delay, at the shares of ThroughputShares, in bytes per second.
	Throughput []float64
	Pauses     uint64 // Pauses is the number of pauses that switches sent.
	// Settled is the time before which later iterations cannot change: events depend only on earlier ones, and before
	// it all arrivals equal those of the previous iteration.
	Settled sim.Time
	// Changed is the number of writes that arrived at their drives at another time than in the previous iteration.
	Changed int
}

// ThroughputShares are the quantiles of Turn.Throughput.
var ThroughputShares = []float64{0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99}

// Iterative implements SNIS (Jia et al., IPCCC 2022, section III-C): it simulates the drives with the known arrivals,
// then the network with the resulting departures, until the throughput no longer changes. An iteration is Begin,
// Storage for each drive, which may run concurrently, Network, and Finish; or Undo.
type Iterative struct {
	cfg      IterativeConfig
	jobs     []Job
	requests int
	byDrive  [][]int32  // jobs
	sa       []sim.Time // arrivals at drives, SA of SNIS; after an iteration, those of the next
	simulated
	before  simulated  // results of the previous iteration
	slowest []int32    // by request, the job with the longest delay
	delay   []sim.Time // by request
	values  []float64  // throughputs, sorted
	last    [3]float64
	ended   int       // completed iterations
	past    []mixture // history for accelerations
	omega   float64

	Turns     []Turn
	Converged int // Converged is the index of the iteration that converged, -1 if none has.
	// Fixed is the iteration that repeated the previous one to the picosecond, -1 if none has.
	Fixed int
}

// simulated holds the results of one iteration, by job.
type simulated struct {
	// Departures from drives, and arrivals at and departures from the network: SD, NA and ND of SNIS.
	sd, na, nd []sim.Time
	// How long each was held before its drive accepted it, how long the drive worked for others, and when its first
	// packet was sent.
	held, waited, begun []sim.Time
	stored              []sim.Time // the arrivals that storage was given
}

// each calls f for each of the slices.
func (s *simulated) each(f func(*[]sim.Time)) {
	for _, x := range []*[]sim.Time{&s.sd, &s.na, &s.nd, &s.held, &s.waited, &s.begun, &s.stored} {
		f(x)
	}
}

// NewIterative prepares iterations. first returns when a write reaches its drive in the first; nil: at its arrival.
func NewIterative(cfg IterativeConfig, jobs []Job, drives int, first func(job int) sim.Time) (*Iterative, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if len(jobs) == 0 || drives < 1 || drives > math.MaxInt32 {
		return nil, fmt.Errorf("cosim: %d jobs on %d drives; use at least one of both", len(jobs), drives)
	}
	it := &Iterative{cfg: cfg, jobs: jobs, byDrive: make([][]int32, drives), Converged: -1, Fixed: -1,
		omega: cfg.Relaxation}
	n := len(jobs)
	it.sa = make([]sim.Time, n)
	it.each(func(x *[]sim.Time) { *x = make([]sim.Time, n) })
	for i := range jobs {
		j := &jobs[i]
		if j.Command.Op > block.Write {
			return nil, fmt.Errorf("request %d is a %v: drives and network in turns support only reads and writes",
				j.Request+1, j.Command.Op)
		}
		if err := j.check(len(jobs), drives); err != nil {
			return nil, fmt.Errorf("cosim: jobs[%d]: %w", i, err)
		}
		it.byDrive[j.Drive] = append(it.byDrive[j.Drive], int32(i))
		// In every iteration a read arrives at its drive, and a write at the network, at A.
		it.sa[i], it.na[i] = j.Arrival, j.Arrival
		if j.Command.Op == block.Write && first != nil {
			if it.sa[i] = first(i); it.sa[i] < 0 {
				return nil, fmt.Errorf("cosim: jobs[%d] first arrives at %v; use 0s or more", i, it.sa[i])
			}
		}
		it.requests = max(it.requests, int(j.Request)+1)
	}
	it.delay = make([]sim.Time, it.requests)
	it.slowest = make([]int32, it.requests)
	it.values = make([]float64, it.requests)
	return it, nil
}

// byTime sorts jobs by time, then by number.
func byTime(list []int32, at []sim.Time) {
	slices.SortFunc(list, func(a, b int32) int { return cmp.Or(cmp.Compare(at[a], at[b]), cmp.Compare(a, b)) })
}

// Begin starts an iteration from a copy of the previous one's results.
func (it *Iterative) Begin() {
	it.before = it.simulated
	it.each(func(x *[]sim.Time) { *x = slices.Clone(*x) })
}

// Undo discards an iteration that was begun and not finished.
func (it *Iterative) Undo() {
	it.simulated = it.before
	it.Turns = it.Turns[:it.ended]
}

// Storage simulates a drive, which make creates on an engine of its own; several may run concurrently.
func (it *Iterative) Storage(drive int, make func(*sim.Engine, func(block.Completion)) (block.Device, error)) error {
	if drive < 0 || drive >= len(it.byDrive) || make == nil {
		return fmt.Errorf("cosim: there is no drive %d among %d, or nothing that makes it", drive, len(it.byDrive))
	}
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
	if r.dev == nil {
		return fmt.Errorf("cosim: drive %d is nil", drive)
	}
	// replay enforces DriveDepth. A queue of n entries holds n - 1 commands.
	if r.queue, err = r.dev.Open(block.QueueConfig{Depth: min(it.cfg.DriveDepth+1, 65536), Class: block.Medium,
		Weight: 1}); err != nil {
		return err
	}
	r.await()
	eng.Run(sim.Forever)
	if r.err == nil && r.done != len(list) {
		r.err = fmt.Errorf("drive %d: %d of %d requests have not completed and no events remain", drive,
			len(list)-r.done, len(list))
	}
	return r.err
}

// withoutWrites reports whether drives receive no writes in the current iteration.
func (it *Iterative) withoutWrites() bool {
	return it.cfg.FirstWithoutWrites && it.ended == 0
}

// readsOf returns the reads among jobs. Writes complete at once.
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

// await schedules the next arrival; there is at most one such event.
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

// enter submits a job unless the drive is full. held is the time from its arrival until then.
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

// completed records SD and lets the next waiting jobs enter, first come, first served. Lost data does not stop the run.
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

// Network simulates the network. run is given each job's flow, by start, and returns when the first packet of each was
// sent and its last byte delivered, and how many pauses switches sent.
func (it *Iterative) Network(ends func(job *Job) (src, dst int32), class uint8,
	run func([]flows.Flow) (func(flow int) (begun, delivered sim.Time), uint64, error)) error {
	if ends == nil || run == nil {
		return errors.New("cosim: the network's nodes, or its run, are nil")
	}
	if len(it.Turns) != it.ended {
		return errors.New("cosim: the network of this iteration has been simulated; use Finish, or Undo")
	}
	// NA is SD for reads, whose data leaves the drive, and A for writes.
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
	if times == nil {
		return errors.New("cosim: the network's run returns no times")
	}
	for k, i := range order {
		begun, t := times(k)
		if t == sim.Forever {
			return fmt.Errorf("request %d never arrived: its data were lost", it.jobs[i].Request+1)
		}
		it.begun[i], it.nd[i] = begun, t
	}
	it.Turns = append(it.Turns, Turn{Pauses: pauses})
	return nil
}

// Delays returns the last iteration's delays, by request.
func (it *Iterative) Delays() []sim.Time { return it.delay }

// Times returns a job's arrival at and departure from drive and network, in the last iteration.
func (it *Iterative) Times(job int) (sa, sd, na, nd sim.Time) {
	if uint(job) >= uint(len(it.jobs)) {
		panic(fmt.Sprintf("cosim: Times of job %d; there are %d", job, len(it.jobs)))
	}
	return it.stored[job], it.sd[job], it.na[job], it.nd[job]
}

// Part returns a request's job with the longest delay in the last iteration.
func (it *Iterative) Part(request int) int {
	it.known(request)
	return int(it.slowest[request])
}

// known refuses a request that no job belongs to.
func (it *Iterative) known(request int) {
	if uint(request) >= uint(it.requests) {
		panic(fmt.Sprintf("cosim: there is no request %d; the last is %d", request, it.requests-1))
	}
}

// Stages returns the stages of a request's Part in the last iteration.
func (it *Iterative) Stages(request int) (s [nvmf.Stages]sim.Time) {
	it.known(request)
	i := it.slowest[request]
	s[nvmf.AtTarget] = it.held[i]
	s[nvmf.DriveWait] = it.waited[i]
	s[nvmf.Flash] = it.sd[i] - it.stored[i] - it.held[i] - it.waited[i]
	// A write's network time is the remainder, so the stages add up to the delay under either reading of it.
	if it.jobs[i].Command.Op == block.Write {
		s[nvmf.NetworkOut] = it.delay[request] - (it.sd[i] - it.stored[i])
		return s
	}
	s[nvmf.TXQ] = it.begun[i] - it.na[i]
	s[nvmf.NetworkBack] = it.nd[i] - it.begun[i]
	return s
}

// Finish completes an iteration and reports whether another should follow.
func (it *Iterative) Finish() bool {
	if len(it.Turns) != it.ended+1 {
		panic("cosim: Finish of an iteration without its Network")
	}
	// Delay of a read: ND - A. Of a write: (ND - A) + (SD - SA), or SD - A with WritesToDeparture; without writes at
	// drives, ND - A. A request has the longest delay of its jobs.
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
		it.values[r] = float64(size[r]) / max(d.Seconds(), 1e-12) // bytes a second
		sum += it.values[r]
	}
	slices.Sort(it.values)
	now := [3]float64{sum / float64(len(it.values)), it.quantile(0.5), it.quantile(0.9)}
	n := len(it.Turns) - 1
	t := &it.Turns[n]
	for _, s := range ThroughputShares {
		t.Throughput = append(t.Throughput, it.quantile(s))
	}
	// Equation 3: Conv_C is the weighted sum of the relative distances to the previous iteration.
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

// quantile returns the smallest throughput that at least the given share of requests do not exceed.
func (it *Iterative) quantile(share float64) float64 {
	i := int(math.Ceil(share*float64(len(it.values)))) - 1
	return it.values[min(max(i, 0), len(it.values)-1)]
}

// RelativeDistance is equation 4 of SNIS.
func RelativeDistance(x, y float64) float64 {
	if m := max(x, y); m > 0 {
		return math.Abs(x-y) / m
	}
	return 0
}

// stable reports whether iteration n has converged by one of SNIS' two conditions. They are a Conv_C below Threshold,
// and StableFor successive changes of Conv_C of at most StableRange.
func (it *Iterative) stable(n int) bool {
	if n == 0 {
		return false
	}
	if it.Turns[n].ConvC < it.cfg.Threshold {
		return true
	}
	// The first iteration has no Conv_C.
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
