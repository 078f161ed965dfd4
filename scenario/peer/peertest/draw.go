package peertest

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"farflash/numeric/rng"
	"farflash/scenario/peer"
)

// MQSimDraw is a randomly drawn configuration of MQSim: a drive, its concurrent flows, and the traces that some of them
// replay.
type MQSimDraw struct {
	Drive  *peer.MQSimDevice
	Flows  []*peer.MQSimFlow
	Traces map[string]string // by File_Path
}

// drawer draws values of a configuration.
type drawer struct{ s rng.Stream }

func (d *drawer) below(n int) int { return int(d.s.IntN(int64(n))) }

// within draws a number from a to b, inclusive.
func (d *drawer) within(a, b int) int { return a + d.below(b-a+1) }

// in returns true with probability 1/n.
func (d *drawer) in(n int) bool { return d.below(n) == 0 }

func one[T any](d *drawer, of ...T) T { return of[d.below(len(of))] }

// some draws some of the numbers below n, in their order.
func (d *drawer) some(n int) []int {
	var out []int
	for i := range n {
		if d.in(2) {
			out = append(out, i)
		}
	}
	if len(out) == 0 {
		out = append(out, d.below(n))
	}
	return out
}

// below lists the numbers below n.
func below(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// DrawMQSim draws a configuration from the range of valid MQSim inputs, without preconditioning, copyback and the
// simple cache, with which it fails. The draw of a seed must never change: stored results are identified by their
// seeds.
func DrawMQSim(seed uint64) *MQSimDraw {
	d := &drawer{rng.NewStream(seed, "mqsim")}
	x := &MQSimDraw{Drive: d.drive(), Traces: map[string]string{}}
	n := one(d, 1, 1, 1, 2, 2, 3, 3, 4, d.within(5, 8))
	divided := d.below(4)
	for i := range n {
		f := &peer.MQSimFlow{
			Priority_Class: one(d, "URGENT", "HIGH", "HIGH", "HIGH", "MEDIUM", "LOW"),
			Device_Level_Data_Caching_Mode: one(d, "TURNED_OFF", "WRITE_CACHE", "WRITE_CACHE", "READ_CACHE",
				"WRITE_READ_CACHE"),
			Initial_Occupancy_Percentage: d.within(30, 70),
		}
		d.planes(x.Drive, f, i, n, divided)
		if d.in(5) {
			d.trace(x, f, i)
		} else {
			d.synthetic(f)
		}
		x.Flows = append(x.Flows, f)
	}
	return x
}

func (d *drawer) drive() *peer.MQSimDevice {
	x := &peer.MQSimDevice{
		MQSimHost: peer.MQSimHost{
			PCIe_Lane_Bandwidth: one(d, .4, .5, .985, 1, 2, 3.94), PCIe_Lane_Count: one(d, 1, 2, 4, 8, 16),
			SATA_Processing_Delay: 400000, ResponseTime_Logging_Period_Length: 1000000,
		},
		MQSimController: peer.MQSimController{
			Seed: int64(d.within(1, 999)), Memory_Type: "FLASH", HostInterface_Type: "NVME",
			IO_Queue_Depth: one(d, 16, 64, 128, 1024, 65535), Queue_Fetch_Size: one(d, 1, 4, 16, 64, 512),
			Caching_Mechanism: "ADVANCED", Data_Cache_Sharing_Mode: one(d, "SHARED", "EQUAL_PARTITIONING"),
			Data_Cache_Capacity:             one[int64](d, 1, 1, 2, 4, 16, 64, 256) << 20,
			Data_Cache_DRAM_Row_Size:        one[int64](d, 2048, 4096, 8192),
			Data_Cache_DRAM_Data_Rate:       one[int64](d, 100, 200, 400, 800, 1600),
			Data_Cache_DRAM_Data_Busrt_Size: one[int64](d, 1, 2, 4, 8),
			Data_Cache_DRAM_tRCD:            int64(d.within(8, 20)), Data_Cache_DRAM_tCL: int64(d.within(8, 20)),
			Data_Cache_DRAM_tRP: int64(d.within(8, 20)),
			Address_Mapping:     "PAGE_LEVEL", Ideal_Mapping_Table: d.in(2),
			CMT_Capacity:                  one[int64](d, 16, 64, 256, 1024, 2048) << 10,
			CMT_Sharing_Mode:              one(d, "SHARED", "EQUAL_PARTITIONING"),
			Transaction_Scheduling_Policy: one(d, "OUT_OF_ORDER", "PRIORITY_OUT_OF_ORDER"),
			Overprovisioning_Ratio:        float64(d.within(70, 400)) / 1000,
			GC_Exec_Threshold:             float64(d.within(5, 100)) / 1000,
			GC_Block_Selection_Policy:     one(d, "GREEDY", "RGA", "RANDOM", "RANDOM_P", "RANDOM_PP", "FIFO"),
			Preemptible_GC_Enabled:        d.in(2), GC_Hard_Threshold: float64(d.within(1, 40)) / 1000,
			Dynamic_Wearleveling_Enabled: d.in(2), Static_Wearleveling_Enabled: d.in(2),
			Static_Wearleveling_Threshold:         d.within(1, 200),
			Preferred_suspend_erase_time_for_read: 700000, Preferred_suspend_erase_time_for_write: 700000,
			Preferred_suspend_write_time_for_read: 100000,
			Flash_Channel_Count:                   d.within(1, 8), Flash_Channel_Width: one(d, 1, 1, 2),
			Channel_Transfer_Rate: one[int64](d, 100, 200, 333, 400, 533, 667, 800, 1200),
			Chip_No_Per_Channel:   one(d, 1, 2, 3, 4, 4, 8), Flash_Comm_Protocol: "NVDDR2",
		},
		MQSimFlash: peer.MQSimFlash{
			Flash_Technology:       one(d, "SLC", "MLC", "MLC", "TLC"),
			CMD_Suspension_Support: one(d, "NONE", "PROGRAM", "ERASE", "PROGRAM_ERASE"),
			Block_Erase_Latency:    int64(d.within(1000, 6000)) * 1000, Block_PE_Cycles_Limit: 10000,
			Suspend_Erase_Time: 700000, Suspend_Program_Time: 100000,
			Die_No_Per_Chip: one(d, 1, 1, 2, 2, 4), Plane_No_Per_Die: one(d, 1, 2, 2, 4),
			Page_No_Per_Block: one(d, 32, 64, 128, 256, 384, 512),
			Page_Capacity:     one[int64](d, 4096, 8192, 8192, 16384), Page_Metadat_Capacity: 448,
		},
	}
	scheme := []string{"C", "W", "D", "P"}
	for i := range scheme {
		k := d.within(i, 3)
		scheme[i], scheme[k] = scheme[k], scheme[i]
	}
	x.Plane_Allocation_Scheme = strings.Join(scheme, "")
	x.Page_Read_Latency_LSB = int64(d.within(2000, 80000))
	x.Page_Read_Latency_CSB = x.Page_Read_Latency_LSB + int64(d.below(40000))
	x.Page_Read_Latency_MSB = x.Page_Read_Latency_CSB + int64(d.below(40000))
	x.Page_Program_Latency_LSB = int64(d.within(50000, 1000000))
	x.Page_Program_Latency_CSB = x.Page_Program_Latency_LSB + int64(d.below(400000))
	x.Page_Program_Latency_MSB = x.Page_Program_Latency_CSB + int64(d.below(400000))
	// Each page uses memory in MQSim.
	planes := x.Flash_Channel_Count * x.Chip_No_Per_Channel * x.Die_No_Per_Chip * x.Plane_No_Per_Die
	x.Block_No_Per_Plane = one(d, 64, 128, 256, 512, 1024, 2048)
	for x.Block_No_Per_Plane > 64 && planes*x.Block_No_Per_Plane*x.Page_No_Per_Block > 1<<21 {
		x.Block_No_Per_Plane /= 2
	}
	return x
}

// planes draws the planes that a flow uses: all, exclusive channels or chips, or an arbitrary set.
func (d *drawer) planes(x *peer.MQSimDevice, f *peer.MQSimFlow, i, n, divided int) {
	f.Channel_IDs, f.Chip_IDs, f.Die_IDs, f.Plane_IDs = below(x.Flash_Channel_Count), below(x.Chip_No_Per_Channel),
		below(x.Die_No_Per_Chip), below(x.Plane_No_Per_Die)
	own := func(all []int) []int {
		if len(all) < n {
			return all[i%len(all) : i%len(all)+1]
		}
		return all[len(all)*i/n : len(all)*(i+1)/n]
	}
	switch divided {
	case 1:
		f.Channel_IDs = own(f.Channel_IDs)
	case 2:
		f.Chip_IDs = own(f.Chip_IDs)
	case 3:
		f.Channel_IDs, f.Chip_IDs, f.Die_IDs, f.Plane_IDs = d.some(len(f.Channel_IDs)), d.some(len(f.Chip_IDs)),
			d.some(len(f.Die_IDs)), d.some(len(f.Plane_IDs))
	}
}

func (d *drawer) synthetic(f *peer.MQSimFlow) {
	f.Synthetic = true
	f.Working_Set_Percentage = one(d, 1, 1, 2, 5, 10, 20, 50, 85, 100)
	f.Synthetic_Generator_Type = one(d, "QUEUE_DEPTH", "QUEUE_DEPTH", "BANDWIDTH")
	f.Read_Percentage = one(d, 0, 17, 30, 50, 70, 95, 100)
	f.Address_Distribution = one(d, "RANDOM_UNIFORM", "RANDOM_UNIFORM", "STREAMING", "RANDOM_HOTCOLD")
	f.Percentage_of_Hot_Region = d.within(1, 90)
	f.Generated_Aligned_Addresses = !d.in(4)
	f.Address_Alignment_Unit = one[int64](d, 1, 8, 8, 16, 16, 32, 64)
	f.Request_Size_Distribution = "FIXED"
	if d.in(40) {
		f.Request_Size_Distribution = "NORMAL"
	}
	f.Average_Request_Size = one[int64](d, 1, 4, 7, 8, 8, 8, 16, 16, 32, 64, 128, int64(d.within(1, 100)))
	f.Variance_Request_Size = int64(d.below(3))
	f.Seed = int64(one(d, d.within(1, 999), d.within(1, 9999), d.within(1, 1000000)))
	f.Average_No_of_Reqs_in_Queue = one(d, 1, 1, 2, 4, 8, 16, 32, 64)
	f.Bandwidth = one[int64](d, 2, 10, 50, 200, 800) * 1000000
	f.Total_Requests_To_Generate = int64(d.within(200, 4000))
	if d.in(10) {
		f.Stop_Time = int64(d.within(1, 40)) * 1000000
	}
}

// trace draws a trace: mostly small requests, clustered in time and address.
func (d *drawer) trace(x *MQSimDraw, f *peer.MQSimFlow, i int) {
	f.File_Path = fmt.Sprintf("t%d.trace", i)
	f.Percentage_To_Be_Executed, f.Relay_Count, f.Time_Unit = one(d, 100, 100, d.within(1, 99)), one(d, 1, 1, 1, 2),
		one(d, "NANOSECOND", "NANOSECOND", "MICROSECOND", "PICOSECOND")
	gap, sectors, reads, most := one(d, 2000, 20000, 100000, 500000), int64(1)<<d.within(12, 26), d.below(101),
		one(d, 8, 32, 128)
	at, next := d.below(1000000), int64(0)
	var b strings.Builder
	for range d.within(200, 2500) {
		if !d.in(4) {
			at += d.below(gap)
		}
		size := one(d, 8, 8, 16, d.within(1, most))
		if d.in(2) {
			next = d.s.IntN(sectors)
		}
		kind := 0
		if d.below(100) < reads {
			kind = 1
		}
		fmt.Fprintf(&b, "%d %d %d %d %d\n", at, d.below(4), next, size, kind)
		next += int64(size)
	}
	x.Traces[f.File_Path] = b.String()
}

// Texts returns the two files that MQSim reads.
func (x *MQSimDraw) Texts() (device, workload string) {
	var b strings.Builder
	b.WriteString("<Execution_Parameter_Set>\n")
	element(&b, "Host_Parameter_Set", x.Drive.MQSimHost, nil, func() {})
	element(&b, "Device_Parameter_Set", x.Drive.MQSimController, nil,
		func() { element(&b, "Flash_Parameter_Set", x.Drive.MQSimFlash, nil, func() {}) })
	b.WriteString("</Execution_Parameter_Set>\n")
	device = b.String()
	b.Reset()
	b.WriteString("<MQSim_IO_Scenarios>\n<IO_Scenario>\n")
	for _, f := range x.Flows {
		name, without := "IO_Flow_Parameter_Set_Trace_Based", syntheticOnly
		if f.Synthetic {
			name, without = "IO_Flow_Parameter_Set_Synthetic", traceOnly
		}
		element(&b, name, *f, without, func() {})
	}
	b.WriteString("</IO_Scenario>\n</MQSim_IO_Scenarios>\n")
	return device, b.String()
}

// The tags of one kind of flow only.
var (
	traceOnly     = []string{"File_Path", "Percentage_To_Be_Executed", "Relay_Count", "Time_Unit"}
	syntheticOnly = []string{
		"Working_Set_Percentage", "Synthetic_Generator_Type", "Read_Percentage", "Address_Distribution",
		"Percentage_of_Hot_Region", "Generated_Aligned_Addresses", "Address_Alignment_Unit",
		"Request_Size_Distribution", "Average_Request_Size", "Variance_Request_Size", "Seed",
		"Average_No_of_Reqs_in_Queue", "Bandwidth", "Stop_Time", "Total_Requests_To_Generate",
	}
)

// element writes a struct as XML, with field names as tags; within writes further content.
func element(b *strings.Builder, name string, of any, without []string, within func()) {
	fmt.Fprintf(b, "<%s>\n", name)
	v := reflect.ValueOf(of)
	for i := range v.NumField() {
		tag := v.Type().Field(i)
		if !tag.IsExported() || tag.Name == "Synthetic" || slices.Contains(without, tag.Name) {
			continue
		}
		text := fmt.Sprint(v.Field(i))
		if list, ok := v.Field(i).Interface().([]int); ok {
			var ids []string
			for _, id := range list {
				ids = append(ids, strconv.Itoa(id))
			}
			text = strings.Join(ids, ",")
		}
		fmt.Fprintf(b, "<%s>%s</%[1]s>\n", tag.Name, text)
	}
	within()
	fmt.Fprintf(b, "</%s>\n", name)
}
