// Package shape reads and writes YAML by the shape of Go structs: a key is its field's name in snake_case, a field's
// type parses its value, and every mistake is reported with file, line and column and a correction.
//
// A file is parsed into Nodes (Parse), which carry their positions; changes from the command line are made on the nodes
// (Change, Language.Apply); a Decoder sets the struct and collects Errors; Language.Encode writes it back with every
// default; Language.Describe explains a key in the words of the field's comment. A Language holds the properties that
// the structs do not express (keys of other names, defaults, comments). Files that need none of them are Documents.
// Differences compares two texts key by key.
//
// This is the only package that knows YAML. It leaves out the meaning of keys, and loading files that a document names.
package shape
