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

// mutant is a package with one expression or statement of it changed.
type mutant struct {
	File   string // as it was given, from the module's root
	Line   int
	Was    string // the text that is replaced
	Is     string // what stands there instead
	Within string // the line of source

	path     string // absolute
	from, to int    // byte offsets of what is replaced
}

// id tells a mutant from all others as long as its file's lines above it do not move.
func (m mutant) id() string {
	return fmt.Sprintf("%s:%d:%d %s -> %s", m.File, m.Line, m.from, m.Was, m.Is)
}

// swaps are the operators that each operator becomes, by binary expression and assignment.
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

// find is all mutants of a file, in the order of its text.
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

// replace adds a mutant: what is from one place to another becomes a text.
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

// visit looks at a node. What a panic says and what only types are made of is left alone.
func (f *finder) visit(n ast.Node) bool {
	switch x := n.(type) {
	case *ast.ImportSpec, *ast.ArrayType, *ast.StructType, *ast.InterfaceType:
		return false
	case *ast.CallExpr:
		if id, ok := x.Fun.(*ast.Ident); ok && id.Name == "panic" {
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
		return !f.fails(x) // what stands beside an error means nothing
	}
	return true
}

// negate turns a condition round, unless swapping its operator has done that already.
func (f *finder) negate(cond ast.Expr) {
	if b, ok := cond.(*ast.BinaryExpr); ok && b.Op != token.LAND && b.Op != token.LOR {
		return
	}
	f.replace(cond.Pos(), cond.End(), "!("+f.text(cond)+")")
}

// statements are left out, one at a time, where the rest may compile without.
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

// fails reports whether a statement returns an error beside other results.
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

// results: an error becomes nil and a truth value the other one.
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

// isText reports whether an expression is a text by its looks.
func isText(x ast.Expr) bool {
	switch e := x.(type) {
	case *ast.BasicLit:
		return e.Kind == token.STRING
	case *ast.BinaryExpr:
		return isText(e.X) || isText(e.Y)
	}
	return false
}
