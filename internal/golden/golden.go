// Package golden compares a generated file of the repository with what its
// generator writes now, for tests that keep one up to date.
//
// File is for whole files, Table for a table in a page that is otherwise written by hand. It leaves out how the
// contents are made, and files that a build makes: all of these are committed.
package golden

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// File fails the test when the file does not have these contents, and says which
// command writes it. With update the file is written instead, and its folder made.
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
