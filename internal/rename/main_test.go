package main

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"farflash/internal/patience"
)

func TestText(t *testing.T) {
	r := newRenaming("farflash", "example.org/x/ff", []string{"model", "model/fabric", "model/fabric/cc", "result"})
	for in, want := range map[string]string{
		`import "farflash/model/fabric/cc"`:                 `import "example.org/x/ff/model/fabric/cc"`,
		`(*farflash/result.Directory).Discard`:              `(*example.org/x/ff/result.Directory).Discard`,
		"farflash/model/fabric.(*Network).arrived":          "example.org/x/ff/model/fabric.(*Network).arrived",
		`Schema: "farflash/result/1"`:                       `Schema: "farflash/result/1"`,
		`"farflash/effects/2", salt "farflash/7"`:           `"farflash/effects/2", salt "farflash/7"`,
		"go build -o farflash ./cmd/farflash":               "go build -o farflash ./cmd/farflash",
		"github.com/farflash/result and farflash/resultant": "github.com/farflash/result and farflash/resultant",
		"const module = \"farflash\"\n":                     "const module = \"example.org/x/ff\"\n",
	} {
		if got := string(r.text([]byte(in))); got != want {
			t.Errorf("%s became %s, not %s", in, got, want)
		}
	}
}

func TestModulePath(t *testing.T) {
	for _, bad := range []string{"", "/a", "A b", "a//b", "../x", "a/"} {
		if _, err := rename(t.TempDir(), bad); err == nil || !strings.Contains(err.Error(), "is not a module path") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// outside is a module of somebody else's that uses plug points and a simulator.
const outside = `package main

import (
	"fmt"

	"example.org/x/ff/model/fabric/cc"
	"example.org/x/ff/numeric/units"
	"example.org/x/ff/policy/ftl"
	"example.org/x/ff/sim"
)

func main() {
	e := sim.New()
	dcqcn, err := cc.New(cc.DefaultConfig(), 1)
	if err != nil {
		panic(err)
	}
	s := cc.Sender{Line: 100 * units.Gbps, BaseRTT: 8 * units.Microsecond}
	dcqcn.Start(0, &s)
	var _ ftl.Picker
	fmt.Println(e.Now(), s.Rate)
}
`

// TestOutside renames a copy of the tree and builds a module of somebody else's on it.
func TestOutside(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	tree, user := filepath.Join(dir, "ff"), filepath.Join(dir, "user")
	copyTree(t, root, tree)
	if _, err := rename(tree, "example.org/x/ff"); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(user, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(user, "main.go"), []byte(outside), 0o644); err != nil {
		t.Fatal(err)
	}
	run(t, user, "go", "mod", "init", "example.com/user")
	run(t, user, "go", "mod", "edit", "-require=example.org/x/ff@v0.0.0", "-replace=example.org/x/ff=../ff")
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(user, "go.sum"), sums, 0o644); err != nil {
		t.Fatal(err)
	}
	if out := run(t, user, "go", "run", "-mod=mod", "."); !strings.Contains(out, "100Gbps") {
		t.Errorf("a DCQCN sender starts at its line rate; the program printed %q", out)
	}
	if patience.Long(t) {
		run(t, tree, "go", "vet", "./...")
	}
}

func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// copyTree copies what the module is built from.
func copyTree(t *testing.T, from, to string) {
	t.Helper()
	err := walk(from, func(path string) error {
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if info, err := os.Stat(path); err != nil || info.Size() > 4<<20 {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		out := filepath.Join(to, rel)
		if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
			return err
		}
		return os.WriteFile(out, b, fs.FileMode(0o644))
	})
	if err != nil {
		t.Fatal(err)
	}
}
