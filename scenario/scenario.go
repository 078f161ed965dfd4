// Package scenario is the language in which a simulation is described, and translates a description into the models'
// configurations.
//
// Its main type is Scenario, a plain struct that a YAML file is decoded into by its shape: keys are field names in
// snake_case, so ssd.Config itself is the schema of the ssd section. Find reads the text of a file or a preset, and
// Parse decodes it with the changes made on the command line; every mistake is reported with file, line and column.
// Scenario.Resolved writes it back with every default, and Digest identifies the computation. Describe explains a key.
// Package convert translates the files of other programs.
//
// Package shape reads and writes the YAML. It leaves out plans, and running a scenario (package experiment).
package scenario

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"farflash/block"
	"farflash/model/nvmf"
	"farflash/model/ssd"
	"farflash/numeric/units"
	"farflash/policy/ratecontrol"
	"farflash/scenario/shape"
	"farflash/workload/synth"
	"farflash/workload/trace"
)

// Scenario describes a simulation. Its sections select its kind: ssd alone is a local drive with one host; fabric with
// flows a network; targets a system of hosts, network, targets and drives; object_cluster a cluster of gateways and
// targets.
type Scenario struct {
	Name        string // Name is the scenario's name in reports. The default is the file's name.
	Description string // Description says what the scenario shows. It changes no result.
	// Cite adds papers whose figures the scenario uses, by the keys that farflash cite prints, to those of its models.
	// It changes no result.
	Cite []string
	// Workload is the hosts' load. Its items run at the same time, each with its own queue pair.
	Workload []Load
	// SSD is the drive: a preset's name, or a section. In a system it is for targets without their own.
	SSD *Drive
	// HostRAID makes one volume of several drives, in the host's software: stripes, mirrors or parity. Its members are
	// local drives, or all drives of the targets.
	HostRAID   *HostRAID
	Initiators int // Initiators is the number of hosts of a system that issue requests.
	// Targets are groups of equal machines with drives, behind the network. They make the scenario a system.
	Targets  []TargetGroup
	Route    Route         // Route says who issues a request and where it goes.
	Place    Place         // Place says which of the network's hosts are initiators and which targets.
	Protocol nvmf.Protocol // Protocol is how requests cross the network.
	NVMf     nvmf.Config   // NVMf is the protocol's settings.
	// RateControl divides drives between reads and writes. By default a drive has one submission queue.
	RateControl *ratecontrol.Config
	Coupling    Coupling // Coupling says how the network and the drives are simulated together.
	// Fabric is the network. With flows and without drives it is simulated alone.
	Fabric *Fabric
	// Flows are the load of the network: messages from host to host. All items run at the same time.
	Flows []FlowLoad
	// ObjectCluster is a cluster of gateways, which put chunks, and targets, which store their replicas.
	ObjectCluster *ObjectCluster
	Measure       Measure // Measure selects the measurements and the end of the run.

	dir   string            // base of relative paths in the scenario
	set   shape.Set         // keys present in the file, and their positions
	given bool              // built by ForCluster, which has applied the protocol's defaults
	lone  []bool            // the workload items that run; nil: all
	files map[string]string // content hash of each named file, by path
}

// Load is one flow of requests, from exactly one of trace, synthetic, fio and mqsim.
type Load struct {
	Name string // Name is used in messages and tables. The default is workload[i].
	// Tenant is the user that the flow belongs to; flows of one tenant are reported together. If any flow names a
	// tenant, a flow without one is a tenant by its own name.
	Tenant    string
	Trace     *Trace        // Trace replays a recorded trace.
	Synthetic *synth.Config // Synthetic generates requests with the given sizes, times and addresses.
	Fio       *Fio          // Fio runs the jobs of a fio job file.
	MQSim     *MQSim        // MQSim generates the requests of the simulator MQSim.
	// Closed is the number of requests kept outstanding: each completion issues a new one, and the source's times are
	// ignored. 0 is an open loop: each request is issued at its own time.
	Closed int
	// Copies repeats the item as several equal flows with their own random numbers.
	Copies *Copies
	Think  *Think // Think pauses a closed loop.
	Flush  *Flush // Flush adds flushes after writes.
	// After names the item that must end, with everything that runs at the same time, before this one starts. Then
	// start and until count from that moment.
	After string
	// Start is when a closed loop starts. The times of an open loop count from it.
	Start units.Duration
	// Until is when the flow stops issuing requests. Outstanding ones still complete. 0 is never.
	Until units.Duration
	// Limit is the largest number of requests issued. 0 is all that the source has.
	Limit     int64
	Namespace int   // Namespace is the namespace that is addressed, counted from 0.
	Queue     Queue // Queue is the submission queue.
	// Initiator is the system's host that issues all requests of the item, counted from 0. any is as route.initiator
	// says.
	Initiator Bound
	// Addresses sets the treatment of addresses beyond the end of the namespace.
	Addresses   Addresses
	LatencyFrom LatencyFrom // LatencyFrom says where a latency starts.
	// Placement is the placement hint of all writes (write stream, FDP placement handle). 0 is none.
	Placement int
	Group     int // Group is the reclaim group of all writes, counted from 0.
	// FUA makes writes complete only when their data are on flash (force unit access).
	FUA bool
	// Zones makes the writes of synthetic requests follow the zones of a zoned namespace.
	Zones *Zones
}

