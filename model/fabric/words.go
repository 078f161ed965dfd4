package fabric

import "farflash/model/fabric/setting"

// The types of a network's settings.
type (
	Life           = setting.Life
	RecoveryKind   = setting.RecoveryKind
	Scheduler      = setting.Scheduler
	PathOrder      = setting.PathOrder
	Random         = setting.Random
	Rounding       = setting.Rounding
	WatchdogAction = setting.WatchdogAction
	Threshold      = setting.Threshold
	HeadroomKind   = setting.HeadroomKind
	Headroom       = setting.Headroom
	Timeout        = setting.Timeout
	QueuePairs     = setting.QueuePairs
	RoundTrip      = setting.RoundTrip
	Acks           = setting.Acks
	CNP            = setting.CNP
	Recovery       = setting.Recovery
	PFC            = setting.PFC
	ECN            = setting.ECN
	ECNPort        = setting.ECNPort
	Watchdog       = setting.Watchdog
	Telemetry      = setting.Telemetry
)

// The values of the settings.
const (
	Persistent       = setting.Persistent
	PerMessage       = setting.PerMessage
	GoBackN          = setting.GoBackN
	SelectiveRepeat  = setting.SelectiveRepeat
	Sack             = setting.Sack
	DWRR             = setting.DWRR
	Strict           = setting.Strict
	Ascending        = setting.Ascending
	Descending       = setting.Descending
	OwnRandom        = setting.OwnRandom
	NS3Random        = setting.NS3Random
	Exact            = setting.Exact
	WholeNanoseconds = setting.WholeNanoseconds
	WatchdogReport   = setting.WatchdogReport
	WatchdogIgnore   = setting.WatchdogIgnore
	HeadroomAuto     = setting.HeadroomAuto
	HeadroomHPCC     = setting.HeadroomHPCC
	HeadroomFixed    = setting.HeadroomFixed
)
