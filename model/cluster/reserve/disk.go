package reserve

import "farflash/sim"

// The argument busy of the functions in this file is how long a disk will be busy with its backlog, 0 if it is idle.

// queuedChunks returns the number of chunks that wait for a disk, rounded.
func (d *Durations) queuedChunks(busy sim.Time) int { return d.queued(busy, d.DiskChunk) }

// QueuedFrames returns the number of frames that wait for a disk, rounded.
func (d *Durations) QueuedFrames(busy sim.Time) int { return d.queued(busy, d.DiskFrame) }

func (d *Durations) queued(busy, unit sim.Time) int {
	if busy <= 0 { // always so if the disk writes a unit in no time
		return 0
	}
	return int((busy + d.Compat.cut(unit/2)) / unit)
}

// UnicastDelay returns how long a target of UCH-CCP or UCH-AIMD delays its answer to a put request. Under the paper's
// rules, if its queue is full, the delay lets the chunk arrive when the disk becomes idle.
func (d *Durations) UnicastDelay(busy sim.Time) sim.Time {
	if d.Rules == RulesHead {
		return d.headDelay(busy)
	}
	if d.queuedChunks(busy) < d.MaxDiskChunks || busy <= d.Chunk {
		return 0
	}
	return busy - d.Chunk
}

// BidDelay returns the earliest start, relative to now, of a Replicast target's windows. Under the paper's rules it is
// as for unicast when the queue is just full; when it is longer, windows begin after the disk has written everything.
func (d *Durations) BidDelay(busy sim.Time) sim.Time {
	if d.Rules == RulesPaper && busy > d.Chunk && d.queuedChunks(busy) > d.MaxDiskChunks {
		return busy
	}
	return d.UnicastDelay(busy)
}

// headDelay is the rule of SURGE's last build for all protocols: data is delayed until one more chunk fits into the
// queue.
func (d *Durations) headDelay(busy sim.Time) sim.Time {
	return max(0, busy-d.DiskChunk*sim.Time(d.MaxDiskChunks-1))
}

// AckDelay returns the time from handing a chunk to the disk, which is then busy for the given time, to its
// acknowledgement. Write-through, the paper's rule, waits until the chunk is written. Write-back does not wait, unless
// the queue is full, when it behaves as write-through.
func (d *Durations) AckDelay(busy sim.Time, writeBack bool) sim.Time {
	if writeBack && busy < d.DiskChunk*sim.Time(d.MaxDiskChunks) {
		return 0
	}
	return max(0, busy)
}

// latencySteps are the queue lengths at which a disk of variable latency adds another chunk's write time.
var latencySteps = [...]int{4, 8, 12, 16}

// ExtraLatency returns the number of chunk write times by which an acknowledgement is delayed when the given number of
// chunks wait, for a disk whose latency grows with its queue (SURGE's models b and c).
func ExtraLatency(chunks int) int {
	if chunks >= 20 {
		return 8
	}
	extra := 0
	for _, from := range latencySteps {
		if chunks >= from {
			extra++
		}
	}
	return extra
}

// VariableLatency returns the delay that such a disk adds to the acknowledgement of a chunk, given how long it is then
// busy. It does not slow the queue down.
func (d *Durations) VariableLatency(busy sim.Time) sim.Time {
	return sim.Time(ExtraLatency(d.queuedChunks(busy))) * d.DiskChunk
}
