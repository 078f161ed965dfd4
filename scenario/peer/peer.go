// Package peer reads the files of other simulators and tools into plain structs that hold the files' values, in the
// files' units. It converts none of them to models: package scenario/convert does.
//
// Its main types are MQSimDevice and MQSimFlow, from MQSim's ssdconfig.xml and workload.xml (Tavakkol et al., FAST
// 2018; parameter names as of commit 7ec40e3); HPCCConfig and NS3RDMAConfig, NS3Topology, NS3Flow, NS3Completion and
// NS3Pause, from the files that the ns-3 programs of HPCC (Li et al., SIGCOMM 2019; commit 9f4be2a) and of Zhu et al.
// (CoNEXT 2016; ns3-rdma, commit e8a27d0) read and write; and HTSimTopology and HTSimMatrix, from csg-htsim's. Errors
// name file, line and column. An unknown tag is an error; the peers ignore it.
package peer

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
)

// element is an XML element with its position.
type element struct {
	name     string
	text     string
	line     int
	column   int
	children []*element
}

// maxBytes bounds a file; the peers' own have a few thousand, and flow files of large networks some millions.
const maxBytes = 256 << 20

// readAll reads a whole file. Errors start with its name.
func readAll(name string, r io.Reader) ([]byte, error) {
	src, err := io.ReadAll(io.LimitReader(r, maxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(src) > maxBytes {
		return nil, fmt.Errorf("%s: the file is larger than %d MiB", name, maxBytes>>20)
	}
	return src, nil
}

// maxDepth bounds the nesting of a file; the peer's own have five levels.
const maxDepth = 32

// parseXML parses a document. Errors start with name:line:column.
func parseXML(name string, r io.Reader) (*element, error) {
	src, err := readAll(name, r)
	if err != nil {
		return nil, err
	}
	d := xml.NewDecoder(strings.NewReader(string(src)))
	d.CharsetReader = func(charset string, in io.Reader) (io.Reader, error) {
		if strings.EqualFold(charset, "us-ascii") || strings.EqualFold(charset, "utf-8") {
			return in, nil
		}
		return nil, fmt.Errorf("encoding %q is not supported; use us-ascii or utf-8", charset)
	}
	var root *element
	var stack []*element
	for {
		line, column := d.InputPos()
		tok, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			var syntax *xml.SyntaxError
			if errors.As(err, &syntax) {
				return nil, fmt.Errorf("%s:%d: %s", name, syntax.Line, syntax.Msg)
			}
			return nil, fmt.Errorf("%s:%d:%d: %w", name, line, column, err)
		}
		switch t := tok.(type) {
		case xml.StartElement:
			e := &element{name: t.Name.Local, line: line, column: column}
			if len(stack) == maxDepth {
				return nil, fmt.Errorf("%s:%d:%d: elements nested deeper than %d", name, line, column, maxDepth)
			}
			if len(stack) > 0 {
				up := stack[len(stack)-1]
				up.children = append(up.children, e)
			} else if root != nil {
				return nil, fmt.Errorf("%s:%d:%d: <%s> follows the document's root", name, line, column, e.name)
			} else {
				root = e
			}
			stack = append(stack, e)
		case xml.EndElement:
			stack = stack[:len(stack)-1]
		case xml.CharData:
			if len(stack) > 0 {
				stack[len(stack)-1].text += string(t)
			}
		}
	}
	if root == nil {
		return nil, fmt.Errorf("%s:1:1: no XML element", name)
	}
	return root, nil
}
