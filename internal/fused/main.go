// Command fused finds the multiplications that the compiler fuses with a following addition, and fails where one could
// affect a result: a fused operation rounds once, not twice, so the same scenario would give different bytes on another
// processor. The remedy is to round the product first, "float64(a*b) + c".
//
//	go run ./internal/fused              GOAMD64=v3 and arm64
//	go run ./internal/fused -on amd64    one of them
//	go run ./internal/fused -o bin       and keep the programs that were checked, bin/farflash-amd64 and so on
//
// It has the compiler print the assembly of every package that allowed.txt does not exempt as a whole (go build
// -gcflags=-S, with the program's own profile, because inlining decides what can be fused) and searches it for fused
// instructions. The toolchain's disassembler does not decode those of amd64, so the binary itself cannot be searched.
// It checks two architectures because they fuse differently: arm64 also fuses subtractions.
//
// A line of allowed.txt is "package" or "function" and a name, then a colon and the reason. The command leaves out
// products that are not fused today but may be by a later compiler, and the assembly of the standard library.
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

// processors are the targets of compilation: an architecture, at a level that has fused instructions.
var processors = map[string][]string{
	"amd64": {"GOARCH=amd64", "GOAMD64=v3"},
	"arm64": {"GOARCH=arm64"},
}

func main() {
	on := flag.String("on", "amd64,arm64", "the `processors` to compile for")
	keep := flag.String("o", "", "a `folder` to keep the inspected programs in")
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

// check compiles all packages and reports whether no fused instruction can affect a result.
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
			fmt.Fprintf(w, "allowed.txt:%d: %s has no fused instructions, or does not exist; remove the line\n",
				r.line, r.what)
		}
	}
	if sound {
		fmt.Fprintf(w, "%d packages on %s: no fused instruction affects a result; %d fused instructions are allowed\n",
			len(packages), strings.Join(on, " and "), granted)
	} else {
		fmt.Fprintln(w, "round the product before the addition, as in float64(a*b) + c; or explain in internal/fused/allowed.txt why it cannot affect a result")
	}
	return sound, nil
}

// list returns the packages to check: the module's, and those that they import from other modules.
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

// build returns a command that builds for a processor with the program's own profile.
func build(env []string, root string, arguments ...string) *exec.Cmd {
	profile := filepath.Join(root, "cmd", "farflash", "default.pgo")
	c := exec.Command("go", append([]string{"build", "-trimpath", "-pgo=" + profile}, arguments...)...)
	c.Env = append(append(os.Environ(), "CGO_ENABLED=0"), env...)
	return c
}

// link builds the program from packages that were compiled before, with the same flags, so that they are not compiled
// again.
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

// compile compiles packages and parses the compiler's output.
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
			"%v: the assembly has only %d functions of %d packages; unexpected compiler output",
			env, functions, len(packages))
	}
	return found, nil
}

// finding is a fused instruction.
type finding struct {
	pkg, function, at, instruction string
}

// fusedNames are the prefixes of the instructions that multiply and add with one rounding, on amd64 and arm64.
var fusedNames = []string{"VFMADD", "VFMSUB", "VFNMADD", "VFNMSUB", "FMADD", "FMSUB", "FNMADD", "FNMSUB"}

// read parses the compiler's assembly. It returns each place with a fused instruction once, the number of functions,
// and the last lines that are not assembly, which are errors.
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
