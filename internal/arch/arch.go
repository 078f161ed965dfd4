// Package arch enforces the structure of the tree: which packages may import which, which single package wraps each
// library, what models must not use, and how packages and files are named and documented.
//
// It contains only tests, which parse the sources with go/parser. A rule about a package that does not exist yet
// passes.
//
// The rules are those of ARCHITECTURE.md. They leave out whether a design is any good.
package arch
