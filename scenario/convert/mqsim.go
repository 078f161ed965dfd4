// Package convert makes scenarios from the inputs of other programs: MQSim's XML (FromMQSim), the configurations of
// HPCC's ns-3 and of ns3-rdma (FromNS3), fio's job files (FromFio), and workloads that were fitted to a trace
// (FromFit).
//
// Its main type is Conversion: the scenario, with notes on decisions and on settings without a counterpart. NS3Terms is
// the opposite direction: it expresses a result's flows in ns-3's terms. It leaves out parsing those files (package
// peer, workload/fiojob).
package convert

import (
	"errors"
	"fmt"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"farflash/internal/term"
	"farflash/model/ssd"
	"farflash/model/ssd/nand"
	"farflash/numeric/units"
	"farflash/policy/ftl"
	"farflash/scenario"
	"farflash/scenario/peer"
	"farflash/scenario/shape"
	"farflash/workload"
	"farflash/workload/trace"
)

// Conversion is a scenario made from another program's files.
type Conversion struct {
	Scenario  *scenario.Scenario
	Scenarios int // in the files
	// Notes lists the decisions and the settings without a counterpart, one sentence each.
	Notes []string
}

// Text returns the conversion as a scenario file.
func (c *Conversion) Text() string {
	var b strings.Builder
	for _, n := range c.Notes {
		comment(&b, term.Shown(n))
	}
	b.WriteString(c.Scenario.Brief())
	return b.String()
}

func (c *Conversion) note(format string, args ...any) {
	c.Notes = append(c.Notes, fmt.Sprintf(format, args...))
}

// FromMQSim converts MQSim's device file and one scenario (from 1) of its workload file. Under CompatMQSim the drive
// has MQSim's quirks and latencies are counted as MQSim counts them. Traces are looked for in the workload file's
// directory, then in the working directory, where MQSim looks. Every tag has a counterpart or a note, or is rejected by
// name.
func FromMQSim(device, workloads string, number int, compat scenario.Compat) (*Conversion, error) {
	d, err := peer.ReadFile(device, peer.ReadMQSimDevice)
	if err != nil {
		return nil, err
	}
	all, err := peer.ReadFile(workloads, peer.ReadMQSimWorkload)
	if err != nil {
		return nil, err
	}
	if number < 1 || number > len(all) {
		return nil, fmt.Errorf("%s: no scenario %d; the file has 1 to %d", workloads, number, len(all))
	}
	flows := all[number-1]
	c := &Conversion{Scenario: &scenario.Scenario{}, Scenarios: len(all)}
	c.note("converted from %s and scenario %d of %d of %s", filepath.Base(device), number, len(all),
		filepath.Base(workloads))
	for _, n := range d.Defaulted() {
		c.note("%s", n)
	}
	s := c.Scenario
	s.Name = fmt.Sprintf("%s-%d", strings.TrimSuffix(filepath.Base(workloads), filepath.Ext(workloads)), number)
	s.SSD = &scenario.Drive{Compat: compat, Config: ssd.DefaultConfig()}
	if err := c.device(d, len(flows)); err != nil {
		return nil, err
	}
	as := s.SSD.Config
	if compat == scenario.CompatMQSim {
		as = ssd.MQSim(as)
	}
	if err := inRange(d, &as); err != nil {
		return nil, err
	}
	for i, f := range flows {
		if err := c.flow(d, f, i, filepath.Dir(workloads)); err != nil {
			return nil, err
		}
	}
	if compat == scenario.CompatMQSim && len(flows) > 1 {
		c.order(d, flows)
	}
	if c.Scenario.SSD.Collection.Victim == ftl.RandomYield {
		most := slices.MaxFunc(flows, byOccupancy).Initial_Occupancy_Percentage
		c.Scenario.SSD.Preconditioning.Occupancy = units.Fraction(float64(most) / 100)
	}
	if d.Enabled_Preconditioning {
		if err := c.precondition(flows); err != nil {
			return nil, err
		}
	}
	if compat == scenario.CompatMQSim {
		s.SSD.Config = ssd.MQSim(s.SSD.Config)
		s.SSD.Quirks = ssd.Quirks{}
	}
	// The result must be a valid scenario: it is parsed back.
	if _, err := scenario.Parse(shape.Source{File: s.Name + ".yaml", Text: []byte(s.Resolved())}, nil); err != nil {
		return nil, fmt.Errorf("%s and %s describe an invalid drive:\n%w", device, workloads, err)
	}
	return c, nil
}

