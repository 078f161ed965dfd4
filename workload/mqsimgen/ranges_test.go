package mqsimgen

import "fmt"

// drive is the part of a drive's geometry that determines the flows' ranges.
type drive struct {
	Channels, ChipsPerChannel, DiesPerChip, PlanesPerDie int
	BlocksPerPlane, PagesPerBlock                        int
	SectorsPerPage                                       int
	OverProvisioning                                     float64 // fraction of the physical capacity
}

// resources are the channels, chips of a channel, dies of a chip and planes of a die that a flow may use.
type resources struct {
	Channels, Chips, Dies, Planes []int
}

// rangesOf divides the drive's logical sectors among flows, as MQSim does before the generation and a drive's
// namespaces do in a run: each plane's share, rounded down, is divided equally among the flows that may use it, and the
// flows' ranges are consecutive.
func rangesOf(d drive, flows []resources) ([]Range, error) {
	sizes := []int{d.Channels, d.ChipsPerChannel, d.DiesPerChip, d.PlanesPerDie, d.BlocksPerPlane, d.PagesPerBlock,
		d.SectorsPerPage}
	for _, n := range sizes {
		if n <= 0 || n > 1<<20 {
			return nil, fmt.Errorf("geometry %v has a size of %d", sizes, n)
		}
	}
	if !(d.OverProvisioning >= 0 && d.OverProvisioning < 1) {
		return nil, fmt.Errorf("over-provisioning is %v; it must be at least 0 and below 1", d.OverProvisioning)
	}
	sharers := make([]int, d.Channels*d.ChipsPerChannel*d.DiesPerChip*d.PlanesPerDie)
	for i := range flows {
		if err := flows[i].each(&d, func(plane int) { sharers[plane]++ }); err != nil {
			return nil, fmt.Errorf("flow %d: %w", i, err)
		}
	}
	// MQSim multiplies these as 32-bit unsigned integers.
	physical := float64(uint32(d.BlocksPerPlane) * uint32(d.PagesPerBlock) * uint32(d.SectorsPerPage))
	logical := float64(physical * (1 - d.OverProvisioning))
	ranges := make([]Range, len(flows))
	next := int64(0)
	for i := range flows {
		sectors := int64(0)
		_ = flows[i].each(&d, func(plane int) { sectors += int64(logical / float64(sharers[plane])) })
		if sectors == 0 {
			return nil, fmt.Errorf("flow %d may use no sector", i)
		}
		ranges[i] = Range{next, next + sectors - 1}
		next += sectors
	}
	return ranges, nil
}

// each calls f with the index of every plane that the flow may use.
func (r *resources) each(d *drive, f func(plane int)) error {
	within := func(list []int, n int, what string) error {
		for _, id := range list {
			if id < 0 || id >= n {
				return fmt.Errorf("%s %d does not exist; there are %d", what, id, n)
			}
		}
		return nil
	}
	for _, err := range []error{within(r.Channels, d.Channels, "channel"), within(r.Chips, d.ChipsPerChannel, "chip"),
		within(r.Dies, d.DiesPerChip, "die"), within(r.Planes, d.PlanesPerDie, "plane")} {
		if err != nil {
			return err
		}
	}
	for _, channel := range r.Channels {
		for _, chip := range r.Chips {
			for _, die := range r.Dies {
				for _, plane := range r.Planes {
					f(((channel*d.ChipsPerChannel+chip)*d.DiesPerChip+die)*d.PlanesPerDie + plane)
				}
			}
		}
	}
	return nil
}
