//go:build !invariants

package ftl

// watch is nothing: with the build tag invariants every pool's state is walked now and then.
type watch struct{} //nolint:unused // embedded, and counts with the build tag

func (f *FTL) changed(int, *pool) {}
