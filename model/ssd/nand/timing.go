package nand

import (
	"slices"

	"farflash/numeric/units"
)

// Cell is the number of bits that a cell stores.
type Cell uint8

// The cell types.
const (
	SLC Cell = iota + 1
	MLC
	TLC
	QLC
)

var cellNames = units.Names[Cell]{"", "SLC", "MLC", "TLC", "QLC"}

// String returns the name used in scenarios.
func (c Cell) String() string { return cellNames.Name(c) }

// MarshalText writes the cell type's name.
func (c Cell) MarshalText() ([]byte, error) { return cellNames.Marshal(c) }

// UnmarshalText reads a cell type's name.
func (c *Cell) UnmarshalText(text []byte) error { return cellNames.Unmarshal(text, c) }

// Bits returns the number of bits of a cell, which is the number of page types on a word line.
func (c Cell) Bits() int { return int(c) }

// PageType returns the type of a page of a block: its position among the pages of its word line, of which 0 is the
// fastest (lower) page. MLC alternates. TLC follows the shifted programming order measured by Yaakobi et al. (ICNC
// 2012): six lower pages, two middle pages, then pairs of lower, middle and upper. QLC cycles through the four.
func (c Cell) PageType(page int) int {
	switch c {
	case MLC:
		return page & 1
	case TLC:
		switch {
		case page < 6:
			return 0
		case page < 8:
			return 1
		}
		return (page - 8) >> 1 % 3
	case QLC:
		return page & 3
	}
	return 0
}

// Timing is the time of operations on the bus and in the array. The ONFI parameters are the typical NV-DDR2 values of
// ONFI 4.0, table 4-10.
type Timing struct {
	// Cell is the number of bits per cell, and therefore of page types.
	Cell Cell
	// Read is the array time to read a page (tR), by page type.
	Read [4]units.Duration
	// Program is the time to program a page (tPROG), by page type.
	Program [4]units.Duration
	// Erase is the time to erase a block (tBERS).
	Erase units.Duration
	// SuspendProgram and SuspendErase are the times that a running operation takes to stop for a read, and to resume
	// afterwards.
	SuspendProgram units.Duration
	SuspendErase   units.Duration

	// TransferRate is the rate of transfers on the channel.
	TransferRate units.TransferRate
	// Width is the number of bytes in a transfer.
	Width int

	// TCS is the time from selecting a chip to its first command cycle (ONFI tCS).
	TCS units.Duration
	// TWC is the time of a command or address cycle (tWC).
	TWC units.Duration
	// TWB is the time from the last command cycle until the die is busy (tWB).
	TWB units.Duration
	// TRR is the time from ready to the first cycle of reading data (tRR).
	TRR units.Duration
	// TDBSY is the time that a die is busy between the planes of one command (tDBSY).
	TDBSY units.Duration
	// TADL is the time from the last address cycle to the first byte of data (tADL).
	TADL units.Duration
	// TCALS is the setup time of a command or address latch (tCALS).
	TCALS units.Duration
	// TWPST is the time from the last byte written until the strobe is idle (tWPST).
	TWPST units.Duration
	// TWPSTH is the time that the strobe is held after that (tWPSTH).
	TWPSTH units.Duration
	// DataOutSetup is tRPRE + tDQSRE, the time before the first byte of read data.
	DataOutSetup units.Duration
	// ReadyBusy is the time after a page read until R/B# is seen.
	ReadyBusy units.Duration
}

// ReadCommand returns how long a read command on n planes holds the channel.
func (t *Timing) ReadCommand(n int) units.Duration {
	return t.TCS + units.Duration(n)*6*t.TWC + units.Duration(n-1)*t.TDBSY + t.TWB + t.TRR
}

// ProgramCommand returns how long a program command on n planes holds the channel, without its data.
func (t *Timing) ProgramCommand(n int) units.Duration {
	more := units.Duration(n - 1)
	return t.TCS + more*(5*t.TWC+t.TADL+t.TWPST+t.TCALS+t.TWB+t.TDBSY) + 6*t.TWC + t.TADL + t.TWPST + t.TWPSTH + t.TWB
}

// EraseCommand returns how long an erase command on n planes holds the channel.
func (t *Timing) EraseCommand(n int) units.Duration {
	return t.TCS + 4*t.TWC + t.TWB + units.Duration(n-1)*(t.TDBSY+4*t.TWC+t.TWB)
}

// SuspendCommand returns how long a suspend command holds the channel.
func (t *Timing) SuspendCommand() units.Duration { return t.TCS + 3*t.TWC }

// Data returns how long b bytes occupy the channel.
func (t *Timing) Data(b units.Bytes) units.Duration {
	w := units.Bytes(t.Width)
	return t.TransferRate.TimeFor(int64((b + w - 1) / w))
}

// MaxTime is the longest time of any single operation in a drive. The clock can hold a hundred thousand such times.
const MaxTime = 100 * units.Second

// Validate returns an error that lists every invalid field by its key.
func (t *Timing) Validate() error {
	var bad units.Faults
	if t.Cell < SLC || t.Cell > QLC {
		bad.Hold(false, "cell", "use SLC, MLC, TLC or QLC")
	} else {
		n := t.Cell.Bits()
		bad.Hold(slices.Min(t.Read[:n]) > 0, "read_latency", "%s needs %d latencies above zero, one per page type",
			t.Cell, n)
		bad.Hold(slices.Min(t.Program[:n]) > 0, "program_latency",
			"%s needs %d latencies above zero, one per page type", t.Cell, n)
	}
	bad.Hold(t.Erase > 0, "erase_latency", "%v is not possible", t.Erase)
	for _, x := range []struct {
		key   string
		times []units.Duration
	}{
		{"read_latency", t.Read[:]}, {"program_latency", t.Program[:]}, {"erase_latency", []units.Duration{t.Erase}},
		{"suspend_program", []units.Duration{t.SuspendProgram}}, {"suspend_erase", []units.Duration{t.SuspendErase}},
		{"data_out_setup", []units.Duration{t.DataOutSetup}}, {"ready_busy", []units.Duration{t.ReadyBusy}},
		{"", []units.Duration{t.TCS, t.TWC, t.TWB, t.TRR, t.TDBSY, t.TADL, t.TCALS, t.TWPST, t.TWPSTH}},
	} {
		most := slices.Max(x.times)
		bad.Hold(most <= MaxTime, x.key, "a time of %v is not possible; use at most %v", most, MaxTime)
		least := slices.Min(x.times)
		bad.Hold(least >= 0, x.key, "a time of %v is not possible; use 0s or more", least)
	}
	bad.Hold(t.TransferRate >= units.MTPerSecond, "channel_rate",
		"%v is not possible; use at least 1MT/s, 333MT/s to 3600MT/s are usual", t.TransferRate)
	bad.Hold(t.Width >= 1 && t.Width <= 8, "channel_width", "%d bytes is not possible; use 1 to 8", t.Width)
	return bad.Err()
}
