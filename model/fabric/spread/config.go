package spread

import (
	"farflash/numeric/units"
)

// Config says how switches choose among equally short ways.
type Config struct {
	// Choice says how a switch picks one of several equally short ways.
	Choice Choice
	// Per says how often a switch picks, if choice is not hash.
	Per Unit
	// Gap is the pause between two packets that begins a new flowlet.
	Gap units.Duration
	// Table is the number of flowlets that a switch tells apart. Flowlets whose hashes collide share an entry.
	Table int
}

// DefaultConfig hashes. A gap of 100us is what LetFlow (section 5) finds best at 10 Gbit/s, a table of 65,536 is
// CONGA's (section 3.4).
func DefaultConfig() Config { return Config{Gap: 100 * units.Microsecond, Table: 1 << 16} }

// Reorders reports whether packets of a queue pair overtake each other however long the gaps are.
func (c *Config) Reorders() bool { return c.Choice != Hash && c.Per == Packet }

// Validate reports what cannot work, as errors of its fields.
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

// Choice is what a way is chosen by.
type Choice uint8

// The choices.
const (
	Hash       Choice = iota // by a hash of addresses and ports, so that a queue pair keeps to one way
	RoundRobin               // in turns
	Random                   // at random
	LeastQueue               // the port with the fewest waiting bytes of the packet's class; paused ports come last
	choices
)

var choiceNames = units.Names[Choice]{"hash", "round-robin", "random", "least-queue"}

// String is its name in scenarios.
func (c Choice) String() string { return choiceNames.Name(c) }

// MarshalText writes the name.
func (c Choice) MarshalText() ([]byte, error) { return choiceNames.Marshal(c) }

// UnmarshalText reads a name.
func (c *Choice) UnmarshalText(text []byte) error { return choiceNames.Unmarshal(text, c) }

// Unit is what a way is chosen for.
type Unit uint8

// The units.
const (
	Packet Unit = iota // for each packet
	// for each flowlet, a burst of a queue pair's packets without a gap; if the gap is longer than the delays of ways
	// differ, packets stay in order
	Flowlet
	unitsOf
)

var unitNames = units.Names[Unit]{"packet", "flowlet"}

// String is its name in scenarios.
func (u Unit) String() string { return unitNames.Name(u) }

// MarshalText writes the name.
func (u Unit) MarshalText() ([]byte, error) { return unitNames.Marshal(u) }

// UnmarshalText reads a name.
func (u *Unit) UnmarshalText(text []byte) error { return unitNames.Unmarshal(text, u) }
