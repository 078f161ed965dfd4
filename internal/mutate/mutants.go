package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

// mutant is a package with one expression or statement changed.
type mutant struct {
	File   string // relative to the module's root
	Line   int
	Was    string // the replaced text
	Is     string // the replacement
	Within string // the source line, without indentation

	path     string // absolute
	from, to int    // byte offsets of the replaced text
}

// id identifies a mutant for as long as the text before it in its file does not change.
func (m mutant) id() string {
	return fmt.Sprintf("%s:%d:%d %s -> %s", m.File, m.Line, m.from, m.Was, m.Is)
}

// swaps maps each operator of binary expressions and assignments to its replacements.
var swaps = map[token.Token][]token.Token{
	token.EQL: {token.NEQ}, token.NEQ: {token.EQL},
	token.LSS: {token.LEQ, token.GEQ}, token.LEQ: {token.LSS, token.GTR}, token.GTR: {token.GEQ, token.LEQ},
	token.GEQ: {token.GTR, token.LSS},
	token.ADD: {token.SUB}, token.SUB: {token.ADD}, token.MUL: {token.QUO}, token.QUO: {token.MUL},
	token.REM:  {token.QUO},
	token.LAND: {token.LOR}, token.LOR: {token.LAND}, token.AND: {token.OR}, token.OR: {token.AND},
	token.XOR: {token.AND}, token.AND_NOT: {token.AND},
	token.SHL: {token.SHR}, token.SHR: {token.SHL},
	token.ADD_ASSIGN: {token.SUB_ASSIGN}, token.SUB_ASSIGN: {token.ADD_ASSIGN}, token.MUL_ASSIGN: {token.QUO_ASSIGN},
	token.QUO_ASSIGN: {token.MUL_ASSIGN},
	token.OR_ASSIGN:  {token.AND_ASSIGN}, token.AND_ASSIGN: {token.OR_ASSIGN}, token.AND_NOT_ASSIGN: {token.OR_ASSIGN},
	token.INC: {token.DEC}, token.DEC: {token.INC},
}

// finder collects the mutants of a file.
type finder struct {
	name, path string
	src        []byte
	set        *token.FileSet
	lines      []string
	found      []mutant
}

