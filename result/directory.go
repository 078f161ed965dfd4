package result

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Names of the files in a run directory.
const (
	ScenarioFile  = "scenario.yaml"
	ResultFile    = "result.json"
	timingFile    = "timing.json"
	ReportFile    = "report.html"
	CitationsFile = "citations.bib"
	RequestsFile  = "requests.parquet"
	ChunksFile    = "chunks.parquet"
	FlowsFile     = "flows.parquet"
	PausesFile    = "pauses.parquet"
	TimelineFile  = "timeline.pftrace" // written by result/perfetto
)

// Directory is a run directory that is being written, hidden until Commit renames it, so that readers never see half a
// run, even after a crash. An interrupted program calls Discard; a killed one leaves what Unfinished finds.
type Directory struct {
	wanted   string
	partial  string
	numbered bool
	files    []*os.File
}

// ErrExists is wrapped by the error of Create if the path is in use.
var ErrExists = errors.New("already exists; a run directory is never overwritten")

// Create starts a run directory at path, which must not exist or be empty.
func Create(path string) (*Directory, error) { return create(path, false) }

// CreateNumbered starts a run directory at path, or path-2 and so on if it is in use.
func CreateNumbered(path string) (*Directory, error) { return create(path, true) }

func create(path string, numbered bool) (*Directory, error) {
	path = filepath.Clean(path)
	d := &Directory{wanted: path, numbered: numbered}
	if !numbered {
		if err := d.free(path); err != nil {
			return nil, err
		}
	}
	parent := filepath.Dir(path)
	if err := os.MkdirAll(parent, 0o777); err != nil {
		return nil, fmt.Errorf("run directory: %w", err)
	}
	partial, err := os.MkdirTemp(parent, Temporary(filepath.Base(path)))
	if err != nil {
		return nil, fmt.Errorf("run directory: %w", err)
	}
	if err := os.Chmod(partial, 0o755); err != nil {
		return nil, errors.Join(fmt.Errorf("run directory: %w", err), os.Remove(partial))
	}
	d.partial = partial
	return d, nil
}

// free returns an error if the path holds anything that a run would overwrite.
func (d *Directory) free(path string) error {
	s, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("run directory: %w", err)
	}
	if s.IsDir() {
		if entries, err := os.ReadDir(path); err == nil && len(entries) == 0 {
			return nil
		}
	}
	return fmt.Errorf("run directory %s %w; choose another or remove it", path, ErrExists)
}

// Path returns the path at which a file of that name is written until Commit.
func (d *Directory) Path(name string) string { return filepath.Join(d.partial, name) }

// Open creates a file to be written incrementally and closed before Commit.
func (d *Directory) Open(name string) (*os.File, error) {
	f, err := os.OpenFile(d.Path(name), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o666)
	if err == nil {
		d.files = append(d.files, f)
	}
	return f, err
}

// Write writes a whole file.
func (d *Directory) Write(name string, text []byte) error {
	return os.WriteFile(d.Path(name), text, 0o666)
}

// Commit moves the directory to its final path, which it returns. After an error it can be called again.
func (d *Directory) Commit() (string, error) {
	if err := syncAll(d.partial); err != nil {
		return "", fmt.Errorf("run directory: %w", err)
	}
	for n := 1; ; n++ {
		path := d.wanted
		if n > 1 {
			path += "-" + strconv.Itoa(n)
		}
		err := d.free(path)
		if err == nil {
			// At most an empty directory is at the path, and Remove removes only that. Rename fails if the target is a
			// directory with files, so two programs that finish at the same time do not overwrite each other.
			if err = os.Remove(path); err == nil || errors.Is(err, fs.ErrNotExist) {
				err = os.Rename(d.partial, path)
			}
			if err == nil {
				d.partial = ""
				return path, syncFolder(filepath.Dir(path))
			}
			if d.free(path) == nil {
				return "", fmt.Errorf("run directory: %w", err)
			}
			err = fmt.Errorf("run directory %s %w", path, ErrExists)
		}
		if !d.numbered || !errors.Is(err, ErrExists) {
			return "", err
		}
	}
}

// Discard removes the files, unless Commit has succeeded; it can be deferred.
func (d *Directory) Discard() error {
	if d.partial == "" {
		return nil
	}
	for _, f := range d.files {
		f.Close() // ignore errors, such as that of a file closed already
	}
	err := os.RemoveAll(d.partial)
	d.partial = ""
	return err
}

// Run is a run directory's contents, without requests and other large files.
type Run struct {
	Path      string // of the directory
	Result    *Result
	Scenario  string  // the resolved scenario's text; "" if the file is missing
	Timing    *Timing // nil if the file is missing
	Report    string  // HTML; never read back
	Citations string  // BibTeX; "" if the file is missing
}

// WriteRun writes the files of every run. Empty Report or Citations are left out.
func (d *Directory) WriteRun(r Run) error {
	text, err := r.Result.Encode()
	if err != nil {
		return err
	}
	files := []struct{ name, text string }{{ScenarioFile, r.Scenario}, {ResultFile, string(text)},
		{ReportFile, r.Report}, {CitationsFile, r.Citations}}
	if r.Timing != nil {
		timing, err := r.Timing.encode()
		if err != nil {
			return err
		}
		files = append(files, struct{ name, text string }{timingFile, string(timing)})
	}
	for _, f := range files {
		if f.text == "" {
			continue
		}
		if err := d.Write(f.name, []byte(f.text)); err != nil {
			return fmt.Errorf("run directory: %w", err)
		}
	}
	return nil
}

// Load reads a run directory, or that of a result.json, which must be there.
func Load(path string) (*Run, error) {
	s, err := os.Stat(path)
	if strings.HasSuffix(path, ".json") && (err != nil || !s.IsDir()) {
		path = filepath.Dir(path)
		s, err = os.Stat(path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: no such run directory", path)
	}
	if err != nil {
		return nil, fmt.Errorf("no run directory: %w", err)
	}
	if !s.IsDir() {
		return nil, fmt.Errorf("%s is not a run directory; name the directory that holds %s", path, ResultFile)
	}
	run := &Run{Path: path}
	text, err := os.ReadFile(filepath.Join(path, ResultFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is not a run directory: it has no %s", path, ResultFile)
	}
	if err != nil {
		return nil, err
	}
	if run.Result, err = Decode(text); err != nil {
		return nil, inFile(filepath.Join(path, ResultFile), err)
	}
	for _, f := range []struct {
		name string
		to   *string
	}{{ScenarioFile, &run.Scenario}, {CitationsFile, &run.Citations}} {
		text, err := os.ReadFile(filepath.Join(path, f.name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		*f.to = string(text)
	}
	text, err = os.ReadFile(filepath.Join(path, timingFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return run, nil
	case err != nil:
		return nil, err
	}
	t, err := decodeTiming(text)
	if err != nil {
		return nil, inFile(filepath.Join(path, timingFile), err)
	}
	run.Timing = &t
	return run, nil
}
