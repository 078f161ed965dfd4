//go:build !amd64

package ssd

// prefetch does nothing where there is no instruction for it in use.
func prefetch(*uint32) {}
