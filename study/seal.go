package study

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"farflash/experiment/trial"
	"farflash/result"
)

// SumsFile has the SHA-256 of each file of a trial's directory, as sha256sum writes and checks them. A study goes on
// from trials that are there, perhaps years later and on another machine: a digit that a disk or a hand has changed
// would be in its figures without anybody noticing.
const SumsFile = "SHA256SUMS"

// seal writes the checksums of what is in a run directory.
func seal(d *result.Directory) error {
	entries, err := os.ReadDir(d.Path(""))
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, e := range entries {
		text, err := os.ReadFile(d.Path(e.Name()))
		if err != nil {
			return err
		}
		sum := sha256.Sum256(text)
		fmt.Fprintf(&b, "%s  %s\n", hex.EncodeToString(sum[:]), e.Name())
	}
	return d.Write(SumsFile, []byte(b.String()))
}

// damagedError says that a trial's directory is not as it was written.
type damagedError struct {
	place string
	err   error
}

func (d *damagedError) Error() string { return fmt.Sprintf("%s is damaged: %v", d.place, d.err) }
func (d *damagedError) Unwrap() error { return d.err }

// readTrial reads a trial's result from its directory, nil if there is none. One that is not as it was written, or of
// another trial, is a damagedError.
func readTrial(place string, t trial.Trial) (*result.Result, error) {
	// Directories come to their places whole. Looked at in this order, one that comes meanwhile is not there yet, or
	// it is all there.
	if _, err := os.Lstat(place); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	text, err := os.ReadFile(filepath.Join(place, result.ResultFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &damagedError{place, fmt.Errorf("it has no %s", result.ResultFile)}
	}
	if err != nil {
		return nil, err
	}
	if err := sealed(place); err != nil {
		return nil, &damagedError{place, err}
	}
	r, err := decode(text, t)
	if err != nil {
		return nil, &damagedError{place, err}
	}
	return r, nil
}

// sealed holds the files of a directory against their checksums.
func sealed(place string) error {
	sums, err := os.ReadFile(filepath.Join(place, SumsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("it has no %s", SumsFile)
	}
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for line := range bytes.Lines(sums) {
		want, name, ok := strings.Cut(strings.TrimSuffix(string(line), "\n"), "  ")
		if !ok || name != filepath.Base(name) {
			return fmt.Errorf("%s has a line that is not a checksum", SumsFile)
		}
		text, err := os.ReadFile(filepath.Join(place, name))
		if err != nil {
			return err
		}
		if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != want {
			return fmt.Errorf("the checksum of %s is wrong", name)
		}
		seen[name] = true
	}
	if !seen[result.ResultFile] {
		return fmt.Errorf("%s has no checksum of %s", SumsFile, result.ResultFile)
	}
	return nil
}
