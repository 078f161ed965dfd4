// Package tier models one storage server with two tiers: an SSD that accepts writes and moves them on to hard disks
// (HDDs), and the HDDs, which accept writes as well.
//
// The main types are Config, whose Policy describes the tiers and when chunks move, and Server, a state machine on a
// sim.Engine. An initiator keeps a window of commands outstanding at each device (server.go). The SSD divides its time
// between incoming writes and chunks that move to the HDDs, in cycles (cycle.go): below the low watermark it only
// accepts writes; from the high watermark on it only moves chunks, until it has fallen below a third one. Incoming
// writes wait in between.
//
// It is SURGE's model c, at build 9872498, whose constants are DefaultConfig, generalised to any number of HDDs, rates,
// sizes and watermarks. SURGE's undefined cases are defined: an SSD without space lets writes wait, and an empty one
// has no chunks to move.
//
// It leaves out reads; where on a device a chunk is; the SSD's own time for reading the chunks that it moves; failures.
package tier

import (
	"farflash/numeric/units"
)

// Name is the model's name in scenarios, and Number is SURGE's number for it.
const (
	Name   = "tiering"
	Number = "c"
)

// Config describes a server and its initiator.
type Config struct {
	Policy
	// HDDs is the number of hard disks behind the SSD.
	HDDs int
	// Chunk is the size of each write.
	Chunk units.Bytes
	// Link is the rate of the link to each device, and of the SSD's to each HDD.
	Link units.BitRate
	// Trip is the one-way delay of a link.
	Trip units.Duration
	// Control is the size of a command and of an acknowledgement.
	Control units.Bytes
}

// Policy describes the tiers and when chunks move.
type Policy struct {
	// SSD is the fast tier.
	SSD Fast
	// HDD is each disk of the slow tier.
	HDD Slow
	// Low is the share of the SSD below which it only accepts writes.
	Low units.Fraction
	// Resume is the share at which an SSD that was at high accepts writes again.
	Resume units.Fraction
	// High is the share from which on the SSD only moves chunks.
	High units.Fraction
	// Cycle is the number of chunks, written and moved, over which the SSD's time is divided.
	Cycle int
	// Moving is the largest number of chunks in flight to HDDs.
	Moving int
}

// Fast is an SSD.
type Fast struct {
	// Rate is its write rate.
	Rate units.ByteRate
	// Capacity is the amount of data it holds.
	Capacity units.Bytes
	// Window is an initiator's number of outstanding writes at it.
	Window int
}

// Slow is an HDD.
type Slow struct {
	// Rate is its write rate.
	Rate units.ByteRate
	// Window is an initiator's number of outstanding writes at it; with 0 initiators write only to the SSD.
	Window int
	// Sequential is the factor by which chunks from the SSD, which arrive sequentially, are written faster.
	Sequential int
}

// DefaultConfig has the constants of SURGE's model c, with nine HDDs.
func DefaultConfig() Config {
	return Config{
		Policy: DefaultPolicy(),
		HDDs:   9, Chunk: units.MiB, Link: 100 * units.Gbps, Trip: 10 * units.Nanosecond, Control: 100,
	}
}

// DefaultPolicy is the policy of DefaultConfig. SURGE's 100 MB are 100,000 KiB, and chunks from its SSD are written 16
// times as fast, where a comment says 4.
func DefaultPolicy() Policy {
	return Policy{
		SSD: Fast{Rate: 1400 * units.ByteRate(units.MiB), Capacity: 100_000 * units.KiB, Window: 32},
		HDD: Slow{Rate: 180 * units.ByteRate(units.MiB), Window: 8, Sequential: 16},
		Low: 0.40, Resume: 0.55, High: 0.70, Cycle: 10, Moving: 32,
	}
}

// Validate reports every invalid setting, each with its key.
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

// Limits of the simulation.
const (
	maxDevices = 1 << 16
	maxWindow  = 1 << 14
)