// order arranges the flows in the order in which MQSim starts those that start at the same time; the last of the list
// starts first.
func (c *Conversion) order(d *peer.MQSimDevice, flows []*peer.MQSimFlow) {
	var names []string
	for i, f := range flows {
		if name := "Host.IO_Flow.Trace." + f.File_Path; !f.Synthetic {
			names = append(names, name)
		} else {
			names = append(names, fmt.Sprintf("Host.IO_Flow.Synth.No_%d", i))
		}
	}
	was := slices.Clone(c.Scenario.Workload)
	for k, i := range ssd.MQSimOrder(d.Flash_Channel_Count, d.Chip_No_Per_Channel, names) {
		c.Scenario.Workload[len(was)-1-k] = was[i]
	}
	c.note("flows that start at the same time do so in MQSim's order, that of its unordered_map: the last of the " +
		"workload's list comes first")
}

// refuse is the error for a tag whose value is not modelled.
func refuse(at, tag, value, why string) error {
	return fmt.Errorf("%s: <%s> %s: %s", at, tag, value, why)
}

// device converts ssdconfig.xml.
func (c *Conversion) device(d *peer.MQSimDevice, flows int) error {
	x := &c.Scenario.SSD.Config
	compat := c.Scenario.SSD.Compat == scenario.CompatMQSim
	for _, t := range []struct{ tag, value, only, why string }{
		{"Memory_Type", d.Memory_Type, "FLASH", "is not modelled; only FLASH is"},
		{"HostInterface_Type", d.HostInterface_Type, "NVME", "is not modelled; only NVME is"},
		{"Caching_Mechanism", d.Caching_Mechanism, "ADVANCED",
			"is not modelled (MQSim itself aborts at its first write); use ADVANCED"},
		{"Address_Mapping", d.Address_Mapping, "PAGE_LEVEL", "is not modelled (it is empty in MQSim); use PAGE_LEVEL"},
		{"Flash_Comm_Protocol", d.Flash_Comm_Protocol, "NVDDR2", "is not modelled; only NVDDR2 is"},
	} {
		if t.value != t.only {
			return refuse(d.At(t.tag), t.tag, t.value, t.why)
		}
	}
	ns := units.Nanosecond
	x.Geometry = nand.Geometry{
		Channels: d.Flash_Channel_Count, ChipsPerChannel: d.Chip_No_Per_Channel, DiesPerChip: d.Die_No_Per_Chip,
		PlanesPerDie:   d.Plane_No_Per_Die,
		BlocksPerPlane: d.Block_No_Per_Plane, PagesPerBlock: d.Page_No_Per_Block,
		PageSize: units.Bytes(d.Page_Capacity),
	}
	x.OverProvisioning = units.Fraction(d.Overprovisioning_Ratio)

	x.Host.LaneRate = units.ByteRate(float64(d.PCIe_Lane_Bandwidth*1e9) + 0.5)
	x.Host.Lanes = d.PCIe_Lane_Count
	x.Host.FetchSize = d.Queue_Fetch_Size
	x.Host.SubmissionDepth = d.IO_Queue_Depth

	x.Cache.Capacity = units.Bytes(d.Data_Cache_Capacity)
	switch d.Data_Cache_Sharing_Mode {
	case "SHARED":
	case "EQUAL_PARTITIONING":
		x.Cache.Partitioned = true
	default:
		return refuse(d.At("Data_Cache_Sharing_Mode"), "Data_Cache_Sharing_Mode", d.Data_Cache_Sharing_Mode,
			"is unknown; use SHARED or EQUAL_PARTITIONING")
	}
	x.DRAM = ssd.DRAM{
		RowSize:   units.Bytes(d.Data_Cache_DRAM_Row_Size),
		DataRate:  units.TransferRate(d.Data_Cache_DRAM_Data_Rate) * units.MTPerSecond,
		BurstSize: units.Bytes(d.Data_Cache_DRAM_Data_Busrt_Size),
		TRCD:      units.Duration(d.Data_Cache_DRAM_tRCD) * ns, TCL: units.Duration(d.Data_Cache_DRAM_tCL) * ns,
		TRP: units.Duration(d.Data_Cache_DRAM_tRP) * ns,
	}

	x.Mapping.Ideal = d.Ideal_Mapping_Table
	x.Mapping.CMTCapacity = units.Bytes(d.CMT_Capacity)
	switch d.CMT_Sharing_Mode {
	case "SHARED":
		x.Mapping.CMTShared = !compat
		if compat {
			// MQSim creates one table of the full size for each flow.
			x.Mapping.CMTCapacity *= units.Bytes(flows)
		}
	case "EQUAL_PARTITIONING":
		x.Mapping.CMTShared = false
	default:
		return refuse(d.At("CMT_Sharing_Mode"), "CMT_Sharing_Mode", d.CMT_Sharing_Mode,
			"is unknown; use SHARED or EQUAL_PARTITIONING")
	}
	x.Mapping.Allocation = ssd.AllocateStatic // that the scheme configures
	x.Mapping.Grain = 0                       // PAGE_LEVEL
	if err := x.Mapping.Scheme.UnmarshalText([]byte(d.Plane_Allocation_Scheme)); err != nil {
		return refuse(d.At("Plane_Allocation_Scheme"), "Plane_Allocation_Scheme", d.Plane_Allocation_Scheme,
			err.Error())
	}
	if err := c.flash(d); err != nil {
		return err
	}
	return c.policies(d)
}

