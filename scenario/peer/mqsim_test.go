package peer_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"farflash/internal/inputs"
	"farflash/internal/patience"
	"farflash/scenario/peer"
)

// device is a small ssdconfig.xml with every tag.
const device = `<?xml version="1.0" encoding="us-ascii"?>
<Execution_Parameter_Set>
	<Host_Parameter_Set>
		<PCIe_Lane_Bandwidth>1.00000</PCIe_Lane_Bandwidth>
		<PCIe_Lane_Count>4</PCIe_Lane_Count>
		<SATA_Processing_Delay>400000</SATA_Processing_Delay>
		<Enable_ResponseTime_Logging>false</Enable_ResponseTime_Logging>
		<ResponseTime_Logging_Period_Length>1000000</ResponseTime_Logging_Period_Length>
	</Host_Parameter_Set>
	<Device_Parameter_Set>
		<Seed>321</Seed>
		<Enabled_Preconditioning>true</Enabled_Preconditioning>
		<Memory_Type>FLASH</Memory_Type>
		<HostInterface_Type>NVME</HostInterface_Type>
		<IO_Queue_Depth>65535</IO_Queue_Depth>
		<Queue_Fetch_Size>512</Queue_Fetch_Size>
		<Caching_Mechanism>ADVANCED</Caching_Mechanism>
		<Data_Cache_Sharing_Mode>SHARED</Data_Cache_Sharing_Mode>
		<Data_Cache_Capacity>268435456</Data_Cache_Capacity>
		<Data_Cache_DRAM_Row_Size>8192</Data_Cache_DRAM_Row_Size>
		<Data_Cache_DRAM_Data_Rate>800</Data_Cache_DRAM_Data_Rate>
		<Data_Cache_DRAM_Data_Busrt_Size>4</Data_Cache_DRAM_Data_Busrt_Size>
		<Data_Cache_DRAM_tRCD>13</Data_Cache_DRAM_tRCD>
		<Data_Cache_DRAM_tCL>13</Data_Cache_DRAM_tCL>
		<Data_Cache_DRAM_tRP>13</Data_Cache_DRAM_tRP>
		<Address_Mapping>PAGE_LEVEL</Address_Mapping>
		<Ideal_Mapping_Table>false</Ideal_Mapping_Table>
		<CMT_Capacity>2097152</CMT_Capacity>
		<CMT_Sharing_Mode>SHARED</CMT_Sharing_Mode>
		<Plane_Allocation_Scheme>CWDP</Plane_Allocation_Scheme>
		<Transaction_Scheduling_Policy>PRIORITY_OUT_OF_ORDER</Transaction_Scheduling_Policy>
		<Overprovisioning_Ratio>0.07</Overprovisioning_Ratio>
		<GC_Exec_Threshold>0.05</GC_Exec_Threshold>
		<GC_Block_Selection_Policy>RGA</GC_Block_Selection_Policy>
		<Use_Copyback_for_GC>false</Use_Copyback_for_GC>
		<Preemptible_GC_Enabled>true</Preemptible_GC_Enabled>
		<GC_Hard_Threshold>0.005</GC_Hard_Threshold>
		<Dynamic_Wearleveling_Enabled>true</Dynamic_Wearleveling_Enabled>
		<Static_Wearleveling_Enabled>TRUE</Static_Wearleveling_Enabled>
		<Static_Wearleveling_Threshold>100</Static_Wearleveling_Threshold>
		<Preferred_suspend_erase_time_for_read>700000</Preferred_suspend_erase_time_for_read>
		<Preferred_suspend_erase_time_for_write>700000</Preferred_suspend_erase_time_for_write>
		<Preferred_suspend_write_time_for_read>100000</Preferred_suspend_write_time_for_read>
		<Flash_Channel_Count>8</Flash_Channel_Count>
		<Flash_Channel_Width>1</Flash_Channel_Width>
		<Channel_Transfer_Rate>333</Channel_Transfer_Rate>
		<Chip_No_Per_Channel>4</Chip_No_Per_Channel>
		<Flash_Comm_Protocol>NVDDR2</Flash_Comm_Protocol>
		<Flash_Parameter_Set>
			<Flash_Technology>MLC</Flash_Technology>
			<CMD_Suspension_Support>ERASE</CMD_Suspension_Support>
			<Page_Read_Latency_LSB>75000</Page_Read_Latency_LSB>
			<Page_Read_Latency_CSB>75000</Page_Read_Latency_CSB>
			<Page_Read_Latency_MSB>75000</Page_Read_Latency_MSB>
			<Page_Program_Latency_LSB>750000</Page_Program_Latency_LSB>
			<Page_Program_Latency_CSB>750000</Page_Program_Latency_CSB>
			<Page_Program_Latency_MSB>750000</Page_Program_Latency_MSB>
			<Block_Erase_Latency>3800000</Block_Erase_Latency>
			<Block_PE_Cycles_Limit>10000</Block_PE_Cycles_Limit>
			<Suspend_Erase_Time>700000</Suspend_Erase_Time>
			<Suspend_Program_Time>100000</Suspend_Program_Time>
			<Die_No_Per_Chip>2</Die_No_Per_Chip>
			<Plane_No_Per_Die>2</Plane_No_Per_Die>
			<Block_No_Per_Plane>2048</Block_No_Per_Plane>
			<Page_No_Per_Block>256</Page_No_Per_Block>
			<Page_Capacity>8192</Page_Capacity>
			<Page_Metadat_Capacity>448</Page_Metadat_Capacity>
		</Flash_Parameter_Set>
	</Device_Parameter_Set>
</Execution_Parameter_Set>
`

