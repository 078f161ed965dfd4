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

// sumsFile has the SHA-256 of each file in a trial's directory, in the format of sha256sum. A study resumes from
// existing trials, perhaps years later and on another machine; without checksums, a digit altered by a disk or by hand
// would enter its figures unnoticed.
const sumsFile = "SHA256SUMS"

// seal writes the checksums of a run directory's files.
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
	return d.Write(sumsFile, []byte(b.String()))
}

// damagedError reports that a trial's directory has changed since it was written.
type damagedError struct {
	place string
	err   error
}

func (d *damagedError) Error() string { return fmt.Sprintf("%s is damaged: %v", d.place, d.err) }
func (d *damagedError) Unwrap() error { return d.err }

// readTrial reads a trial's result from its directory, or returns nil if there is none. If the directory has changed
// since it was written, or belongs to another trial, the error is a damagedError.
func readTrial(place string, t trial.Trial) (*result.Result, error) {
	// Directories appear atomically. Checked in this order, one that appears concurrently is either absent or complete.
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

// sealed verifies the checksums of a directory's files.
func sealed(place string) error {
	sums, err := os.ReadFile(filepath.Join(place, sumsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("it has no %s", sumsFile)
	}
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for line := range bytes.Lines(sums) {
		want, name, ok := strings.Cut(strings.TrimSuffix(string(line), "\n"), "  ")
		if !ok || name != filepath.Base(name) {
			return fmt.Errorf("%s has an invalid line", sumsFile)
		}
		text, err := os.ReadFile(filepath.Join(place, name))
		if err != nil {
			return err
		}
		if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != want {
			return fmt.Errorf("wrong checksum of %s", name)
		}
		seen[name] = true
	}
	if !seen[result.ResultFile] {
		return fmt.Errorf("%s has no checksum for %s", sumsFile, result.ResultFile)
	}
	return nil
}