// flash converts the timing of the array and the channel.
func (c *Conversion) flash(d *peer.MQSimDevice) error {
	t := &c.Scenario.SSD.Timing
	pages := func(lsb, csb, msb int64) []int64 {
		switch t.Cell {
		case nand.SLC:
			return []int64{lsb}
		case nand.MLC:
			return []int64{lsb, msb}
		}
		return []int64{lsb, csb, msb}
	}
	if err := t.Cell.UnmarshalText([]byte(d.Flash_Technology)); err != nil || t.Cell == nand.QLC {
		return refuse(d.At("Flash_Technology"), "Flash_Technology", d.Flash_Technology,
			"is unknown to MQSim; use SLC, MLC or TLC")
	}
	fill := func(to *[4]units.Duration, from []int64) {
		for i := range to {
			to[i] = units.Duration(from[min(i, len(from)-1)]) * units.Nanosecond
		}
	}
	fill(&t.Read, pages(d.Page_Read_Latency_LSB, d.Page_Read_Latency_CSB, d.Page_Read_Latency_MSB))
	fill(&t.Program, pages(d.Page_Program_Latency_LSB, d.Page_Program_Latency_CSB, d.Page_Program_Latency_MSB))
	t.Erase = units.Duration(d.Block_Erase_Latency) * units.Nanosecond
	t.SuspendErase = units.Duration(d.Suspend_Erase_Time) * units.Nanosecond
	t.SuspendProgram = units.Duration(d.Suspend_Program_Time) * units.Nanosecond
	t.TransferRate = units.TransferRate(d.Channel_Transfer_Rate) * units.MTPerSecond
	t.Width = d.Flash_Channel_Width
	return nil
}

