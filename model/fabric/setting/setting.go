// Package setting defines a network's settings: its sections, and the words and quantities in them that are more than a
// plain number, such as the lifetime of queue pairs, the way lost packets are recovered, and thresholds that are
// dynamic or a size.
//
// Its types are structs of settings, enumerations, and small unions that read and write the words of scenarios. Package
// fabric re-exports them, with their defaults and checks.
//
// It leaves out their meaning, which is package fabric's.
package setting

import (
	"errors"
	"fmt"

	"farflash/numeric/units"
)

// Life is how long a queue pair lives.
type Life uint8

// The lifetimes.
const (
	// Persistent: messages between two hosts share queue pairs, whose rates carry over from message to message.
	Persistent Life = iota
	PerMessage      // each message has a new queue pair, which starts at line rate
)

var lifeNames = units.Names[Life]{"persistent", "per-message"}

// String returns the name used in scenarios.
func (l Life) String() string { return lifeNames.Name(l) }

// MarshalText writes the name.
func (l Life) MarshalText() ([]byte, error) { return lifeNames.Marshal(l) }

// UnmarshalText reads a name.
func (l *Life) UnmarshalText(text []byte) error { return lifeNames.Unmarshal(text, l) }

// RecoveryKind is how lost packets are retransmitted.
type RecoveryKind uint8

// The kinds.
const (
	GoBackN         RecoveryKind = iota // everything from the first lost packet on, as RoCE NICs do
	SelectiveRepeat                     // only lost packets, as in IRN (Mittal et al., SIGCOMM 2018)
	// Sack: only lost packets, as TCP does: packets known to have arrived or to be lost take no space in the window
	// (RFC 6675); a retransmission counts as lost when a packet sent after it arrives first (RFC 8985).
	Sack
)

// Keeps reports whether receivers keep packets that arrive out of order.
func (k RecoveryKind) Keeps() bool { return k != GoBackN }

var recoveryNames = units.Names[RecoveryKind]{"go-back-n", "selective-repeat", "sack"}

// String returns the name used in scenarios.
func (k RecoveryKind) String() string { return recoveryNames.Name(k) }

// MarshalText writes the name.
func (k RecoveryKind) MarshalText() ([]byte, error) { return recoveryNames.Marshal(k) }

// UnmarshalText reads a name.
func (k *RecoveryKind) UnmarshalText(text []byte) error { return recoveryNames.Unmarshal(text, k) }

// Scheduler is the order in which a port serves its classes.
type Scheduler uint8

// The orders.
const (
	DWRR   Scheduler = iota // class 0 first, the others by weight (deficit weighted round robin)
	Strict                  // class 0 before 1 before 2
)

var schedulerNames = units.Names[Scheduler]{"dwrr", "strict"}

// String returns the name used in scenarios.
func (s Scheduler) String() string { return schedulerNames.Name(s) }

// MarshalText writes the name.
func (s Scheduler) MarshalText() ([]byte, error) { return schedulerNames.Marshal(s) }

// UnmarshalText reads a name.
func (s *Scheduler) UnmarshalText(text []byte) error { return schedulerNames.Unmarshal(text, s) }

// PathOrder is the order of equally short paths.
type PathOrder uint8

// The orders.
const (
	Ascending PathOrder = iota // by ascending number of the next switch
	// Descending: by descending number, the effect of HPCC's ns-3, which orders switches by memory address.
	Descending
)

var pathNames = units.Names[PathOrder]{"ascending", "descending"}

// String returns the name used in scenarios.
func (o PathOrder) String() string { return pathNames.Name(o) }

// MarshalText writes the name.
func (o PathOrder) MarshalText() ([]byte, error) { return pathNames.Marshal(o) }

// UnmarshalText reads a name.
func (o *PathOrder) UnmarshalText(text []byte) error { return pathNames.Unmarshal(text, o) }

// Random is the source of random numbers.
type Random uint8

// The sources.
const (
	OwnRandom Random = iota // an independent stream for each port
	// NS3Random: one sequence for the network: the numbers of HPCC's ns-3 in the run whose number is the seed.
	NS3Random
)

var randomNames = units.Names[Random]{"own", "ns-3"}

// String returns the name used in scenarios.
func (r Random) String() string { return randomNames.Name(r) }

// MarshalText writes the name.
func (r Random) MarshalText() ([]byte, error) { return randomNames.Marshal(r) }

// UnmarshalText reads a name.
func (r *Random) UnmarshalText(text []byte) error { return randomNames.Unmarshal(text, r) }

// Rounding is the rounding of times on the wire.
type Rounding uint8

// The roundings.
const (
	Exact            Rounding = iota // to the picosecond
	WholeNanoseconds                 // down to whole nanoseconds, as in ns-3
)

var roundingNames = units.Names[Rounding]{"exact", "whole-nanoseconds"}

// String returns the name used in scenarios.
func (r Rounding) String() string { return roundingNames.Name(r) }

// MarshalText writes the name.
func (r Rounding) MarshalText() ([]byte, error) { return roundingNames.Marshal(r) }

// UnmarshalText reads a name.
func (r *Rounding) UnmarshalText(text []byte) error { return roundingNames.Unmarshal(text, r) }

// WatchdogAction is the watchdog's response to a port that stays paused.
type WatchdogAction uint8

