package nand_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"farflash/model/ssd/nand"
	"farflash/numeric/units"
)

const ns, us = units.Nanosecond, units.Microsecond

// onfi returns a TLC part on an 8-bit NV-DDR2 channel with the typical command timing of ONFI 4.0, table 4-10.
func onfi() nand.Timing {
	return nand.Timing{
		Cell:    nand.TLC,
		Read:    [4]units.Duration{50 * us, 60 * us, 80 * us},
		Program: [4]units.Duration{400 * us, 700 * us, 1200 * us},
		Erase:   3500 * us, SuspendProgram: 20 * us, SuspendErase: 50 * us,
		TransferRate: 333 * units.MTPerSecond, Width: 1,
		TCS: 20 * ns, TWC: 25 * ns, TWB: 100 * ns, TRR: 20 * ns, TDBSY: 500 * ns,
		TADL: 70 * ns, TCALS: 15 * ns, TWPST: 6 * ns, TWPSTH: 15 * ns,
		DataOutSetup: 30 * ns, ReadyBusy: 20 * ns,
	}
}

// TestCommandTimes compares with figures measured on MQSim, which occupies the channel for the same times.
func TestCommandTimes(t *testing.T) {
	tm := onfi()
	for _, c := range []struct {
		name string
		took func(planes int) units.Duration
		want [4]units.Duration // ns, by number of planes
	}{
		{"read", tm.ReadCommand, [4]units.Duration{290, 940, 1590, 2240}},
		{"program", tm.ProgramCommand, [4]units.Duration{361, 1177, 1993, 2809}},
		{"erase", tm.EraseCommand, [4]units.Duration{220, 920, 1620, 2320}},
	} {
		for i, want := range c.want {
			if got := c.took(i + 1); got != want*ns {
				t.Errorf("%s command on %d planes: %v, want %v", c.name, i+1, got, want*ns)
			}
		}
	}
	if got := tm.SuspendCommand(); got != 95*ns {
		t.Errorf("suspend command: %v, want 95ns", got)
	}
}

// TestDataTimes verifies that data move at the configured rate, not at a whole number of nanoseconds a cycle. In MQSim,
// buses of 333 and 400 MT/s take 3 and 2 ns a byte, and from 1200 MT/s on no time at all.
func TestDataTimes(t *testing.T) {
	for _, c := range []struct {
		rate  units.TransferRate
		width int
		bytes units.Bytes
		want  units.Duration
	}{
		{333 * units.MTPerSecond, 1, 0, 0},
		{333 * units.MTPerSecond, 1, 1, 3003},
		{333 * units.MTPerSecond, 1, 4096, 12_300_300},
		{400 * units.MTPerSecond, 1, 4096, 10_240 * ns},
		{400 * units.MTPerSecond, 2, 4096, 5_120 * ns},
		{400 * units.MTPerSecond, 2, 4095, 5_120 * ns}, // half of the last transfer is unused
		{400 * units.MTPerSecond, 8, 1, 2500},
		{1200 * units.MTPerSecond, 1, 16 * units.KiB, 13_653_333},
		{3600 * units.MTPerSecond, 1, 16 * units.KiB, 4_551_111},
	} {
		tm := onfi()
		tm.TransferRate, tm.Width = c.rate, c.width
		if got := tm.Data(c.bytes); got != c.want {
			t.Errorf("%v at %v and %d bytes wide: %d ps, want %d", c.bytes, c.rate, c.width, got, c.want)
		}
	}
}

func TestPageTypes(t *testing.T) {
	for _, c := range []struct {
		cell  nand.Cell
		bits  int
		first []int // page types of the first pages of a block
	}{
		{nand.SLC, 1, []int{0, 0, 0, 0, 0}},
		{nand.MLC, 2, []int{0, 1, 0, 1, 0, 1}},
		{nand.TLC, 3, []int{0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2, 0}},
		{nand.QLC, 4, []int{0, 1, 2, 3, 0, 1, 2, 3, 0}},
	} {
		if got := c.cell.Bits(); got != c.bits {
			t.Errorf("%v has %d page types, want %d", c.cell, got, c.bits)
		}
		var got []int
		for page := range c.first {
			got = append(got, c.cell.PageType(page))
		}
		if !slices.Equal(got, c.first) {
			t.Errorf("%v: page types %v, want %v", c.cell, got, c.first)
		}
		count := make([]int, c.bits)
		for page := range 1 << 12 {
			count[c.cell.PageType(page)]++
		}
		for kind, n := range count {
			if share := float64(n) / (1 << 12) * float64(c.bits); math.Abs(share-1) > 0.01 {
				t.Errorf("%v: %d of 4096 pages are of type %d", c.cell, n, kind)
			}
		}
	}
}