// policies converts scheduling, garbage collection and wear leveling.
func (c *Conversion) policies(d *peer.MQSimDevice) error {
	x := &c.Scenario.SSD.Config
	compat := c.Scenario.SSD.Compat == scenario.CompatMQSim
	switch d.Transaction_Scheduling_Policy {
	case "PRIORITY_OUT_OF_ORDER":
		x.Scheduling.Classes = true
	case "OUT_OF_ORDER":
		x.Scheduling.Classes = false
	case "FLIN":
		return refuse(d.At("Transaction_Scheduling_Policy"), "Transaction_Scheduling_Policy", "FLIN",
			"is not modelled (MQSim itself aborts); use OUT_OF_ORDER or PRIORITY_OUT_OF_ORDER")
	default:
		return refuse(d.At("Transaction_Scheduling_Policy"), "Transaction_Scheduling_Policy",
			d.Transaction_Scheduling_Policy, "is unknown; use OUT_OF_ORDER or PRIORITY_OUT_OF_ORDER")
	}
	sc := &x.Scheduling
	sc.EraseLeftForRead = units.Duration(d.Preferred_suspend_erase_time_for_read) * units.Nanosecond
	sc.EraseLeftForWrite = units.Duration(d.Preferred_suspend_erase_time_for_write) * units.Nanosecond
	sc.ProgramLeftForRead = units.Duration(d.Preferred_suspend_write_time_for_read) * units.Nanosecond
	switch d.CMD_Suspension_Support {
	case "NONE", "PROGRAM", "ERASE", "PROGRAM_ERASE":
		sc.SuspendProgram = strings.Contains(d.CMD_Suspension_Support, "PROGRAM")
		sc.SuspendErase = strings.Contains(d.CMD_Suspension_Support, "ERASE")
		sc.SuspendEraseForWrite = sc.SuspendErase
		if compat && d.CMD_Suspension_Support != "NONE" {
			c.note("<CMD_Suspension_Support> %s has no effect in MQSim, which never suspends; --compat "+
				"none models it", d.CMD_Suspension_Support)
		}
	default:
		return refuse(d.At("CMD_Suspension_Support"), "CMD_Suspension_Support", d.CMD_Suspension_Support,
			"is unknown; use NONE, PROGRAM, ERASE or PROGRAM_ERASE")
	}

	k := &x.Collection
	k.Start = units.Fraction(d.GC_Exec_Threshold)
	k.Hard = units.Fraction(d.GC_Hard_Threshold)
	k.Preemptible = d.Preemptible_GC_Enabled
	k.Copyback = d.Use_Copyback_for_GC
	if k.Copyback && compat {
		return refuse(d.At("Use_Copyback_for_GC"), "Use_Copyback_for_GC", "true",
			"crashes MQSim; set it to false, or convert with --compat none, which models it")
	}
	switch p := d.GC_Block_Selection_Policy; p {
	case "GREEDY":
		k.Victim = ftl.Greedy
	case "RGA":
		k.Victim = ftl.DChoices
		k.Choices = max(bits.Len(uint(d.Block_No_Per_Plane))-1, 1)
	case "RANDOM_PP":
		k.Victim = ftl.RandomYield
	case "RANDOM":
		k.Victim = ftl.Random
	case "RANDOM_P":
		k.Victim = ftl.RandomFull
	case "FIFO":
		k.Victim = ftl.FIFO
	default:
		return refuse(d.At("GC_Block_Selection_Policy"), "GC_Block_Selection_Policy", p,
			"is unknown; use GREEDY, RGA, RANDOM, RANDOM_P, RANDOM_PP or FIFO")
	}
	x.Wear.Cycles = int(d.Block_PE_Cycles_Limit)
	x.Wear.Dynamic = d.Dynamic_Wearleveling_Enabled
	x.Wear.Static = 0
	if d.Static_Wearleveling_Enabled {
		x.Wear.Static = d.Static_Wearleveling_Threshold
	}
	if compat && d.Static_Wearleveling_Enabled {
		c.note("static wear levelling is off: MQSim compares block numbers instead of erase counts; --compat none " +
			"models it")
	}
	c.note("<Seed> %d is not carried over: --seed takes its place", d.Seed)
	if d.Enable_ResponseTime_Logging {
		c.note("<Enable_ResponseTime_Logging> is not carried over: latencies over time are always in result.json")
	}
	return nil
}

// flow converts a flow to a namespace and queue of its own.
func (c *Conversion) flow(d *peer.MQSimDevice, f *peer.MQSimFlow, i int, dir string) error {
	g := c.Scenario.SSD.Geometry
	ns := ssd.Namespace{Channels: ids(f.Channel_IDs, g.Channels), Chips: ids(f.Chip_IDs, g.ChipsPerChannel),
		Dies: ids(f.Die_IDs, g.DiesPerChip), Planes: ids(f.Plane_IDs, g.PlanesPerDie)}
	modes := map[string]ssd.CacheMode{"TURNED_OFF": ssd.CacheOff, "WRITE_CACHE": ssd.CacheWrite,
		"READ_CACHE": ssd.CacheRead, "WRITE_READ_CACHE": ssd.CacheReadWrite}
	mode, ok := modes[f.Device_Level_Data_Caching_Mode]
	if !ok {
		return refuse(f.At("Device_Level_Data_Caching_Mode"), "Device_Level_Data_Caching_Mode",
			f.Device_Level_Data_Caching_Mode, "is unknown; use TURNED_OFF, WRITE_CACHE, READ_CACHE or WRITE_READ_CACHE")
	}
	ns.Cache = &mode
	for _, n := range f.Ignored() {
		c.note("%s", n)
	}
	c.Scenario.SSD.Namespaces = append(c.Scenario.SSD.Namespaces, ns)

	l := scenario.Load{Name: fmt.Sprintf("flow%d", i), Namespace: i,
		Queue: scenario.Queue{Depth: d.IO_Queue_Depth, Weight: 1}}
	if err := l.Queue.Class.UnmarshalText([]byte(strings.ToLower(f.Priority_Class))); err != nil {
		return refuse(f.At("Priority_Class"), "Priority_Class", f.Priority_Class,
			"is unknown; use URGENT, HIGH, MEDIUM or LOW")
	}
	if c.Scenario.SSD.Compat == scenario.CompatMQSim {
		l.LatencyFrom = scenario.FromSubmission
	}
	var err error
	if f.Synthetic {
		err = synthetic(&l, f)
	} else {
		err = c.replay(&l, f, dir)
	}
	c.Scenario.Workload = append(c.Scenario.Workload, l)
	return err
}

