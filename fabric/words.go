package fabric

import (
	"errors"
	"fmt"

	"farflash/units"
)

// Life is how long a queue pair lives.
type Life uint8

// The lives.
const (
	Persistent Life = iota
	PerMessage
)

var lifeNames = units.Names[Life]{"persistent", "per-message"}

// String is its name in scenarios.
func (x Life) String() string { return lifeNames.Name(x) }

// MarshalText writes the name.
func (x Life) MarshalText() ([]byte, error) { return lifeNames.Marshal(x) }

// UnmarshalText reads a name.
func (x *Life) UnmarshalText(text []byte) error { return lifeNames.Unmarshal(text, x) }

// RecoveryKind is how lost packets are sent again.
type RecoveryKind uint8

// The kinds.
const (
	GoBackN RecoveryKind = iota
	SelectiveRepeat
)

var recoveryNames = units.Names[RecoveryKind]{"go-back-n", "selective-repeat"}

// String is its name in scenarios.
func (x RecoveryKind) String() string { return recoveryNames.Name(x) }

// MarshalText writes the name.
func (x RecoveryKind) MarshalText() ([]byte, error) { return recoveryNames.Marshal(x) }

// UnmarshalText reads a name.
func (x *RecoveryKind) UnmarshalText(text []byte) error { return recoveryNames.Unmarshal(text, x) }

// Scheduler orders the classes of a port.
type Scheduler uint8

// The orders.
const (
	DWRR Scheduler = iota
	Strict
)

var schedulerNames = units.Names[Scheduler]{"dwrr", "strict"}

// String is its name in scenarios.
func (x Scheduler) String() string { return schedulerNames.Name(x) }

// MarshalText writes the name.
func (x Scheduler) MarshalText() ([]byte, error) { return schedulerNames.Marshal(x) }

// UnmarshalText reads a name.
func (x *Scheduler) UnmarshalText(text []byte) error { return schedulerNames.Unmarshal(text, x) }

// PathOrder is the order of equally short paths.
type PathOrder uint8

// The orders.
const (
	Ascending PathOrder = iota
	Descending
)

var pathNames = units.Names[PathOrder]{"ascending", "descending"}

// String is its name in scenarios.
func (x PathOrder) String() string { return pathNames.Name(x) }

// MarshalText writes the name.
func (x PathOrder) MarshalText() ([]byte, error) { return pathNames.Marshal(x) }

// UnmarshalText reads a name.
func (x *PathOrder) UnmarshalText(text []byte) error { return pathNames.Unmarshal(text, x) }

// Random is where random numbers come from.
type Random uint8

// The sources.
const (
	OwnRandom Random = iota
	NS3Random
)

var randomNames = units.Names[Random]{"own", "ns-3"}

// String is its name in scenarios.
func (x Random) String() string { return randomNames.Name(x) }

// MarshalText writes the name.
func (x Random) MarshalText() ([]byte, error) { return randomNames.Marshal(x) }

// UnmarshalText reads a name.
func (x *Random) UnmarshalText(text []byte) error { return randomNames.Unmarshal(text, x) }

// Rounding of times on the wire.
type Rounding uint8

// The roundings.
const (
	Exact Rounding = iota
	WholeNanoseconds
)

var roundingNames = units.Names[Rounding]{"exact", "whole-nanoseconds"}

// String is its name in scenarios.
func (x Rounding) String() string { return roundingNames.Name(x) }

// MarshalText writes the name.
func (x Rounding) MarshalText() ([]byte, error) { return roundingNames.Marshal(x) }

// UnmarshalText reads a name.
func (x *Rounding) UnmarshalText(text []byte) error { return roundingNames.Unmarshal(text, x) }

// WatchdogAction is what is done about a port that stays paused.
type WatchdogAction uint8

// The actions.
const (
	WatchdogReport WatchdogAction = iota
	WatchdogIgnore
)

var watchdogNames = units.Names[WatchdogAction]{"report", "ignore"}

// String is its name in scenarios.
func (x WatchdogAction) String() string { return watchdogNames.Name(x) }

// MarshalText writes the name.
func (x WatchdogAction) MarshalText() ([]byte, error) { return watchdogNames.Marshal(x) }

// UnmarshalText reads a name.
func (x *WatchdogAction) UnmarshalText(text []byte) error { return watchdogNames.Unmarshal(text, x) }

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

// Wanted says what to write.
func (Threshold) Wanted() string { return "dynamic, or a size such as 64KiB" }

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

// Wanted says what to write.
func (Headroom) Wanted() string { return "auto, hpcc, or a size such as 64KiB" }

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

// Wanted says what to write.
func (Timeout) Wanted() string { return "auto, none, or a time such as 1ms" }

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
