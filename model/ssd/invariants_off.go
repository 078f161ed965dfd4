//go:build !invariants

package ssd

// watch is nothing: with the build tag invariants every drive's laws are tested now and then.
type watch struct{} //nolint:unused // embedded, and counts with the build tag

func (d *Drive) happened() {}
