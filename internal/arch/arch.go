// Package arch holds the rules that keep the tree the shape it has: who may import
// whom, which library has its one door, what models must not touch, how packages and
// files are named and documented.
//
// It has tests only, and reads sources with go/parser. Rules about packages that do
// not exist yet hold.
//
// The rules are those of ARCHITECTURE.md. What they leave out: whether a design is
// any good.
package arch