// ids returns a list of numbers, empty if it contains all of them in order.
func ids(list []int, all int) []int {
	if len(list) == all {
		for i, id := range list {
			if id != i {
				return list
			}
		}
		return nil
	}
	return list
}

// synthetic converts a synthetic flow.
func synthetic(l *scenario.Load, f *peer.MQSimFlow) error {
	m := &scenario.MQSim{
		Reads:         units.Fraction(float64(f.Read_Percentage) / 100),
		HotRegion:     units.Fraction(float64(f.Percentage_of_Hot_Region) / 100),
		WorkingSet:    units.Fraction(float64(f.Working_Set_Percentage) / 100),
		Size:          units.Bytes(f.Average_Request_Size) * units.Sector,
		SizeDeviation: units.Bytes(f.Variance_Request_Size) * units.Sector,
		Seed:          int32(f.Seed), Requests: f.Total_Requests_To_Generate,
	}
	if f.Generated_Aligned_Addresses {
		m.Align = units.Bytes(f.Address_Alignment_Unit) * units.Sector
	}
	if f.Seed > 1<<31-1 {
		return refuse(f.At("Seed"), "Seed", fmt.Sprint(f.Seed), "is above 2147483647")
	}
	switch f.Address_Distribution {
	case "RANDOM_UNIFORM":
	case "STREAMING":
		m.Addresses = 1
	case "RANDOM_HOTCOLD":
		m.Addresses = 2
	default:
		return refuse(f.At("Address_Distribution"), "Address_Distribution", f.Address_Distribution,
			"is unknown; use RANDOM_UNIFORM, STREAMING or RANDOM_HOTCOLD")
	}
	switch f.Request_Size_Distribution {
	case "FIXED":
		m.SizeDeviation = 0
	case "NORMAL":
		m.Sizes = 1
	default:
		return refuse(f.At("Request_Size_Distribution"), "Request_Size_Distribution", f.Request_Size_Distribution,
			"is unknown; use FIXED or NORMAL")
	}
	stop := units.Duration(f.Stop_Time) * units.Nanosecond
	switch f.Synthetic_Generator_Type {
	case "QUEUE_DEPTH":
		l.Closed = f.Average_No_of_Reqs_in_Queue
		l.Start = units.Nanosecond
		if stop > 0 {
			l.Until = stop + units.Nanosecond
		}
		if l.Closed < 1 {
			return refuse(f.At("Average_No_of_Reqs_in_Queue"), "Average_No_of_Reqs_in_Queue", fmt.Sprint(l.Closed),
				"keeps no request outstanding; use at least 1")
		}
	case "BANDWIDTH":
		m.Bandwidth = units.ByteRate(f.Bandwidth)
		m.Stop = stop
		if m.Bandwidth < 1 {
			return refuse(f.At("Bandwidth"), "Bandwidth", fmt.Sprint(f.Bandwidth),
				"issues no requests; use a rate in bytes per second")
		}
	default:
		return refuse(f.At("Synthetic_Generator_Type"), "Synthetic_Generator_Type", f.Synthetic_Generator_Type,
			"is unknown; use QUEUE_DEPTH or BANDWIDTH")
	}
	l.MQSim = m
	return nil
}

