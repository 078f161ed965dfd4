package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"farflash/cli/verb"
	"farflash/result"
)

// exportTimeline copies a run's timeline, which is already in Perfetto's format.
func (p *program) exportTimeline(run *result.Run, out string) error {
	f, err := os.Open(filepath.Join(run.Path, result.TimelineFile))
	if errors.Is(err, fs.ErrNotExist) {
		return verb.BadInput(fmt.Errorf("%s has no %s; run its scenario again with --set measure.timeline=true",
			run.Path, result.TimelineFile))
	}
	if err != nil {
		return verb.BadInput(err)
	}
	defer f.Close()
	w, err := p.output(out)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, f)
	return verb.Failed(errors.Join(err, w.Close()))
}