// workload has a flow of each kind with every tag, and a second scenario.
const workload = `<?xml version="1.0" encoding="us-ascii"?>
<MQSim_IO_Scenarios>
	<IO_Scenario>
		<IO_Flow_Parameter_Set_Synthetic>
			<Priority_Class>HIGH</Priority_Class>
			<Device_Level_Data_Caching_Mode>WRITE_CACHE</Device_Level_Data_Caching_Mode>
			<Channel_IDs>0, 1,2</Channel_IDs>
			<Chip_IDs>0</Chip_IDs>
			<Die_IDs>0,1</Die_IDs>
			<Plane_IDs>1</Plane_IDs>
			<Initial_Occupancy_Percentage>75</Initial_Occupancy_Percentage>
			<Working_Set_Percentage>50</Working_Set_Percentage>
			<Synthetic_Generator_Type>QUEUE_DEPTH</Synthetic_Generator_Type>
			<Read_Percentage>100</Read_Percentage>
			<Address_Distribution>RANDOM_UNIFORM</Address_Distribution>
			<Percentage_of_Hot_Region>0</Percentage_of_Hot_Region>
			<Generated_Aligned_Addresses>true</Generated_Aligned_Addresses>
			<Address_Alignment_Unit>16</Address_Alignment_Unit>
			<Request_Size_Distribution>FIXED</Request_Size_Distribution>
			<Average_Request_Size>8</Average_Request_Size>
			<Variance_Request_Size>0</Variance_Request_Size>
			<Seed>798</Seed>
			<Average_No_of_Reqs_in_Queue>16</Average_No_of_Reqs_in_Queue>
			<Bandwidth>262144</Bandwidth>
			<Stop_Time>1000000000</Stop_Time>
			<Total_Requests_To_Generate>0</Total_Requests_To_Generate>
		</IO_Flow_Parameter_Set_Synthetic>
		<IO_Flow_Parameter_Set_Trace_Based>
			<Priority_Class>LOW</Priority_Class>
			<Device_Level_Data_Caching_Mode>TURNED_OFF</Device_Level_Data_Caching_Mode>
			<Channel_IDs>0</Channel_IDs>
			<Chip_IDs>0</Chip_IDs>
			<Die_IDs>0</Die_IDs>
			<Plane_IDs>0</Plane_IDs>
			<Initial_Occupancy_Percentage>70</Initial_Occupancy_Percentage>
			<File_Path>traces/tpcc-small.trace</File_Path>
			<Percentage_To_Be_Executed>100</Percentage_To_Be_Executed>
			<Relay_Count>1</Relay_Count>
			<Time_Unit>NANOSECOND</Time_Unit>
		</IO_Flow_Parameter_Set_Trace_Based>
	</IO_Scenario>
	<IO_Scenario>
		<IO_Flow_Parameter_Set_Trace_Based>
			<Priority_Class>HIGH</Priority_Class>
			<Device_Level_Data_Caching_Mode>WRITE_CACHE</Device_Level_Data_Caching_Mode>
			<Channel_IDs>0</Channel_IDs>
			<Chip_IDs>0</Chip_IDs>
			<Die_IDs>0</Die_IDs>
			<Plane_IDs>0</Plane_IDs>
			<File_Path>b.trace</File_Path>
			<Percentage_To_Be_Executed>10</Percentage_To_Be_Executed>
		</IO_Flow_Parameter_Set_Trace_Based>
	</IO_Scenario>
</MQSim_IO_Scenarios>
`

