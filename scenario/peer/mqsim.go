package peer

import (
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"farflash/internal/spelling"
)

// MQSimDevice is MQSim's ssdconfig.xml. Fields have the names of the tags; bandwidths are in GB/s per lane, times in
// ns, sizes in bytes, rates in MT/s.
type MQSimDevice struct {
	MQSimHost
	MQSimController
	MQSimFlash

	file string
	at   map[string]position
}

// MQSimHost is an ssdconfig.xml's Host_Parameter_Set.
type MQSimHost struct {
	PCIe_Lane_Bandwidth                float64
	PCIe_Lane_Count                    int
	SATA_Processing_Delay              int64
	Enable_ResponseTime_Logging        bool
	ResponseTime_Logging_Period_Length int64
}

// MQSimController is an ssdconfig.xml's Device_Parameter_Set.
type MQSimController struct {
	Seed                                   int64
	Enabled_Preconditioning                bool
	Memory_Type                            string
	HostInterface_Type                     string
	IO_Queue_Depth                         int
	Queue_Fetch_Size                       int
	Caching_Mechanism                      string
	Data_Cache_Sharing_Mode                string
	Data_Cache_Capacity                    int64
	Data_Cache_DRAM_Row_Size               int64
	Data_Cache_DRAM_Data_Rate              int64
	Data_Cache_DRAM_Data_Busrt_Size        int64
	Data_Cache_DRAM_tRCD                   int64
	Data_Cache_DRAM_tCL                    int64
	Data_Cache_DRAM_tRP                    int64
	Address_Mapping                        string
	Ideal_Mapping_Table                    bool
	CMT_Capacity                           int64
	CMT_Sharing_Mode                       string
	Plane_Allocation_Scheme                string
	Transaction_Scheduling_Policy          string
	Overprovisioning_Ratio                 float64
	GC_Exec_Threshold                      float64
	GC_Block_Selection_Policy              string
	Use_Copyback_for_GC                    bool
	Preemptible_GC_Enabled                 bool
	GC_Hard_Threshold                      float64
	Dynamic_Wearleveling_Enabled           bool
	Static_Wearleveling_Enabled            bool
	Static_Wearleveling_Threshold          int
	Preferred_suspend_erase_time_for_read  int64
	Preferred_suspend_erase_time_for_write int64
	Preferred_suspend_write_time_for_read  int64
	Flash_Channel_Count                    int
	Flash_Channel_Width                    int
	Channel_Transfer_Rate                  int64
	Chip_No_Per_Channel                    int
	Flash_Comm_Protocol                    string
}

// MQSimFlash is an ssdconfig.xml's Flash_Parameter_Set.
type MQSimFlash struct {
	Flash_Technology         string
	CMD_Suspension_Support   string
	Page_Read_Latency_LSB    int64
	Page_Read_Latency_CSB    int64
	Page_Read_Latency_MSB    int64
	Page_Program_Latency_LSB int64
	Page_Program_Latency_CSB int64
	Page_Program_Latency_MSB int64
	Block_Erase_Latency      int64
	Block_PE_Cycles_Limit    int64
	Suspend_Erase_Time       int64
	Suspend_Program_Time     int64
	Die_No_Per_Chip          int
	Plane_No_Per_Die         int
	Block_No_Per_Plane       int
	Page_No_Per_Block        int
	Page_Capacity            int64
	Page_Metadat_Capacity    int64
}

// MQSimFlow is one I/O flow of a workload.xml. Sizes are in sectors of 512 bytes,
// times in ns, percentages 0 to 100, Bandwidth in B/s.
type MQSimFlow struct {
	Synthetic bool // otherwise it replays the trace in File_Path

	Priority_Class                 string
	Device_Level_Data_Caching_Mode string
	Channel_IDs                    []int
	Chip_IDs                       []int
	Die_IDs                        []int
	Plane_IDs                      []int
	Initial_Occupancy_Percentage   int

	Working_Set_Percentage      int
	Synthetic_Generator_Type    string
	Read_Percentage             int
	Address_Distribution        string
	Percentage_of_Hot_Region    int
	Generated_Aligned_Addresses bool
	Address_Alignment_Unit      int64
	Request_Size_Distribution   string
	Average_Request_Size        int64
	Variance_Request_Size       int64
	Seed                        int64
	Average_No_of_Reqs_in_Queue int
	Bandwidth                   int64
	Stop_Time                   int64
	Total_Requests_To_Generate  int64

	File_Path                 string
	Percentage_To_Be_Executed int
	Relay_Count               int
	Time_Unit                 string

	at map[string]position
}

type position struct {
	file         string
	line, column int
}

func (p position) String() string { return fmt.Sprintf("%s:%d:%d", p.file, p.line, p.column) }

