// Package table is the flash controller's mapping: for every page of a 64-bit byte space one 64-bit word that says
// where the page is, changed by compare-and-swap alone, so that nobody ever sees two versions of a page.
//
// Its main types are Word, with the transitions of the page's state machine (FlashNet, figure 6), Slot (a word with
// what is counted of its page) and Table, which holds those slots that were ever used.
//
// What it leaves out: frames, devices and what makes a page change its state; these are package ctl's.
package table

import "farflash/policy/ftl"

// State is where a page is.
type State uint8

// The states.
const (
	Invalid  State = iota // nowhere: it reads as zeros
	OnMedium              // at a place on a device, and in no frame
	InFlight              // being read into a frame, or being overwritten as a whole in one
	Resident              // in a frame, which is what everybody is given
)

func (s State) String() string {
	return [...]string{"invalid", "on medium", "in flight", "resident"}[s]
}

// Word is a page's state with its place or frame. The zero Word is Invalid.
//
//	bits 0-1 state, 2 dirty, 3 blank, 4 due, 8-55 place (OnMedium), 8-35 frame, 36-59 references (Resident)
type Word uint64

const (
	dirty    = 1 << 2
	blank    = 1 << 3
	due      = 1 << 4
	shift    = 8
	frames   = 1<<28 - 1
	refShift = 36
	oneRef   = 1 << refShift

	// MaxRefs bounds how many hold one page at once.
	MaxRefs = 1<<24 - 1
	// MaxFrames bounds the frames of a pool.
	MaxFrames = frames
)

// At is the word of a page at a place.
func At(ppa ftl.PPA) Word { return Word(OnMedium) | Word(ppa)<<shift }

// Coming is the word of a page that is on its way into a frame.
func Coming(frame int32) Word { return Word(InFlight) | Word(frame)<<shift }

// Held is the word of a page in a frame that so many have. A blank page has no place on the medium, and none is
// reserved for it.
func Held(frame int32, refs int, isBlank bool) Word {
	w := Word(Resident) | Word(frame)<<shift | Word(refs)<<refShift
	if isBlank {
		w |= blank
	}
	return w
}

// State is the page's state.
func (w Word) State() State { return State(w & 3) }

// Place is where an OnMedium page is.
func (w Word) Place() ftl.PPA { return ftl.PPA(w >> shift & (1<<48 - 1)) }

// Frame is where an InFlight or Resident page is.
func (w Word) Frame() int32 { return int32(w >> shift & frames) }

// Refs is how many have a Resident page.
func (w Word) Refs() int { return int(w >> refShift) }

// Dirty reports whether a Resident page was changed and is not being written.
func (w Word) Dirty() bool { return w&dirty != 0 }

// Blank reports whether a Resident page has no place, nor one reserved.
func (w Word) Blank() bool { return w&blank != 0 }

// Get is the word with another reference. It reports false where the slow way has to be taken: the page is not
// resident, or it is to be written and needs a reservation first, or nobody more can be given it.
func (w Word) Get(write bool) (Word, bool) {
	if w.State() != Resident || write && w&blank != 0 || w.Refs() == MaxRefs {
		return w, false
	}
	return w + oneRef, true
}

// Put is the word with a reference less. A change makes the page dirty.
func (w Word) Put(changed bool) Word {
	w -= oneRef
	if changed {
		w |= dirty
	}
	return w
}

// Idle reports whether a Resident page is clean and nobody has it.
func (w Word) Idle() bool { return w.Refs() == 0 && w&dirty == 0 }

// Clean is the word of a page whose changes are being written from now on.
func (w Word) Clean() Word { return w &^ dirty }

// Soil is the word of a page that has to be written after all.
func (w Word) Soil() Word { return w | dirty }

// Due reports whether something waits for a Resident page's last reference.
func (w Word) Due() bool { return w&due != 0 }

// Expect is the word of a page whose last reference something waits for.
func (w Word) Expect() Word { return w | due }

// Reserved is the word of a page that has, or will have, a place.
func (w Word) Reserved() Word { return w &^ blank }
