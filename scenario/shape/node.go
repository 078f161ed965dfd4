package shape

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	yaml "go.yaml.in/yaml/v4"
)

// Position is a position in a user's file, or on the command line (File "--set:1"). The zero Position is that of a
// default value.
type Position struct {
	File         string
	Line, Column int
}

// String returns file:line:column, or the file alone if the line is not known.
func (p Position) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// Flagged reports whether the position is on the command line.
func (p Position) Flagged() bool { return strings.HasPrefix(p.File, "--") }

// Error is one mistake in a file, with its position.
type Error struct {
	At  Position
	Msg string // the mistake; the correction
}

func (e *Error) Error() string {
	if e.At.File == "" {
		return e.Msg
	}
	return e.At.String() + ": " + e.Msg
}

// Errors lists the mistakes found, in the order of the file.
type Errors []*Error

func (es Errors) Error() string {
	var lines []string
	for i, e := range es {
		if i == maxShown {
			lines = append(lines, fmt.Sprintf("%d more errors", len(es)-i))
			break
		}
		lines = append(lines, e.Error())
	}
	return strings.Join(lines, "\n")
}

// maxShown limits the mistakes that are printed; more than that repeat the first ones.
const maxShown = 100

// maxMessage limits the length of a message, in bytes. A longer one quotes text of the user's that is too long to read.
const maxMessage = 2000

// brief elides the middle of a message that is too long.
func brief(msg string) string {
	if len(msg) <= maxMessage {
		return msg
	}
	return strings.ToValidUTF8(msg[:maxMessage/2], "") + " ... " + strings.ToValidUTF8(msg[len(msg)-maxMessage/2:], "")
}

// InOrder sorts the mistakes of one file by position.
func (es Errors) InOrder() Errors {
	slices.SortStableFunc(es, func(a, b *Error) int {
		if a.At.File != b.At.File {
			return 0
		}
		return (a.At.Line-b.At.Line)<<16 + a.At.Column - b.At.Column
	})
	return es
}

// Kind is the kind of a YAML node.
type Kind uint8

// The kinds.
const (
	Scalar Kind = iota
	Mapping
	Sequence
)

func (k Kind) String() string {
	return [...]string{"a single value", "a mapping", "a list"}[k]
}

// Node is a YAML node with its aliases and merge keys resolved.
type Node struct {
	Kind   Kind
	At     Position
	Text   string // of a scalar
	Quoted bool
	Keys   []*Node // of a mapping
	Items  []*Node // values of a mapping, or items of a list
}

// null reports whether a value is missing or null.
func (n *Node) null() bool {
	return n.Kind == Scalar && !n.Quoted && (n.Text == "" || n.Text == "~" || n.Text == "null")
}

// Get returns the value of a mapping's key, nil if it has none.
func (n *Node) Get(key string) *Node {
	if n.Kind != Mapping {
		return nil
	}
	for i, k := range n.Keys {
		if k.Text == key {
			return n.Items[i]
		}
	}
	return nil
}

// Put sets a mapping's key.
func (n *Node) Put(key *Node, value *Node) {
	for i, k := range n.Keys {
		if k.Text == key.Text {
			n.Keys[i], n.Items[i] = key, value
			return
		}
	}
	n.Keys = append(n.Keys, key)
	n.Items = append(n.Items, value)
}

// Limits of a file. A file in the program's own repository has fewer than 2000 nodes; nested aliases could otherwise
// produce one of any size. The library allocates some 900 bytes for each element between commas and line ends, before
// the nodes can be counted.
const (
	maxNodes  = 200_000
	maxDepth  = 64
	maxBytes  = 16 << 20
	maxPieces = 2 * maxNodes
)

// ReadFile reads a YAML file. It reads a file that is too large for Parse only as far as needed to detect that.
func ReadFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	text, err := Read(f)
	return text, errors.Join(err, f.Close())
}

// Read reads YAML as ReadFile does.
func Read(r io.Reader) ([]byte, error) { return io.ReadAll(io.LimitReader(r, maxBytes+1)) }

// pieces is an upper bound on the nodes of a text: its commas and its lines that are not comments.
func pieces(src []byte) int {
	n := bytes.Count(src, []byte(","))
	for line := range bytes.Lines(src) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			n++
		}
	}
	return n
}

// Parse parses one YAML document. file names it in errors. An empty document is an empty mapping.
func Parse(file string, src []byte) (*Node, error) {
	if len(src) > maxBytes {
		return nil, Errors{{Position{File: file},
			fmt.Sprintf("the file is larger than %d MiB", maxBytes>>20)}}
	}
	if n := pieces(src); n > maxPieces {
		return nil, Errors{{Position{File: file},
			fmt.Sprintf("the file has some %d values; the limit is %d", n, maxNodes)}}
	}
	top := &Node{Kind: Mapping, At: Position{file, 1, 1}}
	if blank(src) {
		return top, nil
	}
	var doc yaml.Node
	if err := yaml.Load(src, &doc); err != nil {
		if !utf8.Valid(src) {
			return nil, Errors{{firstForeign(file, src), "invalid UTF-8; save the file as UTF-8"}}
		}
		return nil, yamlError(file, err)
	}
	if len(doc.Content) == 0 {
		return top, nil
	}
	c := converter{file: file}
	n := c.convert(doc.Content[0], 0)
	if len(c.errs) > 0 {
		return nil, c.errs
	}
	if n.null() {
		return top, nil
	}
	return n, nil
}

