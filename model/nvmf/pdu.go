package nvmf

import (
	"farflash/block"
	"farflash/numeric/units"
)

// Sizes of NVMe/TCP's protocol data units without their data, in bytes (NVM Express TCP Transport Specification 1.0,
// section 3.6): a common header of 8, and in a command's capsule 64 of the command, in a response's 16 of the
// completion, in the others 16 of their own.
const (
	commandPDU  units.Bytes = 72
	responsePDU units.Bytes = 24
	dataPDU     units.Bytes = 24 // H2CData and C2HData
	r2tPDU      units.Bytes = 24
	digestSize  units.Bytes = 4 // CRC32C
)

// TCP is what machines agree on when they connect by TCP. The kernel's and SPDK's defaults differ in two points, and
// both ask for no digests and one R2T a command. The checksums take no time of a core beyond initiator.command and
// target.command.
type TCP struct {
	// HeaderDigest adds 4 bytes to each unit, a checksum of its header.
	HeaderDigest bool
	// DataDigest adds 4 bytes to each unit that carries data.
	DataDigest bool
	// MaxHostData is the most data of a unit that an initiator sends (MAXH2CDATA); more data are several units.
	// 128KiB (SPDK: its greatest I/O); Linux 4MiB (NVMET_TCP_MAXH2CDATA).
	MaxHostData units.Bytes
	// SuccessFlag has a read's last data say that it went well, so that it has no response of its own (SPDK's
	// c2h_success). Linux' target does so only for initiators that have flow control of submission queues off, which
	// is not its own's default.
	SuccessFlag bool
}

// defaultTCP is SPDK's.
func defaultTCP() TCP { return TCP{MaxHostData: 128 * units.KiB, SuccessFlag: true} }

func (t *TCP) validate() error {
	var bad units.Faults
	bad.Hold(t.MaxHostData >= 4*units.KiB && t.MaxHostData <= units.GiB, "max_host_data",
		"%v is not possible; use 4KiB to 1GiB", t.MaxHostData)
	return bad.Err()
}

// unit is how long a protocol data unit is.
func (t *TCP) unit(header, data units.Bytes) units.Bytes {
	size := header + data
	if t.HeaderDigest {
		size += digestSize
	}
	if t.DataDigest && data > 0 {
		size += digestSize
	}
	return size
}

// answer is a command's answer with so much data: C2HData and its response, or one of them.
func (t *TCP) answer(data units.Bytes) units.Bytes {
	size := units.Bytes(0)
	if data > 0 {
		size = t.unit(dataPDU, data)
	}
	if data == 0 || !t.SuccessFlag {
		size += t.unit(responsePDU, 0)
	}
	return size
}

// h2c is the units that carry so much data to a target.
func (t *TCP) h2c(data units.Bytes) units.Bytes {
	whole := data / t.MaxHostData
	size := whole * t.unit(dataPDU, t.MaxHostData)
	if rest := data % t.MaxHostData; rest > 0 {
		size += t.unit(dataPDU, rest)
	}
	return size
}

// reads reports whether data go back to the initiator.
func (x *command) reads() bool { return x.req.Op == block.Read && x.status == block.OK }

// capsuleBytes is a command's capsule, with a write's data if they are not fetched.
func (s *System) capsuleBytes(x *command) units.Bytes {
	data := units.Bytes(0)
	if x.req.Op == block.Write && !s.fetched(x) {
		data = units.Bytes(x.req.Length)
	}
	if s.protocol == NVMeTCP {
		return s.cfg.TCP.unit(commandPDU, data)
	}
	return capsuleSize + data
}

// pullBytes is what asks for a write's data.
func (s *System) pullBytes() units.Bytes {
	if s.protocol == NVMeTCP {
		return s.cfg.TCP.unit(r2tPDU, 0)
	}
	return pullSize
}

// fetchedBytes is what brings them.
func (s *System) fetchedBytes(x *command) units.Bytes {
	if s.protocol == NVMeTCP {
		return s.cfg.TCP.h2c(units.Bytes(x.req.Length))
	}
	return units.Bytes(x.req.Length)
}
