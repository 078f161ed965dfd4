package cluster

import "farflash/model/cluster/setting"

// Choices of a configuration, defined in package setting.
type (
	Acknowledge = setting.Acknowledge
	DiskLatency = setting.DiskLatency
	Core        = setting.Core
	Model       = setting.Model
	Reading     = setting.Reading
)

// Values of these choices.
const (
	WriteThrough    = setting.WriteThrough
	WriteBack       = setting.WriteBack
	LatencyConstant = setting.LatencyConstant
	LatencyGrows    = setting.LatencyGrows
	CoreIdeal       = setting.CoreIdeal
	CorePacket      = setting.CorePacket
	ModelRate       = setting.ModelRate
	ModelSSD        = setting.ModelSSD
	ReadBids        = setting.ReadBids
	ReadRandom      = setting.ReadRandom
	ReadLeastLoaded = setting.ReadLeastLoaded
	ReadHedged      = setting.ReadHedged
	ReadTied        = setting.ReadTied
)