// find returns all mutants of a file, in source order.
func find(name, path string) ([]mutant, error) {
	src, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	f := &finder{name: filepath.ToSlash(name), path: path, src: src, set: token.NewFileSet(),
		lines: strings.Split(string(src), "\n")}
	file, err := parser.ParseFile(f.set, path, src, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	ast.Inspect(file, f.visit)
	return f.found, nil
}

// replace adds the mutant that replaces the source between two positions with text.
func (f *finder) replace(from, to token.Pos, text string) {
	a, b := f.set.Position(from), f.set.Position(to)
	was := string(f.src[a.Offset:b.Offset])
	if was == text {
		return
	}
	within := strings.TrimSpace(f.lines[a.Line-1])
	f.found = append(f.found,
		mutant{File: f.name, Line: a.Line, Was: was, Is: text, Within: within, path: f.path, from: a.Offset,
			to: b.Offset})
}

func (f *finder) text(n ast.Node) string {
	return string(f.src[f.set.Position(n.Pos()).Offset:f.set.Position(n.End()).Offset])
}

func (f *finder) operator(at token.Pos, op token.Token) {
	for _, o := range swaps[op] {
		f.replace(at, at+token.Pos(len(op.String())), o.String())
	}
}

// visit adds the mutants of a node. It skips the arguments of panic, nodes that only define types, and math.Inf(1): its
// value is that of math.Inf(0).
func (f *finder) visit(n ast.Node) bool {
	switch x := n.(type) {
	case *ast.ImportSpec, *ast.ArrayType, *ast.StructType, *ast.InterfaceType:
		return false
	case *ast.CallExpr:
		if id, ok := x.Fun.(*ast.Ident); ok && id.Name == "panic" || f.text(x) == "math.Inf(1)" {
			return false
		}
	case *ast.BinaryExpr:
		if !isText(x.X) && !isText(x.Y) {
			f.operator(x.OpPos, x.Op)
		}
	case *ast.BasicLit:
		if x.Kind == token.INT {
			switch x.Value {
			case "0":
				f.replace(x.Pos(), x.End(), "1")
			case "1":
				f.replace(x.Pos(), x.End(), "0")
			}
		}
	case *ast.IfStmt:
		f.negate(x.Cond)
	case *ast.ForStmt:
		if x.Cond != nil {
			f.negate(x.Cond)
		}
	case *ast.BlockStmt:
		f.statements(x.List)
	case *ast.CaseClause:
		f.statements(x.Body)
	case *ast.AssignStmt:
		f.operator(x.TokPos, x.Tok)
	case *ast.IncDecStmt:
		f.operator(x.TokPos, x.Tok)
	case *ast.BranchStmt:
		if x.Label == nil && x.Tok == token.CONTINUE {
			f.replace(x.Pos(), x.End(), "break")
		}
	case *ast.ReturnStmt:
		f.results(x)
		return !f.fails(x) // results returned with an error are unused
	}
	return true
}

// negate inverts a condition, unless the swaps of its operator do so already.
func (f *finder) negate(cond ast.Expr) {
	if b, ok := cond.(*ast.BinaryExpr); ok && b.Op != token.LAND && b.Op != token.LOR {
		return
	}
	f.replace(cond.Pos(), cond.End(), "!("+f.text(cond)+")")
}

// statements removes statements, one at a time, where the rest may still compile.
func (f *finder) statements(list []ast.Stmt) {
	for _, s := range list {
		switch x := s.(type) {
		case *ast.ExprStmt, *ast.IncDecStmt:
			if call, ok := ast.Unparen(exprOf(x)).(*ast.CallExpr); ok {
				if id, ok := call.Fun.(*ast.Ident); ok && id.Name == "panic" {
					continue
				}
			}
		case *ast.AssignStmt:
			if x.Tok == token.DEFINE {
				continue
			}
		default:
			continue
		}
		f.replace(s.Pos(), s.End(), "{}"+strings.Repeat("\n", strings.Count(f.text(s), "\n")))
	}
}

func exprOf(s ast.Stmt) ast.Expr {
	if x, ok := s.(*ast.ExprStmt); ok {
		return x.X
	}
	return &ast.BadExpr{}
}

// fails reports whether a statement returns an error along with other results.
func (f *finder) fails(x *ast.ReturnStmt) bool {
	if len(x.Results) < 2 {
		return false
	}
	switch e := x.Results[len(x.Results)-1].(type) {
	case *ast.Ident:
		return e.Name == "err"
	case *ast.CallExpr:
		return makesError(f.text(e.Fun))
	}
	return false
}

func makesError(name string) bool {
	return name == "fmt.Errorf" || name == "errors.New" || name == "units.Wrong" || name == "units.Within"
}

// results replaces an error with nil and inverts a boolean.
func (f *finder) results(x *ast.ReturnStmt) {
	if len(x.Results) == 0 {
		return
	}
	last := x.Results[len(x.Results)-1]
	switch e := last.(type) {
	case *ast.Ident:
		switch e.Name {
		case "err":
			f.replace(e.Pos(), e.End(), "nil")
		case "true":
			f.replace(e.Pos(), e.End(), "false")
		case "false":
			f.replace(e.Pos(), e.End(), "true")
		}
	case *ast.CallExpr:
		if makesError(f.text(e.Fun)) {
			f.replace(e.Pos(), e.End(), "nil")
		}
	}
}

// isText reports whether an expression is, syntactically, a string.
func isText(x ast.Expr) bool {
	switch e := x.(type) {
	case *ast.BasicLit:
		return e.Kind == token.STRING
	case *ast.BinaryExpr:
		return isText(e.X) || isText(e.Y)
	}
	return false
}
