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

// Resolved writes the scenario with every default, so that it loads back to the
// same thing. File names become absolute. Comments mark what nobody wrote and what
// was set on the command line.
func (s *Scenario) Resolved() string {
	return language.Encode(s, shape.Encoding{Marks: s.set, Skip: s.absent(), File: s.absolute})
}

// absolute is the absolute path of a file that the scenario names.
func (s *Scenario) absolute(name string) string {
	if name == AutoModel {
		return name
	}
	if abs, err := filepath.Abs(s.Path(name)); err == nil {
		return abs
	}
	return s.Path(name)
}

// Brief writes the scenario without what has its default anyway, so that it loads to the same thing: what somebody
// would have written.
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
		add = "ssd: mqsim-default\n" // a workload alone is no whole scenario
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

// salt begins what a digest is computed of. Its number is raised whenever a change
// of the models moves results, so that results of different models never share a
// digest.
const salt = "farflash/7\n"

// Digest names what the scenario computes, its seed apart: the SHA-256 of the
// resolved scenario with the content of the files that it names in place of their
// paths, and without what changes no result (the description, the preset's name,
// exports). The same digest and seed give the same result.json.
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

// contentHash is the SHA-256 of a file that the scenario names.
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

// hashFile writes what is in a file.
func hashFile(to io.Writer, name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(to, f)
	return err
}
