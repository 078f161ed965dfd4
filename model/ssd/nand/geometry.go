// Package nand describes NAND flash: the organisation of a drive's array and the time of each operation on it.
//
// Its main types are Geometry, Cell and Timing. Timing follows ONFI 4.0 (NV-DDR2 interface, sections 4.18 to 4.20) for
// commands and data, and the manufacturer's page latencies for the array. The package leaves out bit errors (package
// decay).
package nand

import "farflash/numeric/units"

// Geometry is the organisation of a drive's flash. A channel is a bus shared by its chips, a chip has independent dies,
// and a die has planes that multi-plane commands use together.
type Geometry struct {
	// Channels is the number of buses between the controller and the flash; each carries one transfer at a time.
	Channels int
	// ChipsPerChannel is the number of packages that share a channel.
	ChipsPerChannel int
	// DiesPerChip is the number of dies in a package; each executes one command at a time.
	DiesPerChip int
	// PlanesPerDie is the number of planes of a die.
	PlanesPerDie int
	// BlocksPerPlane is the number of blocks in a plane; a block is the unit of an erase.
	BlocksPerPlane int
	// PagesPerBlock is the number of pages in a block; a page is the unit of a program.
	PagesPerBlock int
	// PageSize is the amount of data in a page, without the spare area.
	PageSize units.Bytes
}

// SectorSize is the unit of addresses and sizes, in bytes.
const SectorSize = 512

// MaxPlanesPerDie is the largest number of planes that one command can address. Micron's TLC of 232 layers (2022) has
// six.
const MaxPlanesPerDie = 6

// MaxPageSize is bounded by the 64-bit masks of the valid sectors of a page.
const MaxPageSize units.Bytes = 64 * SectorSize

// Chips returns the number of chips in the drive.
func (g Geometry) Chips() int { return g.Channels * g.ChipsPerChannel }

// Dies returns the number of dies in the drive.
func (g Geometry) Dies() int { return g.Chips() * g.DiesPerChip }

// Planes returns the number of planes in the drive.
func (g Geometry) Planes() int { return g.Dies() * g.PlanesPerDie }

// PagesPerPlane returns the number of physical pages in a plane.
func (g Geometry) PagesPerPlane() int64 { return int64(g.BlocksPerPlane) * int64(g.PagesPerBlock) }

// Pages returns the number of physical pages in the drive.
func (g Geometry) Pages() int64 { return int64(g.Planes()) * g.PagesPerPlane() }

// Capacity returns the drive's raw size.
func (g Geometry) Capacity() units.Bytes { return units.Bytes(g.Pages()) * g.PageSize }

// SectorsPerPage returns the page size in sectors.
func (g Geometry) SectorsPerPage() int { return int(g.PageSize / SectorSize) }

// Plane returns the number of a plane; channels vary slowest, then chips, dies and planes.
func (g Geometry) Plane(channel, chip, die, plane int) int {
	return ((channel*g.ChipsPerChannel+chip)*g.DiesPerChip+die)*g.PlanesPerDie + plane
}

// Validate returns an error that lists every invalid field by its key.
func (g Geometry) Validate() error {
	var bad units.Faults
	for _, f := range []struct {
		name  string
		value int
		most  int
	}{
		{"channels", g.Channels, 256},
		{"chips_per_channel", g.ChipsPerChannel, 256},
		{"dies_per_chip", g.DiesPerChip, 64},
		{"planes_per_die", g.PlanesPerDie, MaxPlanesPerDie},
		{"blocks_per_plane", g.BlocksPerPlane, 1 << 20},
		{"pages_per_block", g.PagesPerBlock, 1 << 14},
	} {
		bad.Hold(f.value >= 1 && f.value <= f.most, f.name, "%d is not possible; use 1 to %d", f.value, f.most)
	}
	bad.Hold(g.PageSize >= SectorSize && g.PageSize <= MaxPageSize && g.PageSize%SectorSize == 0,
		"page_size", "%v is not possible; use a multiple of 512B up to %v", g.PageSize, MaxPageSize)
	if bad.Err() == nil {
		bad.Hold(g.Pages() < 1<<32-1, "",
			"%d physical pages exceed the map's limit, 4294967294; use fewer blocks_per_plane or a "+
				"larger page_size", g.Pages())
	}
	return bad.Err()
}