func readDevice(text string) error {
	_, err := peer.ReadMQSimDevice("ssdconfig.xml", strings.NewReader(text))
	return err
}

func readWorkload(text string) error {
	_, err := peer.ReadMQSimWorkload("workload.xml", strings.NewReader(text))
	return err
}

func TestDevice(t *testing.T) {
	d, err := peer.ReadMQSimDevice("ssdconfig.xml", strings.NewReader(device))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ got, want any }{
		{d.PCIe_Lane_Bandwidth, 1.0}, {d.PCIe_Lane_Count, 4}, {d.Enable_ResponseTime_Logging, false},
		{d.Seed, int64(321)},
		{d.Enabled_Preconditioning, true}, {d.HostInterface_Type, "NVME"}, {d.Overprovisioning_Ratio, 0.07},
		{d.Static_Wearleveling_Enabled, true},
		{d.Data_Cache_DRAM_Data_Busrt_Size, int64(4)}, {d.Flash_Technology, "MLC"},
		{d.Block_Erase_Latency, int64(3800000)}, {d.Page_Metadat_Capacity, int64(448)},
		{d.At("Seed"), "ssdconfig.xml:11:3"}, {d.At("Page_Capacity"), "ssdconfig.xml:66:4"},
	} {
		if c.got != c.want {
			t.Errorf("got %v, want %v", c.got, c.want)
		}
	}
	// The text above contains every tag of the structs.
	for _, part := range []any{d.MQSimHost, d.MQSimController, d.MQSimFlash} {
		for i := range reflect.TypeOf(part).NumField() {
			if tag := reflect.TypeOf(part).Field(i).Name; !strings.HasPrefix(d.At(tag), "ssdconfig.xml:") {
				t.Errorf("<%s> has the place %q", tag, d.At(tag))
			}
		}
	}
}

// TestDeviceMayLeaveOut verifies that tags which MQSim does not use in some configurations may be omitted.
func TestDeviceMayLeaveOut(t *testing.T) {
	for _, tag := range []string{"SATA_Processing_Delay", "Enable_ResponseTime_Logging",
		"ResponseTime_Logging_Period_Length",
		"Preferred_suspend_erase_time_for_read", "Preferred_suspend_write_time_for_read", "Page_Metadat_Capacity"} {
		if err := readDevice(without(device, tag)); err != nil {
			t.Errorf("without %s: %v", tag, err)
		}
	}
}

// without removes the lines of a tag.
func without(text, tag string) string {
	lines := strings.SplitAfter(text, "\n")
	return strings.Join(slices.DeleteFunc(lines, func(l string) bool { return strings.Contains(l, "<"+tag+">") }), "")
}

