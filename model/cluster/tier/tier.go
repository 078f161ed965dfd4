// Package tier models one storage server with two tiers: an SSD that takes writes and moves them on to hard disks
// (HDDs), and the HDDs, which take writes as well.
//
// The main types are Config, whose Policy says what the tiers are and when chunks move, and Server, a state machine
// on a sim.Engine. An initiator keeps a window of commands outstanding at each device (server.go). The SSD divides
// its time between writes that come and chunks that move to the HDDs, in cycles (cycle.go): below the low watermark
// it only takes, from the high one on it only moves, until it has come down below a third one. What comes meanwhile
// waits.
//
// It is SURGE's model c, at build 9872498, whose constants are DefaultConfig: with any number of HDDs, any rates,
// sizes and watermarks. What SURGE leaves undefined is defined: an SSD without room lets writes wait, and one that is
// empty has nothing to move.
//
// What it leaves out: reads; where on a device a chunk is; the SSD's own time for reading what it moves; failures.
package tier

import (
	"farflash/numeric/units"
)

// Name is the model's in scenarios, and Number what SURGE has for it.
const (
	Name   = "tiering"
	Number = "c"
)

// Config describes a server and its initiator.
type Config struct {
	Policy
	// HDDs is how many hard disks there are behind the SSD.
	HDDs int
	// Chunk is the size of each write.
	Chunk units.Bytes
	// Link is the rate of the link to each device, and of the SSD's to each HDD.
	Link units.BitRate
	// Trip is the time from one end of a link to the other.
	Trip units.Duration
	// Control is the size of a command and of an acknowledgement.
	Control units.Bytes
}

// Policy is what the tiers are and when chunks move.
type Policy struct {
	// SSD is the fast tier.
	SSD Fast
	// HDD is each disk of the slow one.
	HDD Slow
	// Low is the share of the SSD below which it takes writes only.
	Low units.Fraction
	// Resume is the share below which an SSD that was at high takes writes again when it is at low.
	Resume units.Fraction
	// High is the share from which on it only moves chunks.
	High units.Fraction
	// Cycle is how many chunks, written and moved, the SSD's time is divided over.
	Cycle int
	// Moving is how many chunks are on their way to HDDs at most.
	Moving int
}

// Fast is an SSD.
type Fast struct {
	// Rate is how fast it writes.
	Rate units.ByteRate
	// Capacity is how much it holds.
	Capacity units.Bytes
	// Window is how many writes an initiator has outstanding there.
	Window int
}

// Slow is an HDD.
type Slow struct {
	// Rate is how fast it writes.
	Rate units.ByteRate
	// Window is how many writes an initiator has outstanding there; 0 has it write to the SSD alone.
	Window int
	// Sequential is how many times faster chunks are written that come from the SSD, one behind the other.
	Sequential int
}

// DefaultConfig has the constants of SURGE's model c, with nine HDDs.
func DefaultConfig() Config {
	return Config{
		Policy: DefaultPolicy(),
		HDDs:   9, Chunk: units.MiB, Link: 100 * units.Gbps, Trip: 10 * units.Nanosecond, Control: 100,
	}
}

// DefaultPolicy is that of DefaultConfig. SURGE's 100 MB are 100,000 KiB, and its chunks come from the SSD 16 times
// as fast, where a comment says 4.
func DefaultPolicy() Policy {
	return Policy{
		SSD: Fast{Rate: 1400 * units.ByteRate(units.MiB), Capacity: 100_000 * units.KiB, Window: 32},
		HDD: Slow{Rate: 180 * units.ByteRate(units.MiB), Window: 8, Sequential: 16},
		Low: 0.40, Resume: 0.55, High: 0.70, Cycle: 10, Moving: 32,
	}
}

// Validate reports what cannot be, each with its key.
func (c *Config) Validate() error {
	var f units.Faults
	f.Hold(c.HDDs >= 1 && c.HDDs < maxDevices, "hdds", "%d is not possible; use 1 to %d", c.HDDs, maxDevices-1)
	f.Hold(c.Chunk >= 1 && c.Chunk <= units.GiB, "chunk", "%v is not possible; use 1B to 1GiB", c.Chunk)
	f.Hold(c.Link > 0, "link", "%v is not possible; use a rate such as 100Gbps", c.Link)
	f.Hold(c.Trip >= 0 && c.Trip <= units.Second, "trip", "%v is not possible; use 0s to 1s", c.Trip)
	f.Hold(c.Control >= 1 && c.Control <= units.MiB, "control", "%v is not possible; use 1B to 1MiB", c.Control)
	f.Hold(c.SSD.Rate > 0, "ssd.rate", "%v is not possible; use a rate such as 1400MiB/s", c.SSD.Rate)
	f.Hold(c.SSD.Window >= 1 && c.SSD.Window <= maxWindow, "ssd.window", "%d is not possible; use 1 to %d",
		c.SSD.Window, maxWindow)
	f.Hold(c.SSD.Capacity >= 2*c.Chunk, "ssd.capacity", "%v is too little for chunks of %v; use at least %v",
		c.SSD.Capacity, c.Chunk, 2*c.Chunk)
	f.Hold(c.HDD.Rate > 0, "hdd.rate", "%v is not possible; use a rate such as 180MiB/s", c.HDD.Rate)
	f.Hold(c.HDD.Window >= 0 && c.HDD.Window <= maxWindow, "hdd.window", "%d is not possible; use 0 to %d",
		c.HDD.Window, maxWindow)
	f.Hold(c.HDD.Sequential >= 1 && c.HDD.Sequential <= 1000, "hdd.sequential", "%d is not possible; use 1 to 1000",
		c.HDD.Sequential)
	f.Hold(c.Low >= 0 && c.Low < c.High && c.High <= 1, "high",
		"watermarks of %v and %v are not possible; use 0%% <= low < high <= 100%%", c.Low, c.High)
	f.Hold(c.Resume > c.Low && c.Resume <= c.High, "resume",
		"%v is not between the watermarks; use more than %v and at most %v", c.Resume, c.Low, c.High)
	f.Hold(c.Cycle >= 1 && c.Cycle <= 1<<20, "cycle", "%d is not possible; use 1 to 1048576", c.Cycle)
	f.Hold(c.Moving >= 1 && c.Moving <= 1<<20, "moving", "%d is not possible; use 1 to 1048576", c.Moving)
	return f.Err()
}

// Limits of what is simulated.
const (
	maxDevices = 1 << 16
	maxWindow  = 1 << 14
)
