package fabric

import "farflash/model/fabric/setting"

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
