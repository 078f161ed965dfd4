package fabric

import (
	"errors"
	"fmt"

	"farflash/internal/spelling"
	"farflash/units"
)

// Life is how long a queue pair lives.
type Life uint8

// The lives.
const (
	Persistent Life = iota
	PerMessage
)

var lifeNames = []string{"persistent", "per-message"}

// MarshalText writes the name.
func (x Life) MarshalText() ([]byte, error) { return []byte(lifeNames[x]), nil }

// UnmarshalText reads a name.
func (x *Life) UnmarshalText(text []byte) error { return spelling.OneOf(text, lifeNames, x) }

// RecoveryKind is how lost packets are sent again.
type RecoveryKind uint8

// The kinds.
const (
	GoBackN RecoveryKind = iota
	SelectiveRepeat
)

var recoveryNames = []string{"go-back-n", "selective-repeat"}

// MarshalText writes the name.
func (x RecoveryKind) MarshalText() ([]byte, error) { return []byte(recoveryNames[x]), nil }

// UnmarshalText reads a name.
func (x *RecoveryKind) UnmarshalText(text []byte) error {
	return spelling.OneOf(text, recoveryNames, x)
}

// Scheduler orders the classes of a port.
type Scheduler uint8

// The orders.
const (
	DWRR Scheduler = iota
	Strict
)

var schedulerNames = []string{"dwrr", "strict"}

// MarshalText writes the name.
func (x Scheduler) MarshalText() ([]byte, error) { return []byte(schedulerNames[x]), nil }

// UnmarshalText reads a name.
func (x *Scheduler) UnmarshalText(text []byte) error { return spelling.OneOf(text, schedulerNames, x) }

// Ways is the order of equally short ways.
type Ways uint8

// The orders.
const (
	Ascending Ways = iota
	Descending
)

var wayNames = []string{"ascending", "descending"}

// MarshalText writes the name.
func (x Ways) MarshalText() ([]byte, error) { return []byte(wayNames[x]), nil }

// UnmarshalText reads a name.
func (x *Ways) UnmarshalText(text []byte) error { return spelling.OneOf(text, wayNames, x) }

// Random is where random numbers come from.
type Random uint8

// The sources.
const (
	OwnRandom Random = iota
	NS3Random
)

var randomNames = []string{"own", "ns-3"}

// MarshalText writes the name.
func (x Random) MarshalText() ([]byte, error) { return []byte(randomNames[x]), nil }

// UnmarshalText reads a name.
func (x *Random) UnmarshalText(text []byte) error { return spelling.OneOf(text, randomNames, x) }

// Rounding of times on the wire.
type Rounding uint8

// The roundings.
const (
	Exact Rounding = iota
	WholeNanoseconds
)

var roundingNames = []string{"exact", "whole-nanoseconds"}

// MarshalText writes the name.
func (x Rounding) MarshalText() ([]byte, error) { return []byte(roundingNames[x]), nil }

// UnmarshalText reads a name.
func (x *Rounding) UnmarshalText(text []byte) error { return spelling.OneOf(text, roundingNames, x) }

// WatchdogAction is what is done about a port that stays paused.
type WatchdogAction uint8

// The actions.
const (
	WatchdogReport WatchdogAction = iota
	WatchdogIgnore
)

var watchdogNames = []string{"report", "ignore"}

// MarshalText writes the name.
func (x WatchdogAction) MarshalText() ([]byte, error) { return []byte(watchdogNames[x]), nil }

// UnmarshalText reads a name.
func (x *WatchdogAction) UnmarshalText(text []byte) error {
	return spelling.OneOf(text, watchdogNames, x)
}

// Threshold is dynamic or a size.
type Threshold struct {
	Dynamic bool
	Size    units.Bytes
}

// MarshalText writes dynamic or the size.
func (x Threshold) MarshalText() ([]byte, error) {
	if x.Dynamic {
		return []byte("dynamic"), nil
	}
	return x.Size.MarshalText()
}

// UnmarshalText reads dynamic or a size.
func (x *Threshold) UnmarshalText(text []byte) error {
	if string(text) == "dynamic" {
		*x = Threshold{Dynamic: true}
		return nil
	}
	*x = Threshold{}
	return orSize(text, &x.Size, "dynamic")
}

// HeadroomKind is where a headroom's size comes from.
type HeadroomKind uint8

// The kinds.
const (
	HeadroomAuto HeadroomKind = iota
	HeadroomHPCC
	HeadroomFixed
)

// Headroom is what is kept for packets that come after a pause.
type Headroom struct {
	Kind HeadroomKind
	Size units.Bytes // if it is fixed
}

// MarshalText writes auto, hpcc or the size.
func (x Headroom) MarshalText() ([]byte, error) {
	switch x.Kind {
	case HeadroomAuto:
		return []byte("auto"), nil
	case HeadroomHPCC:
		return []byte("hpcc"), nil
	}
	return x.Size.MarshalText()
}

// UnmarshalText reads auto, hpcc or a size.
func (x *Headroom) UnmarshalText(text []byte) error {
	switch string(text) {
	case "auto":
		*x = Headroom{Kind: HeadroomAuto}
		return nil
	case "hpcc":
		*x = Headroom{Kind: HeadroomHPCC}
		return nil
	}
	*x = Headroom{Kind: HeadroomFixed}
	return orSize(text, &x.Size, "auto")
}

// Timeout is a time, auto or none.
type Timeout struct {
	Auto bool
	Time units.Duration // if it is not auto; 0 is none
}

// MarshalText writes auto, none or the time.
func (x Timeout) MarshalText() ([]byte, error) {
	switch {
	case x.Auto:
		return []byte("auto"), nil
	case x.Time == 0:
		return []byte("none"), nil
	}
	return x.Time.MarshalText()
}

// UnmarshalText reads auto, none or a time.
func (x *Timeout) UnmarshalText(text []byte) error {
	*x = Timeout{}
	switch string(text) {
	case "auto":
		x.Auto = true
		return nil
	case "none":
		return nil
	}
	if err := x.Time.UnmarshalText(text); err != nil {
		return fmt.Errorf("%w; or use auto or none", err)
	}
	if x.Time <= 0 {
		return errors.New("is not above zero; use a time, auto or none")
	}
	return nil
}

func orSize(text []byte, size *units.Bytes, word string) error {
	if err := size.UnmarshalText(text); err != nil {
		return fmt.Errorf("%w; or use %s", err, word)
	}
	return nil
}
