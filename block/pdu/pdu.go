// Package pdu has the sizes of NVMe/TCP's protocol data units, which the model of a fabric (model/nvmf) and the real
// target (flash/nvme/wire) have in common. Neither knows the other.
//
// It follows the NVM Express TCP Transport Specification 1.0, section 3.6, and leaves out all that has no bearing on
// sizes.
package pdu

// Sizes in bytes, without data.
const (
	Common     = 8  // the header that all begin with
	Submission = 64 // an entry of a submission queue
	Completion = 16 // an entry of a completion queue
	Digest     = 4  // CRC-32C, of a header or of data
	Specific   = 16 // what follows the common header in H2CData, C2HData and R2T

	Command  = Common + Submission // CapsuleCmd
	Response = Common + Completion // CapsuleResp
	Transfer = Common + Specific   // H2CData, C2HData and R2T
)