func TestWorkload(t *testing.T) {
	scenarios, err := peer.ReadMQSimWorkload("workload.xml", strings.NewReader(workload))
	if err != nil {
		t.Fatal(err)
	}
	if len(scenarios) != 2 || len(scenarios[0]) != 2 || len(scenarios[1]) != 1 {
		t.Fatalf("scenarios %v", scenarios)
	}
	s, r := scenarios[0][0], scenarios[0][1]
	if !s.Synthetic || r.Synthetic {
		t.Error("the kinds of the flows are wrong")
	}
	if !slices.Equal(s.Channel_IDs, []int{0, 1, 2}) || !slices.Equal(s.Plane_IDs, []int{1}) {
		t.Errorf("channels %v, planes %v", s.Channel_IDs, s.Plane_IDs)
	}
	if s.Average_No_of_Reqs_in_Queue != 16 || s.Stop_Time != 1e9 || !s.Generated_Aligned_Addresses ||
		s.Priority_Class != "HIGH" {
		t.Errorf("got %+v", s)
	}
	if r.File_Path != "traces/tpcc-small.trace" || r.Percentage_To_Be_Executed != 100 ||
		r.Time_Unit != "NANOSECOND" || r.Priority_Class != "LOW" {
		t.Errorf("got %+v", r)
	}
	if got := r.At("File_Path"); got != "workload.xml:36:4" {
		t.Errorf("File_Path stands at %s", got)
	}
}

