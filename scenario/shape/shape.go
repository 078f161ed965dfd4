// Package shape reads and writes YAML by the shape of Go structs: a key is its field's name in snake_case, a value is
// what the field's type reads, and every mistake is reported with file, line and column and what would be right.
//
// A file is parsed into Nodes (Parse), which carry their places; changes from the command line are made on the nodes
// (Change, Language.Apply); a Decoder sets the struct and collects Errors; Language.Encode writes it back with every
// default; Language.Describe explains a key in the words of the field's comment. What the structs alone do not say
// (keys of other names, defaults, comments) is a Language. Files that need none of it are Documents. Differences
// compares two texts key by key.
//
// This is the only package that knows YAML. What it leaves out: what any key means, and reading files from disk.
package shape
