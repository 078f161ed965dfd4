package qos

import (
	"cmp"
	"fmt"

	"farflash/block"
	"farflash/numeric/units"
	"farflash/policy/ratecontrol"
)

// Steer divides one client's accesses to an export between reads and writes, by the rate at which the client's
// network accepts read data: the controllers and submission queues of a simulated target (package ratecontrol), in
// front of the pool. Offer queues an access, Next returns one that may begin, Done reports its end in the pool, and
// Sent that the network has taken what it read, or will not. A read keeps its place until then. Next may return more
// after each of them and after Tick, which is due at When. It is a plain state machine; times are the caller's, in
// nanoseconds, and must not go backwards. It does not allocate once it has held its largest number of accesses.
type Steer[T any] struct {
	ctl      ratecontrol.Controller
	steering ratecontrol.Steering
	signal   ratecontrol.Signal
	queues   *ratecontrol.Queues
	entries  []entry[T] // by identifier
	free     []int32
	demand   demand
	told     float64
	most     int64
	open     bool
}

// entry is an access that waits or has its place.
type entry[T any] struct {
	what   T
	ticket int32
	bytes  int64
	read   bool
	at     units.Duration // when it began, then when the pool had read it
}

// Places is the number of accesses of a client that are with the pool, or whose data the network has not taken.
const Places = 64

// line is the rate in bytes per second of a network that takes everything at once, 100 Gbit/s.
const line = 12.5e9

// CheckSteering reports whether a target's kind of rate control can act in front of a pool.
func CheckSteering(k ratecontrol.Kind) error {
	switch k {
	case ratecontrol.None, ratecontrol.AIMD, ratecontrol.Reserve:
		return nil
	case ratecontrol.SRC:
		return fmt.Errorf("src needs a model of the drive's throughput, which only simulated drives have; use " +
			"reserve or " +
			"aimd")
	}
	return fmt.Errorf("%v does not act in front of a pool; use reserve or aimd", k)
}

// NewSteer returns the state for one client, whose reads hold at most these bytes, or one of them more. k is a kind
// that CheckSteering accepts, other than none.
func NewSteer[T any](k ratecontrol.Kind, most int64) (*Steer[T], error) {
	c := ratecontrol.DefaultConfig()
	c.Kind = k
	ctl, err := ratecontrol.New(c, nil)
	if err == nil && ctl == nil {
		err = fmt.Errorf("there is no rate control")
	}
	if err == nil {
		err = CheckSteering(k)
	}
	if err != nil {
		return nil, fmt.Errorf("qos: %w", err)
	}
	s := &Steer[T]{ctl: ctl, queues: ratecontrol.NewQueues(Places), told: line, most: most}
	s.steering = ratecontrol.Steering{Weights: make([]ratecontrol.Weights, 1), Depth: Places, TXQ: lasting, Pairs: 1,
		Line: line, Wake: units.Forever}
	ctl.Start(&s.steering)
	s.queues.SetPartition(s.steering.Partition)
	return s, nil
}

// lasting is the capacity of the transmit queue, that of a connection's output: no limit here.
const lasting = 1 << 40

// duration converts nanoseconds.
func duration(nanos int64) units.Duration { return units.Duration(nanos) * units.Nanosecond }

// react passes the signal to the controller and applies its weights; the first access is a signal.
func (s *Steer[T]) react() {
	s.ctl.React(&s.steering, &s.signal)
	s.queues.SetWeights(s.steering.Weights[0].Read, s.steering.Weights[0].Write)
}

// Offer queues an access and returns its identifier, which is free again after Done, and for a read after Sent.
func (s *Steer[T]) Offer(now int64, read bool, offset, length int64, what T) (id int32) {
	if n := len(s.free); n > 0 {
		id, s.free = s.free[n-1], s.free[:n-1]
	} else {
		id = int32(len(s.entries))
		s.entries = append(s.entries, entry[T]{})
	}
	op := block.Write
	if read {
		op = block.Read
	}
	s.entries[id] = entry[T]{what: what, ticket: s.queues.Push(id, op, 0, offset, length), bytes: length, read: read}
	s.signal = ratecontrol.Signal{Event: ratecontrol.Arrived, Op: op, Now: duration(now), Bytes: length}
	s.react()
	return id
}

// Waiting is the number of accesses that wait.
func (s *Steer[T]) Waiting() int {
	return s.queues.Waiting(ratecontrol.ReadQueue) + s.queues.Waiting(ratecontrol.WriteQueue)
}

// Next removes and returns an access that may begin now.
func (s *Steer[T]) Next(now int64) (what T, ok bool) {
	limit := s.most
	if s.steering.ReadLimit > 0 && !s.open {
		limit = min(limit, s.steering.ReadLimit)
	}
	s.queues.Hold(ratecontrol.ReadQueue, s.steering.Reading >= limit)
	id, _, ok := s.queues.Next()
	if !ok {
		return what, false
	}
	x := &s.entries[id]
	x.at = duration(now)
	if x.read {
		s.steering.Reading += x.bytes
	}
	return x.what, true
}

