package units

import "math"

// Duration is a span of time, or an instant counted from a start, in picoseconds: up to 106 days.
type Duration int64

// Common durations.
const (
	Picosecond  Duration = 1
	Nanosecond           = 1000 * Picosecond
	Microsecond          = 1000 * Nanosecond
	Millisecond          = 1000 * Microsecond
	Second               = 1000 * Millisecond
	Minute               = 60 * Second
	Hour                 = 60 * Minute
	Day                  = 24 * Hour

	// Forever is the largest Duration, the result for a transfer at rate zero.
	Forever Duration = math.MaxInt64
)

var durations = kind{noun: "duration", own: "picoseconds", try: "us", units: []unit{
	{name: "ps", scale: 1},
	{name: "ns", scale: int64(Nanosecond)},
	{name: "us", scale: int64(Microsecond)},
	{name: "µs", scale: int64(Microsecond), alias: true}, // U+00B5 micro sign
	{name: "μs", scale: int64(Microsecond), alias: true}, // U+03BC Greek mu
	{name: "ms", scale: int64(Millisecond)},
	{name: "s", scale: int64(Second)},
	{name: "sec", scale: int64(Second), alias: true},
	{name: "min", scale: int64(Minute), whole: true},
	{name: "h", scale: int64(Hour), whole: true},
	{name: "d", scale: int64(Day), whole: true},
}}

// ParseDuration parses a duration such as "75us", "1.5 ms" or "2h".
func ParseDuration(s string) (Duration, error) {
	v, err := durations.parse(s)
	return Duration(v), err
}

// String returns the shortest exact form, such as "75us". [ParseDuration] parses it to the same value unless it is
// negative.
func (d Duration) String() string {
	if d == 0 {
		return "0s"
	}
	return durations.format(int64(d))
}

func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

func (d *Duration) UnmarshalText(text []byte) error {
	v, err := ParseDuration(string(text))
	if err == nil {
		*d = v
	}
	return err
}

// Seconds returns d in seconds, rounded to the nearest float64.
func (d Duration) Seconds() float64 { return float64(d) / float64(Second) }

// Microseconds returns d in microseconds.
func (d Duration) Microseconds() float64 { return float64(d) / float64(Microsecond) }

// Seconds returns s seconds to the nearest picosecond. Values out of range saturate; NaN is 0.
func Seconds(s float64) Duration { return fromFloat(s, float64(Second)) }

// Microseconds returns us microseconds, rounded as [Seconds] does.
func Microseconds(us float64) Duration { return fromFloat(us, float64(Microsecond)) }

func fromFloat(v, scale float64) Duration {
	ps := math.RoundToEven(v * scale)
	switch {
	case ps != ps:
		return 0
	case ps >= math.MaxInt64:
		return Forever
	case ps <= math.MinInt64:
		return math.MinInt64
	}
	return Duration(ps)
}
