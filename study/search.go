package study

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"farflash/experiment/trial"
	"farflash/result"
)

// searchFile is the manifest of a search in its folder.
const searchFile = "search.json"

// Search describes a study whose trials depend on each other's results, so that no plan lists them.
type Search struct {
	Name   string
	Digest string // of everything that determines the trials and their evaluation
	Seed   uint64
	Reps   int
}

// searchManifest is search.json.
type searchManifest struct {
	Schema  string `json:"schema"` // farflash/search/1
	Name    string `json:"name"`
	Digest  string `json:"digest"`
	Version string `json:"version"`
	Program string `json:"program"`
	Seed    uint64 `json:"seed"`
	Reps    int    `json:"reps"`
}

const searchSchema = "farflash/search/1"

// OpenSearch creates the directory of a search, or resumes an existing one, by the rules of OpenFolder.
func OpenSearch(path string, s Search, program Program) (*Folder, error) {
	mine := searchManifest{searchSchema, s.Name, s.Digest, program.Version, program.Name, s.Seed, s.Reps}
	f := &Folder{path: path, program: program}
	there, err := readSearch(path)
	if errors.Is(err, fs.ErrNotExist) {
		failed := begin(path, "search")
		if failed == nil {
			return f, f.WriteJSON(searchFile, mine)
		}
		// Another process may have started the same search concurrently.
		if there, err = readSearch(path); errors.Is(err, fs.ErrNotExist) {
			return nil, failed
		}
	}
	if err != nil {
		return nil, err
	}
	if why := mine.differs(there); why != "" {
		return nil, fmt.Errorf("%s holds another search: %s; %w", path, why, ErrOther)
	}
	return f, nil
}

// readSearch reads a search's manifest. Its error is fs.ErrNotExist if there is none.
func readSearch(path string) (*searchManifest, error) {
	file := filepath.Join(path, searchFile)
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	m := &searchManifest{}
	return m, result.DecodeFile(file, text, m)
}

// differs describes how another search's manifest differs, or returns "".
func (m *searchManifest) differs(there *searchManifest) string {
	switch {
	case m.Schema != there.Schema:
		return fmt.Sprintf("its schema is %s, not %s", there.Schema, m.Schema)
	case m.Seed != there.Seed:
		return fmt.Sprintf("its --seed is %d, not %d", there.Seed, m.Seed)
	case m.Reps != there.Reps:
		return fmt.Sprintf("its --reps is %d, not %d", there.Reps, m.Reps)
	case m.Program != there.Program:
		return fmt.Sprintf("it was computed by another build of the program, %s, not %s, and their results may differ", there.Program, m.Program)
	case m.Digest != there.Digest:
		return fmt.Sprintf("its inputs have digest %s there and %s here", short(there.Digest), short(m.Digest))
	}
	return ""
}

// Place returns the run directory of a trial, relative to a study's directory.
func Place(t trial.Trial) string { return filepath.Join(trials, t.Name()) }
