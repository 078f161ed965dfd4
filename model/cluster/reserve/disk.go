package reserve

import "farflash/sim"

// The functions of this file take how long a disk will still be busy with what it has, and are 0 for one that is
// idle.

// QueuedChunks is how many chunks wait for a disk, rounded.
func (d *Durations) QueuedChunks(busy sim.Time) int { return d.queued(busy, d.DiskChunk) }

// QueuedFrames is how many frames wait for a disk, rounded.
func (d *Durations) QueuedFrames(busy sim.Time) int { return d.queued(busy, d.DiskFrame) }

func (d *Durations) queued(busy, unit sim.Time) int {
	if busy <= 0 {
		return 0
	}
	return int((busy + d.Compat.cut(unit/2)) / unit)
}

// UnicastDelay is how long a target of UCH-CCP or UCH-AIMD holds back its answer to a put request, by the paper's
// rules: when its queue is full, until the chunk would arrive as the disk gets idle.
func (d *Durations) UnicastDelay(busy sim.Time) sim.Time {
	if d.Rules == RulesHead {
		return d.HeadDelay(busy)
	}
	if d.QueuedChunks(busy) < d.MaxDiskChunks || busy <= d.Chunk {
		return 0
	}
	return busy - d.Chunk
}

// BidDelay is how long after now the windows of a Replicast target begin at the earliest, by the paper's rules: as
// for unicast when its queue is just full, and after the disk has written all when there is more.
func (d *Durations) BidDelay(busy sim.Time) sim.Time {
	if d.Rules == RulesPaper && busy > d.Chunk && d.QueuedChunks(busy) > d.MaxDiskChunks {
		return busy
	}
	return d.UnicastDelay(busy)
}

// HeadDelay is the rule of SURGE's last build for all protocols: data is held back until one more chunk fits into the
// queue.
func (d *Durations) HeadDelay(busy sim.Time) sim.Time {
	return max(0, busy-d.DiskChunk*sim.Time(d.MaxDiskChunks-1))
}

// AckDelay is how long a target waits with its acknowledgement after it has handed a chunk to the disk, which is then
// busy for so long. Write-through, the paper's rule, waits until the chunk is written. Write-back does not, unless
// the queue is full: then it waits as long.
func (d *Durations) AckDelay(busy sim.Time, writeBack bool) sim.Time {
	if writeBack && busy < d.DiskChunk*sim.Time(d.MaxDiskChunks) {
		return 0
	}
	return max(0, busy)
}

// latencySteps are the queue lengths from which a disk of variable latency has one more chunk's time of it.
var latencySteps = [...]int{4, 8, 12, 16}

// ExtraLatency is by how many chunks' time of the disk an acknowledgement comes later when so many chunks wait, on a
// disk whose latency grows with its queue (SURGE's models b and c).
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

// VariableLatency is what such a disk adds to the acknowledgement of a chunk that makes it busy for so long. It does
// not slow the queue down.
func (d *Durations) VariableLatency(busy sim.Time) sim.Time {
	return sim.Time(ExtraLatency(d.QueuedChunks(busy))) * d.DiskChunk
}
