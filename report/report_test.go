package report

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"farflash/internal/term"
)

var out = flag.String("out", "", "write the sample reports to this directory, to be looked at")

func TestWriteSamples(t *testing.T) {
	if *out == "" {
		t.Skip("no -out")
	}
	a, b, c := toyA.run(1), toyB.run(1), toyC.run(1)
	for name, runs := range map[string][]Run{"one.html": {a}, "three.html": {a, b, c}} {
		var w bytes.Buffer
		if err := WriteHTML(&w, runs...); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(*out, name), w.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := WriteText(os.Stdout, a, term.Style{}); err != nil {
		t.Fatal(err)
	}
}
