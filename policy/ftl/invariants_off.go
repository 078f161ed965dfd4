//go:build !invariants

package ftl

// watch is nothing: with the build tag invariants every pool's state is walked now and then.
type watch struct{}

func (f *FTL) changed(int, *pool) {}
