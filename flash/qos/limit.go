package qos

import (
	"fmt"
	"strconv"
	"strings"

	"farflash/numeric/units"
)

// Class is the urgency of a tenant's accesses.
type Class uint8

// The classes.
const (
	Throughput Class = iota
	Latency
	classes
)

var classNames = units.Names[Class]{"throughput", "latency"}

// String returns the name of the class.
func (c Class) String() string { return classNames.Name(c) }

// MarshalText implements encoding.TextMarshaler.
func (c Class) MarshalText() ([]byte, error) { return classNames.Marshal(c) }

// UnmarshalText implements encoding.TextUnmarshaler.
func (c *Class) UnmarshalText(text []byte) error { return classNames.Unmarshal(text, c) }

// Limit is a tenant's class and rates.
type Limit struct {
	Class      Class `json:"class"`
	Bytes      int64 `json:"bytes_per_second"`      // 0: unlimited
	Operations int64 `json:"operations_per_second"` // 0: unlimited
	Burst      int64 `json:"burst_ns"`              // of its rate that an idle tenant can accumulate
}

// DefaultBurst is a tenth of a second.
const DefaultBurst = 100_000_000

// Validate reports the settings of l that are out of range.
func (l Limit) Validate() error {
	var f units.Faults
	f.Hold(l.Class < classes, "class", "unknown class %d", l.Class)
	f.Hold(l.Bytes >= 0 && l.Operations >= 0, "rate", "a rate cannot be negative")
	f.Hold(l.Burst >= 0 && l.Burst <= 1e12, "burst", "%d ns is out of range; give 0 to 1000 s", l.Burst)
	return f.Err()
}

// None is the text of no limit.
const None = "none"

// ParseLimit parses a limit with the default burst: rates of bytes and operations and a class, separated by commas,
// such as 100MB/s,5000iops,latency, or None.
func ParseLimit(text string) (l Limit, err error) {
	if text == None {
		return l, nil
	}
	l.Burst = DefaultBurst
	for part := range strings.SplitSeq(text, ",") {
		number, isOps := strings.CutSuffix(part, "iops")
		switch {
		case l.Class.UnmarshalText([]byte(part)) == nil:
		case isOps:
			n, err := strconv.ParseUint(number, 10, 63)
			if err != nil || n < 1 {
				return Limit{}, fmt.Errorf("%q is not a rate of operations; give one such as 5000iops", part)
			}
			l.Operations = int64(n)
		default:
			n, err := units.ParseByteRate(part)
			if err != nil || n < 1 {
				return Limit{}, fmt.Errorf("%q is not a rate; give one such as 100MB/s, 5000iops or latency", part)
			}
			l.Bytes = int64(n)
		}
	}
	return l, nil
}

// String returns the limit as ParseLimit takes it, without its burst.
func (l Limit) String() string {
	var parts []string
	if l.Bytes > 0 {
		parts = append(parts, units.ByteRate(l.Bytes).String())
	}
	if l.Operations > 0 {
		parts = append(parts, fmt.Sprintf("%diops", l.Operations))
	}
	if l.Class != Throughput {
		parts = append(parts, l.Class.String())
	}
	if len(parts) == 0 {
		return None
	}
	return strings.Join(parts, ",")
}