// Copies are equal flows.
type Copies struct {
	Count int // Count is the number of copies.
	// Stride is the distance between the addresses of one copy and those of the next.
	Stride units.Bytes
}

// Think is the pause of a closed loop.
type Think struct {
	Time units.Duration // Time is the length of the pause.
	// Every is the number of requests between pauses. A pause starts when all of them have completed.
	Every int
}

// Flush is how often a flow flushes.
type Flush struct {
	Every int64 // Every is the number of writes between flushes.
}

// Queue is a submission and completion queue pair.
type Queue struct {
	// Depth is the submission queue's number of entries. 0 is the drive's submission_depth.
	Depth  int
	Class  block.Class // Class is the priority class under weighted round robin.
	Weight int         // Weight is the queue's share within its class.
	// InFlight is the number of the queue's commands that the drive may hold at once. 0 is the drive's fetch_size.
	InFlight int
}

// Trace is a recorded trace that is replayed.
type Trace struct {
	// File is the trace, plain or compressed with gzip, bzip2, xz or zstd. A relative path starts at the scenario's
	// folder. blktrace's files, one per processor, are one trace: nvme0n1.blktrace.0 or nvme0n1.blktrace.* stands for
	// all of them.
	File    string
	Format  trace.Format   // Format is the trace's format.
	Columns *trace.Columns // Columns assigns the columns of a table, with format: csv.
	Unit    *trace.Unit    // Unit is the unit of each column, with format: csv.
	// SkipBad is the number of damaged records that are skipped and counted; more are an error.
	SkipBad int64
	Volume  string    // Volume replays only this volume, by the trace's own name or number.
	Volumes VolumeWay // Volumes sets where a trace's volumes lie in the drive's address space.
	// Window is the number of records held back to sort them by time. 0 is the format's default.
	Window int
	Scale  float64 // Scale multiplies the trace's times: 0.5 replays it twice as fast.
	// Part is the share of the trace's records that is replayed, from its start.
	Part units.Fraction
	// Loop is the number of times that the trace is replayed, one after the other.
	Loop int
}

// Options returns the options for reading; seed spreads whole seconds' requests.
func (t *Trace) Options(seed uint64) trace.Options {
	o := trace.Options{Format: t.Format, Seed: seed, SkipBad: t.SkipBad, Volume: t.Volume, Window: t.Window}
	if t.Columns != nil {
		o.CSV.Columns = *t.Columns
	}
	if t.Unit != nil {
		o.CSV.Unit = *t.Unit
	}
	return o
}

// VolumeWay is the address layout of a trace's volumes.
type VolumeWay uint8

const (
	// VolumesStacked: one after the other, in order of first appearance; each is as long as its highest address.
	VolumesStacked  VolumeWay = iota
	VolumesOverlaid           // all starting at the first byte, so that they share blocks
)

var volumeWays = units.Names[VolumeWay]{"stack", "overlay"}

func (v VolumeWay) String() string { return volumeWays.Name(v) }

func (v VolumeWay) MarshalText() ([]byte, error) { return volumeWays.Marshal(v) }

func (v *VolumeWay) UnmarshalText(text []byte) error { return volumeWays.Unmarshal(text, v) }

// Addresses says what happens to requests beyond the end of their namespace.
type Addresses uint8

const (
	AddressError Addresses = iota // it is an error
	AddressFold                   // they are folded into the namespace (modulo its size)
)

var addressNames = units.Names[Addresses]{"error", "fold"}

func (a Addresses) String() string { return addressNames.Name(a) }

func (a Addresses) MarshalText() ([]byte, error) { return addressNames.Marshal(a) }

func (a *Addresses) UnmarshalText(text []byte) error { return addressNames.Unmarshal(text, a) }

// LatencyFrom says where a latency starts.
type LatencyFrom uint8

const (
	FromArrival    LatencyFrom = iota // at the request's arrival, as a user sees it
	FromSubmission                    // when the request enters the submission queue, as the drive sees it
)

