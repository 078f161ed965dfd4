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

// Cache stores results on disk, one file per trial and program. A trial is a pure function of its digest and seed as
// long as the program, identified by Program, is the same; so entries never become stale, and the directory can be
// deleted at any time. Any number of processes may share a cache.
type Cache struct {
	dir     string
	program string
}

// DefaultCache returns the default cache directory: farflash in the user's cache directory.
func DefaultCache() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "farflash"), nil
}

// OpenCache opens a cache in dir, which is created if necessary. The program's name must change whenever its results
// might.
func OpenCache(dir, program string) (*Cache, error) {
	program = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(".-+_", r) {
			return r
		}
		return '_'
	}, program)
	if strings.Trim(program, ".") == "" {
		return nil, errors.New("cache: the program has no name")
	}
	c := &Cache{dir: filepath.Join(dir, program), program: program}
	if err := os.MkdirAll(c.dir, 0o777); err != nil {
		return nil, fmt.Errorf("cache: %w", err)
	}
	return c, nil
}

// path returns the file of a trial's result. Subdirectories by the first two digits keep each one small.
func (c *Cache) path(t trial.Trial) string {
	return filepath.Join(c.dir, t.Digest[:min(2, len(t.Digest))], t.Name())
}

// Path returns the path of an entry that is not a trial's result, by name, which may include directories. Writers must
// replace whole files and be able to verify their contents.
func (c *Cache) Path(name string) string { return filepath.Join(c.dir, filepath.FromSlash(name)) }

// Get returns a trial's result, or nil if there is none. An entry that is unreadable or of another trial is an error
// that names the file; the caller computes the trial again, and Put replaces the entry.
func (c *Cache) Get(t trial.Trial) (*result.Result, error) {
	text, err := os.ReadFile(c.path(t))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cache: %w", err)
	}
	var r *result.Result
	if text, err = checked(text); err == nil {
		r, err = decode(text, t)
	}
	if err != nil {
		return nil, fmt.Errorf("cache: %s is damaged: %w", c.path(t), err)
	}
	return r, nil
}

// An entry is a line with the SHA-256 of the rest, followed by a result.json. Without the checksum, a digit changed by
// a failing disk would go unnoticed.
const entryHead = "farflash/cache/1 "

// checked verifies an entry and returns its contents.
func checked(entry []byte) ([]byte, error) {
	head, text, _ := bytes.Cut(entry, []byte("\n"))
	sum, ok := bytes.CutPrefix(head, []byte(entryHead))
	if !ok {
		return nil, errors.New("bad entry header")
	}
	if got := sha256.Sum256(text); hex.EncodeToString(got[:]) != string(sum) {
		return nil, errors.New("wrong checksum")
	}
	return text, nil
}

// Put stores a trial's result atomically: readers see the whole file or none.
func (c *Cache) Put(t trial.Trial, r *result.Result) error {
	text, err := r.Encode()
	if err != nil {
		return err
	}
	sum := sha256.Sum256(text)
	if err := result.WriteFile(c.path(t), append([]byte(entryHead+hex.EncodeToString(sum[:])+"\n"), text...)); err !=
		nil {
		return fmt.Errorf("cache: %w", err)
	}
	return nil
}

// decode reads a result and verifies that it belongs to the trial.
func decode(text []byte, t trial.Trial) (*result.Result, error) {
	r, err := result.Decode(text)
	switch {
	case err != nil:
		return nil, err
	case r.Digest != t.Digest || r.Seed != t.Seed:
		return nil, fmt.Errorf("it has digest %s and seed %d, not %s and %d", r.Digest, r.Seed, t.Digest, t.Seed)
	}
	return r, nil
}

// Unfinished returns patterns of the temporary files that this process writes to the cache.
func (c *Cache) Unfinished() []string {
	if c == nil {
		return nil
	}
	out := []string{result.Unfinished(c.Path("models"))}
	for i := range 256 {
		out = append(out, result.Unfinished(filepath.Join(c.dir, fmt.Sprintf("%02x", i))))
	}
	return out
}
