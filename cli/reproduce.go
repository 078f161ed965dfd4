package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"farflash/cli/verb"
	"farflash/internal/cells"
	"farflash/internal/term"
	"farflash/report"
	"farflash/result"
	"farflash/study"
	"farflash/study/reproduce"
	"farflash/study/training"
)

func (p *program) reproduce() *cobra.Command {
	asJSON, quiet := false, false
	dir := ""
	seed := uint64(1)
	cmd := &cobra.Command{
		Use:   "reproduce ID|list|all",
		Short: "Rerun a paper's table or figure",
		Long: `Rerun a paper's table or figure, and compare the results with the printed ones.
Each row has a tolerance with its reason, and a verdict: ok (agrees with the
printed number), not reproduced (with the reason, or "not explained"), or not
stated (the paper prints no number, and its quoted sentence holds). A row notes
if its paper value depends on something that the paper does not print. --json
adds what each row depends on, and a change that flips its verdict.

Verdicts with seed 1 are recorded: list counts them, and the exit code is 1 if a
row is worse than recorded. Experiments on the real stack measure this machine
and have no recorded verdicts. -o also writes the scenarios, the curves as CSV,
and a page with the figure.`,
		Example: `  farflash reproduce list
  farflash reproduce snis-fig2 -o fig2`,
		Args: verb.Arguments(1, 1, "an experiment's id, list or all"),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			out := []string{"list", "all"}
			for _, e := range reproduce.All() {
				out = append(out, e.ID+"\t"+e.Title)
			}
			return out, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			experiments := reproduce.All()
			switch args[0] {
			case "list":
				return p.listExperiments(experiments, asJSON)
			case "all":
			default:
				e, err := reproduce.Find(args[0])
				if err != nil {
					return verb.BadInput(err)
				}
				experiments = []reproduce.Experiment{e}
			}
			f := studyFlags{runFlags: runFlags{quiet: quiet}}
			name, err := programName()
			if err != nil {
				return verb.Failed(err)
			}
			cache, err := p.openCache(&f, name)
			if err != nil {
				return err
			}
			defer p.unfinishedTrials(cache)()
			servers, err := servers()
			if err != nil {
				return err
			}
			var reports []*reproduce.Report
			for _, e := range experiments {
				progress := p.progress("reproduce "+e.ID, "runs", quiet, justEnds)
				// The trained models and their samples are cached, because several experiments use the same ones.
				trainer := training.NewTrainer(training.DefaultConfig(),
					study.Runner{Version: buildVersion(), Cache: cache, Progress: func(x study.Progress) {
						progress.Update(int64(x.Done), int64(x.Of), "to train a model")
					}})
				r, err := e.Run(cmd.Context(),
					reproduce.Options{Seed: seed, Version: buildVersion(), Trainer: trainer, Server: servers,
						Progress: func(done, all int) {
							progress.Update(int64(done), int64(all), "")
						}})
				progress.Stop()
				if err != nil {
					return verb.Failed(fmt.Errorf("%s: %w", e.ID, err))
				}
				reports = append(reports, r)
				if dir != "" {
					whole := p.unfinished(result.Literal(filepath.Join(dir, e.ID)))
					err := writeExperiment(filepath.Join(dir, e.ID), r)
					if whole(); err != nil {
						return verb.BadInput(err)
					}
				}
				if !asJSON {
					if err := p.printExperiment(r); err != nil {
						return verb.Failed(err)
					}
				}
			}
			if asJSON {
				if err := p.experimentJSON(args[0] == "all", reports); err != nil {
					return verb.Failed(err)
				}
			} else if len(reports) > 1 {
				fmt.Fprintf(p.out, "all: %v\n", sum(reports).Count)
			}
			return fallen(reports)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&quiet, "quiet", false, "no progress")
	cmd.Flags().StringVarP(&dir, "output", "o", "", "write scenarios, curves and a page to a new folder in `DIR`")
	cmd.Flags().Uint64Var(&seed, "seed", seed, "random seed")
	return cmd
}

// fallen returns the error for rows whose verdict is worse than the recorded one.
func fallen(reports []*reproduce.Report) error {
	var rows []string
	for _, r := range reports {
		for _, x := range r.Fell() {
			rows = append(rows, r.ID+": "+x.String())
		}
	}
	switch len(rows) {
	case 0:
		return nil
	case 1:
		return verb.Failed(errors.New(rows[0]))
	}
	return verb.Failed(fmt.Errorf("%s; and %d more rows are worse than recorded", rows[0], len(rows)-1))
}

// listedExperiment is an experiment with the counts of its recorded verdicts.
type listedExperiment struct {
	Name string `json:"name"`
	Text string `json:"text"`
	reproduce.Count
	Measured int `json:"measured"` // rows without a recorded verdict
	title    string
}

