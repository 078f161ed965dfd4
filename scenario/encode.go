package scenario

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"

	"farflash/scenario/shape"
	"farflash/workload/trace"
)

// Resolved returns the scenario with every default and absolute file names. It loads back equal. Comments mark defaults
// and values set on the command line.
func (s *Scenario) Resolved() string {
	return language.Encode(s, shape.Encoding{Marks: s.set, Skip: s.absent(), File: s.absolute})
}

// absolute returns the absolute path of a file that the scenario names.
func (s *Scenario) absolute(name string) string {
	if name == AutoModel {
		return name
	}
	if abs, err := filepath.Abs(s.Path(name)); err == nil {
		return abs
	}
	return s.Path(name)
}

// Brief returns the scenario without defaults. It loads back equal.
func (s *Scenario) Brief() string {
	text := language.Encode(s, shape.Encoding{Skip: s.absent(), File: s.absolute, Base: func(section any) any {
		if x, ok := section.(*Drive); ok && x.Preset != "" {
			if d, err := PresetDrive(x.Preset); err == nil {
				return &d
			}
		}
		return language.Blank(section)
	}})
	add := ""
	if s.SSD == nil && s.Fabric == nil && s.ObjectCluster == nil && len(s.Targets) == 0 {
		add = "ssd: mqsim-default\n" // a workload alone is not a complete scenario
	}
	if whole := s.Resolved(); !sameScenario(text+add, whole+add) {
		return whole
	}
	return text
}

// sameScenario reports whether two texts load to the same scenario.
func sameScenario(a, b string) bool {
	x, err := Parse(shape.Source{File: "scenario.yaml", Text: []byte(a)}, nil)
	if err != nil {
		return false
	}
	y, err := Parse(shape.Source{File: "scenario.yaml", Text: []byte(b)}, nil)
	if err != nil {
		return false
	}
	x.set, y.set = nil, nil
	return x.Resolved() == y.Resolved()
}

// salt is the prefix of the data that a digest is computed over. Its number is incremented whenever a change to the
// models changes results, so that results of different models never share a digest.
const salt = "farflash/9\n"

// Digest identifies the computation, except for its seed: the SHA-256 of the resolved scenario with the contents of its
// files, without keys that change no result. The same digest and seed give the same result.json.
func (s *Scenario) Digest() (string, error) {
	if s.files == nil {
		s.files = map[string]string{}
	}
	var failed error
	skip := []string{"description", "ssd.preset", "fabric.parts", "fabric.threads", "measure.requests",
		"measure.flows", "measure.pauses", "measure.timeline"}
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

// contentHash returns the SHA-256 of a file that the scenario names.
func (s *Scenario) contentHash(name string) (string, error) {
	p := s.Path(name)
	if h, ok := s.files[p]; ok {
		return h, nil
	}
	parts, err := trace.Parts(p)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	for _, part := range parts {
		if err := hashFile(h, part); err != nil {
			return "", err
		}
	}
	s.files[p] = hex.EncodeToString(h.Sum(nil))
	return s.files[p], nil
}

// hashFile writes a file's contents to a hash.
func hashFile(to io.Writer, name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(to, f)
	return err
}