// At returns a tag's position, as file:line:column, for errors about its value.
func (d *MQSimDevice) At(tag string) string { return d.at[tag].String() }

// At returns a tag's position, as file:line:column, for errors about its value.
func (f *MQSimFlow) At(tag string) string { return f.at[tag].String() }

// The tags that only synthetic or only trace flows have.
var (
	syntheticTags = []string{"Working_Set_Percentage", "Synthetic_Generator_Type", "Read_Percentage",
		"Address_Distribution",
		"Percentage_of_Hot_Region", "Generated_Aligned_Addresses", "Address_Alignment_Unit",
		"Request_Size_Distribution",
		"Average_Request_Size", "Variance_Request_Size", "Seed", "Average_No_of_Reqs_in_Queue", "Bandwidth",
		"Stop_Time", "Total_Requests_To_Generate"}
	traceTags = []string{"File_Path", "Percentage_To_Be_Executed", "Relay_Count", "Time_Unit"}
)

// optional lists tags that MQSim uses only under certain settings, or that its own distributed files omit.
var optional = map[string]string{
	"Percentage_of_Hot_Region": "RANDOM_HOTCOLD", "Variance_Request_Size": "NORMAL", "Time_Unit": "", "Relay_Count": "",
	"Average_No_of_Reqs_in_Queue": "QUEUE_DEPTH", "Bandwidth": "BANDWIDTH", "Stop_Time": "",
	"Initial_Occupancy_Percentage": "",
	"Generated_Aligned_Addresses":  "", "Address_Alignment_Unit": "",
}

// ignored lists tags in MQSim's distributed files that its parser does not know and skips, so that those files have the
// same meaning here.
var ignored = []string{"Intensity"}

// Ignored returns the flow's tags that MQSim, and therefore this package, ignores.
func (f *MQSimFlow) Ignored() []string {
	var out []string
	for _, tag := range ignored {
		if at, ok := f.at[tag]; ok {
			out = append(out, fmt.Sprintf("%v: <%s> is ignored by MQSim; the tag it reads is "+
				"<Bandwidth>", at, tag))
		}
	}
	return out
}

// section is an element whose children are tags with values.
type section struct {
	name   string
	within string        // the enclosing element
	fields reflect.Value // of a struct
}

// ReadMQSimDevice reads an ssdconfig.xml. name is used in errors.
func ReadMQSimDevice(name string, r io.Reader) (*MQSimDevice, error) {
	root, err := parseXML(name, r)
	if err != nil {
		return nil, err
	}
	const top = "Execution_Parameter_Set"
	if root.name != top {
		return nil, fmt.Errorf("%s:%d:%d: <%s> is not MQSim's device configuration; its root is <%s>", name,
			root.line, root.column, root.name, top)
	}
	d := &MQSimDevice{MQSimHost: mqsimHost, MQSimController: mqsimController, MQSimFlash: mqsimFlash,
		at: map[string]position{}, file: name}
	sections := []section{
		{"Host_Parameter_Set", top, reflect.ValueOf(&d.MQSimHost).Elem()},
		{"Device_Parameter_Set", top, reflect.ValueOf(&d.MQSimController).Elem()},
		{"Flash_Parameter_Set", "Device_Parameter_Set", reflect.ValueOf(&d.MQSimFlash).Elem()},
	}
	if err := fill(name, sections, root, d.at, func(string) bool { return true }); err != nil {
		return nil, err
	}
	return d, nil
}