// The actions.
const (
	WatchdogReport WatchdogAction = iota // the pause is reported
	// WatchdogIgnore: the pause is also ended, and further pauses of its class are ignored for the same time again, as
	// switches' watchdogs do; packets that then find no space are lost.
	WatchdogIgnore
)

var watchdogNames = units.Names[WatchdogAction]{"report", "ignore"}

// String returns the name used in scenarios.
func (a WatchdogAction) String() string { return watchdogNames.Name(a) }

// MarshalText writes the name.
func (a WatchdogAction) MarshalText() ([]byte, error) { return watchdogNames.Marshal(a) }

// UnmarshalText reads a name.
func (a *WatchdogAction) UnmarshalText(text []byte) error { return watchdogNames.Unmarshal(text, a) }

// Threshold is dynamic or a size.
type Threshold struct {
	Dynamic bool
	Size    units.Bytes
}

// MarshalText writes dynamic or the size.
func (t Threshold) MarshalText() ([]byte, error) {
	if t.Dynamic {
		return []byte("dynamic"), nil
	}
	return t.Size.MarshalText()
}

// Wanted describes the accepted values.
func (Threshold) Wanted() string { return "dynamic, or a size such as 64KiB" }

// UnmarshalText reads dynamic or a size.
func (t *Threshold) UnmarshalText(text []byte) error {
	if string(text) == "dynamic" {
		*t = Threshold{Dynamic: true}
		return nil
	}
	*t = Threshold{}
	return orSize(text, &t.Size, "dynamic")
}

// Answers is which packets of the answers to RDMA Reads are acknowledged.
type Answers uint8

// The kinds.
const (
	// AnswersAuto: none (InfiniBand specification, volume 1, chapter 9.7), the requester asks again for what is lost;
	// each packet with selective repeat, and with congestion control that needs ACKs or a window
	AnswersAuto     Answers = iota
	AnswersExplicit         // each packet, as in simulators that treat an answer like a Write
)

var answersNames = units.Names[Answers]{"auto", "explicit"}

// String returns the name used in scenarios.
func (a Answers) String() string { return answersNames.Name(a) }

// MarshalText writes the name.
func (a Answers) MarshalText() ([]byte, error) { return answersNames.Marshal(a) }

// UnmarshalText reads a name.
func (a *Answers) UnmarshalText(text []byte) error { return answersNames.Unmarshal(text, a) }

// Notices is what a marked packet of an answer to an RDMA Read causes.
type Notices uint8

// The kinds.
const (
	NoticesCNP  Notices = iota // a CNP to the host that answers, as for other data
	NoticesNone                // nothing: answers slow no queue pair
)

var noticesNames = units.Names[Notices]{"cnp", "none"}

// String returns the name used in scenarios.
func (k Notices) String() string { return noticesNames.Name(k) }

// MarshalText writes the name.
func (k Notices) MarshalText() ([]byte, error) { return noticesNames.Marshal(k) }

// UnmarshalText reads a name.
func (k *Notices) UnmarshalText(text []byte) error { return noticesNames.Unmarshal(text, k) }

// HeadroomKind is the source of a headroom's size.
type HeadroomKind uint8

// The kinds.
const (
	HeadroomAuto HeadroomKind = iota
	HeadroomHPCC
	HeadroomFixed
)

// Headroom is the buffer reserved for packets that arrive after a pause.
type Headroom struct {
	Kind HeadroomKind
	Size units.Bytes // for HeadroomFixed
}

// MarshalText writes auto, hpcc or the size.
func (h Headroom) MarshalText() ([]byte, error) {
	switch h.Kind {
	case HeadroomAuto:
		return []byte("auto"), nil
	case HeadroomHPCC:
		return []byte("hpcc"), nil
	}
	return h.Size.MarshalText()
}

// Wanted describes the accepted values.
func (Headroom) Wanted() string { return "auto, hpcc, or a size such as 64KiB" }

// UnmarshalText reads auto, hpcc or a size.
func (h *Headroom) UnmarshalText(text []byte) error {
	switch string(text) {
	case "auto":
		*h = Headroom{Kind: HeadroomAuto}
		return nil
	case "hpcc":
		*h = Headroom{Kind: HeadroomHPCC}
		return nil
	}
	*h = Headroom{Kind: HeadroomFixed}
	return orSize(text, &h.Size, "auto")
}

// Timeout is a time, auto or none.
type Timeout struct {
	Auto bool
	Time units.Duration // if Auto is false; 0 is none
}

// MarshalText writes auto, none or the time.
func (t Timeout) MarshalText() ([]byte, error) {
	switch {
	case t.Auto:
		return []byte("auto"), nil
	case t.Time == 0:
		return []byte("none"), nil
	}
	return t.Time.MarshalText()
}

// Wanted describes the accepted values.
func (Timeout) Wanted() string { return "auto, none, or a time such as 1ms" }

// UnmarshalText reads auto, none or a time.
func (t *Timeout) UnmarshalText(text []byte) error {
	*t = Timeout{}
	switch string(text) {
	case "auto":
		t.Auto = true
		return nil
	case "none":
		return nil
	}
	if err := t.Time.UnmarshalText(text); err != nil {
		return fmt.Errorf("%w; or use auto or none", err)
	}
	if t.Time <= 0 {
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