func TestCellText(t *testing.T) {
	for cell := nand.SLC; cell <= nand.QLC; cell++ {
		text, err := cell.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		var back nand.Cell
		if err := back.UnmarshalText(text); err != nil || back != cell {
			t.Errorf("%v is written %q, which is read as %v, %v", cell, text, back, err)
		}
	}
	for _, text := range []string{"", "tlc", "PLC", "TLC "} {
		cell := nand.MLC
		err := cell.UnmarshalText([]byte(text))
		if err == nil || !strings.Contains(err.Error(), "use SLC, MLC, TLC or QLC") {
			t.Errorf("%q: error %v", text, err)
		}
		if cell != nand.MLC {
			t.Errorf("%q changed the value to %v", text, cell)
		}
	}
}

func geometry() nand.Geometry {
	return nand.Geometry{Channels: 8, ChipsPerChannel: 4, DiesPerChip: 2, PlanesPerDie: 2, BlocksPerPlane: 2048,
		PagesPerBlock: 256, PageSize: 8 * units.KiB}
}

func TestGeometryCounts(t *testing.T) {
	g := geometry()
	for _, c := range []struct {
		what      string
		got, want int64
	}{
		{"chips", int64(g.Chips()), 32},
		{"dies", int64(g.Dies()), 64},
		{"planes", int64(g.Planes()), 128},
		{"pages a plane", g.PagesPerPlane(), 524288},
		{"pages", g.Pages(), 67108864},
		{"bytes", int64(g.Capacity()), 512 << 30},
		{"sectors a page", int64(g.SectorsPerPage()), 16},
	} {
		if c.got != c.want {
			t.Errorf("%d %s, want %d", c.got, c.what, c.want)
		}
	}
}

// TestPlaneNumbers verifies that planes are numbered without gaps, in the order channel, chip, die, plane.
func TestPlaneNumbers(t *testing.T) {
	for _, g := range []nand.Geometry{geometry(), {Channels: 3, ChipsPerChannel: 5, DiesPerChip: 1, PlanesPerDie: 4},
		{Channels: 1, ChipsPerChannel: 1, DiesPerChip: 7, PlanesPerDie: 3}} {
		next := 0
		for channel := range g.Channels {
			for chip := range g.ChipsPerChannel {
				for die := range g.DiesPerChip {
					for plane := range g.PlanesPerDie {
						if got := g.Plane(channel, chip, die, plane); got != next {
							t.Fatalf("channel %d, chip %d, die %d, plane %d has the number %d, want %d", channel,
								chip, die, plane, got, next)
						}
						next++
					}
				}
			}
		}
		if next != g.Planes() {
			t.Errorf("%d planes are numbered, there are %d", next, g.Planes())
		}
	}
}

