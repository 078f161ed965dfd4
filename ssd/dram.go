package ssd

import "farflash/sim"

// dram occupies the DRAM channel, which serves one transfer at a time, first
// come, first served, and sends (kind, arg) when the transfer is done.
func (d *Drive) dram(bytes int64, kind uint16, arg uint32) {
	d.schedule(d.occupyDRAM(bytes), kind, arg)
}

// occupyDRAM is dram for a transfer that nobody waits for. It returns its end.
func (d *Drive) occupyDRAM(bytes int64) sim.Time {
	return d.send(&d.memory, d.dramTime(bytes))
}

// dramTime is how long a transfer takes: a row is opened (tRCD + tCL) and read or
// written in bursts; each further row is precharged and opened anew. The data bus
// moves BurstSize bytes a transfer, so a row of R bytes takes R/BurstSize/DataRate.
func (d *Drive) dramTime(bytes int64) sim.Time {
	if bytes == d.lastDRAM {
		return d.lastDRAMTime
	}
	m := &d.cfg.DRAM
	burst := int64(m.BurstSize)
	row := int64(m.RowSize)
	open := m.TRCD + m.TCL
	var t sim.Time
	switch {
	case d.cfg.Quirks.RowsHalved:
		t = d.rowsHalved(bytes)
	case bytes <= row:
		t = open + m.DataRate.TimeFor((bytes+burst-1)/burst)
	default:
		rows := (bytes + row - 1) / row
		t = sim.Time(rows)*open + sim.Time(rows-1)*m.TRP + m.DataRate.TimeFor((bytes+burst-1)/burst)
	}
	d.lastDRAM, d.lastDRAMTime = bytes, t
	return t
}
