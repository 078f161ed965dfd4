//go:build !amd64

package ssd

// prefetch is a no-op on architectures without an implementation.
func prefetch(*uint32) {}