func TestDeviceErrors(t *testing.T) {
	for _, c := range []struct {
		name     string
		old, new string // replacement in the text, once
		want     string // the error
	}{
		{"misspelt tag", "<Seed>321</Seed>", "<Sead>321</Sead>",
			"ssdconfig.xml:11:3: unknown tag <Sead>; did you mean <Seed>?"},
		{"corrected spelling", "Data_Busrt_Size>4</Data_Cache_DRAM_Data_Busrt",
			"Data_Burst_Size>4</Data_Cache_DRAM_Data_Burst",
			"ssdconfig.xml:22:3: unknown tag <Data_Cache_DRAM_Data_Burst_Size>; did you mean " +
				"<Data_Cache_DRAM_Data_Busrt_Size>?"},
		{"a tag like no other", "<Seed>321</Seed>", "<Zoo>321</Zoo>", "ssdconfig.xml:11:3: unknown tag <Zoo>"},
		{"tag twice", "<Seed>321</Seed>", "<Seed>321</Seed>\n<Seed>322</Seed>",
			"ssdconfig.xml:12:1: <Seed> is given twice; first on line 11"},
		{"device tag in the host's section", "<PCIe_Lane_Count>4</PCIe_Lane_Count>", "<Seed>1</Seed>",
			"ssdconfig.xml:5:3: <Seed> is in <Host_Parameter_Set>; MQSim reads it in <Device_Parameter_Set>"},
		{"flash tag in the device's section", "<Seed>321</Seed>", "<Page_Capacity>8192</Page_Capacity>",
			"ssdconfig.xml:11:3: <Page_Capacity> is in <Device_Parameter_Set>; MQSim reads it in " +
				"<Flash_Parameter_Set>"},
		{"tag outside of sections", "\t<Host_Parameter_Set>\n", "\t<Seed>1</Seed><Host_Parameter_Set>\n",
			"ssdconfig.xml:3:2: <Seed> is in <Execution_Parameter_Set>; MQSim reads it in <Device_Parameter_Set>"},
		{"section in the wrong section", "\t</Host_Parameter_Set>\n",
			"\t<Flash_Parameter_Set/></Host_Parameter_Set>\n",
			"ssdconfig.xml:9:2: <Flash_Parameter_Set> is in <Host_Parameter_Set>; MQSim reads it in " +
				"<Device_Parameter_Set>"},
		{"section twice", "\t<Device_Parameter_Set>\n", "\t<Host_Parameter_Set/><Device_Parameter_Set>\n",
			"ssdconfig.xml:10:2: <Host_Parameter_Set> is given twice; first on line 3"},
		{"unknown section", "\t<Device_Parameter_Set>\n", "\t<Hostile_Parameters/><Device_Parameter_Set>\n",
			"ssdconfig.xml:10:2: unknown tag <Hostile_Parameters>"},
		{"element within a value", "<Seed>321</Seed>", "<Seed>3<b>2</b>1</Seed>",
			"ssdconfig.xml:11:3: <Seed> contains <b>; it takes a value"},
		{"words for a number", "<Seed>321</Seed>", "<Seed>many</Seed>",
			`ssdconfig.xml:11:3: <Seed>: "many" is not a whole number of at least 0`},
		{"negative number", "<PCIe_Lane_Count>4<", "<PCIe_Lane_Count>-4<",
			`ssdconfig.xml:5:3: <PCIe_Lane_Count>: "-4" is not a whole number of at least 0`},
		{"fraction for a whole number", "<PCIe_Lane_Count>4<", "<PCIe_Lane_Count>4.5<",
			`ssdconfig.xml:5:3: <PCIe_Lane_Count>: "4.5" is not a whole number`},
		{"beyond 64 bits", "<Seed>321<", "<Seed>9223372036854775808<",
			`ssdconfig.xml:11:3: <Seed>: "9223372036854775808" is not a whole number`},
		{"no value", "<Seed>321<", "<Seed> <", `ssdconfig.xml:11:3: <Seed>: "" is not a whole number`},
		{"not a number", "<PCIe_Lane_Bandwidth>1.00000<", "<PCIe_Lane_Bandwidth>NaN<",
			`ssdconfig.xml:4:3: <PCIe_Lane_Bandwidth>: "NaN" is not a number of at least 0`},
		{"infinite", "<PCIe_Lane_Bandwidth>1.00000<", "<PCIe_Lane_Bandwidth>inf<", `"inf" is not a number of at least 0`},
		{"negative ratio", "<GC_Exec_Threshold>0.05<", "<GC_Exec_Threshold>-0.05<",
			`ssdconfig.xml:33:3: <GC_Exec_Threshold>: "-0.05" is not a number of at least 0`},
		{"neither true nor false", "<Ideal_Mapping_Table>false<", "<Ideal_Mapping_Table>0<",
			`ssdconfig.xml:27:3: <Ideal_Mapping_Table>: "0" is neither true nor false`},
		{"empty word", "<Memory_Type>FLASH<", "<Memory_Type><", "ssdconfig.xml:13:3: <Memory_Type>: is empty"},
		{"encoding", `encoding="us-ascii"`, `encoding="utf-16"`, `ssdconfig.xml:1:`},
		{"encoding, its name", `encoding="us-ascii"`, `encoding="utf-16"`,
			`encoding "utf-16" is not supported; use us-ascii or utf-8`},
		{"tag that does not end", "</Seed>", "", "ssdconfig.xml:69: element <Seed> closed by </Device_Parameter_Set>"},
		{"two roots", "</Execution_Parameter_Set>\n", "</Execution_Parameter_Set>\n<Execution_Parameter_Set/>",
			"ssdconfig.xml:71:1: <Execution_Parameter_Set> follows the document's root"},
	} {
		if strings.Count(device, c.old) != 1 {
			t.Fatalf("%s: %q does not stand once in the text", c.name, c.old)
		}
		check(t, c.name, readDevice(strings.Replace(device, c.old, c.new, 1)), c.want)
	}
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", "ssdconfig.xml:1:1: no XML element"},
		{"only a comment", "<!-- x -->", "ssdconfig.xml:1:1: no XML element"},
		{"no XML", "channels: 8\n", "ssdconfig.xml:1:1: no XML element"},
		{"wrong root", workload,
			"ssdconfig.xml:2:1: <MQSim_IO_Scenarios> is not MQSim's device configuration; its root is " +
				"<Execution_Parameter_Set>"},
		{"empty root", "<Execution_Parameter_Set/>",
			"ssdconfig.xml:1:1: <Execution_Parameter_Set> has no <Host_Parameter_Set>"},
		{"cut short", device[:2000], "ssdconfig.xml:40: unexpected EOF"},
		{"deep", strings.Repeat("<a>", 100), "ssdconfig.xml:1:97: elements nested deeper than 32"},
		{"binary", "<a>\x00</a>", "ssdconfig.xml:1: illegal character code U+0000"},
	} {
		check(t, c.name, readDevice(c.text), c.want)
	}
}

