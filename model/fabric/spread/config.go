package spread

import (
	"farflash/numeric/units"
)

// Config sets how switches choose among equally short paths.
type Config struct {
	// Choice sets how a switch picks one of several equally short paths.
	Choice Choice
	// Per sets how often a switch picks, if choice is not hash.
	Per Unit
	// Gap is the idle time between two packets that starts a new flowlet.
	Gap units.Duration
	// Table is the number of flowlets that a switch distinguishes; those whose hashes collide share an entry.
	Table int
}

// DefaultConfig selects hashing. A gap of 100us is the one that LetFlow (section 5) finds best at 10 Gbit/s; a table of
// 65,536 entries is CONGA's (section 3.4).
func DefaultConfig() Config { return Config{Gap: 100 * units.Microsecond, Table: 1 << 16} }

// Reorders reports whether packets of a queue pair can overtake each other however long the gaps are.
func (c *Config) Reorders() bool { return c.Choice != Hash && c.Per == Packet }

// Validate returns an error for each field that is invalid.
func (c *Config) Validate() error {
	var f units.Faults
	f.Hold(c.Choice < choices, "choice", "%v is not possible; use hash, round-robin, random or least-queue", c.Choice)
	f.Hold(c.Per < unitsOf, "per", "%v is not possible; use packet or flowlet", c.Per)
	f.Hold(c.Choice != Hash || c.Per == Packet, "per",
		"flowlet has no effect with choice: hash, which keeps a queue pair on one path; use choice: random or "+
			"least-queue")
	f.Hold(c.Gap > 0, "gap", "%v is not possible; use a time above zero such as 100us", c.Gap)
	f.Hold(c.Table >= 1 && c.Table <= 1<<20, "table", "%d is not possible; use 1 to 1048576", c.Table)
	return f.Err()
}

// Choice is the rule by which a path is chosen.
type Choice uint8

// The choices.
const (
	Hash       Choice = iota // by a hash of addresses and ports, so that a queue pair keeps to one path
	RoundRobin               // in rotation
	Random                   // at random
	LeastQueue               // the port with the fewest waiting bytes of the packet's class; paused ports come last
	choices
)

var choiceNames = units.Names[Choice]{"hash", "round-robin", "random", "least-queue"}

// String returns the name used in scenarios.
func (c Choice) String() string { return choiceNames.Name(c) }

// MarshalText writes the name.
func (c Choice) MarshalText() ([]byte, error) { return choiceNames.Marshal(c) }

// UnmarshalText reads a name.
func (c *Choice) UnmarshalText(text []byte) error { return choiceNames.Unmarshal(text, c) }

// Unit is the unit for which a path is chosen.
type Unit uint8

// The units.
const (
	Packet Unit = iota // for each packet
	// Flowlet: for each flowlet, a burst of a queue pair's packets without a gap; packets stay in order if the gap
	// exceeds the difference between the paths' delays.
	Flowlet
	unitsOf
)

var unitNames = units.Names[Unit]{"packet", "flowlet"}

// String returns the name used in scenarios.
func (u Unit) String() string { return unitNames.Name(u) }

// MarshalText writes the name.
func (u Unit) MarshalText() ([]byte, error) { return unitNames.Marshal(u) }

// UnmarshalText reads a name.
func (u *Unit) UnmarshalText(text []byte) error { return unitNames.Unmarshal(text, u) }
