// Command rename gives the module another path, in place, for whoever publishes it under a home of its own:
//
//	go run ./internal/rename example.org/you/farflash
//
// It rewrites go.mod, the imports of every Go file, and each mention of a package by its full path elsewhere: the
// linter's settings, the gate, lists of functions, comments, and the names of functions in the profile that the
// compiler reads (cmd/farflash/default.pgo). Names of schemas (farflash/effects/2) and the digest salt identify
// formats, not packages, and stay, so digests and results do not change.
//
// What it leaves out: committing, and the module of the linters (tools), which imports nothing from here.
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

func main() {
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: go run ./internal/rename MODULE")
		os.Exit(2)
	}
	n, err := rename(".", flag.Arg(0))
	if err != nil {
		fmt.Fprintln(os.Stderr, "rename:", err)
		os.Exit(1)
	}
	fmt.Printf("%d files changed; check the result with go vet ./... and go test ./...\n", n)
}

// profile is what the compiler reads of hot functions, from the root of the module.
const profile = "cmd/farflash/default.pgo"

var modulePath = regexp.MustCompile(`^[a-z0-9][a-z0-9._~-]*(\.[a-z0-9._~-]+)?(/[A-Za-z0-9._~-]+)*$`)

// rename gives the module in root another path and returns how many files it changed.
func rename(root, module string) (changed int, err error) {
	if !modulePath.MatchString(module) {
		return 0, fmt.Errorf("%q is not a module path; try example.org/you/farflash", module)
	}
	mod := filepath.Join(root, "go.mod")
	text, err := os.ReadFile(mod)
	if err != nil {
		return 0, err
	}
	old := declared(text)
	if old == "" {
		return 0, fmt.Errorf("%s declares no module", mod)
	}
	if old == module {
		return 0, nil
	}
	packages, err := folders(root)
	if err != nil {
		return 0, err
	}
	to := newRenaming(old, module, packages)
	err = walk(root, func(path string) error {
		before, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var after []byte
		switch rel, _ := filepath.Rel(root, path); {
		case filepath.ToSlash(rel) == profile:
			if after, err = to.profile(before); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
		case !utf8.Valid(before):
			return nil
		default:
			after = to.text(before)
		}
		if bytes.Equal(before, after) {
			return nil
		}
		changed++
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		return os.WriteFile(path, after, info.Mode().Perm())
	})
	if err != nil {
		return changed, err
	}
	out, err := exec.Command("go", "mod", "edit", "-module", module, mod).CombinedOutput()
	if err != nil {
		return changed, fmt.Errorf("go mod edit: %w: %s", err, out)
	}
	return changed + 1, nil
}

// declared is the path that a go.mod declares, "" if none.
func declared(mod []byte) string {
	for line := range strings.Lines(string(mod)) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "module "); ok {
			return strings.TrimSpace(path)
		}
	}
	return ""
}

// walk visits the files of the module in root that a person wrote or that the compiler reads.
func walk(root string, visit func(path string) error) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (d.Name() == ".git" || d.Name() == "runs"):
			return filepath.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		return visit(path)
	})
}

// folders lists the folders with Go files, from the root with slashes.
func folders(root string) ([]string, error) {
	var out []string
	err := walk(root, func(path string) error {
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		rel, err := filepath.Rel(root, filepath.Dir(path))
		if rel = filepath.ToSlash(rel); err == nil && rel != "." && !slices.Contains(out, rel) {
			out = append(out, rel)
		}
		return err
	})
	return out, err
}

// renaming replaces the full paths of a module's packages.
type renaming struct {
	mention  *regexp.Regexp // submatches: what stands before, and the package's folder
	constant *regexp.Regexp // const module = "..." of internal/arch
	module   string
}

func newRenaming(old, module string, packages []string) *renaming {
	// The longest first, since alternatives are tried in order.
	slices.SortFunc(packages, func(a, b string) int { return len(b) - len(a) })
	quoted := make([]string, len(packages))
	for i, p := range packages {
		quoted[i] = regexp.QuoteMeta(p)
	}
	return &renaming{
		mention: regexp.MustCompile(`(^|[^\w./-])` + regexp.QuoteMeta(old) + `/(` + strings.Join(quoted, "|") +
			`)(/\d|[\w-])?`),
		constant: regexp.MustCompile(`(?m)^(const module = ")` + regexp.QuoteMeta(old) + `(")$`),
		module:   module,
	}
}

// text returns a file's text with all mentions replaced.
func (r *renaming) text(b []byte) []byte {
	b = r.mention.ReplaceAllFunc(b, func(found []byte) []byte {
		m := r.mention.FindSubmatch(found)
		if len(m[3]) > 0 { // a longer name, or a format's: farflash/result/1
			return found
		}
		return slices.Concat(m[1], []byte(r.module+"/"), m[2])
	})
	return r.constant.ReplaceAll(b, []byte("${1}"+r.module+"${2}"))
}

// The profile is a protocol buffer (github.com/google/pprof/proto/profile.proto), compressed by gzip. All names are in
// its field 6, the string table; every other field is copied.
const stringTable = 6

var errProfile = errors.New("not a pprof profile")

// profile returns a profile with the functions' names replaced.
func (r *renaming) profile(file []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(file))
	if err != nil {
		return nil, err
	}
	in, err := io.ReadAll(z)
	if err != nil {
		return nil, err
	}
	var out []byte
	for len(in) > 0 {
		tag, n := binary.Uvarint(in)
		if n <= 0 {
			return nil, errProfile
		}
		switch rest := in[n:]; tag & 7 {
		case 0: // a number
			_, k := binary.Uvarint(rest)
			if k <= 0 {
				return nil, errProfile
			}
			out = append(out, in[:n+k]...)
			in = rest[k:]
		case 2: // bytes
			size, k := binary.Uvarint(rest)
			if k <= 0 || size > uint64(len(rest)-k) {
				return nil, errProfile
			}
			value := rest[k : k+int(size)]
			in = rest[k+int(size):]
			if tag>>3 == stringTable {
				value = r.text(value)
			}
			out = binary.AppendUvarint(binary.AppendUvarint(out, tag), uint64(len(value)))
			out = append(out, value...)
		default:
			return nil, errProfile
		}
	}
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(out); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
