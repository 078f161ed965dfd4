package nvmf

import (
	"farflash/block"
	"farflash/block/pdu"
	"farflash/numeric/units"
)

// Sizes of NVMe/TCP's protocol data units without their data, in bytes: those that the real target sends.
const (
	commandPDU  units.Bytes = pdu.Command
	responsePDU units.Bytes = pdu.Response
	dataPDU     units.Bytes = pdu.Transfer // H2CData and C2HData
	r2tPDU      units.Bytes = pdu.Transfer
	digestSize  units.Bytes = pdu.Digest
)

// TCP is what machines negotiate when they connect by TCP. The kernel and SPDK differ in two defaults; both request no
// digests and one R2T per command. Checksums take no core time beyond initiator.command and target.command.
type TCP struct {
	HeaderDigest bool // HeaderDigest adds a checksum of the header, 4 bytes, to each unit.
	DataDigest   bool // DataDigest adds a checksum of 4 bytes to each unit that carries data.
	// MaxHostData is the most data in a unit from an initiator (MAXH2CDATA); more data take several units. 128KiB
	// (SPDK: its largest I/O); Linux 4MiB (NVMET_TCP_MAXH2CDATA).
	MaxHostData units.Bytes
	// SuccessFlag lets the last data of a read report success, which saves the response (SPDK's c2h_success). Linux'
	// target does so only for initiators that turn off flow control of submission queues; Linux' initiator does not by
	// default.
	SuccessFlag bool
}

// defaultTCP returns SPDK's settings.
func defaultTCP() TCP { return TCP{MaxHostData: 128 * units.KiB, SuccessFlag: true} }

func (t *TCP) validate() error {
	var bad units.Faults
	bad.Hold(t.MaxHostData >= 4*units.KiB && t.MaxHostData <= units.GiB, "max_host_data",
		"%v is not possible; use 4KiB to 1GiB", t.MaxHostData)
	return bad.Err()
}

// unit returns the length of a protocol data unit.
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

// answer returns the size of a command's answer with data bytes: C2HData, the response, or both.
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

// h2c returns the size of the units that carry data bytes to a target.
func (t *TCP) h2c(data units.Bytes) units.Bytes {
	whole := data / t.MaxHostData
	size := whole * t.unit(dataPDU, t.MaxHostData)
	if rest := data % t.MaxHostData; rest > 0 {
		size += t.unit(dataPDU, rest)
	}
	return size
}

// reads reports whether data goes back to the initiator.
func (x *command) reads() bool { return x.req.Op == block.Read && x.status == block.OK }

// capsuleBytes returns the size of a command's capsule, including a write's data unless that is fetched.
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

// pullBytes returns the size of the request for a write's data.
func (s *System) pullBytes() units.Bytes {
	if s.protocol == NVMeTCP {
		return s.cfg.TCP.unit(r2tPDU, 0)
	}
	return pullSize
}

// fetchedBytes returns the size of the answer to it.
func (s *System) fetchedBytes(x *command) units.Bytes {
	if s.protocol == NVMeTCP {
		return s.cfg.TCP.h2c(units.Bytes(x.req.Length))
	}
	return units.Bytes(x.req.Length)
}
