package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"farflash/internal/patience"
)

// TestPapers: the program is accompanied by a man page for each verb, and by completions.
func TestPapers(t *testing.T) {
	list, err := papers(filepath.Join("..", ".."), time.Unix(1e9, 0).UTC())
	if err != nil {
		t.Fatal(err)
	}
	text := map[string]string{}
	for _, f := range list {
		text[f.name] = string(f.text)
	}
	for name, want := range map[string]string{
		"man/farflash-run.1":        `.TH "FARFLASH" "1" "Sep 2001"`,
		"man/farflash-trace-info.1": `farflash trace info hm_0.csv`,
		"completions/farflash.bash": "complete",
		"completions/_farflash":     "#compdef farflash",
		"LICENSE":                   "Apache License",
	} {
		if !strings.Contains(text[name], want) {
			t.Errorf("%s has no %q", name, want)
		}
	}
}

// TestRelease builds a release for this machine, and uses it as a user does after downloading it.
func TestRelease(t *testing.T) {
	patience.SkipUnlessLong(t)
	root := filepath.Join("..", "..")
	if _, err := exec.Command("git", "-C", root, "rev-parse", "HEAD").Output(); err != nil {
		t.Skip("git knows of no repository here")
	}
	if runtime.GOOS == "windows" {
		t.Skip("the archive is unpacked by tar")
	}
	out := filepath.Join(t.TempDir(), "dist")
	if err := run(root, out, []string{runtime.GOOS + "/" + runtime.GOARCH}); err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(out, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	var archive, sbom string
	for line := range strings.Lines(string(sums)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		text, err := os.ReadFile(filepath.Join(out, name))
		if got := fmt.Sprintf("%x", sha256.Sum256(text)); err != nil || got != sum {
			t.Errorf("%s has %s, not %s: %v", name, got, sum, err)
		}
		switch {
		case strings.HasSuffix(name, ".tar.gz"):
			archive = name
		case strings.HasSuffix(name, ".cdx.json"):
			sbom = name
		}
	}
	names := unpack(t, filepath.Join(out, archive), out)
	folder := strings.TrimSuffix(archive, ".tar.gz") + "/"
	for _, want := range []string{"farflash", "LICENSE", "NOTICE", "README.md", "CITATION.cff", "CHANGELOG.md",
		"completions/_farflash", "completions/farflash.bash", "completions/farflash.fish",
		"completions/farflash.ps1", "man/farflash.1", "man/farflash-run.1", "man/farflash-trace-info.1"} {
		if !slices.Contains(names, folder+want) {
			t.Errorf("%s has no %s; it has %v", archive, want, names)
		}
	}
	said, err := exec.Command(filepath.Join(out, folder, "farflash"), "version").CombinedOutput()
	version, _, _ := strings.Cut(strings.TrimPrefix(folder, "farflash_"), "_")
	if err != nil || !strings.HasPrefix(string(said), "farflash v"+version+" ") {
		t.Errorf("the program says %q: %v; want v%s", said, err, version)
	}
	checkSBOM(t, filepath.Join(out, sbom), "v"+version)
	if err := run(root, out, nil); !errors.Is(err, os.ErrExist) {
		t.Errorf("a folder that is there: %v", err)
	}
}

// unpack extracts an archive's files to a folder and returns their names.
func unpack(t *testing.T, archive, to string) (names []string) {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(to, filepath.FromSlash(h.Name))
		text, err := io.ReadAll(r)
		if err == nil {
			err = errors.Join(os.MkdirAll(filepath.Dir(name), 0o777), os.WriteFile(name, text, h.FileInfo().Mode()))
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
	}
}

func checkSBOM(t *testing.T, name, version string) {
	t.Helper()
	text, err := os.ReadFile(name)
	var x bom
	if err == nil {
		err = json.Unmarshal(text, &x)
	}
	if err != nil {
		t.Fatal(err)
	}
	if x.Format != "CycloneDX" || x.Metadata.Component.Version != version {
		t.Errorf("the list is %s of version %s", x.Format, x.Metadata.Component.Version)
	}
	var parts []string
	for _, c := range x.Components {
		parts = append(parts, c.Name)
		if c.Name != "stdlib" && len(c.Hashes) == 0 {
			t.Errorf("%s has no sum", c.Name)
		}
	}
	// The components of the program, without those of only the tests and this command.
	if !slices.Contains(parts, "github.com/spf13/cobra") || !slices.Contains(parts, "stdlib") ||
		slices.Contains(parts, "pgregory.net/rapid") || slices.Contains(parts, "github.com/cpuguy83/go-md2man/v2") {
		t.Errorf("the parts are %v", parts)
	}
}

// TestSameBytes: archives of the same files are equal, whenever they are written.
func TestSameBytes(t *testing.T) {
	files := []file{{"farflash", 0o755, bytes.Repeat([]byte("program "), 1000)},
		{"man/farflash.1", 0o644, []byte(".TH")}}
	at := time.Unix(1e9, 0).UTC()
	for _, zipped := range []bool{false, true} {
		var made [2][]byte
		for i := range made {
			name := filepath.Join(t.TempDir(), "x")
			if err := pack(name, zipped, "f", files, at); err != nil {
				t.Fatal(err)
			}
			list, _ := filepath.Glob(name + ".*")
			text, err := os.ReadFile(list[0])
			if err != nil {
				t.Fatal(err)
			}
			made[i] = text
		}
		if !bytes.Equal(made[0], made[1]) {
			t.Errorf("zipped %v: two archives differ", zipped)
		}
		if !zipped {
			continue
		}
		z, err := zip.NewReader(bytes.NewReader(made[0]), int64(len(made[0])))
		if err != nil || len(z.File) != 2 || z.File[0].Name != "f/farflash" || z.File[0].Mode() != 0o755 ||
			!z.File[0].Modified.Equal(at) {
			t.Errorf("the zip file: %v, %v", z.File, err)
		}
	}
}
