// Package plotcli writes the figures of runs and studies for papers, as formats of farflash export. Like package cli,
// it only finds the inputs, calls the library and writes files.
package plotcli

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"farflash/cli/verb"
	"farflash/report"
	"farflash/report/paper"
	"farflash/result"
	"farflash/study"
	"farflash/study/headroom"
)

// Export writes the figures of one run, of several runs side by side, or of a study to a new folder, or a single
// figure, selected by name, to standard output.
func Export(p *verb.Program, paths []string, format, figure, out string) error {
	plots, err := find(paths)
	if err != nil {
		return verb.BadInput(err)
	}
	names := make([]string, len(plots))
	for i, x := range plots {
		names[i] = x.Name
	}
	if len(plots) == 0 {
		return verb.BadInput(
			fmt.Errorf("%s has no figures for papers; figures are latency distributions, curves of sweeps and "+
				"effects of comparisons", paths[0]))
	}
	if figure != "" {
		i := slices.Index(names, figure)
		if i < 0 {
			return verb.Usagef("--figure: no figure %q; the figures are %s", figure, strings.Join(names, ", "))
		}
		plots = plots[i : i+1]
	}
	f := paper.Format(format)
	if out == "" {
		if len(plots) > 1 {
			return verb.Usagef("the study has %d figures: %s; name one with --figure, or a new folder for all with -o",
				len(plots), strings.Join(names, ", "))
		}
		return verb.Failed(paper.Write(p.Data, plots[0], f))
	}
	if err := os.MkdirAll(filepath.Dir(out), 0o777); err != nil {
		return verb.BadInput(err)
	}
	if err := os.Mkdir(out, 0o777); err != nil {
		if errors.Is(err, os.ErrExist) {
			return verb.Usagef("%s already exists; name a new folder", out)
		}
		return verb.BadInput(err)
	}
	for _, x := range plots {
		var b bytes.Buffer
		if err := paper.Write(&b, x, f); err != nil {
			return verb.Failed(err)
		}
		if err := result.WriteFile(filepath.Join(out, f.File(x)), b.Bytes()); err != nil {
			return verb.Failed(err)
		}
		p.Note("wrote %s", filepath.Join(out, f.File(x)))
	}
	return nil
}

// find reads the figures of a study, if paths is one folder that holds one, or of runs.
func find(paths []string) ([]paper.Plot, error) {
	if len(paths) == 1 {
		c, err := study.ReadCurves(paths[0])
		if err == nil {
			return report.CurvePlots(c, nil, nil), nil
		}
		if study.Found(err) {
			return nil, err
		}
		x, err := study.ReadEffects(paths[0])
		if err == nil {
			return report.EffectPlots(x), nil
		}
		if study.Found(err) {
			return nil, err
		}
		c, limits, err := headroom.Read(paths[0])
		if err == nil {
			var names []string
			for name := range limits {
				names = append(names, name)
			}
			slices.Sort(names)
			return report.CurvePlots(c, append(names, "all.iops"), limits), nil
		}
		if study.Found(err) {
			return nil, err
		}
	}
	var runs []report.Run
	for _, path := range paths {
		r, err := result.Load(path)
		switch {
		case err != nil && study.Is(path) && len(paths) == 1:
			return nil, fmt.Errorf("%s: the study has no results yet; resume it with the command that started it",
				path)
		case err != nil && study.Is(path):
			return nil, fmt.Errorf(
				"%s is a study; export it alone, or runs without it", path)
		case err != nil:
			return nil, err
		}
		runs = append(runs, report.FromDirectory(r))
	}
	return report.RunPlots(runs), nil
}
