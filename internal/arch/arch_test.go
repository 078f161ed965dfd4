package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

// module is the first element of every import path within the tree.
const module = "farflash"

// file is one parsed Go source.
type file struct {
	path    string // relative to the root, with slashes
	pkg     string // the folder, relative to the root
	test    bool
	imports []string
	lines   int
	syntax  *ast.File
	pos     *token.FileSet
}

// tree parses every Go source below the root, once for all tests. Callers must not change the result.
func tree(t *testing.T) []file {
	t.Helper()
	out, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	if len(out) == 0 {
		t.Fatal("no Go sources found; the test does not run inside the repository")
	}
	return out
}

// walk calls f with the path below the root and the contents of each file of the tree with this extension.
func walk(extension string, f func(path string, text []byte) error) error {
	root := filepath.Join("..", "..")
	return filepath.WalkDir(root, func(p string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if p != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "node_modules" ||
				name == "runs" || name == "tools") {
				return filepath.SkipDir
			}
			return nil
		}
		if filepath.Ext(name) != extension {
			return nil
		}
		text, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		return f(filepath.ToSlash(rel), text)
	})
}

var parsed = sync.OnceValues(func() ([]file, error) {
	var out []file
	err := walk(".go", func(rel string, src []byte) error {
		fset := token.NewFileSet()
		syntax, err := parser.ParseFile(fset, filepath.Join("..", "..", rel), src, parser.ParseComments)
		if err != nil {
			return err
		}
		f := file{path: rel, pkg: path.Dir(rel), test: strings.HasSuffix(rel, "_test.go"),
			lines: strings.Count(string(src), "\n"), syntax: syntax, pos: fset}
		for _, i := range syntax.Imports {
			v, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			f.imports = append(f.imports, v)
		}
		out = append(out, f)
		return nil
	})
	return out, err
})

// within reports whether a folder is one of the given ones or below one.
func within(folder string, tops ...string) bool {
	for _, top := range tops {
		if folder == top || strings.HasPrefix(folder, top+"/") {
			return true
		}
	}
	return false
}

// local converts an import path to a folder of the tree.
func local(imported string) (string, bool) {
	return strings.CutPrefix(imported, module+"/")
}

var (
	// models must be plain state machines: no clock, no I/O, no goroutine.
	models = []string{"model/ssd", "model/fabric", "model/nvmf", "model/cosim", "model/cluster", "policy/ftl",
		"policy/ratecontrol"}
	// foundations are below the models and import only each other.
	foundations = []string{"numeric/units", "numeric/rng", "sim", "numeric/stats", "block"}
	// machines are the parts of the real stack that must be plain state machines too, and their wrappers that run on
	// the caller's goroutine.
	machines = []string{"flash/ctl", "flash/client/resume"}
	// protocols are those of the real stack, as state machines.
	protocols = []string{"flash/wire", "flash/verbs", "flash/nbd", "flash/reply", "flash/nvme", "flash/nvme/chap",
		"flash/nvme/host", "flash/nvme/wire", "flash/kv/resp"}
)

// TestImports verifies which packages import which.
func TestImports(t *testing.T) {
	rules := []struct {
		who  []string
		not  []string // folders of the tree that who must not import
		why  string
		test bool // the rule applies to tests as well
	}{
		{[]string{"flash"}, []string{"model/ssd", "model/fabric", "model/nvmf", "model/cosim", "model/cluster",
			"planner/tco"}, "the real stack uses no model", false},
		{models, []string{"flash"}, "models do not know the real stack", false},
		{[]string{"model/ssd"}, []string{"model/fabric", "model/nvmf", "model/cosim", "model/cluster"},
			"ssd and fabric are strangers, and what uses drives is above them", false},
		{[]string{"model/fabric"}, []string{"model/ssd", "model/nvmf", "model/cosim", "model/cluster"},
			"ssd and fabric are strangers", false},
		{[]string{"model/nvmf"}, []string{"model/ssd", "model/cosim", "model/cluster"},
			"nvmf sees block.Device, not ssd", false},
		{[]string{"model/cluster", "planner/tco"}, []string{"model/ssd", "model/fabric", "model/nvmf", "model/cosim"},
			"cluster and tco declare the interfaces they need", false},
		{[]string{"policy/ftl", "policy/ratecontrol", "policy/forest"},
			[]string{"model/ssd", "model/fabric", "model/nvmf", "model/cosim", "model/cluster", "planner/tco",
				"flash", "workload", "study"}, "shared policies are below everything that drives them", false},
		{[]string{"policy/ratecontrol"}, []string{"study"}, "training runs live in study", false},
		{foundations, []string{"policy/ftl", "workload", "policy/ratecontrol", "policy/forest", "model/ssd",
			"model/fabric", "model/nvmf", "model/cosim", "model/cluster", "planner/tco", "scenario/peer", "flash"},
			"foundations are at the bottom", false},
		{[]string{"scenario/peer"},
			[]string{"model/ssd", "model/fabric", "model/nvmf", "model/cosim", "model/cluster", "planner/tco",
				"scenario", "workload"}, "peer only reads what others write", false},
		{append(slices.Clone(models),
			append(foundations, "workload", "scenario/peer", "planner/tco", "policy/forest", "flash")...),
			[]string{"scenario", "result", "study", "report", "web", "cli", "internal/term", "cmd"},
			"what people see is above what is simulated", false},
		{[]string{"result"}, []string{"scenario", "study", "report", "web", "cli", "internal/term"},
			"result is below what makes and shows it", false},
		{[]string{"scenario"}, []string{"study", "report", "web", "cli"},
			"the language is below what is written in it", false},
		{[]string{"study", "report", "web"}, []string{"cli", "cmd"}, "the command line is on top", false},
	}
	for _, f := range tree(t) {
		for _, r := range rules {
			if !within(f.pkg, r.who...) || f.test && !r.test {
				continue
			}
			for _, i := range f.imports {
				if to, ok := local(i); ok && within(to, r.not...) && !within(to, ownTop(f.pkg, r.who)) {
					t.Errorf("%s imports %s: %s", f.path, i, r.why)
				}
			}
		}
	}
}