var latencyNames = units.Names[LatencyFrom]{"arrival", "submission"}

func (l LatencyFrom) String() string { return latencyNames.Name(l) }

func (l LatencyFrom) MarshalText() ([]byte, error) { return latencyNames.Marshal(l) }

func (l *LatencyFrom) UnmarshalText(text []byte) error { return latencyNames.Unmarshal(text, l) }

// Compat is the simulator whose deviations from a real drive are reproduced.
type Compat uint8

const (
	CompatNone  Compat = iota // a drive without deviations
	CompatMQSim               // the simulator MQSim
)

var compatNames = units.Names[Compat]{"none", "mqsim"}

func (c Compat) String() string { return compatNames.Name(c) }

func (c Compat) MarshalText() ([]byte, error) { return compatNames.Marshal(c) }

func (c *Compat) UnmarshalText(text []byte) error { return compatNames.Unmarshal(text, c) }

// Drive is the ssd section: a preset, changed by the section's other keys.
type Drive struct {
	// Preset is the drive that the section starts from (farflash list shows them). The default is the drive of MQSim's
	// distributed configuration.
	Preset string
	// Compat is the simulator whose deviations from a real drive are reproduced, for comparisons with it.
	Compat Compat
	ssd.Config
}

// Prepare applies the preset's values before the section's own.
func (x *Drive) Prepare(d *shape.Decoder, n *shape.Node, path string) {
	p := n.Get("preset")
	if p == nil || p.Kind != shape.Scalar || p.Text == "" {
		return
	}
	preset, err := PresetDrive(p.Text)
	if err != nil {
		d.Fail(p.At, "%s: %v", units.JoinPath(path, "preset"), err)
		return
	}
	*x = preset
	x.Preset = p.Text
}

// Find reads a scenario from a file, or a preset if there is no such file.
func Find(name string) (shape.Source, error) {
	src, err := shape.ReadFile(name)
	switch {
	case err == nil:
		return shape.Source{File: name, Text: src, Dir: filepath.Dir(name)}, nil
	case !errors.Is(err, fs.ErrNotExist) && !isDirectory(name):
		return shape.Source{}, err
	}
	if text, ok := presetText(name); ok {
		return shape.Source{File: name + ".yaml", Text: text}, nil
	}
	return shape.Source{}, noSuchScenario(name)
}

func isDirectory(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

func hasYAMLSuffix(name string) bool {
	return strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml")
}

// Parse parses a scenario. Changes are applied in order.
func Parse(src shape.Source, changes []shape.Change) (*Scenario, error) {
	top, err := shape.Parse(src.File, src.Text)
	if err != nil {
		return nil, err
	}
	return load(top, src, changes)
}

// ParseWorkload parses a scenario for its workload, by default with mqsim-default.
func ParseWorkload(src shape.Source, changes []shape.Change) (*Scenario, error) {
	top, err := shape.Parse(src.File, src.Text)
	if err != nil {
		return nil, err
	}
	added := slices.ContainsFunc(changes, func(c shape.Change) bool { return strings.HasPrefix(c.Path, "workload") })
	if top.Kind == shape.Mapping && top.Get("workload") == nil && !added {
		return nil, shape.Errors{{At: top.At,
			Msg: "no workload, so there are no requests to drives here; add one, such as \"workload: [{trace: " +
				"hm_0.csv}]\", or choose another scenario"}}
	}
	if top.Kind == shape.Mapping && top.Get("ssd") == nil {
		top.Put(&shape.Node{At: top.At, Text: "ssd"}, &shape.Node{At: top.At, Text: "mqsim-default"})
	}
	return load(top, src, changes)
}

func load(top *shape.Node, src shape.Source, changes []shape.Change) (*Scenario, error) {
	s := &Scenario{dir: src.Dir}
	if err := language.Apply(top, reflect.TypeOf(s).Elem(), changes); err != nil {
		return nil, err
	}
	d := language.Decoder()
	d.Decode(top, s, "")
	s.set = d.Set
	if len(d.Errs) == 0 {
		s.check(d)
	}
	if len(d.Errs) > 0 {
		return nil, d.Errs.InOrder()
	}
	if s.Name == "" {
		base := filepath.Base(src.File)
		s.Name = strings.TrimSuffix(base, filepath.Ext(base))
	}
	return s, nil
}

// Path resolves a file name in the scenario relative to the working directory.
func (s *Scenario) Path(name string) string {
	if filepath.IsAbs(name) || s.dir == "" {
		return name
	}
	return filepath.Join(s.dir, name)
}
