// Package table is the flash controller's mapping: one 64-bit word for every page of a 64-bit byte space that gives the
// page's location. Words change by compare-and-swap alone, so that two versions of a page are never visible.
//
// Its main types are Word, with the transitions of the page's state machine (FlashNet, figure 6), Slot (a word with its
// page's counters) and Table, which holds the slots ever used.
//
// It leaves out frames, devices and the reasons for a page to change its state, which belong to package ctl.
package table

import "farflash/policy/ftl"

// State is the location of a page.
type State uint8

// The states.
const (
	Invalid  State = iota // no location: it reads as zeros
	OnMedium              // at a place on a device, in no frame
	InFlight              // being read into a frame, or being overwritten as a whole in one
	Resident              // in a frame, which all holders share
)

func (s State) String() string {
	return [...]string{"invalid", "on medium", "in flight", "resident"}[s]
}

// Word is a page's state with its place or frame. The zero Word is Invalid.
//
//	bits 0-1 state, 2 dirty, 3 blank, 4 due, 8-55 place (OnMedium), 8-35 frame, 36-59 references (Resident)
//
// Bit 5 is set in a slot that is no longer that of its page: its state is Invalid, and bit 6 says whether it was
// OnMedium. Bit 7 alone is the word of a page whose leaf is away.
type Word uint64

const (
	dirty    = 1 << 2
	blank    = 1 << 3
	due      = 1 << 4
	goneBit  = 1 << 5
	placed   = 1 << 6
	awayBit  = 1 << 7
	shift    = 8
	frames   = 1<<28 - 1
	refShift = 36
	oneRef   = 1 << refShift

	// maxRefs is the most references to one page.
	maxRefs = 1<<24 - 1
)

// At returns the word of a page at a place.
func At(ppa ftl.PPA) Word { return Word(OnMedium) | Word(ppa)<<shift }

// Coming returns the word of a page that is being brought into a frame.
func Coming(frame int32) Word { return Word(InFlight) | Word(frame)<<shift }

// Held returns the word of a page in a frame with refs references. A blank page has no place on the medium and no
// reservation for one.
func Held(frame int32, refs int, isBlank bool) Word {
	w := Word(Resident) | Word(frame)<<shift | Word(refs)<<refShift
	if isBlank {
		w |= blank
	}
	return w
}

// State returns the page's state.
func (w Word) State() State { return State(w & 3) }

// Place returns the place of an OnMedium page.
func (w Word) Place() ftl.PPA { return ftl.PPA(w >> shift & (1<<48 - 1)) }

// Frame returns the frame of an InFlight or Resident page.
func (w Word) Frame() int32 { return int32(w >> shift & frames) }

// Refs returns the number of references to a Resident page.
func (w Word) Refs() int { return int(w >> refShift) }

// Dirty reports whether a Resident page has changes that are not being written.
func (w Word) Dirty() bool { return w&dirty != 0 }

// Blank reports whether a Resident page has neither a place nor a reservation.
func (w Word) Blank() bool { return w&blank != 0 }

// Get returns the word with one more reference. It reports false where the slow path is needed: the page is not
// resident, must be reserved before it is written, or has the most references possible.
func (w Word) Get(write bool) (Word, bool) {
	if w.State() != Resident || write && w&blank != 0 || w.Refs() == maxRefs {
		return w, false
	}
	return w + oneRef, true
}

// Put returns the word with one reference less. A change makes the page dirty.
func (w Word) Put(changed bool) Word {
	w -= oneRef
	if changed {
		w |= dirty
	}
	return w
}

// Idle reports whether a Resident page is clean and has no references.
func (w Word) Idle() bool { return w.Refs() == 0 && w&dirty == 0 }

// Soil returns the word marked dirty, for a page that must be written.
func (w Word) Soil() Word { return w | dirty }

// Due reports whether work is pending for the last reference of a Resident page.
func (w Word) Due() bool { return w&due != 0 }

// Expect returns the word marked due: the last Put must take the slow path.
func (w Word) Expect() Word { return w | due }

// Gone reports whether the slot is no longer that of its page.
func (w Word) Gone() bool { return w&goneBit != 0 }

// Away reports whether the page's word is not in memory.
func (w Word) Away() bool { return w&(awayBit|3) == awayBit }

// gone returns the word of a slot that is no longer that of its page, which is in no frame.
func (w Word) gone() Word {
	if w.State() == OnMedium {
		return w&^3 | goneBit | placed
	}
	return goneBit
}

// was returns the word that a slot had before it was gone.
func (w Word) was() Word {
	switch {
	case w&goneBit == 0:
		return w
	case w&placed != 0:
		return w&^(goneBit|placed) | Word(OnMedium)
	}
	return 0
}

// Reserved returns the word of a page that has a place or a reservation.
func (w Word) Reserved() Word { return w &^ blank }
