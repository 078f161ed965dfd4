package cli

import (
	"bytes"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"farflash/cli/verb"
	"farflash/report"
	"farflash/result"
	"farflash/study"
)

// loadRun reads a run directory. For a study's directory the error points to the study's page, figures and trials.
func loadRun(path string) (*result.Run, error) {
	run, err := result.Load(path)
	if err != nil && study.Is(path) {
		return nil, fmt.Errorf(
			"%s is a study, not a run: its page is %s, farflash export --format=svg draws its "+
				"figures, and its runs are in %s",
			path, filepath.Join(path, result.ReportFile), filepath.Join(path, "trials"))
	}
	return run, err
}

func (p *program) report() *cobra.Command {
	out := ""
	text := false
	cmd := &cobra.Command{
		Use:   "report RUN...",
		Short: "Write an HTML report of one or more runs",
		Long: `Write an HTML report of one run, or of several side by side, as a single file that
needs no network.`,
		Example: `  farflash report runs/op7 runs/op12 -o op.html
  farflash report runs/op7 --text`,
		Args: verb.Arguments(1, -1, "a run directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var runs []report.Run
			for _, a := range args {
				r, err := loadRun(a)
				if err != nil {
					return verb.BadInput(err)
				}
				runs = append(runs, report.FromDirectory(r))
			}
			if text {
				for _, r := range runs {
					if err := report.WriteText(p.out, r, p.style()); err != nil {
						return verb.Failed(err)
					}
				}
				return nil
			}
			var page bytes.Buffer
			if err := report.WriteHTML(&page, runs...); err != nil {
				return verb.Failed(err)
			}
			if out == "-" {
				_, err := p.data.Write(page.Bytes())
				return verb.Failed(err)
			}
			if err := writeNew(out, page.Bytes()); err != nil {
				return err
			}
			p.note("wrote %s", out)
			return nil
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "report.html", "write to a new `FILE`; - is standard output")
	cmd.Flags().BoolVar(&text, "text", false, "print the runs' tables instead")
	return cmd
}
