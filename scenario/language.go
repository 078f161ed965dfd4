package scenario

import (
	_ "embed"
	"reflect"

	"farflash/block"
	"farflash/block/raid"
	"farflash/model/fabric/cc"
	"farflash/model/nvmf"
	"farflash/model/ssd"
	"farflash/numeric/units"
	"farflash/policy/ratecontrol"
	"farflash/scenario/shape"
	"farflash/workload/flows"
	"farflash/workload/synth"
)

// comments holds the comments of the structs that a scenario consists of, in the format of shape.Language. TestComments
// writes it.
//
//go:embed comments.txt
var comments string

// language holds the properties of scenarios that the struct types do not express.
var language = shape.Language{
	Word: "the scenario",
	Doc:  "A scenario states the workload, the drive or system that serves it, and the measurement.",
	Keys: map[string]string{
		"ssd.Config.Quirks":            "-", // set by compat only
		"fabric.Config.Pools":          "-", // likewise
		"cluster.Config.Protocol":      "-", // in ObjectCluster
		"ssd.Energy.Idle":              "idle_watts",
		"nand.Timing.Read":             "read_latency",
		"nand.Timing.Program":          "program_latency",
		"nand.Timing.Erase":            "erase_latency",
		"nand.Timing.TransferRate":     "channel_rate",
		"nand.Timing.Width":            "channel_width",
		"scenario.Load.MQSim":          "mqsim",
		"scenario.Scenario.NVMf":       "nvmf",
		"scenario.Scenario.HostRAID":   "host_raid",
		"raid.Config.MaxTransfer":      "-", // the protocol's
		"scenario.TargetGroup.SSDs":    "ssds",
		"nvmf.Config.TXQ":              "txq",
		"nvmf.Config.Seed":             "-", // the trial's
		"nvmf.Host.IOTimeout":          "io_timeout",
		"scenario.Place.InitiatorNICs": "initiator_nics",
		"scenario.Place.TargetNICs":    "target_nics",
		"nvmf.Limits.IOs":              "rw_ios", // SPDK's words
		"nvmf.Limits.Bytes":            "rw_bytes",
		"nvmf.Limits.ReadBytes":        "r_bytes",
		"nvmf.Limits.WriteBytes":       "w_bytes",
		"nvmf.Host.FastIOFail":         "fast_io_fail",
		"synth.Config.QueueDepth":      "-", // set by the flow's closed
		"synth.Config.Volume":          "-",
		"synth.Config.Seed":            "-", // the trial's
		"synth.Config.Name":            "-",
	},
	Short: map[reflect.Type]string{
		reflect.TypeFor[Drive]():              "preset",
		reflect.TypeFor[Trace]():              "file",
		reflect.TypeFor[Fio]():                "file",
		reflect.TypeFor[Copies]():             "count",
		reflect.TypeFor[Think]():              "time",
		reflect.TypeFor[Flush]():              "every",
		reflect.TypeFor[cc.Config]():          "algorithm",
		reflect.TypeFor[FlowLoad]():           "file",
		reflect.TypeFor[ratecontrol.Config](): "kind",
		reflect.TypeFor[nvmf.Software]():      "stack",
		reflect.TypeFor[nvmf.Buffers]():       "count",
	},
	Default: setDefault,
	Files: []string{"scenario.Trace.File", "scenario.Fio.File", "scenario.Topology.File", "scenario.FlowLoad.File",
		"ratecontrol.Config.Model"},
	Comments: comments,
}

// setDefault sets the value that a pointer refers to, to the default of its type.
func setDefault(p any) {
	switch x := p.(type) {
	case *Drive:
		*x = Drive{Config: ssd.DefaultConfig()}
	case *ssd.Reliability:
		*x = ssd.DefaultReliability()
	case *ssd.Controller:
		*x = ssd.DefaultController()
	case *ssd.PowerLimit:
		*x = ssd.DefaultPowerLimit()
	case *ssd.SLCCache:
		*x = ssd.DefaultSLCCache()
	case *ssd.FDP:
		*x = ssd.DefaultFDP()
	case *ssd.Zones:
		*x = ssd.DefaultZones()
	case *Zones:
		*x = Zones{AtOnce: 1}
	case *ssd.Refresh:
		*x = ssd.DefaultRefresh()
	case *Fabric:
		*x = DefaultFabric()
	case *FlowLoad:
		*x = FlowLoad{Config: flows.Config{Class: DataClass}}
	case *flows.Entry:
		*x = flows.Entry{Class: DataClass}
	case *Load:
		*x = Load{Queue: Queue{Class: block.Medium, Weight: 1}}
	case *Copies:
		*x = Copies{Count: 1}
	case *Think:
		*x = Think{Every: 1}
	case *Flush:
		*x = Flush{Every: 1}
	case *Trace:
		*x = Trace{Scale: 1, Part: 1, Loop: 1}
	case *synth.Flow:
		*x = synth.Flow{Size: synth.Size{Mean: 4 * units.KiB}}
	case *MQSim:
		*x = defaultMQSim()
	case *Measure:
		*x = defaultMeasure()
	case *Scenario:
		x.Measure = defaultMeasure()
		x.defaultSystem()
	case *HostRAID:
		*x = HostRAID{Config: raid.DefaultConfig()}
	case *ratecontrol.Config:
		*x = ratecontrol.DefaultConfig()
	case *TargetGroup:
		*x = TargetGroup{Count: 1, SSDs: 1}
	case *ObjectCluster:
		*x = defaultObjectCluster()
	}
}

// Describe returns the description of the key at a path, without indices; "": all.
func Describe(path string) (shape.Description, error) { return language.Describe(new(Scenario), path) }
