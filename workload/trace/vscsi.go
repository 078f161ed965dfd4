package trace

import (
	"encoding/binary"
	"fmt"
	"math"

	"farflash/block"
	"farflash/numeric/units"
	"farflash/workload"
)

// vscsiDecoder reads CloudPhysics' vscsi records, little-endian. Version 1 is 32 bytes: sequence number u32, length
// in bytes u32, scatter-gather entries u32, SCSI command u16, version u16, 512-byte block u64, time in us u64.
// Version 2 is 40 bytes: command u16, version u16, sequence number u32, length u32, entries u32, block u64, time u64,
// response time in us u64. The high byte of the version field is the version.
type vscsiDecoder struct {
	version int
	other   int64 // commands that move no data
}

const (
	vscsiSize1 = 32
	vscsiSize2 = 40
)

// vscsiVersion returns the version of the record at the start of head, or 0.
func vscsiVersion(head []byte) int {
	switch {
	case len(head) >= vscsiSize1 && head[15] == 1 && vscsiCommand(binary.LittleEndian.Uint16(head[12:])):
		return 1
	case len(head) >= vscsiSize2 && head[3] == 2 && vscsiCommand(binary.LittleEndian.Uint16(head)):
		return 2
	}
	return 0
}

// vscsiCommand reports whether a number can be a SCSI operation code.
func vscsiCommand(cmd uint16) bool { return cmd < 0x100 }

func (d *vscsiDecoder) size() int {
	if d.version == 2 {
		return vscsiSize2
	}
	return vscsiSize1
}

// decode decodes one record of the version's size.
func (d *vscsiDecoder) decode(b []byte, e *event) (bool, error) {
	le := binary.LittleEndian
	cmd, version, length := le.Uint16(b[12:]), le.Uint16(b[14:]), le.Uint32(b[4:])
	lbn, stamp := le.Uint64(b[16:]), le.Uint64(b[24:])
	e.response = workload.NoResponse
	if d.version == 2 {
		cmd, version, length = le.Uint16(b), le.Uint16(b[2:]), le.Uint32(b[8:])
		response := le.Uint64(b[32:])
		if response > math.MaxInt64/uint64(units.Microsecond) {
			return false, fmt.Errorf("response time of %d us is out of range", response)
		}
		e.response = units.Duration(response) * units.Microsecond
	}
	if int(version>>8) != d.version {
		return false, fmt.Errorf("version field is %#04x; it must be %#02xxx as in the first record", version,
			d.version)
	}
	switch cmd {
	case 0x08, 0x28, 0xa8, 0x88: // READ(6), (10), (12), (16)
		e.op = block.Read
	case 0x0a, 0x2a, 0xaa, 0x8a, 0x2e, 0x8e: // WRITE(6), (10), (12), (16), WRITE AND VERIFY(10), (16)
		e.op = block.Write
	case 0x35, 0x91: // SYNCHRONIZE CACHE(10), (16)
		e.op = block.Flush
	default:
		if !vscsiCommand(cmd) {
			return false, fmt.Errorf("command %#04x is not a SCSI operation code", cmd)
		}
		d.other++
		return false, nil
	}
	if lbn > math.MaxInt64/uint64(sector) {
		return false, fmt.Errorf("block %d exceeds any drive", lbn)
	}
	e.offset, e.size = int64(lbn)*sector, int64(length)
	if e.op == block.Flush {
		e.offset, e.size = 0, 0
	}
	if stamp > math.MaxInt64 {
		return false, fmt.Errorf("time of %d us is out of range", stamp)
	}
	e.at = ticks(stamp, 1e6)
	return true, nil
}