// TestIgnoredTag reads a tag that MQSim's own distributed workload contains although its parser does not know it.
func TestIgnoredTag(t *testing.T) {
	text := strings.Replace(workload, "<Bandwidth>262144</Bandwidth>", "<Intensity>32768</Intensity>", 1)
	flows, err := peer.ReadMQSimWorkload("workload.xml", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if notes := flows[0][0].Ignored(); len(notes) != 1 ||
		!strings.HasPrefix(notes[0], "workload.xml:24:4: <Intensity>") {
		t.Errorf("notes %q", notes)
	}
}

func TestWorkloadErrors(t *testing.T) {
	for _, c := range []struct {
		name     string
		old, new string
		want     string
	}{
		{"misspelt tag", "<Read_Percentage>100</Read_Percentage>", "<Reads_Percentage>100</Reads_Percentage>",
			"workload.xml:14:4: unknown tag <Reads_Percentage>; did you mean <Read_Percentage>?"},
		{"a name of ours is not a tag", "<Seed>798</Seed>", "<Synthetic>true</Synthetic>",
			"workload.xml:22:4: unknown tag <Synthetic>"},
		{"tag twice", "<Seed>798</Seed>", "<Seed>1</Seed><Seed>2</Seed>",
			"workload.xml:22:18: <Seed> is given twice; first on line 22"},
		{"missing", "<Read_Percentage>100</Read_Percentage>", "",
			"workload.xml:4:3: <IO_Flow_Parameter_Set_Synthetic> has no <Read_Percentage>"},
		{"missing where it counts", "<Average_No_of_Reqs_in_Queue>16</Average_No_of_Reqs_in_Queue>", "",
			"workload.xml:4:3: <IO_Flow_Parameter_Set_Synthetic> has no <Average_No_of_Reqs_in_Queue>"},
		{"missing in a trace's flow", "<File_Path>b.trace</File_Path>", "",
			"workload.xml:43:3: <IO_Flow_Parameter_Set_Trace_Based> has no <File_Path>"},
		{"trace's tag in a synthetic flow", "<Seed>798</Seed>", "<File_Path>a</File_Path>",
			"workload.xml:22:4: <File_Path> does not belong to <IO_Flow_Parameter_Set_Synthetic>"},
		{"synthetic tag in a trace's flow", "<Relay_Count>1</Relay_Count>", "<Seed>1</Seed>",
			"workload.xml:38:4: <Seed> does not belong to <IO_Flow_Parameter_Set_Trace_Based>"},
		{"list of words", "<Channel_IDs>0, 1,2<", "<Channel_IDs>all<",
			`workload.xml:7:4: <Channel_IDs>: "all" is not a list of numbers such as 0,1,2`},
		{"list with a gap", "<Channel_IDs>0, 1,2<", "<Channel_IDs>0,,2<",
			`workload.xml:7:4: <Channel_IDs>: "0,,2" is not a list of numbers`},
		{"negative in a list", "<Channel_IDs>0, 1,2<", "<Channel_IDs>0,-1<", `"0,-1" is not a list of numbers`},
		{"bad number", "<Stop_Time>1000000000<", "<Stop_Time>1e9<",
			`workload.xml:25:4: <Stop_Time>: "1e9" is not a whole number of at least 0`},
		{"no file", "<File_Path>b.trace<", "<File_Path><", "workload.xml:50:4: <File_Path>: is empty"},
	} {
		if strings.Count(workload, c.old) != 1 {
			t.Fatalf("%s: %q does not stand once in the text", c.name, c.old)
		}
		check(t, c.name, readWorkload(strings.Replace(workload, c.old, c.new, 1)), c.want)
	}
	for _, c := range []struct{ name, text, want string }{
		{"wrong root", device,
			"workload.xml:2:1: <Execution_Parameter_Set> is not MQSim's workload definition; its root is " +
				"<MQSim_IO_Scenarios>"},
		{"no scenario", "<MQSim_IO_Scenarios>\n</MQSim_IO_Scenarios>", "workload.xml:1:1: no <IO_Scenario>"},
		{"no flow", "<MQSim_IO_Scenarios>\n<IO_Scenario/>\n</MQSim_IO_Scenarios>",
			"workload.xml:2:1: the scenario has no flow"},
		{"a flow outside of scenarios",
			"<MQSim_IO_Scenarios>\n<IO_Flow_Parameter_Set_Synthetic/></MQSim_IO_Scenarios>",
			"workload.xml:2:1: <IO_Flow_Parameter_Set_Synthetic> where <IO_Scenario> is expected"},
		{"unknown flow", "<MQSim_IO_Scenarios>\n<IO_Scenario>\n  <IO_Flow/></IO_Scenario></MQSim_IO_Scenarios>",
			"workload.xml:3:3: <IO_Flow> is not a flow; use IO_Flow_Parameter_Set_Synthetic or " +
				"IO_Flow_Parameter_Set_Trace_Based"},
	} {
		check(t, c.name, readWorkload(c.text), c.want)
	}
}

// TestMissingDeviceTags verifies that a missing tag of the device has MQSim's default, and is reported.
func TestMissingDeviceTags(t *testing.T) {
	for tag, want := range map[string]struct {
		is  func(d *peer.MQSimDevice) bool
		say string
	}{
		"PCIe_Lane_Bandwidth": {func(d *peer.MQSimDevice) bool { return d.PCIe_Lane_Bandwidth == 0.4 },
			"ssdconfig.xml: no <PCIe_Lane_Bandwidth>; MQSim uses 0.4"},
		"Data_Cache_DRAM_Data_Busrt_Size": {func(d *peer.MQSimDevice) bool { return d.Data_Cache_DRAM_Data_Busrt_Size == 4 }, "ssdconfig.xml: no <Data_Cache_DRAM_Data_Busrt_Size>; MQSim uses 4"},
		"Page_Capacity": {func(d *peer.MQSimDevice) bool { return d.Page_Capacity == 8192 },
			"ssdconfig.xml: no <Page_Capacity>; MQSim uses 8192"},
		"SATA_Processing_Delay": {func(d *peer.MQSimDevice) bool { return true }, ""},
	} {
		d, err := peer.ReadMQSimDevice("ssdconfig.xml", strings.NewReader(without(device, tag)))
		if err != nil {
			t.Errorf("without %s: %v", tag, err)
			continue
		}
		if notes := strings.Join(d.Defaulted(), "\n"); !want.is(d) || notes != want.say {
			t.Errorf("without %s: %q, want %q", tag, notes, want.say)
		}
	}
	if d, err := peer.ReadMQSimDevice("ssdconfig.xml", strings.NewReader(device)); err != nil ||
		len(d.Defaulted()) != 0 {
		t.Errorf("of a whole file: %v, %v", d.Defaulted(), err)
	}
}

// TestWorkloadMayLeaveOut verifies that a tag which belongs to one setting may be omitted under another.
func TestWorkloadMayLeaveOut(t *testing.T) {
	for _, tag := range []string{"Bandwidth", "Percentage_of_Hot_Region", "Variance_Request_Size", "Stop_Time",
		"Initial_Occupancy_Percentage", "Relay_Count", "Time_Unit"} {
		if err := readWorkload(without(workload, tag)); err != nil {
			t.Errorf("without %s: %v", tag, err)
		}
	}
	for tag, setting := range map[string][2]string{
		"Bandwidth":                {"QUEUE_DEPTH", "BANDWIDTH"},
		"Percentage_of_Hot_Region": {"RANDOM_UNIFORM", "RANDOM_HOTCOLD"},
		"Variance_Request_Size":    {"FIXED", "NORMAL"},
	} {
		text := strings.ReplaceAll(without(workload, tag), setting[0], setting[1])
		check(t, setting[1], readWorkload(text), "<IO_Flow_Parameter_Set_Synthetic> has no <"+tag+">")
	}
}

func TestReadingFails(t *testing.T) {
	broken := errors.New("disk on fire")
	r := iotest.ErrReader(broken)
	if _, err := peer.ReadMQSimDevice("a.xml", r); !errors.Is(err, broken) ||
		!strings.HasPrefix(err.Error(), "a.xml: ") {
		t.Errorf("error %v", err)
	}
	if _, err := peer.ReadMQSimWorkload("a.xml", r); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
}

func check(t *testing.T, name string, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s:\n got %v\nwant %s", name, err, want)
	}
}

