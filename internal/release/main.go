// Command release builds the files of a release in a folder: the program for each system, in an archive with its
// licence, man pages and shell completions; the list of its components (CycloneDX 1.6, an SBOM); and the SHA-256 of
// every file.
//
//	go run ./internal/release -o dist
//
// The version is that of the repository's tag (vX.Y.Z, semantic), or that of its commit if there is no tag. The same
// commit and Go version give the same bytes: files carry the commit's time, archives are in order, and no file depends
// on the machine.
//
// It leaves out signing and publishing.
package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra/doc"

	"farflash/cli"
)

// systems are the systems that releases are built for.
const systems = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64"

func main() {
	var out, list string
	flag.StringVar(&out, "o", "dist", "the `folder` to create; it must not exist")
	flag.StringVar(&list, "systems", systems, "`systems` to build for")
	flag.Parse()
	if err := run(".", out, strings.Split(list, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// file is one file of an archive.
type file struct {
	name string
	mode fs.FileMode
	text []byte
}

// run builds a release of the module in a folder.
func run(dir, out string, systems []string) error {
	if err := os.Mkdir(out, 0o777); err != nil {
		return fmt.Errorf("%w; name a folder that does not exist", err)
	}
	at, err := committed(dir)
	if err != nil {
		return err
	}
	beside, err := papers(dir, at)
	if err != nil {
		return err
	}
	var sbom []byte
	for _, s := range systems {
		goos, arch, ok := strings.Cut(s, "/")
		if !ok {
			return fmt.Errorf("%q is not a system; try linux/amd64", s)
		}
		program, info, err := build(dir, goos, arch)
		if err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
		name := "farflash"
		if goos == "windows" {
			name += ".exe"
		}
		version := strings.TrimPrefix(info.Main.Version, "v")
		if version == "" || version == "(devel)" {
			return errors.New("the program was built without a version; run this command in a clone of the repository")
		}
		base := fmt.Sprintf("farflash_%s_%s_%s", version, goos, arch)
		files := append([]file{{name, 0o755, program}}, beside...)
		if err := pack(filepath.Join(out, base), goos == "windows", base, files, at); err != nil {
			return err
		}
		if sbom == nil {
			if sbom, err = components(info, at); err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(out, "farflash_"+version+".cdx.json"), sbom, 0o666); err != nil {
				return err
			}
		}
	}
	return sums(out)
}

// committed returns the time of the commit that is released.
func committed(dir string) (time.Time, error) {
	c := exec.Command("git", "log", "-1", "--format=%ct")
	c.Dir = dir
	text, err := c.Output()
	if err != nil {
		return time.Time{}, fmt.Errorf("git log: %w; run this command in a clone of the repository", err)
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return time.Unix(n, 0).UTC(), err
}

// build builds the program for a system.
func build(dir, goos, arch string) ([]byte, *buildinfo.BuildInfo, error) {
	temp, err := os.MkdirTemp("", "farflash-release")
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = os.RemoveAll(temp) }()
	name := filepath.Join(temp, "farflash")
	c := exec.Command("go", "build", "-trimpath", "-buildvcs=true", "-ldflags=-s -w", "-o", name, "./cmd/farflash")
	c.Dir, c.Stderr = dir, os.Stderr
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+arch, "GOFLAGS=-mod=readonly")
	if err := c.Run(); err != nil {
		return nil, nil, fmt.Errorf("go build: %w", err)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, nil, err
	}
	info, err := buildinfo.Read(bytes.NewReader(text))
	return text, info, err
}

// papers returns the files that accompany every program: documents, man pages and completions.
func papers(dir string, at time.Time) ([]file, error) {
	var list []file
	for _, name := range []string{"LICENSE", "NOTICE", "README.md", "CHANGELOG.md", "CITATION.cff"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		list = append(list, file{name, 0o644, text})
	}
	for shell, name := range map[string]string{"bash": "farflash.bash", "zsh": "_farflash", "fish": "farflash.fish",
		"powershell": "farflash.ps1"} {
		var b, said bytes.Buffer
		if code := cli.Main([]string{"completion", shell}, strings.NewReader(""), &b, &said); code != 0 {
			return nil, fmt.Errorf("completion %s: %s", shell, said.Bytes())
		}
		list = append(list, file{"completions/" + name, 0o644, b.Bytes()})
	}
	temp, err := os.MkdirTemp("", "farflash-man")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(temp) }()
	root := cli.Command()
	root.DisableAutoGenTag = true
	if err := doc.GenManTree(root,
		&doc.GenManHeader{Title: "FARFLASH", Section: "1", Date: &at, Source: "Farflash", Manual: "Farflash"},
		temp); err != nil {
		return nil, err
	}
	pages, err := filepath.Glob(filepath.Join(temp, "*.1"))
	if err != nil {
		return nil, err
	}
	for _, p := range pages {
		text, err := os.ReadFile(p)
		if err != nil {
			return nil, err
		}
		list = append(list, file{"man/" + filepath.Base(p), 0o644, text})
	}
	slices.SortFunc(list, func(a, b file) int { return cmp.Compare(a.name, b.name) })
	return list, nil
}

// pack writes an archive that contains files in one folder: a zip file, or a gzipped tar file.
func pack(name string, zipped bool, folder string, files []file, at time.Time) (err error) {
	name += ".tar.gz"
	if zipped {
		name = strings.TrimSuffix(name, ".tar.gz") + ".zip"
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if zipped {
		return zipTo(f, folder, files, at)
	}
	return tarTo(f, folder, files, at)
}

func tarTo(to io.Writer, folder string, files []file, at time.Time) error {
	z, err := gzip.NewWriterLevel(to, gzip.BestCompression)
	if err != nil {
		return err
	}
	t := tar.NewWriter(z)
	for _, x := range files {
		h := &tar.Header{Name: folder + "/" + x.name, Mode: int64(x.mode), Size: int64(len(x.text)), ModTime: at,
			Format: tar.FormatPAX}
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		if _, err := t.Write(x.text); err != nil {
			return err
		}
	}
	return errors.Join(t.Close(), z.Close())
}

func zipTo(to io.Writer, folder string, files []file, at time.Time) error {
	z := zip.NewWriter(to)
	for _, x := range files {
		h := &zip.FileHeader{Name: folder + "/" + x.name, Method: zip.Deflate, Modified: at}
		h.SetMode(x.mode)
		w, err := z.CreateHeader(h)
		if err != nil {
			return err
		}
		if _, err := w.Write(x.text); err != nil {
			return err
		}
	}
	return z.Close()
}

// sums writes the SHA-256 of each file of a folder into the folder, in the format of sha256sum.
func sums(out string) error {
	list, err := os.ReadDir(out) // sorted by name
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, e := range list {
		text, err := os.ReadFile(filepath.Join(out, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(text), e.Name())
	}
	return os.WriteFile(filepath.Join(out, "SHA256SUMS"), []byte(b.String()), 0o666)
}