func (p *program) listExperiments(list []reproduce.Experiment, asJSON bool) error {
	var items []listedExperiment
	for _, e := range list {
		held, measured := reproduce.Held(e.ID)
		items = append(items, listedExperiment{e.ID, e.Title + " (" + e.Paper + ")", held, measured, e.Title})
	}
	if asJSON {
		w := json.NewEncoder(p.out)
		w.SetIndent("", "  ")
		return verb.Failed(w.Encode(items))
	}
	t := term.NewTable(term.Left(""), term.Right("ok"), term.Right("not reproduced"), term.Right("not stated"),
		term.Left(""))
	var all reproduce.Count
	line := func(name string, c reproduce.Count, text string) {
		if c == (reproduce.Count{}) {
			t.Row(name, "-", "-", "-", text+" (measured here)")
			return
		}
		t.Row(name, strconv.Itoa(c.OK), strconv.Itoa(c.NotReproduced), strconv.Itoa(c.NotStated), text)
	}
	for _, x := range items {
		line(x.Name, x.Count, x.title)
		all.Add(x.Count)
	}
	line("all", all, "")
	return verb.Failed(t.Write(p.out, p.style()))
}

// reportSum holds the reports of all experiments and the sum of their counts.
type reportSum struct {
	Experiments []*reproduce.Report `json:"experiments"`
	Count       reproduce.Count     `json:"count"`
	OK          bool                `json:"ok"`
}

func sum(reports []*reproduce.Report) reportSum {
	x := reportSum{Experiments: reports, OK: true}
	for _, r := range reports {
		x.Count.Add(r.Count)
		x.OK = x.OK && r.OK
	}
	return x
}

// experimentJSON prints one report, or all reports and their sum.
func (p *program) experimentJSON(all bool, reports []*reproduce.Report) error {
	w := json.NewEncoder(p.data)
	w.SetIndent("", "  ")
	if !all {
		return w.Encode(reports[0])
	}
	return w.Encode(sum(reports))
}

func (p *program) printExperiment(r *reproduce.Report) error {
	style := p.style()
	fmt.Fprintf(p.out, "%s: %s\n%s\n\n", style.Bold(r.ID), r.Title, term.Wrap(r.Paper, ""))
	t := term.NewTable(term.Left("row"), term.Left("metric"), term.Right("paper"), term.Right("ours"),
		term.Left("unit"), term.Left(""), term.Left("expected"))
	for i := range r.Rows {
		row := &r.Rows[i]
		paper := "-"
		if row.Paper != nil {
			paper = term.Significant(*row.Paper, 4)
		}
		v := row.Verdict()
		verdict := v.String()
		switch v {
		case reproduce.OK:
			verdict = style.Good(verdict)
		case reproduce.NotReproduced:
			verdict = style.Bad(verdict)
		}
		for i, part := range term.Lines(row.Words(), 60) {
			if i > 0 {
				t.Row("", "", "", "", "", "", part)
				continue
			}
			t.Row(row.Label, row.Metric, paper, significant(row.Ours), row.Unit, verdict, part)
		}
	}
	if err := t.Write(p.out, style); err != nil {
		return err
	}
	fmt.Fprintf(p.out, "%v\n\n", r.Count)
	if r.Note != "" {
		for _, part := range term.Lines(r.Note+".", term.TableWidth) {
			fmt.Fprintln(p.out, part)
		}
		fmt.Fprintln(p.out)
	}
	return nil
}

// significant formats a row's figure, "-" if it is missing.
func significant(x float64) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return "-"
	}
	return term.Significant(x, 4)
}

// writeExperiment writes the scenarios, the page and the curves to a folder, which must not exist.
func writeExperiment(dir string, r *reproduce.Report) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o777); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o777); err != nil {
		if errors.Is(err, os.ErrExist) {
			return fmt.Errorf("%s already exists and is not overwritten; name another", dir)
		}
		return err
	}
	for _, s := range r.Scenarios {
		if err := os.WriteFile(filepath.Join(dir, s.Name+".yaml"), []byte(s.Text), 0o666); err != nil {
			return err
		}
	}
	var page bytes.Buffer
	if err := report.WriteExperiment(&page, r, buildVersion(), commandLine()); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, result.ReportFile), page.Bytes(), 0o666); err != nil {
		return err
	}
	if len(r.Curves) == 0 {
		return nil
	}
	var b strings.Builder
	b.WriteString("panel,curve,x,y,x_label,y_label\n")
	for _, c := range r.Curves {
		for i := range c.X {
			fmt.Fprintf(&b, "%q,%q,%s,%s,%q,%q\n", cells.Text(c.Panel), cells.Text(c.Name),
				strconv.FormatFloat(c.X[i], 'g', -1, 64), strconv.FormatFloat(c.Y[i], 'g', -1, 64), c.XLabel, c.YLabel)
		}
	}
	return os.WriteFile(filepath.Join(dir, "curves.csv"), []byte(b.String()), 0o666)
}
