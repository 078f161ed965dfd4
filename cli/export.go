package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"farflash/cli/plotcli"
	"farflash/cli/verb"
	"farflash/report/paper"
	"farflash/result"
	"farflash/result/columnar"
	"farflash/study"
)

// exports are the formats of farflash export.
var exports = append([]string{"fio", "csv", "parquet", "gobench", "ns3", "perfetto"}, paper.Formats()...)

func (p *program) export() *cobra.Command {
	format, table, out, figure := "", "metrics", "", ""
	cmd := &cobra.Command{
		Use:   "export RUN|STUDY...",
		Short: "Write a run for other programs, or figures for papers",
		Long: `Write a run directory for other programs, to standard output or a new file:

  fio      JSON as of fio --output-format=json+ (for fio_jsonplus_clat2csv)
  csv      one table: --table metrics, series, histograms or matrices, or what
           the run wrote as Parquet: requests, chunks, flows or pauses
  parquet  the series (requests.parquet is in the run directory if the scenario
           has measure.requests)
  gobench  Go benchmark lines, for benchstat; takes several runs and studies
           (then benchstat -col design compares designs)
  ns3      fct.txt and pfc.txt as HPCC's ns-3 writes them, in the new folder
           that -o names; needs measure.flows and measure.pauses
  perfetto timeline.pftrace of the run directory, for ui.perfetto.dev; needs
           measure.timeline

Figures for papers, of a run, of several side by side, or of the directory of a
sweep, a comparison or a search for headroom: distributions of latencies,
curves, effects. They go to the new folder that -o names, or one of them
(--figure) to standard output:

  svg      the report's charts as files that stand alone
  pgf      TikZ (pgfplots) that compiles without changes
  plot-csv their numbers, with a line of matplotlib that draws them`,
		Example: `  farflash export runs/quickstart-1a2b3c4d --format=fio > fio.json
  farflash export run --format=csv --table=series -o series.csv
  farflash export run --format=csv --table=requests -o requests.csv
  farflash export run --format=ns3 -o mix
  farflash export run --format=perfetto -o timeline.pftrace
  farflash export runs/before runs/after --format=svg -o figures
  farflash export runs/my-sweep-1a2b3c4d --format=pgf --figure read.latency.p99 > p99.tex`,
		Args: verb.Arguments(1, -1, "a run directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if format == "" {
				return verb.Usagef("--format is missing; there are %s", strings.Join(exports, ", "))
			}
			if !slices.Contains(exports, format) {
				return verb.Usagef("no format %q; there are %s", format, strings.Join(exports, ", "))
			}
			figures := slices.Contains(paper.Formats(), format)
			switch {
			case format != "csv" && cmd.Flags().Changed("table"):
				return verb.Usagef("--table is for --format=csv, and --format=%s has no tables to choose from; leave "+
					"it out", format)
			case !figures && figure != "":
				return verb.Usagef("--figure is for %s, and --format=%s draws nothing; leave it out",
					strings.Join(paper.Formats(), ", "), format)
			}
			if figures {
				return plotcli.Export(p.verbs(), args, format, figure, out)
			}
			if len(args) > 1 && format != "gobench" {
				return verb.Usagef("--format=%s takes one run; gobench and figures take several", format)
			}
			if format == "gobench" {
				return p.exportGobench(args, out)
			}
			var runs []*result.Run
			for _, a := range args {
				r, err := loadRun(a)
				if err != nil {
					return verb.BadInput(err)
				}
				runs = append(runs, r)
			}
			if format == "ns3" {
				return p.exportNS3(runs[0], out)
			}
			if format == "perfetto" {
				return p.exportTimeline(runs[0], out)
			}
			if kept := keptTables[table]; format == "csv" && kept != "" {
				return p.exportRows(runs[0], kept, out)
			}
			var text bytes.Buffer
			if err := writeExport(&text, format, table, runs); err != nil {
				return verb.BadInput(err)
			}
			w, err := p.output(out)
			if err != nil {
				return err
			}
			_, err = w.Write(text.Bytes())
			return verb.Failed(errors.Join(err, w.Close()))
		},
	}
	cmd.Flags().StringVar(&format, "format", "", "the `format`: "+strings.Join(exports, ", "))
	cmd.Flags().StringVar(&table, "table", table, "which `table` csv writes: "+strings.Join(csvTables(), ", "))
	cmd.Flags().StringVarP(&out, "output", "o", "",
		"write to a new `FILE` instead of standard output (ns3 and figures: to a new folder)")
	cmd.Flags().StringVar(&figure, "figure", "", "write only the figure of this `name` (svg, pgf, plot-csv)")
	return cmd
}

