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

// exports lists the formats of farflash export.
var exports = append([]string{"fio", "csv", "parquet", "gobench", "ns3", "perfetto"}, paper.Formats()...)

func (p *program) export() *cobra.Command {
	format, table, out, figure := "", "metrics", "", ""
	cmd := &cobra.Command{
		Use:   "export RUN|STUDY...",
		Short: "Export a run to other programs, or figures for papers",
		Long: `Export a run directory to another program's format, to standard output or a new
file:

  fio      JSON as from fio --output-format=json+ (for fio_jsonplus_clat2csv)
  csv      one --table of the run, or of a Parquet file that it wrote
  parquet  the series (measure.requests adds requests.parquet to the run)
  gobench  Go benchmark lines of several runs and studies (benchstat -col design
           compares designs)
  ns3      fct.txt and pfc.txt as HPCC's ns-3 writes them, to a new folder (-o);
           needs measure.flows and measure.pauses
  perfetto timeline.pftrace, for ui.perfetto.dev; needs measure.timeline

Export figures for papers from one run, several runs side by side, a sweep, a
comparison or a headroom search: latency distributions, curves, effects. They are
written to a new folder (-o), or one of them (--figure) to standard output:

  svg      the report's charts as standalone files
  pgf      TikZ (pgfplots) that compiles unchanged
  plot-csv the data, with a matplotlib line that plots them`,
		Example: `  farflash export runs/quickstart-1a2b3c4d --format=fio > fio.json
  farflash export run --format=csv --table=series -o series.csv
  farflash export run --format=perfetto -o timeline.pftrace
  farflash export runs/my-sweep-1a2b3c4d --format=pgf --figure read.latency.p99 > p99.tex`,
		Args: verb.Arguments(1, -1, "a run directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if format == "" {
				return verb.Usagef("--format is missing; use one of %s", strings.Join(exports, ", "))
			}
			if !slices.Contains(exports, format) {
				return verb.Usagef("unknown format %q; use one of %s", format, strings.Join(exports, ", "))
			}
			figures := slices.Contains(paper.Formats(), format)
			switch {
			case format != "csv" && cmd.Flags().Changed("table"):
				return verb.Usagef("--table applies only to --format=csv, not to --format=%s; leave "+
					"it out", format)
			case !figures && figure != "":
				return verb.Usagef("--figure applies only to %s, not to --format=%s; leave it out",
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
	cmd.Flags().StringVar(&format, "format", "", "the `format`, one of those above")
	cmd.Flags().StringVar(&table, "table", table, "the `table` that csv writes: "+strings.Join(csvTables(), ", "))
	cmd.Flags().StringVarP(&out, "output", "o", "",
		"write to a new `FILE` instead of standard output (ns3 and figures: to a new folder)")
	cmd.Flags().StringVar(&figure, "figure", "", "write only the figure with this `name` (svg, pgf, plot-csv)")
	return cmd
}

// keptTables maps the tables that a run writes while it is running to their files.
var keptTables = map[string]string{"requests": result.RequestsFile, "chunks": result.ChunksFile,
	"flows": result.FlowsFile, "pauses": result.PausesFile}

// csvTables lists the tables that can be exported as CSV.
func csvTables() []string {
	return append(slices.Clone(result.CSVTables), slices.Sorted(maps.Keys(keptTables))...)
}

// exportRows streams a table with many rows as CSV.
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
		written = errors.Join(written, os.Remove(out)) // do not leave a partial table
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

// exportGobench writes runs and the designs of studies in the format of benchstat.
func (p *program) exportGobench(args []string, out string) error {
	var designs []study.Design
	// a study was read; its design line labels all that follows until the next one, so every run needs a label
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
			return verb.BadInput(fmt.Errorf("%s: no trial has completed; resume it with the command that started it", a))
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