// TestCases reads every case of the peer.
func TestCases(t *testing.T) {
	dir := inputs.Path(t, "cases/mqsim")
	configs, err := filepath.Glob(filepath.Join(dir, "*", "ssdconfig.xml"))
	if err != nil {
		t.Fatal(err)
	}
	if len(configs) == 0 {
		t.Fatal("no cases")
	}
	for _, path := range configs {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		d, err := peer.ReadMQSimDevice(path, bytes.NewReader(text))
		if err != nil {
			t.Error(err)
			continue
		}
		if d.Flash_Channel_Count < 1 || d.Page_Capacity < 512 || d.Block_Erase_Latency == 0 {
			t.Errorf("%s: read as %+v", path, d)
		}
		path = filepath.Join(filepath.Dir(path), "workload.xml")
		if text, err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
		scenarios, err := peer.ReadMQSimWorkload(path, bytes.NewReader(text))
		if err != nil {
			t.Error(err)
			continue
		}
		for _, flows := range scenarios {
			for _, f := range flows {
				if f.Synthetic == (f.File_Path != "") || f.Synthetic && f.Average_Request_Size == 0 {
					t.Errorf("%s: read as %+v", path, f)
				}
			}
		}
	}
}

// FuzzMQSim verifies that no text makes the readers panic and that every error has a position.
func FuzzMQSim(f *testing.F) {
	for _, text := range []string{device, workload, "", "<", "<a/>", "<Execution_Parameter_Set/>",
		"<MQSim_IO_Scenarios><IO_Scenario><IO_Flow_Parameter_Set_Synthetic/></IO_Scenario></MQSim_IO_Scenarios>",
		strings.Repeat("<a>", 40), `<?xml version="1.0" encoding="latin1"?><a/>`, "<a>&b;</a>",
		"<Execution_Parameter_Set><at/><MQSimHost/></Execution_Parameter_Set>"} {
		f.Add(text)
	}
	where := regexp.MustCompile(`^in\.xml:[1-9][0-9]*:`)
	f.Fuzz(func(t *testing.T, text string) {
		defer patience.Limit()()
		if d, err := peer.ReadMQSimDevice("in.xml", strings.NewReader(text)); err != nil {
			if d != nil || !where.MatchString(err.Error()) {
				t.Errorf("device %v, error %v", d, err)
			}
		} else if d.Flash_Technology == "" {
			t.Error("a device without a flash technology")
		}
		if s, err := peer.ReadMQSimWorkload("in.xml", strings.NewReader(text)); err != nil {
			if s != nil || !where.MatchString(err.Error()) {
				t.Errorf("scenarios %v, error %v", s, err)
			}
		} else if len(s) == 0 || len(s[0]) == 0 || s[0][0].Priority_Class == "" {
			t.Errorf("scenarios %v", s)
		}
	})
}

