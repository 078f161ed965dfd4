package fabric

import (
	"farflash/model/fabric/counts"
	"farflash/model/fabric/setting"
)

// The network's totals.
type (
	Counters   = counts.Counters
	DropReason = counts.Reason
)

// Why packets were lost.
const (
	DropBuffer    = counts.Buffer
	DropCorrupted = counts.Corrupted
	DropNoRoute   = counts.NoRoute
	DropLinkDown  = counts.LinkDown
)

// Types of settings that programs write out; package setting has all of them.
type (
	Threshold = setting.Threshold
	Timeout   = setting.Timeout
	ECNPort   = setting.ECNPort
	Telemetry = setting.Telemetry
)

// The values of settings.
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
