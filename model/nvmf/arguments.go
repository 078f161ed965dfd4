package nvmf

import (
	"errors"
	"fmt"

	"farflash/block"
	"farflash/numeric/units"
)

// maxLength bounds the data of a command. It is the most that Config.MaxTransfer can be.
const maxLength = int64(units.GiB)

// exists refuses a number of an initiator, target or drive that the system does not have.
func exists(what string, i int32, n int) {
	if uint(i) >= uint(n) {
		panic(fmt.Sprintf("nvmf: there is no %s %d; there are %d", what, i, n))
	}
}

// late reports whether the first command was submitted, after which no machine can be added, and fails then.
func (s *System) late() bool {
	if s.conns == nil {
		return false
	}
	s.fail(errors.New("nvmf: a machine is added after the first command"))
	return true
}

// refuse stops the system because of a command that cannot be submitted.
//
//go:noinline
func (s *System) refuse(initiator, drive int32, r *block.Request) {
	if s.sink == nil {
		s.fail(errors.New("nvmf: a command before Connect"))
		return
	}
	s.fail(fmt.Errorf("nvmf: %v of %d bytes from initiator %d of %d to drive %d of %d is not possible", r.Op, r.Length,
		initiator, len(s.initiators), drive, len(s.drives)))
}