// Done reports that the pool has completed an access. A read that has failed has nothing to send.
func (s *Steer[T]) Done(now int64, id int32, failed bool) {
	x := &s.entries[id]
	s.signal = ratecontrol.Signal{Event: ratecontrol.Ended, Op: block.Write, Now: duration(now), Bytes: x.bytes,
		Took: duration(now) - x.at}
	x.at = duration(now)
	switch {
	case x.read && failed:
		s.steering.Reading -= x.bytes
		s.release(id)
	case x.read:
		s.signal.Op = block.Read
		s.demand.ready(now)
	default:
		s.release(id)
	}
	if !failed {
		s.react()
	}
}

// Sent reports that the network has taken what an access has read, or that it is not sent any more.
func (s *Steer[T]) Sent(now int64, id int32) {
	x := &s.entries[id]
	s.steering.Reading -= x.bytes
	sent := ratecontrol.Signal{Event: ratecontrol.Sent, Op: block.Read, Now: duration(now), Bytes: x.bytes,
		Took: duration(now) - x.at}
	if rate, ok := s.demand.taken(now, x.bytes); ok && rate != s.told {
		s.signal = ratecontrol.Signal{Event: ratecontrol.Demand, Now: duration(now), Rate: rate, Cut: rate < s.told}
		s.told = rate
		s.react()
	}
	s.release(id)
	s.signal = sent
	s.react()
}

// release gives up the place of an access.
func (s *Steer[T]) release(id int32) {
	s.queues.Done(s.entries[id].ticket)
	s.entries[id] = entry[T]{}
	s.free = append(s.free, id)
}

// Open lifts the limit on reads: the client has gone, and its remaining accesses may complete.
func (s *Steer[T]) Open() { s.open = true }

// When returns the time of the next Tick; false if none is due.
func (s *Steer[T]) When() (at int64, ok bool) {
	if s.steering.Wake == units.Forever {
		return 0, false
	}
	return int64(s.steering.Wake / units.Nanosecond), true
}

// Tick advances the controller's time.
func (s *Steer[T]) Tick(now int64) {
	if s.steering.Wake > duration(now) {
		return
	}
	s.steering.Wake = units.Forever
	s.signal = ratecontrol.Signal{Event: ratecontrol.Timer, Now: duration(now)}
	s.react()
}

// Demand is the rate in bytes per second at which the client's network accepts read data, as last measured.
func (s *Steer[T]) Demand() float64 { return s.told }

// Reading is the number of bytes of reads that have begun and that the network has not taken, and the controller's
// limit on them; 0: none.
func (s *Steer[T]) Reading() (bytes, limit int64) { return s.steering.Reading, s.steering.ReadLimit }

// demand measures the rate at which a network takes data: the bytes taken while data were waiting for it, over that
// time. A network that never lets data wait has no limit that can be seen; so the sample of a window counts only if
// data waited for most of it, as a sample that the application limits counts for nothing in BBR (Cardwell et al., ACM
// Queue 14(5), 2016).
//
// A rate of less than half counts only when the next window confirms it. TCP pauses for 200 ms when it waits for a
// retransmission or probes a closed window. After such a window alone, the network would seem to accept reads much
// faster than demanded, so the controller would raise its horizon to 200 ms, and lower it again only over seconds.
type demand struct {
	began   int64 // of the window
	since   int64 // since when data wait
	busy    int64 // time in the window during which data waited
	waiting int
	bytes   int64
	rate    float64
	fell    bool // the last window had less than half of the rate
}

// Limits of a window of demand.
const (
	demandWindow = 20_000_000 // ns
	demandReads  = 4          // reads of the size of the last one
)

// ready notes that data begin to wait.
func (d *demand) ready(now int64) {
	if d.waiting == 0 {
		d.since = now
	}
	d.waiting++
}

// taken notes that data were taken, and returns the rate at the end of a window.
func (d *demand) taken(now, bytes int64) (rate float64, ok bool) {
	d.waiting--
	d.bytes += bytes
	d.busy += now - d.since
	d.since = now
	span := now - d.began
	if span < demandWindow || d.bytes < demandReads*bytes {
		return 0, false
	}
	rate = line
	if 2*d.busy > span {
		rate = min(float64(d.bytes)/(float64(d.busy)/1e9), line)
	}
	was := cmp.Or(d.rate, line)
	switch {
	case 2*rate < was && !d.fell:
		d.fell = true
		rate = was
	default:
		d.fell = false
		if max(rate, was) < 1.25*min(rate, was) { // rather noise than another network
			rate = (rate + was) / 2
		}
	}
	d.began, d.busy, d.bytes, d.rate = now, 0, 0, rate
	return rate, true
}