// MQSim's defaults for tags missing from ssdconfig.xml.
var (
	mqsimHost = MQSimHost{PCIe_Lane_Bandwidth: 0.4, PCIe_Lane_Count: 4, SATA_Processing_Delay: 400000,
		ResponseTime_Logging_Period_Length: 400000}
	mqsimController = MQSimController{
		Seed: 123, Enabled_Preconditioning: true, Memory_Type: "FLASH", HostInterface_Type: "NVME",
		IO_Queue_Depth: 1024, Queue_Fetch_Size: 512,
		Caching_Mechanism: "ADVANCED", Data_Cache_Sharing_Mode: "SHARED", Data_Cache_Capacity: 512 << 20,
		Data_Cache_DRAM_Row_Size: 8192, Data_Cache_DRAM_Data_Rate: 800, Data_Cache_DRAM_Data_Busrt_Size: 4,
		Data_Cache_DRAM_tRCD: 13, Data_Cache_DRAM_tCL: 13, Data_Cache_DRAM_tRP: 13,
		Address_Mapping: "PAGE_LEVEL", CMT_Capacity: 2 << 20, CMT_Sharing_Mode: "SHARED",
		Plane_Allocation_Scheme:       "CWDP",
		Transaction_Scheduling_Policy: "OUT_OF_ORDER", Overprovisioning_Ratio: 0.07,
		GC_Exec_Threshold: 0.05, GC_Block_Selection_Policy: "RGA", Preemptible_GC_Enabled: true,
		GC_Hard_Threshold:            0.005,
		Dynamic_Wearleveling_Enabled: true, Static_Wearleveling_Enabled: true, Static_Wearleveling_Threshold: 100,
		Preferred_suspend_erase_time_for_read: 700000, Preferred_suspend_erase_time_for_write: 700000,
		Preferred_suspend_write_time_for_read: 100000,
		Flash_Channel_Count:                   8, Flash_Channel_Width: 1, Channel_Transfer_Rate: 300,
		Chip_No_Per_Channel: 4,
		Flash_Comm_Protocol: "NVDDR2",
	}
	mqsimFlash = MQSimFlash{
		Flash_Technology: "MLC", CMD_Suspension_Support: "ERASE",
		Page_Read_Latency_LSB: 75000, Page_Read_Latency_CSB: 75000, Page_Read_Latency_MSB: 75000,
		Page_Program_Latency_LSB: 750000, Page_Program_Latency_CSB: 750000, Page_Program_Latency_MSB: 750000,
		Block_Erase_Latency: 3800000, Block_PE_Cycles_Limit: 10000, Suspend_Erase_Time: 700000,
		Suspend_Program_Time: 100000,
		Die_No_Per_Chip:      2, Plane_No_Per_Die: 2, Block_No_Per_Plane: 2048, Page_No_Per_Block: 256,
		Page_Capacity: 8192, Page_Metadat_Capacity: 1872,
	}
)

// Defaulted describes the missing tags and the defaults that MQSim, and therefore this package, uses for them.
func (d *MQSimDevice) Defaulted() []string {
	var out []string
	for _, section := range []reflect.Value{reflect.ValueOf(d.MQSimHost), reflect.ValueOf(d.MQSimController),
		reflect.ValueOf(d.MQSimFlash)} {
		for i := range section.NumField() {
			if tag := section.Type().Field(i).Name; d.at[tag] == (position{}) && !strings.HasPrefix(tag, "SATA_") &&
				!strings.Contains(tag, "ResponseTime_Logging") {
				out = append(out, fmt.Sprintf("%s: no <%s>; MQSim uses %v", d.file, tag, section.Field(i)))
			}
		}
	}
	return out
}

// ReadMQSimWorkload reads a workload.xml: a list of scenarios, each a list of flows that run at the same time. name is
// used in errors.
func ReadMQSimWorkload(name string, r io.Reader) ([][]*MQSimFlow, error) {
	root, err := parseXML(name, r)
	if err != nil {
		return nil, err
	}
	if root.name != "MQSim_IO_Scenarios" {
		return nil, fmt.Errorf("%s:%d:%d: <%s> is not MQSim's workload definition; its root is <MQSim_IO_Scenarios>",
			name, root.line, root.column, root.name)
	}
	var out [][]*MQSimFlow
	for _, s := range root.children {
		if s.name != "IO_Scenario" {
			return nil, fmt.Errorf("%s:%d:%d: <%s> where <IO_Scenario> is expected", name, s.line, s.column,
				s.name)
		}
		var flows []*MQSimFlow
		for _, e := range s.children {
			f := &MQSimFlow{at: map[string]position{}}
			absent := syntheticTags
			switch e.name {
			case "IO_Flow_Parameter_Set_Synthetic":
				f.Synthetic = true
				absent = traceTags
			case "IO_Flow_Parameter_Set_Trace_Based":
			default:
				return nil, fmt.Errorf(
					"%s:%d:%d: <%s> is not a flow; use IO_Flow_Parameter_Set_Synthetic or "+
						"IO_Flow_Parameter_Set_Trace_Based", name, e.line, e.column, e.name)
			}
			for _, c := range e.children {
				if slices.Contains(absent, c.name) {
					return nil, fmt.Errorf("%s:%d:%d: <%s> does not belong to <%s>", name, c.line, c.column, c.name,
						e.name)
				}
			}
			if err := fill(name, []section{{e.name, "IO_Scenario", reflect.ValueOf(f).Elem()}}, e, f.at,
				func(tag string) bool {
					if slices.Contains(absent, tag) {
						return true
					}
					only, ok := optional[tag]
					return ok && (only == "" ||
						only != f.Address_Distribution && only != f.Request_Size_Distribution &&
							only != f.Synthetic_Generator_Type)
				}); err != nil {
				return nil, err
			}
			flows = append(flows, f)
		}
		if len(flows) == 0 {
			return nil, fmt.Errorf("%s:%d:%d: the scenario has no flow", name, s.line, s.column)
		}
		out = append(out, flows)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s:%d:%d: no <IO_Scenario>", name, root.line, root.column)
	}
	return out, nil
}

