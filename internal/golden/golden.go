// Package golden compares a generated file of the repository with the current output of its generator, for tests that
// keep such files up to date.
//
// File is for whole files, Table for a table in a page that is otherwise written by hand, or in a CSV file. It leaves
// out how the contents are generated, and build outputs: all of these files are committed.
package golden

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// File fails the test if the file does not have these contents, and names the command that regenerates it. With update
// it writes the file instead, and creates its folder.
func File(t testing.TB, name string, contents []byte, update bool, command string) {
	t.Helper()
	if update {
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, contents, 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	was, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(was, contents) {
		t.Errorf("%s is not up to date; run: %s", name, command)
	}
}
