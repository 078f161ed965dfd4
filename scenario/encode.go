package scenario

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"

	"farflash/shape"
)

// Resolved writes the scenario with every default, so that it loads back to the
// same thing. File names become absolute. Comments mark what nobody wrote and what
// was set on the command line.
func (s *Scenario) Resolved() string {
	return language.Encode(s, shape.Encoding{Marks: s.set, Skip: s.absent(), File: func(p string) string {
		if p == AutoModel {
			return p
		}
		if abs, err := filepath.Abs(s.Path(p)); err == nil {
			return abs
		}
		return s.Path(p)
	}})
}

// salt begins what a digest is computed of. Its number is raised whenever a change
// of the models moves results, so that results of different models never share a
// digest.
const salt = "farflash/4\n"

// Digest names what the scenario computes, its seed apart: the SHA-256 of the
// resolved scenario with the content of the files that it names in place of their
// paths, and without what changes no result (the description, the preset's name,
// exports). The same digest and seed give the same result.json.
func (s *Scenario) Digest() (string, error) {
	if s.files == nil {
		s.files = map[string]string{}
	}
	var failed error
	skip := []string{"description", "ssd.preset", "fabric.parts", "fabric.threads", "measure.requests", "measure.flows", "measure.pauses", "measure.timeline"}
	text := language.Encode(s, shape.Encoding{Skip: append(skip, s.absent()...), File: func(p string) string {
		if p == AutoModel {
			return p
		}
		h, err := s.contentHash(p)
		if err != nil && failed == nil {
			failed = err
		}
		return "sha256:" + h
	}})
	if failed != nil {
		return "", failed
	}
	sum := sha256.Sum256([]byte(salt + text))
	return hex.EncodeToString(sum[:16]), nil
}

// contentHash is the SHA-256 of a file that the scenario names.
func (s *Scenario) contentHash(name string) (string, error) {
	p := s.Path(name)
	if h, ok := s.files[p]; ok {
		return h, nil
	}
	f, err := os.Open(p)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	s.files[p] = hex.EncodeToString(h.Sum(nil))
	return s.files[p], nil
}