func TestGeometryLimits(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*nand.Geometry)
		want   string // a part of the error; empty if valid
	}{
		{"as it is", func(*nand.Geometry) {}, ""},
		{"no channels", func(g *nand.Geometry) { g.Channels = 0 }, "channels: 0 is not possible; use 1 to 256"},
		{"many channels", func(g *nand.Geometry) { g.Channels = 257 }, "channels: 257"},
		{"no chips", func(g *nand.Geometry) { g.ChipsPerChannel = 0 }, "chips_per_channel: 0"},
		{"negative dies", func(g *nand.Geometry) { g.DiesPerChip = -1 },
			"dies_per_chip: -1 is not possible; use 1 to 64"},
		{"seven planes", func(g *nand.Geometry) { g.PlanesPerDie = 7 },
			"planes_per_die: 7 is not possible; use 1 to 6"},
		{"no blocks", func(g *nand.Geometry) { g.BlocksPerPlane = 0 }, "blocks_per_plane: 0"},
		{"no pages", func(g *nand.Geometry) { g.PagesPerBlock = 0 }, "pages_per_block: 0"},
		{"large block", func(g *nand.Geometry) { g.PagesPerBlock = 1<<14 + 1 }, "pages_per_block: 16385"},
		{"least page", func(g *nand.Geometry) { g.PageSize = 512 }, ""},
		{"largest page", func(g *nand.Geometry) { g.PageSize = nand.MaxPageSize }, ""},
		{"page too large", func(g *nand.Geometry) { g.PageSize = nand.MaxPageSize + 512 },
			"page_size: 32.5KiB is not possible; use a multiple of 512B up to 32KiB"},
		{"odd page", func(g *nand.Geometry) { g.PageSize = 1000 }, "page_size: 1KB is not possible"},
		{"no page", func(g *nand.Geometry) { g.PageSize = 0 }, "page_size: 0B"},
		{"more pages than numbers", func(g *nand.Geometry) { g.BlocksPerPlane = 1 << 17 },
			"4294967296 physical pages exceed the map's limit, 4294967294"},
		{"all at their limits", func(g *nand.Geometry) {
			*g = nand.Geometry{Channels: 256, ChipsPerChannel: 256, DiesPerChip: 64, PlanesPerDie: 4,
				BlocksPerPlane: 1 << 20, PagesPerBlock: 1 << 14, PageSize: nand.MaxPageSize}
		}, "physical pages"},
	} {
		g := geometry()
		c.change(&g)
		checkError(t, c.name, g.Validate(), c.want)
	}
}

func TestTimingLimits(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*nand.Timing)
		want   string
	}{
		{"as it is", func(*nand.Timing) {}, ""},
		{"no cell", func(t *nand.Timing) { t.Cell = 0 }, "cell: use SLC, MLC, TLC or QLC"},
		{"unknown cell", func(t *nand.Timing) { t.Cell = nand.QLC + 1 }, "cell: use"},
		{"two reads of three", func(t *nand.Timing) { t.Read[2] = 0 },
			"read_latency: TLC needs 3 latencies above zero, one per page type"},
		{"three programs of four", func(t *nand.Timing) { t.Cell, t.Read[3] = nand.QLC, us },
			"program_latency: QLC needs 4"},
		{"one of each is enough for SLC", func(t *nand.Timing) {
			t.Cell, t.Read, t.Program = nand.SLC, [4]units.Duration{us}, [4]units.Duration{us}
		}, ""},
		{"no erase", func(t *nand.Timing) { t.Erase = 0 }, "erase_latency: 0s is not possible"},
		{"no rate", func(t *nand.Timing) { t.TransferRate = 0 }, "channel_rate: 0T/s is not possible"},
		{"no width", func(t *nand.Timing) { t.Width = 0 }, "channel_width: 0 bytes is not possible; use 1 to 8"},
		{"wide", func(t *nand.Timing) { t.Width = 9 }, "channel_width: 9"},
	} {
		tm := onfi()
		c.change(&tm)
		checkError(t, c.name, tm.Validate(), c.want)
	}
}

func checkError(t *testing.T, name string, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("%s: %v", name, err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("%s: error %v, want one with %q", name, err, want)
	}
}

func Example() {
	g := nand.Geometry{Channels: 8, ChipsPerChannel: 2, DiesPerChip: 2, PlanesPerDie: 2, BlocksPerPlane: 1000,
		PagesPerBlock: 768, PageSize: 16 * units.KiB}
	if err := g.Validate(); err != nil {
		fmt.Println(err)
	}
	fmt.Println(g.Planes(), "planes,", g.Capacity())
	tm := nand.Timing{TransferRate: 1200 * units.MTPerSecond, Width: 1}
	fmt.Println("a page crosses the channel in", tm.Data(g.PageSize))
	// Output:
	// 64 planes, 750GiB
	// a page crosses the channel in 13.653333us
}
