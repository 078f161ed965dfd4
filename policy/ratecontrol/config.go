package ratecontrol

import (
	"fmt"

	"farflash/numeric/units"
)

// Kind is the type of a target's controller.
type Kind uint8

const (
	None    Kind = iota // one submission queue per drive, as without the section
	Static              // see newStatic
	AIMD                // see newAIMD
	SRC                 // see newSRC
	Reserve             // see newReserve
	Paced               // see newPaced
	kinds
)

var kindNames = units.Names[Kind]{"none", "static", "aimd", "src", "reserve", "pace"}

func (k Kind) String() string { return kindNames.Name(k) }

func (k Kind) MarshalText() ([]byte, error) { return kindNames.Marshal(k) }

func (k *Kind) UnmarshalText(text []byte) error { return kindNames.Unmarshal(text, k) }

// Search is how SRC finds the weight ratio whose predicted read throughput is closest to the demand.
type Search uint8

const (
	Scan Search = iota // the ratio, of all ratios, whose prediction is closest to the demand
	// Paper is Algorithm 1 as printed: upwards from 1 until the prediction changes by less than the tolerance.
	Paper
	// Corrected searches all ratios too, and after each window corrects the ratio by the error of the prediction.
	Corrected
)

var searchNames = units.Names[Search]{"scan", "paper", "corrected"}

func (s Search) String() string { return searchNames.Name(s) }

func (s Search) MarshalText() ([]byte, error) { return searchNames.Marshal(s) }

func (s *Search) UnmarshalText(text []byte) error { return searchNames.Unmarshal(text, s) }

// Partition is when the shares of a drive's queue depth bind.
type Partition uint8

const (
	WhileBothWait Partition = iota // while both queues have commands to fetch
	Always                         // also while only one queue has any (SRC)
)

var partitionNames = units.Names[Partition]{"waiting", "always"}

func (p Partition) String() string { return partitionNames.Name(p) }

func (p Partition) MarshalText() ([]byte, error) { return partitionNames.Marshal(p) }

func (p *Partition) UnmarshalText(text []byte) error { return partitionNames.Unmarshal(text, p) }

// Config is how drives are divided between reads and writes.
type Config struct {
	// Kind is the controller that divides a target's drives between reads and writes. none: one submission queue per
	// drive. static: constant weights. aimd: weights by the read rate against the network's demand. src: weights by a
	// prediction (SRC, Algorithm 1). reserve: equal weights, and reads are fetched only as fast as the network accepts
	// them. pace: the same as reserve, and reads are sent no faster than the network demands.
	Kind Kind
	// WeightRatio is the write queue's weight over the read queue's, with static.
	WeightRatio int
	// Partition is when the queues' shares of a drive's depth bind, with static, aimd and src.
	Partition Partition
	// MaxRatio is the largest weight ratio of aimd and src, except src with mode paper, which has no limit.
	MaxRatio int
	// Window is the period over which src observes the drives' load (SRC's delta, "e.g., 10 ms"). aimd uses the same
	// period to divide a target's demand among its drives.
	Window units.Duration
	// Interval is the time between two decisions of aimd, and the minimum time between two of src. src applies a demand
	// that arrives earlier at the end of the interval.
	Interval units.Duration
	Mode     Search // Mode is the method by which src finds the ratio.
	// Tolerance is the relative change of the prediction below which mode paper stops (SRC's tau, "e.g., 10%").
	Tolerance units.Fraction
	// Model is the prediction model of src: a file written by farflash predict train, or auto, which trains one for the
	// drive on demand.
	Model string
	// Headroom is the target time that a read waits in the target, with reserve and pace, as a multiple of the time to
	// read and send it. A longer wait keeps the network busier and holds back more writes.
	Headroom float64
	// Yield is the share of the network's demand for reads that acknowledgements of writes may take while reads wait,
	// with reserve and pace. A larger share allows more writes and fewer reads. At 100%, and where write data has none
	// (fabric.acks.answers), writes are not held back.
	Yield   units.Fraction
	Demands []Demanded // Demands replace the network's demand, from the first one on.
}

// Demanded is a demand from a given time on.
type Demanded struct {
	At   units.Duration // At is the time from which it applies.
	Rate units.BitRate  // Rate is the rate at which each target may send data from then on.
}

// DefaultConfig returns SRC's figures where it states them.
func DefaultConfig() Config {
	return Config{WeightRatio: 1, MaxRatio: 32, Window: 10 * units.Millisecond, Interval: units.Millisecond,
		Tolerance: 0.1, Model: "auto", Headroom: 2, Yield: 1}
}

// Validate reports invalid settings, each with its key.
func (c *Config) Validate() error {
	var bad units.Faults
	bad.Hold(c.Kind < kinds, "kind", "%d does not exist", c.Kind)
	bad.Hold(c.Partition <= Always, "partition", "%d does not exist", c.Partition)
	bad.Hold(c.Mode <= Corrected, "mode", "%d does not exist", c.Mode)
	bad.Hold(c.WeightRatio >= 1 && c.WeightRatio <= 10000, "weight_ratio", "%d is not possible; use 1 to 10000",
		c.WeightRatio)
	bad.Hold(c.MaxRatio >= 1 && c.MaxRatio <= 10000, "max_ratio", "%d is not possible; use 1 to 10000", c.MaxRatio)
	bad.Hold(c.Window >= 10*units.Microsecond && c.Window <= 100*units.Second, "window",
		"%v is not possible; use 10us to 100s", c.Window)
	bad.Hold(c.Interval >= units.Microsecond && c.Interval <= 100*units.Second, "interval",
		"%v is not possible; use 1us to 100s", c.Interval)
	bad.Hold(c.Tolerance >= 0 && c.Tolerance <= 1, "tolerance", "%v is not possible; use 0%% to 100%%", c.Tolerance)
	bad.Hold(c.Model != "", "model", "empty name; use auto, or a file written by farflash predict train")
	bad.Hold(c.Headroom > 0 && c.Headroom <= 1000, "headroom", "%v is not possible; use more than 0, up to 1000",
		c.Headroom)
	bad.Hold(c.Yield > 0 && c.Yield <= 1, "yield", "%v is not possible; use more than 0%%, up to 100%%", c.Yield)
	for i := range c.Demands {
		d := &c.Demands[i]
		bad.Hold(d.At >= 0 && (i == 0 || d.At > c.Demands[i-1].At), fmt.Sprintf("demands[%d].at", i),
			"%v is not possible; times must increase", d.At)
		bad.Hold(d.Rate > 0, fmt.Sprintf("demands[%d].rate", i), "%v is not possible; use a rate such as 6Gbps", d.Rate)
	}
	return bad.Err()
}

// New returns a target's controller, nil for None. SRC needs a predictor for each drive.
func New(c Config, predict []Predictor) (Controller, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	switch c.Kind {
	case Static:
		return static{c.WeightRatio, c.Partition}, nil
	case AIMD:
		return newAIMD(c), nil
	case SRC:
		return newSRC(c, predict)
	case Reserve:
		return &reserve{headroom: c.Headroom, yield: float64(c.Yield)}, nil
	case Paced:
		return &reserve{headroom: c.Headroom, yield: float64(c.Yield), paced: true}, nil
	}
	return nil, nil
}
