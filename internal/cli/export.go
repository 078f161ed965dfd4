package cli

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"farflash/internal/cli/verb"
	"farflash/result"
	"farflash/result/columnar"
)

// exports are the formats of farflash export.
var exports = []string{"fio", "csv", "parquet", "gobench", "ns3", "perfetto"}

func (p *program) export() *cobra.Command {
	format, table, out := "", "metrics", ""
	cmd := &cobra.Command{
		Use:   "export RUN...",
		Short: "Write a run for other programs",
		Long: `Write a run directory for other programs, to standard output or a new file:

  fio      JSON as of fio --output-format=json+ (fio_jsonplus_clat2csv reads it)
  csv      one table: --table metrics, series, histograms or matrices
  parquet  the series (requests.parquet is in the run directory if it was asked for)
  gobench  Go benchmark lines, for benchstat; takes several runs
  ns3      fct.txt and pfc.txt as HPCC's ns-3 writes them, in the new folder that -o
           names; the run needs measure.flows and measure.pauses
  perfetto timeline.pftrace as it is in the run directory, for ui.perfetto.dev; the run
           needs measure.timeline`,
		Example: `  farflash export runs/quickstart-1a2b3c4d --format=fio > fio.json
  farflash export run --format=csv --table=series -o series.csv
  farflash export run --format=ns3 -o mix
  farflash export run --format=perfetto -o timeline.pftrace`,
		Args: verb.Arguments(1, -1, "a run directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if format == "" {
				return verb.Usagef("--format is missing; there are %s", strings.Join(exports, ", "))
			}
			if !slices.Contains(exports, format) {
				return verb.Usagef("no format %q; there are %s", format, strings.Join(exports, ", "))
			}
			if len(args) > 1 && format != "gobench" {
				return verb.Usagef("--format=%s takes one run; gobench takes several", format)
			}
			var runs []*result.Run
			for _, a := range args {
				r, err := result.Load(a)
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
	cmd.Flags().StringVar(&table, "table", table, "which `table` csv writes: "+strings.Join(result.CSVTables, ", "))
	cmd.Flags().StringVarP(&out, "output", "o", "", "write to a new `FILE` instead of standard output (ns3: to a new folder)")
	return cmd
}

func writeExport(w io.Writer, format, table string, runs []*result.Run) error {
	switch format {
	case "fio":
		return result.WriteFio(w, runs[0])
	case "csv":
		return result.WriteCSV(w, runs[0].Result, table)
	case "parquet":
		return columnar.WriteSeries(w, runs[0].Result.Series)
	}
	var results []*result.Result
	for _, r := range runs {
		results = append(results, r.Result)
	}
	return result.WriteGobench(w, results...)
}
