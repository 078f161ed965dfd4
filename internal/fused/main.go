// Command fused finds the multiplications that the compiler fuses with the addition after them, and fails where one
// could reach a result: a fused operation rounds once, not twice, so that the same scenario would give other bytes on
// another processor. What helps is to round the product first, "float64(a*b) + c".
//
//	go run ./internal/fused              GOAMD64=v3 and arm64
//	go run ./internal/fused -on amd64    one of them
//	go run ./internal/fused -o bin       and keep the programs that were looked at, bin/farflash-amd64 and so on
//
// It has the compiler write the assembly of every package that allowed.txt does not free as a whole (go build
// -gcflags=-S, with the program's own profile, for what is inlined decides what can be fused) and reads it for fused
// instructions. The disassembler of the toolchain does not know those of amd64, so the binary itself cannot be asked.
// Two architectures are looked at because they do not fuse the same: arm64 subtracts too.
//
// allowed.txt has a path, a function or "path function" a line, then a colon and the reason. What it leaves out:
// products that are fused nowhere today and may be tomorrow, and the assembly of the standard library.
package main

import (
	"bufio"
	_ "embed"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed allowed.txt
var allowed string

// processors are what is compiled for: an architecture, and the level of it that has fused instructions.
var processors = map[string][]string{
	"amd64": {"GOARCH=amd64", "GOAMD64=v3"},
	"arm64": {"GOARCH=arm64"},
}

func main() {
	on := flag.String("on", "amd64,arm64", "the `processors` to compile for")
	keep := flag.String("o", "", "the `folder` in which to keep the programs that were looked at")
	flag.Parse()
	sound, err := check(os.Stdout, strings.Split(*on, ","), *keep)
	if err != nil {
		fmt.Fprintln(os.Stderr, "fused:", err)
		os.Exit(2)
	}
	if !sound {
		os.Exit(1)
	}
}

// check looks at all packages and reports whether nothing fused can reach a result.
func check(w io.Writer, on []string, keep string) (bool, error) {
	rules, err := parse(allowed)
	if err != nil {
		return false, err
	}
	packages, root, err := list(rules)
	if err != nil {
		return false, err
	}
	sound, granted := true, 0
	for _, name := range on {
		env, ok := processors[name]
		if !ok {
			return false, fmt.Errorf("%q is not a processor; use amd64 or arm64", name)
		}
		found, err := compile(env, packages, root)
		if err != nil {
			return false, err
		}
		if keep != "" {
			if err := link(env, packages, root, filepath.Join(keep, "farflash-"+name)); err != nil {
				return false, err
			}
		}
		for _, f := range found {
			if rules.allow(f) {
				granted++
				continue
			}
			sound = false
			fmt.Fprintf(w, "%s: %s\t%s\t%s\n", name, f.at, f.function, f.instruction)
		}
	}
	for _, r := range rules {
		if !r.used {
			sound = false
			fmt.Fprintf(w, "allowed.txt:%d: nothing of %s is fused, or there is no such package; leave it out\n",
				r.line, r.what)
		}
	}
	if sound {
		fmt.Fprintf(w, "%d packages on %s: nothing fused reaches a result; %d fused instructions are allowed\n",
			len(packages), strings.Join(on, " and "), granted)
	} else {
		fmt.Fprintln(w, "round the product before adding to it, float64(a*b) + c; or say in "+
			"internal/fused/allowed.txt why it reaches no result")
	}
	return sound, nil
}

// list is the packages to look at: the program's, those of the library beside them, and what these import from other
// modules.
func list(rules rules) (packages []string, root string, err error) {
	out, err := exec.Command("go", "list", "-deps", "-f",
		"{{if not .Standard}}{{.ImportPath}} {{len .GoFiles}}{{end}}", "./...").Output()
	if err != nil {
		return nil, "", fmt.Errorf("go list: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		path, files, _ := strings.Cut(strings.TrimSpace(line), " ")
		if path != "" && files != "0" && !rules.free(path) {
			packages = append(packages, path)
		}
	}
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return nil, "", fmt.Errorf("go list -m: %w", err)
	}
	return packages, strings.TrimSpace(string(dir)), nil
}

// build is a command that builds for a processor with the program's own profile.
func build(env []string, root string, arguments ...string) *exec.Cmd {
	profile := filepath.Join(root, "cmd", "farflash", "default.pgo")
	c := exec.Command("go", append([]string{"build", "-trimpath", "-pgo=" + profile}, arguments...)...)
	c.Env = append(append(os.Environ(), "CGO_ENABLED=0"), env...)
	return c
}

// link makes the program of packages that were compiled: with the flags that they had, so that nothing is compiled
// twice.
func link(env, packages []string, root, file string) error {
	var flags []string
	for _, path := range packages {
		flags = append(flags, "-gcflags="+path+"=-S")
	}
	if out, err := build(env, root, append(flags, "-o", file, "farflash/cmd/farflash")...).CombinedOutput(); err !=
		nil {
		return fmt.Errorf("%v: %w\n%s", env, err, out[max(0, len(out)-2000):])
	}
	return nil
}

// compile has packages compiled and reads what the compiler writes.
func compile(env, packages []string, root string) ([]finding, error) {
	c := build(env, root, append([]string{"-gcflags=-S"}, packages...)...)
	assembly, err := c.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	found, functions, tail, err := read(assembly)
	if failed := c.Wait(); failed != nil {
		return nil, fmt.Errorf("%v: %w\n%s", env, failed, strings.Join(tail, "\n"))
	}
	if err != nil {
		return nil, err
	}
	if functions < len(packages) {
		return nil, fmt.Errorf(
			"%v: the assembly has only %d functions of %d packages; the compiler's output is not what is expected",
			env, functions, len(packages))
	}
	return found, nil
}

// finding is a fused instruction.
type finding struct {
	pkg, function, at, instruction string
}

// fusedNames begin the names of the instructions that multiply and add with one rounding, on amd64 and arm64.
var fusedNames = []string{"VFMADD", "VFMSUB", "VFNMADD", "VFNMSUB", "FMADD", "FMSUB", "FNMADD", "FNMSUB"}

// read takes the compiler's assembly, counts functions and returns each place with something fused once, and the last
// lines of what is no assembly: errors.
//
//	# farflash/model/fabric/cc
//	farflash/model/fabric/cc.expm1 STEXT size=221 ...
//		0x0086 00134 (farflash/model/fabric/cc/fluid.go:172)	VFMADD231SD	X2, X1, X0
func read(r io.Reader) (found []finding, functions int, tail []string, err error) {
	seen := map[finding]bool{}
	pkg, function := "", ""
	s := bufio.NewReaderSize(r, 1<<20)
	for {
		line, err := s.ReadString('\n')
		if line == "" && err != nil {
			if err == io.EOF {
				err = nil
			}
			return found, functions, tail, err
		}
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "\t"):
			f := strings.Fields(line)
			if len(f) < 4 || !slices.ContainsFunc(fusedNames,
				func(n string) bool { return strings.HasPrefix(f[3], n) }) {
				continue
			}
			x := finding{pkg, function, strings.Trim(f[2], "()"), f[3]}
			if !seen[x] {
				seen[x] = true
				found = append(found, x)
			}
		case strings.HasPrefix(line, "# "):
			pkg, _, _ = strings.Cut(line[2:], " ")
		case strings.Contains(line, " STEXT "):
			function, _, _ = strings.Cut(line, " ")
			functions++
		case !strings.Contains(line, " S") && !strings.HasPrefix(line, "go:"):
			tail = append(tail[max(0, len(tail)-20):], line)
		}
	}
}