func Example() {
	const text = `<MQSim_IO_Scenarios>
  <IO_Scenario>
    <IO_Flow_Parameter_Set_Trace_Based>
      <Priority_Class>HIGH</Priority_Class>
      <Device_Level_Data_Caching_Mode>WRITE_CACHE</Device_Level_Data_Caching_Mode>
      <Channel_IDs>0,1</Channel_IDs> <Chip_IDs>0</Chip_IDs> <Die_IDs>0</Die_IDs> <Plane_IDs>0</Plane_IDs>
      <File_Path>traces/tpcc-small.trace</File_Path>
      <Percentage_To_Be_Executed>all</Percentage_To_Be_Executed>
    </IO_Flow_Parameter_Set_Trace_Based>
  </IO_Scenario>
</MQSim_IO_Scenarios>`
	_, err := peer.ReadMQSimWorkload("workload.xml", strings.NewReader(text))
	fmt.Println(err)

	scenarios, err := peer.ReadMQSimWorkload("workload.xml",
		strings.NewReader(strings.Replace(text, ">all<", ">100<", 1)))
	if err != nil {
		fmt.Println(err)
		return
	}
	f := scenarios[0][0]
	fmt.Println(f.At("File_Path"), f.File_Path, f.Channel_IDs)
	// Output:
	// workload.xml:8:7: <Percentage_To_Be_Executed>: "all" is not a whole number of at least 0
	// workload.xml:7:7 traces/tpcc-small.trace [0 1]
}