// replay converts a trace flow.
func (c *Conversion) replay(l *scenario.Load, f *peer.MQSimFlow, dir string) error {
	path := filepath.FromSlash(f.File_Path)
	if !filepath.IsAbs(path) {
		if beside := filepath.Join(dir, path); exists(beside) {
			path = beside
		}
	}
	if !exists(path) {
		return refuse(f.At("File_Path"), "File_Path", f.File_Path,
			"no such file next to the workload file or in the working directory")
	}
	part := units.Fraction(float64(f.Percentage_To_Be_Executed) / 100)
	if compat := c.Scenario.SSD.Compat == scenario.CompatMQSim; compat && f.Relay_Count > 1 && part < 1 {
		c.note("<Percentage_To_Be_Executed> %d has no effect in MQSim with <Relay_Count> %d; --compat none applies it", f.Percentage_To_Be_Executed, f.Relay_Count)
		part = 1
	}
	// MQSim ignores the trace's device column.
	t := &scenario.Trace{File: path, Format: trace.MQSim, Volumes: scenario.VolumesOverlaid, Scale: 1, Part: part,
		Loop: max(f.Relay_Count, 1)}
	compat := c.Scenario.SSD.Compat == scenario.CompatMQSim
	if scale, ok := map[string]float64{"PICOSECOND": 1e-3, "": 1, "NANOSECOND": 1,
		"MICROSECOND": 1e3}[f.Time_Unit]; !ok {
		return refuse(f.At("Time_Unit"), "Time_Unit", f.Time_Unit,
			"is unknown; use PICOSECOND, NANOSECOND or MICROSECOND")
	} else if scale != 1 && compat {
		c.note("<Time_Unit> %s has no effect in MQSim, which assumes nanoseconds; --compat none applies it", f.Time_Unit)
	} else {
		t.Scale = scale
	}
	if t.Loop > 1 {
		c.note("flow %d is replayed %d times with the right arrival times; MQSim's end-to-end delays are wrong from "+
			"the second round on", len(c.Scenario.Workload), t.Loop)
	}
	l.Trace = t
	l.Addresses = scenario.AddressFold
	start, err := firstTime(path)
	if err != nil {
		return err
	}
	l.Start = units.Duration(float64(start) * t.Scale)
	return nil
}

// firstTime returns the time of an MQSim trace's first record.
func firstTime(path string) (units.Duration, error) {
	r, err := trace.Open(path, trace.Options{Format: trace.MQSim})
	if err != nil {
		return 0, err
	}
	defer r.Close()
	var rec workload.Record
	if err := r.Next(&rec); err != nil {
		return 0, errors.Join(fmt.Errorf("%s: no request", path), err)
	}
	seconds, rest := r.Start()
	return units.Duration(seconds)*units.Second + rest, nil
}

// baseName returns a file's name without its directory.
func baseName(path string) string { return filepath.Base(path) }

func exists(path string) bool {
	st, err := os.Stat(path)
	return err == nil && !st.IsDir()
}

func byOccupancy(a, b *peer.MQSimFlow) int {
	return a.Initial_Occupancy_Percentage - b.Initial_Occupancy_Percentage
}

// precondition converts <Enabled_Preconditioning>.
func (c *Conversion) precondition(flows []*peer.MQSimFlow) error {
	at := slices.MaxFunc(flows, byOccupancy)
	for _, f := range flows {
		if f.Initial_Occupancy_Percentage != at.Initial_Occupancy_Percentage {
			return refuse(f.At("Initial_Occupancy_Percentage"), "Initial_Occupancy_Percentage",
				fmt.Sprint(f.Initial_Occupancy_Percentage),
				"must be the same for all flows when <Enabled_Preconditioning> is true")
		}
	}
	if at.Initial_Occupancy_Percentage < 1 || at.Initial_Occupancy_Percentage > 100 {
		return refuse(at.At("Initial_Occupancy_Percentage"), "Initial_Occupancy_Percentage",
			fmt.Sprint(at.Initial_Occupancy_Percentage), "is not a percentage from 1 to 100")
	}
	c.Scenario.SSD.Preconditioning = ssd.Preconditioning{Fill: ssd.FillSteady,
		Occupancy: units.Fraction(float64(at.Initial_Occupancy_Percentage) / 100)}
	if k := &c.Scenario.SSD.Collection; k.Victim == ftl.RandomYield {
		k.Victim = ftl.RandomFull
		c.note("<GC_Block_Selection_Policy> RANDOM_PP is treated as RANDOM_P, because its steady state is unknown")
	}
	c.note("<Enabled_Preconditioning>: the steady state is computed, not replayed; MQSim's own preconditioned runs " +
		"lose requests or abort")
	return nil
}