// layers lists the folders from the top down, as ARCHITECTURE.md does: a folder can import only those below it. The
// folders on one line must not import each other; within one folder the compiler rejects cycles.
var layers = [][]string{
	{"cmd"}, {"cli"}, {"web"}, {"report"}, {"study/reproduce"}, {"planner"}, {"study"}, {"experiment/trial"},
	{"experiment"}, {"scenario/convert"}, {"scenario"}, {"scenario/shape"}, {"result"},
	{"model/cosim"}, {"model/nvmf"}, {"model/ssd", "model/fabric", "model/cluster", "planner/tco", "flash"},
	{"policy/ratecontrol", "policy/ftl", "scenario/peer"}, {"policy/forest"}, {"workload"}, {"block"},
	{"numeric/stats"}, {"sim"}, {"numeric/rng"}, {"numeric/units"},
	{"internal/term", "internal/spelling", "internal/heap", "internal/slab", "internal/fifo", "internal/window",
		"internal/divide", "internal/cells", "internal/usage", "internal/notify"},
}

// layerOf returns a folder's layer and its entry there, the longest that contains it, or -1 for a folder outside the
// program.
func layerOf(folder string) (layer int, entry string) {
	layer = -1
	for i, l := range layers {
		for _, top := range l {
			if within(folder, top) && len(top) > len(entry) {
				layer, entry = i, top
			}
		}
	}
	return layer, entry
}

// TestLayers verifies that every import points down in the layers.
func TestLayers(t *testing.T) {
	for _, f := range tree(t) {
		if f.test || strings.HasSuffix(f.pkg, "test") {
			continue
		}
		from, own := layerOf(f.pkg)
		for _, i := range f.imports {
			to, ok := local(i)
			if !ok {
				continue
			}
			switch down, top := layerOf(to); {
			case from < 0 || top == own:
			case down < 0:
				t.Errorf("%s imports %s, which has no layer; add it to layers and to ARCHITECTURE", f.path, i)
			case down <= from:
				t.Errorf("%s imports %s, which is not below it", f.path, i)
			}
		}
	}
}

// maxMethods bounds interfaces: a larger one combines several.
const maxMethods = 4

// TestInterfaces verifies that interfaces are small enough to be satisfied by more than one type.
func TestInterfaces(t *testing.T) {
	for _, f := range tree(t) {
		if f.test {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			ts, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			x, ok := ts.Type.(*ast.InterfaceType)
			if !ok {
				return true
			}
			methods := 0
			for _, m := range x.Methods.List {
				methods += len(m.Names)
			}
			if methods > maxMethods {
				t.Errorf("%v: %s has %d methods; an interface has at most %d", f.pos.Position(ts.Pos()), ts.Name.Name,
					methods, maxMethods)
			}
			return true
		})
	}
}

// maxPackage bounds packages, in lines without tests. large lists the exceptions, whose reasons are in ARCHITECTURE.md.
const maxPackage = 5500

var large = []string{"cli", "report", "model/ssd", "flash/ctl"}