// blank reports whether text contains only comments.
func blank(src []byte) bool {
	for line := range strings.Lines(string(src)) {
		if s := strings.TrimSpace(line); s != "" && s[0] != '#' && s != "---" {
			return false
		}
	}
	return true
}

// yamlError converts the YAML library's errors to Errors.
func yamlError(file string, err error) error {
	var one *yaml.LoadError
	if !errors.As(err, &one) {
		return Errors{{Position{File: file}, err.Error()}}
	}
	msg := one.Message
	if strings.Contains(msg, "found multiple") {
		return Errors{{Position{File: file}, "more than one YAML document; write a single one, without ---"}}
	}
	at := Position{file, one.Mark.Line, max(one.Mark.Column, 1)}
	switch {
	case strings.Contains(msg, "cannot start any token"):
		msg += "; indent with spaces, not tabs, and quote text that starts with a punctuation mark"
	case strings.Contains(msg, "mapping values are not allowed"):
		msg += "; quote text that contains a colon, and put nested keys on lines of their own"
	}
	if one.ContextMsg != "" {
		msg = one.ContextMsg + ": " + msg
	}
	return Errors{{at, brief("not valid YAML: " + strings.TrimPrefix(msg, "yaml: "))}}
}

// converter converts the library's nodes.
type converter struct {
	file  string
	count int
	open  []*yaml.Node // anchored ancestors of the current node
	errs  Errors
}

func (c *converter) fail(at Position, format string, args ...any) {
	c.errs = append(c.errs, &Error{at, brief(fmt.Sprintf(format, args...))})
}

func (c *converter) convert(y *yaml.Node, depth int) *Node {
	n := &Node{At: Position{c.file, y.Line, y.Column}}
	c.count++
	if c.count > maxNodes || depth > maxDepth {
		if len(c.errs) == 0 {
			c.fail(n.At, "the file is nested too deep or too long once its aliases are resolved; at most %d levels "+
				"and %d values are read", maxDepth, maxNodes)
		}
		return n
	}
	switch y.Kind {
	case yaml.AliasNode:
		for _, o := range c.open {
			if o == y.Alias {
				c.fail(n.At, "the alias *%s refers to itself", y.Value)
				return n
			}
		}
		return c.convert(y.Alias, depth+1)
	case yaml.ScalarNode:
		n.Text = y.Value
		n.Quoted = y.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0
		if y.Style&yaml.TaggedStyle != 0 {
			c.fail(n.At, "the tag %s is not supported; write the value alone", y.Tag)
		}
		return n
	}
	if y.Style&yaml.TaggedStyle != 0 {
		c.fail(n.At, "the tag %s is not supported; write the value alone", y.Tag)
	}
	if y.Anchor != "" {
		c.open = append(c.open, y)
		defer func() { c.open = c.open[:len(c.open)-1] }()
	}
	if y.Kind == yaml.SequenceNode {
		n.Kind = Sequence
		for _, item := range y.Content {
			n.Items = append(n.Items, c.convert(item, depth+1))
		}
		return n
	}
	n.Kind = Mapping
	c.mapping(n, y, depth)
	return n
}

// mapping fills n with the keys of y. Keys that "<<" merges in follow, unless the mapping itself has them.
func (c *converter) mapping(n *Node, y *yaml.Node, depth int) {
	var merged []*Node
	have := make(map[string]*Node, len(y.Content)/2)
	put := func(key, value *Node) {
		have[key.Text] = key
		n.Keys, n.Items = append(n.Keys, key), append(n.Items, value)
	}
	for i := 0; i+1 < len(y.Content); i += 2 {
		k := y.Content[i]
		at := Position{c.file, k.Line, k.Column}
		if k.Kind == yaml.ScalarNode && k.Tag == "!!merge" {
			m := c.convert(y.Content[i+1], depth+1)
			switch m.Kind {
			case Mapping:
				merged = append(merged, m)
			case Sequence:
				merged = append(merged, m.Items...)
			default:
				c.fail(at, "<< merges a mapping or a list of mappings, not %v", m.Kind)
			}
			continue
		}
		if k.Kind != yaml.ScalarNode {
			c.fail(at, "a key must be a single word")
			continue
		}
		if first := have[k.Value]; first != nil {
			c.fail(at, "key %q is given twice; first on line %d", k.Value, first.At.Line)
			continue
		}
		put(&Node{At: at, Text: k.Value}, c.convert(y.Content[i+1], depth+1))
	}
	for _, m := range merged {
		if m.Kind != Mapping {
			c.fail(m.At, "<< merges a mapping or a list of mappings, not %v", m.Kind)
			continue
		}
		for i, k := range m.Keys {
			if have[k.Text] == nil {
				put(k, m.Items[i])
			}
		}
	}
}

// firstForeign returns the position of the first byte that is not UTF-8.
func firstForeign(file string, src []byte) Position {
	at := Position{file, 1, 1}
	for len(src) > 0 {
		r, n := utf8.DecodeRune(src)
		if r == utf8.RuneError && n <= 1 {
			break
		}
		if at.Column++; r == '\n' {
			at.Line, at.Column = at.Line+1, 1
		}
		src = src[n:]
	}
	return at
}
