package reserve

import (
	"fmt"

	"farflash/numeric/units"
	"farflash/sim"
)

// Rules selects one of SURGE's two sets of rules. Neither is a fault.
type Rules uint8

const (
	// RulesPaper are the rules of build d92018f, which produced the paper's tables.
	RulesPaper Rules = iota
	// RulesHead are the rules of SURGE's last build, 9872498.
	RulesHead
)

// AcceptRule determines how much of a bid's window a gateway takes.
type AcceptRule uint8

const (
	// AcceptSlack takes the chunk's time and a frame's, or, if bids are wider than that by more than four frames, the
	// chunk's time and a third of that slack. Replicast-M.
	AcceptSlack AcceptRule = iota
	// AcceptWindow takes the bid's width less a trip. Replicast-H.
	AcceptWindow
	// AcceptAll takes the bid's width. The proxy, whose bids are all alike.
	AcceptAll
)

// Config has the parameters from which all durations follow.
type Config struct {
	Rules  Rules
	Compat Compat

	LinkRate        units.BitRate // of an edge link
	OverheadPercent int64         // share of the link lost to headers
	// share of the rest that data gets; control messages get the remainder. 100: data and control share the whole link
	ReservedPercent int64

	ControlSize units.Bytes // of a control message
	FrameSize   units.Bytes
	ChunkSize   units.Bytes

	Trip sim.Time // one-way delay between nodes, without transmission
	Lead sim.Time // added to the earliest start of a window, to allow for queueing of control messages

	Replicas int // replicas of a chunk
	Group    int // targets that bid for one chunk

	Accept           AcceptRule
	WidthPercent     int64    // width of a bid, as a share of the chunk's time and a trip
	WiderPercent     int64    // the same if WidthPercent gives less than three frames; 0: WidthPercent
	Gap              sim.Time // between bids, in addition to the trip
	ReplicasInWindow bool     // the gateway sends all replicas in one window, one after another

	DiskRate  units.ByteRate
	DiskQueue units.Bytes // limit of the data that waits for a target's disk; at least two chunks are allowed
}

// DefaultConfig is Replicast-M on 10 GbE with 128 KiB chunks and 400 MiB/s disks, as in the paper.
func DefaultConfig() Config {
	return Config{
		LinkRate: 10 * units.Gbps, OverheadPercent: 1, ReservedPercent: 90,
		ControlSize: 300, FrameSize: 9000, ChunkSize: 128 * units.KiB,
		Trip: units.Microsecond, Replicas: 3, Group: 9,
		Accept: AcceptSlack, WidthPercent: 140,
		DiskRate: units.ByteRate(400 * units.MiB), DiskQueue: 256 * units.KiB,
	}
}

// HybridConfig is DefaultConfig with Replicast-H's settings.
func HybridConfig() Config {
	c := DefaultConfig()
	c.Accept, c.WidthPercent, c.WiderPercent = AcceptWindow, 110, 120
	return c
}

// ProxyConfig is DefaultConfig with the settings of the proxied group. Its rules are those of the last build; the paper
// has no proxy.
func ProxyConfig() Config {
	c := DefaultConfig()
	c.Rules, c.Accept = RulesHead, AcceptAll
	return c
}

// UnicastConfig is DefaultConfig with the settings of UCH-CCP and UCH-AIMD: no share for control, 100 B messages.
func UnicastConfig() Config {
	c := DefaultConfig()
	c.ReservedPercent, c.ControlSize = 100, 100
	return c
}

func (c *Config) validate() error {
	switch {
	case c.LinkRate <= 0:
		return fmt.Errorf("link rate is %v; it must be positive", c.LinkRate)
	case c.OverheadPercent < 0 || c.OverheadPercent >= 100:
		return fmt.Errorf("overhead is %d %%; it must be at least 0 and below 100", c.OverheadPercent)
	case c.ReservedPercent <= 0 || c.ReservedPercent > 100:
		return fmt.Errorf("%d %% of the link are for data; it must be above 0 and at most 100", c.ReservedPercent)
	case c.ControlSize <= 0 || c.FrameSize <= 0 || c.ChunkSize <= 0:
		return fmt.Errorf("control message of %v, frame of %v, chunk of %v: each must be positive", c.ControlSize,
			c.FrameSize, c.ChunkSize)
	case c.Trip < 0 || c.Lead < 0 || c.Gap < 0:
		return fmt.Errorf("trip %v, lead %v, gap %v: none may be negative", c.Trip, c.Lead, c.Gap)
	case c.Replicas <= 0:
		return fmt.Errorf("%d replicas; a chunk needs at least one", c.Replicas)
	case c.Group < c.Replicas:
		return fmt.Errorf("%d targets bid for %d replicas; a group needs at least as many targets as a chunk has "+
			"replicas", c.Group, c.Replicas)
	case c.WidthPercent < 100 || c.WiderPercent != 0 && c.WiderPercent < c.WidthPercent:
		return fmt.Errorf("bids have %d %% of a chunk's time, or %d %%; a bid must hold a chunk, and the second be "+
			"no narrower", c.WidthPercent, c.WiderPercent)
	case c.DiskRate <= 0:
		return fmt.Errorf("disk rate is %v; it must be positive", c.DiskRate)
	case c.DiskQueue < 0:
		return fmt.Errorf("disk queue is %v; it must not be negative", c.DiskQueue)
	case c.Accept > AcceptAll || c.Rules > RulesHead:
		return fmt.Errorf("no accept rule %d under rules %d", c.Accept, c.Rules)
	}
	return nil
}