// TestPackages verifies that packages are small enough for one subject.
func TestPackages(t *testing.T) {
	lines := map[string]int{}
	for _, f := range tree(t) {
		if !f.test {
			lines[f.pkg] += f.lines
		}
	}
	for pkg, n := range lines {
		if n > maxPackage && !slices.Contains(large, pkg) {
			t.Errorf("%s has %d lines; divide it, or give a reason in ARCHITECTURE why it has more than %d", pkg, n,
				maxPackage)
		}
	}
}

// ownTop returns the entry of who that contains a folder.
func ownTop(folder string, who []string) string {
	for _, w := range who {
		if within(folder, w) {
			return w
		}
	}
	return folder
}

// TestDoors verifies that each library is imported only by the packages that wrap it.
func TestDoors(t *testing.T) {
	doors := []struct {
		imported string // this path and those below it
		where    []string
	}{
		{"go.yaml.in/yaml", []string{"scenario/shape"}},
		{"gopkg.in/yaml", nil},
		{"github.com/parquet-go", []string{"result/columnar"}},
		{"github.com/spf13", []string{"cli", "internal/release"}}, // the latter for man pages
		{"github.com/nats-io", []string{"study/natsexec"}},
		{"github.com/prometheus", []string{"flash/server"}}, // hot paths count with flash/meter
		{"go.opentelemetry.io", []string{"flash/otlp"}},
		{"github.com/hanwen/go-fuse", []string{"flash/mount"}},
		{"encoding/xml", []string{"scenario/peer"}},
	}
	for _, f := range tree(t) {
		for _, d := range doors {
			for _, i := range f.imports {
				if (i == d.imported || strings.HasPrefix(i, d.imported+"/")) && !within(f.pkg, d.where...) {
					t.Errorf("%s imports %s, which only %s may", f.path, i, strings.Join(d.where, ", "))
				}
			}
		}
	}
}

// TestMachines verifies that the state machines of the real stack do no I/O, start no goroutine and do not read the
// clock.
func TestMachines(t *testing.T) {
	for _, f := range tree(t) {
		if f.test || !within(f.pkg, machines...) {
			continue
		}
		for _, i := range f.imports {
			if within(i, "os", "net", "log", "math/rand", "io/fs", "time", "unsafe") {
				t.Errorf("%s imports %s, which state machines do not", f.path, i)
			}
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if x, ok := n.(*ast.GoStmt); ok {
				t.Errorf("%v: a state machine starts a goroutine", f.pos.Position(x.Pos()))
			}
			return true
		})
	}
}

// TestModels verifies that models are plain state machines.
func TestModels(t *testing.T) {
	banned := []string{"os", "net", "log", "encoding", "math/rand", "io/fs", "syscall", "unsafe"}
	for _, f := range tree(t) {
		if f.test || !within(f.pkg, append(slices.Clone(models), "sim", "numeric/rng", "block")...) {
			continue
		}
		for _, i := range f.imports {
			if within(i, banned...) && i != "math/rand/v2" {
				t.Errorf("%s imports %s, which models do not", f.path, i)
			}
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.GoStmt:
				t.Errorf("%v: a model starts a goroutine", f.pos.Position(x.Pos()))
			case *ast.SelectorExpr:
				if id, ok := x.X.(*ast.Ident); ok && id.Name == "time" &&
					slices.Contains([]string{"Now", "Since", "Sleep", "After", "NewTimer", "NewTicker", "Tick"},
						x.Sel.Name) && slices.Contains(f.imports, "time") {
					t.Errorf("%v: a model asks for time.%s", f.pos.Position(x.Pos()), x.Sel.Name)
				}
			case *ast.FuncDecl:
				if x.Recv == nil && x.Name.Name == "init" {
					t.Errorf("%v: a model has an init function", f.pos.Position(x.Pos()))
				}
			}
			return true
		})
	}
}

// TestProtocol verifies that the protocols of the real stack are plain state machines: I/O, goroutines and clocks
// belong to the packages around them.
func TestProtocol(t *testing.T) {
	banned := []string{"os", "net", "log", "io/fs", "syscall", "unsafe", "math/rand", "crypto/rand", "time"}
	for _, f := range tree(t) {
		if f.test || !slices.Contains(protocols, f.pkg) {
			continue
		}
		for _, i := range f.imports {
			if within(i, banned...) {
				t.Errorf("%s imports %s; flash/driver, flash/verbs/stream and the servers do the I/O", f.path, i)
			}
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if g, ok := n.(*ast.GoStmt); ok {
				t.Errorf("%v: a protocol's state machine starts a goroutine", f.pos.Position(g.Pos()))
			}
			return true
		})
	}
}

