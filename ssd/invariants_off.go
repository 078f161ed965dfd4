//go:build !invariants

package ssd

// watch is nothing: with the build tag invariants every drive's laws are tested now and then.
type watch struct{}

func (d *Drive) happened() {}
