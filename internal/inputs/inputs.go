// Package inputs finds the public inputs that tests read and that the repository does not contain: traces, other
// simulators' cases, published figures. They are in a folder named shared next to the repository.
//
// Its function is Path. It leaves out downloading them: a test whose input is missing is skipped by name.
package inputs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// Path returns the path of an input, given by its slash-separated path within the folder. It skips the test if the
// input is missing.
func Path(t testing.TB, name string) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("no go.mod above the test")
		}
		dir = up
	}
	path := filepath.Join(dir, "..", "shared", filepath.FromSlash(name))
	switch _, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
		t.Skipf("../shared/%s does not exist", name)
	case err != nil:
		t.Fatal(err)
	}
	return path
}