// TestDocumented verifies that every package has one package comment, of a useful length.
func TestDocumented(t *testing.T) {
	type doc struct {
		comments int
		text     string
	}
	docs := map[string]*doc{}
	for _, f := range tree(t) {
		if f.test {
			continue
		}
		d := docs[f.pkg]
		if d == nil {
			d = new(doc)
			docs[f.pkg] = d
		}
		if f.syntax.Doc != nil {
			d.comments++
			d.text = f.syntax.Doc.Text()
		}
	}
	for pkg, d := range docs {
		switch {
		case d.comments == 0:
			t.Errorf("%s has no package comment", pkg)
		case d.comments > 1:
			t.Errorf("%s has %d package comments; one file has it", pkg, d.comments)
		case len(strings.Fields(d.text)) < 15 && !within(pkg, "cmd"):
			t.Errorf("%s: the package comment does not say what it is for, its main types and what it leaves out", pkg)
		}
	}
}

// mostColumns bounds a line of code, with a tab counted as four columns. Quoted strings do not count, because a search
// does not find a message that is split in two.
const mostColumns = 120

var quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// TestColumns verifies that lines are short enough for two files side by side on a screen.
func TestColumns(t *testing.T) {
	for _, f := range tree(t) {
		src, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(f.path)))
		if err != nil {
			t.Fatal(err)
		}
		raw := rawLines(f)
		n := 0
		for line := range strings.Lines(string(src)) {
			n++
			line = strings.TrimRight(line, "\n")
			if len(line) <= mostColumns/4 || raw[n] || strings.HasPrefix(line, "//go:") {
				continue
			}
			line = strings.ReplaceAll(quoted.ReplaceAllString(line, `""`), "\t", "    ")
			if columns := utf8.RuneCountInString(line); columns > mostColumns {
				t.Errorf("%s:%d has %d columns; break it, or its comment, within %d", f.path, n, columns, mostColumns)
			}
		}
	}
}

// rawLines returns the lines of a file that are part of a raw string.
func rawLines(f file) map[int]bool {
	out := map[int]bool{}
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		if x, ok := n.(*ast.BasicLit); ok && x.Kind == token.STRING && x.Value[0] == '`' {
			for l := f.pos.Position(x.Pos()).Line; l <= f.pos.Position(x.End()).Line; l++ {
				out[l] = true
			}
		}
		return true
	})
	return out
}

// forbidden lists words that do not describe the named thing.
var forbidden = []string{"manager", "util", "utils", "common", "base", "impl", "data", "info", "helper", "helpers",
	"v2"}

var wordBreak = regexp.MustCompile(`[A-Z]+[a-z0-9]*|[a-z0-9]+`)

// TestNames verifies that the names of packages, files and exported types contain no forbidden word.
func TestNames(t *testing.T) {
	check := func(where, name string) {
		for _, w := range wordBreak.FindAllString(name, -1) {
			if slices.Contains(forbidden, strings.ToLower(w)) {
				t.Errorf("%s: the name %s has the word %q, which says nothing", where, name, w)
			}
		}
	}
	for _, f := range tree(t) {
		if f.test {
			continue
		}
		check(f.path, f.syntax.Name.Name)
		check(f.path, strings.TrimSuffix(path.Base(f.path), ".go"))
		for _, d := range f.syntax.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, s := range g.Specs {
				if ts, ok := s.(*ast.TypeSpec); ok && ts.Name.IsExported() {
					check(f.path, ts.Name.Name)
				}
			}
		}
	}
}

// maxLines bounds files, in lines.
const maxLines = 900

// TestFiles verifies the length of every file, and that no comment marks unfinished work.
func TestFiles(t *testing.T) {
	for _, f := range tree(t) {
		if f.lines > maxLines {
			t.Errorf("%s has %d lines; split it below %d", f.path, f.lines, maxLines)
		}
		for _, c := range f.syntax.Comments {
			if text := c.Text(); strings.Contains(text, "TODO") || strings.Contains(text, "FIXME") ||
				strings.Contains(text, "XXX") {
				t.Errorf("%v: unfinished work is noted in a comment", f.pos.Position(c.Pos()))
			}
		}
	}
}

// TestGenerators verifies that random numbers come from package rng.
func TestGenerators(t *testing.T) {
	for _, f := range tree(t) {
		if f.test || within(f.pkg, "numeric/rng", "flash") {
			continue
		}
		for _, i := range f.imports {
			if i == "math/rand" || i == "math/rand/v2" {
				t.Errorf("%s imports %s; random numbers come from rng.Stream, by name and seed", f.path, i)
			}
		}
	}
}
