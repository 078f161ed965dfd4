package convert

import (
	"errors"
	"fmt"

	"farflash/model/ssd"
	"farflash/numeric/units"
	"farflash/scenario/peer"
)

// mqsimTags maps the keys of a drive to the tags that they derive from.
var mqsimTags = map[string]string{
	"geometry.channels": "Flash_Channel_Count", "geometry.chips_per_channel": "Chip_No_Per_Channel",
	"geometry.dies_per_chip": "Die_No_Per_Chip", "geometry.planes_per_die": "Plane_No_Per_Die",
	"geometry.blocks_per_plane": "Block_No_Per_Plane", "geometry.pages_per_block": "Page_No_Per_Block",
	"geometry.page_size": "Page_Capacity",
	"over_provisioning":  "Overprovisioning_Ratio", "host.lane_rate": "PCIe_Lane_Bandwidth",
	"host.lanes": "PCIe_Lane_Count", "host.fetch_size": "Queue_Fetch_Size", "host.submission_depth": "IO_Queue_Depth",
	"cache.capacity": "Data_Cache_Capacity", "dram.row_size": "Data_Cache_DRAM_Row_Size",
	"dram.data_rate": "Data_Cache_DRAM_Data_Rate", "dram.burst_size": "Data_Cache_DRAM_Data_Busrt_Size",
	"dram.trcd": "Data_Cache_DRAM_tRCD", "dram.tcl": "Data_Cache_DRAM_tCL", "dram.trp": "Data_Cache_DRAM_tRP",
	"mapping.cmt_capacity": "CMT_Capacity",
	"timing.erase_latency": "Block_Erase_Latency", "timing.suspend_erase": "Suspend_Erase_Time",
	"timing.suspend_program": "Suspend_Program_Time",
	"timing.channel_rate":    "Channel_Transfer_Rate", "timing.channel_width": "Flash_Channel_Width",
	"timing.read_latency": "Page_Read_Latency_LSB", "timing.program_latency": "Page_Program_Latency_LSB",
	"scheduling.erase_left_for_read":   "Preferred_suspend_erase_time_for_read",
	"scheduling.erase_left_for_write":  "Preferred_suspend_erase_time_for_write",
	"scheduling.program_left_for_read": "Preferred_suspend_write_time_for_read",
	"collection.start":                 "GC_Exec_Threshold", "collection.hard": "GC_Hard_Threshold",
	"wear.static": "Static_Wearleveling_Threshold", "wear.cycles": "Block_PE_Cycles_Limit",
}

// inRange reports invalid values of a configuration's drive at the tags that set them. Values without a tag are left to
// the scenario's validation.
func inRange(d *peer.MQSimDevice, c *ssd.Config) error {
	var out []error
	for _, f := range units.FieldErrors(c.Validate()) {
		if tag := mqsimTags[f.Path]; tag != "" {
			out = append(out, fmt.Errorf("%s: <%s>: %s", d.At(tag), tag, f.Msg))
		}
	}
	return errors.Join(out...)
}
