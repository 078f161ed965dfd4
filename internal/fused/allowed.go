package main

import (
	"fmt"
	"strings"
)

// rule exempts a package and those below it, or one function.
type rule struct {
	what     string // a path, or a function's linker symbol
	function bool
	line     int
	used     bool
}

type rules []*rule

// parse parses allowed.txt: "package" or "function", the name, a colon, and the reason.
func parse(text string) (rules, error) {
	var out rules
	for i, line := range strings.Split(text, "\n") {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		what, why, ok := strings.Cut(line, ": ")
		if !ok || strings.TrimSpace(why) == "" {
			return nil, fmt.Errorf(
				"allowed.txt:%d: %q has no reason; write the package or function, a colon, and why it cannot affect a result", i+1, line)
		}
		kind, name, ok := strings.Cut(what, " ")
		if !ok || kind != "package" && kind != "function" {
			return nil, fmt.Errorf("allowed.txt:%d: %q must start with package or function", i+1, line)
		}
		out = append(out, &rule{what: name, function: kind == "function", line: i + 1})
	}
	return out, nil
}

// free reports whether a whole package is exempt, so that it need not be compiled.
func (r rules) free(path string) bool {
	for _, x := range r {
		if !x.function && (path == x.what || strings.HasPrefix(path, x.what+"/")) {
			x.used = true
			return true
		}
	}
	return false
}

// allow reports whether a function is exempt.
func (r rules) allow(f finding) bool {
	for _, x := range r {
		if x.function && f.function == x.what {
			x.used = true
			return true
		}
	}
	return false
}