// fill sets the fields that the children of e name, and those of the sections in it. A missing tag is an error unless
// mayMiss reports otherwise: for a flow, MQSim would use uninitialised memory.
func fill(file string, sections []section, e *element, at map[string]position, mayMiss func(string) bool) error {
	own := slices.IndexFunc(sections, func(s section) bool { return s.name == e.name })
	for _, c := range e.children {
		pos := position{file, c.line, c.column}
		if i := slices.IndexFunc(sections, func(s section) bool { return s.name == c.name }); i >= 0 {
			if sections[i].within != e.name {
				return fmt.Errorf("%v: <%s> is in <%s>; MQSim reads it in <%s>", pos, c.name, e.name,
					sections[i].within)
			}
			if first, twice := at[c.name]; twice {
				return fmt.Errorf("%v: <%s> is given twice; first on line %d", pos, c.name, first.line)
			}
			at[c.name] = pos
			if err := fill(file, sections, c, at, mayMiss); err != nil {
				return err
			}
			continue
		}
		owner := slices.IndexFunc(sections, func(s section) bool { return hasTag(s.fields.Type(), c.name) })
		switch first, twice := at[c.name]; {
		case owner < 0 && slices.Contains(ignored, c.name):
			at[c.name] = pos
			continue
		case owner < 0:
			return fmt.Errorf("%v: unknown tag <%s>%s", pos, c.name, suggest(c.name, sections))
		case owner != own:
			return fmt.Errorf("%v: <%s> is in <%s>; MQSim reads it in <%s>", pos, c.name, e.name,
				sections[owner].name)
		case twice:
			return fmt.Errorf("%v: <%s> is given twice; first on line %d", pos, c.name, first.line)
		}
		at[c.name] = pos
		if len(c.children) > 0 {
			return fmt.Errorf("%v: <%s> contains <%s>; it takes a value", pos, c.name, c.children[0].name)
		}
		if err := setValue(sections[owner].fields.FieldByName(c.name), strings.TrimSpace(c.text)); err != nil {
			return fmt.Errorf("%v: <%s>: %w", pos, c.name, err)
		}
	}
	for i, s := range sections {
		if _, ok := at[s.name]; !ok && s.within == e.name && i != own {
			return fmt.Errorf("%s:%d:%d: <%s> has no <%s>", file, e.line, e.column, e.name, s.name)
		}
	}
	if own < 0 {
		return nil
	}
	t := sections[own].fields.Type()
	for i := range t.NumField() {
		tag := t.Field(i).Name
		if _, ok := at[tag]; !ok && hasTag(t, tag) && !mayMiss(tag) {
			return fmt.Errorf("%s:%d:%d: <%s> has no <%s>", file, e.line, e.column, e.name, tag)
		}
	}
	return nil
}

// hasTag reports whether a struct has a field for a tag.
func hasTag(t reflect.Type, tag string) bool {
	f, ok := t.FieldByName(tag)
	return ok && f.IsExported() && tag != "Synthetic"
}

func setValue(v reflect.Value, text string) error {
	switch v.Interface().(type) {
	case string:
		v.SetString(text)
		if text == "" {
			return fmt.Errorf("is empty")
		}
	case bool:
		switch strings.ToLower(text) {
		case "true":
			v.SetBool(true)
		case "false":
			v.SetBool(false)
		default:
			return fmt.Errorf("%q is neither true nor false", text)
		}
	case int, int64:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 {
			return fmt.Errorf("%q is not a whole number of at least 0", text)
		}
		v.SetInt(n)
	case float64:
		x, err := strconv.ParseFloat(text, 64)
		if err != nil || !(x >= 0) || x > 1e18 {
			return fmt.Errorf("%q is not a number of at least 0", text)
		}
		v.SetFloat(x)
	case []int:
		var ids []int
		for _, part := range strings.Split(text, ",") {
			n, err := strconv.Atoi(strings.TrimSpace(part))
			if err != nil || n < 0 {
				return fmt.Errorf("%q is not a list of numbers such as 0,1,2", text)
			}
			ids = append(ids, n)
		}
		v.Set(reflect.ValueOf(ids))
	}
	return nil
}

// suggest returns the tag that a misspelt one probably stands for.
func suggest(tag string, sections []section) string {
	var tags []string
	for _, s := range sections {
		t := s.fields.Type()
		for i := range t.NumField() {
			if name := t.Field(i).Name; hasTag(t, name) {
				tags = append(tags, name)
			}
		}
	}
	if best := spelling.Nearest(tag, tags); best != "" {
		return fmt.Sprintf("; did you mean <%s>?", best)
	}
	return ""
}
