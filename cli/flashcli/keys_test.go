package flashcli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestKeys verifies that a file of keys is read, and that each mistake is named with its line and without the secret.
func TestKeys(t *testing.T) {
	const key = "DHHC-1:01:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:"
	path := filepath.Join(t.TempDir(), "keys")
	for text, want := range map[string]string{
		"# hosts\n\nnqn.2026-01.example:a " + key + "\nnqn.2026-01.example:b " + key + " " + key + " # both\n": "",
		"nqn.2026-01.example:a\n":                                   ":1: 1 words",
		"\n\nme " + key:                                             ":3: \"me\" is no name",
		"nqn.a:b " + key + "\nnqn.a:b " + key:                       ":2: nqn.a:b has a key already",
		"nqn.a:b " + strings.Replace(key, "AAEC", "AAED", 1) + "\n": ":1: word 2",
		"nqn.a:b " + key + " x\n":                                   ":1: word 3",
		"# nothing":                                                 ": no key",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		all, err := readKeys(path)
		switch {
		case want == "":
			if err != nil || len(all) != 2 || all["nqn.2026-01.example:a"].Host.Zero() ||
				!all["nqn.2026-01.example:a"].Controller.Zero() || all["nqn.2026-01.example:b"].Controller.Zero() {
				t.Errorf("%q: %v, %v", text, all, err)
			}
		case err == nil || !strings.Contains(err.Error(), path+want) || strings.Contains(err.Error(), "AAE"):
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := readKeys(path); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a file for all to read: %v", err)
	}
}