// keptTables are the tables that a run writes while it is in progress, and their files.
var keptTables = map[string]string{"requests": result.RequestsFile, "chunks": result.ChunksFile,
	"flows": result.FlowsFile, "pauses": result.PausesFile}

// csvTables lists the tables that can be exported as CSV.
func csvTables() []string {
	return append(slices.Clone(result.CSVTables), slices.Sorted(maps.Keys(keptTables))...)
}

// exportRows streams a table of many rows to CSV.
func (p *program) exportRows(run *result.Run, name, out string) error {
	f, err := os.Open(filepath.Join(run.Path, name))
	if errors.Is(err, fs.ErrNotExist) {
		table := strings.TrimSuffix(name, ".parquet")
		key := table
		if name == result.ChunksFile {
			key = "requests"
		}
		return verb.BadInput(fmt.Errorf("%s has no %s; run it again with --set measure.%s=true", run.Path, name, key))
	}
	if err != nil {
		return verb.BadInput(err)
	}
	defer f.Close()
	s, err := f.Stat()
	if err != nil {
		return verb.BadInput(err)
	}
	w, err := p.output(out)
	if err != nil {
		return err
	}
	b := bufio.NewWriterSize(w, 1<<16)
	read := columnar.WriteCSV(b, f, s.Size())
	written := errors.Join(b.Flush(), w.Close())
	if (read != nil || written != nil) && out != "" && out != "-" {
		written = errors.Join(written, os.Remove(out)) // no partial table remains
	}
	if written == nil && read != nil {
		return verb.BadInput(fmt.Errorf("%s: %w", f.Name(), read))
	}
	return verb.Failed(written)
}

func writeExport(w io.Writer, format, table string, runs []*result.Run) error {
	switch format {
	case "fio":
		return result.WriteFio(w, runs[0])
	case "csv":
		return result.WriteCSV(w, runs[0].Result, table)
	default:
		return columnar.WriteSeries(w, runs[0].Result.Series)
	}
}

// exportGobench writes runs, and the designs of studies, for benchstat.
func (p *program) exportGobench(args []string, out string) error {
	var designs []study.Design
	// A design line applies to all lines up to the next one, so with any of them single runs need a design line too.
	told := false
	for _, a := range args {
		found, err := study.ReadDesigns(a)
		if !study.Found(err) {
			run, err := loadRun(a)
			if err != nil {
				return verb.BadInput(err)
			}
			designs = append(designs, study.Design{Results: []*result.Result{run.Result}})
			continue
		}
		if err != nil {
			return verb.BadInput(err)
		}
		found = slices.DeleteFunc(found, func(d study.Design) bool { return len(d.Results) == 0 })
		if len(found) == 0 {
			return verb.BadInput(fmt.Errorf("%s: no trial is done yet; run the command that began it to continue", a))
		}
		designs, told = append(designs, found...), true
	}
	var text bytes.Buffer
	for _, d := range designs {
		if d.Label == "" && told {
			d.Label = cmp.Or(d.Results[0].Name, "run")
		}
		if err := result.WriteGobench(&text, d.Label, d.Results...); err != nil {
			return err
		}
	}
	w, err := p.output(out)
	if err != nil {
		return err
	}
	_, err = w.Write(text.Bytes())
	return verb.Failed(errors.Join(err, w.Close()))
}
