package arch

import (
	"go/ast"
	"testing"
)

// TestFuzzTargets requires every fuzz target to bound the time of an input: otherwise a hanging parser is
// indistinguishable from the end of the fuzzer's time budget.
func TestFuzzTargets(t *testing.T) {
	targets := 0
	for _, f := range tree(t) {
		if !f.test {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) != 1 {
				return true
			}
			if s, ok := call.Fun.(*ast.SelectorExpr); !ok || s.Sel.Name != "Fuzz" {
				return true
			}
			targets++
			if body, ok := call.Args[0].(*ast.FuncLit); !ok || len(body.Body.List) == 0 || !limits(body.Body.List[0]) {
				t.Errorf("%v: a fuzz target that does not begin with defer patience.Limit()()", f.pos.Position(n.Pos()))
			}
			return true
		})
	}
	if targets < 40 {
		t.Errorf("only %d fuzz targets were found", targets)
	}
}

// limits reports whether a statement is defer patience.Limit()().
func limits(s ast.Stmt) bool {
	d, ok := s.(*ast.DeferStmt)
	if !ok {
		return false
	}
	inner, ok := d.Call.Fun.(*ast.CallExpr)
	if !ok {
		return false
	}
	f, ok := inner.Fun.(*ast.SelectorExpr)
	if !ok || f.Sel.Name != "Limit" {
		return false
	}
	p, ok := f.X.(*ast.Ident)
	return ok && p.Name == "patience"
}
