package cli

import (
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"farflash/cli/verb"
	"farflash/internal/term"
	"farflash/result"
	"farflash/scenario/shape"
)

// metricChange is a metric of two runs.
type metricChange struct {
	Name     string   `json:"name"`
	Unit     string   `json:"unit"`
	A        *float64 `json:"a"` // null: the run does not have the metric
	B        *float64 `json:"b"`
	Relative *float64 `json:"relative,omitempty"` // (b-a)/|a|
}

// keyChange is a key whose value differs between two scenarios.
type keyChange struct {
	Path string `json:"path"`
	A    string `json:"a"`
	B    string `json:"b"`
}

func (p *program) diff() *cobra.Command {
	asJSON, all := false, false
	cmd := &cobra.Command{
		Use:   "diff RUN RUN",
		Short: "Compare two runs' scenarios and metrics",
		Long: `Compare two runs: the scenario keys that differ, and the metrics. Two runs cannot
separate an effect from chance; farflash compare can.`,
		Example: `  farflash diff runs/op7 runs/op12
  farflash diff runs/op7 runs/op12 --json`,
		Args: verb.Arguments(2, 2, "two run directories"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var runs [2]*result.Run
			for i, a := range args {
				var err error
				if runs[i], err = loadRun(a); err != nil {
					return verb.BadInput(err)
				}
			}
			var sources [2]shape.Source
			for i, r := range runs {
				sources[i] = shape.Source{File: filepath.Join(r.Path, result.ScenarioFile), Text: []byte(r.Scenario)}
			}
			keys, err := p.keyChanges(sources)
			if err != nil {
				return verb.BadInput(err)
			}
			if a, b := runs[0].Result.Seed, runs[1].Result.Seed; a != b {
				keys = append([]shape.KeyChange{{Path: "seed", A: fmt.Sprint(a), B: fmt.Sprint(b)}}, keys...)
			}
			metrics := changes(runs[0].Result, runs[1].Result)
			if asJSON {
				doc := struct {
					Keys    []keyChange    `json:"keys"`
					Metrics []metricChange `json:"metrics"`
				}{[]keyChange{}, metrics}
				for _, k := range keys {
					doc.Keys = append(doc.Keys, keyChange(k))
				}
				w := json.NewEncoder(p.data)
				w.SetIndent("", "  ")
				return verb.Failed(w.Encode(doc))
			}
			return verb.Failed(p.printDiff(keys, metrics, all))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&all, "all", false, "show every metric that differs, including those of parts such as tenants")
	return cmd
}

// keyChanges lists the keys that differ between two scenarios, none if either is missing.
func (p *program) keyChanges(of [2]shape.Source) ([]shape.KeyChange, error) {
	for _, s := range of {
		if len(s.Text) == 0 {
			p.note("%s has no %s; keys are not compared", filepath.Dir(s.File), result.ScenarioFile)
			return nil, nil
		}
	}
	return shape.Differences(of[0], of[1])
}

// changes lists the metrics of both runs.
func changes(a, b *result.Result) []metricChange {
	var out []metricChange
	for _, x := range a.Metrics {
		c := metricChange{Name: x.Name, Unit: x.Unit, A: &x.Value}
		if y, ok := b.Metric(x.Name); ok {
			c.B = &y.Value
			if rel := (y.Value - x.Value) / math.Abs(x.Value); x.Value != 0 && !math.IsInf(rel, 0) {
				c.Relative = &rel
			}
		}
		out = append(out, c)
	}
	for _, y := range b.Metrics {
		if _, ok := a.Metric(y.Name); !ok {
			out = append(out, metricChange{Name: y.Name, Unit: y.Unit, B: &y.Value})
		}
	}
	return out
}

func (p *program) printDiff(keys []shape.KeyChange, metrics []metricChange, all bool) error {
	if len(keys) > 0 {
		t := term.NewTable(term.Left("scenario"), term.Left("A"), term.Left("B"))
		for _, k := range keys {
			t.Row(k.Path, orDash(k.A), orDash(k.B))
		}
		if err := t.Write(p.out, p.style()); err != nil {
			return err
		}
		fmt.Fprintln(p.out)
	}
	t := term.NewTable(term.Left("metric"), term.Right("A"), term.Right("B"), term.Right("change"))
	hidden := 0
	for _, m := range metrics {
		if m.A != nil && m.B != nil && *m.A == *m.B {
			continue
		}
		if !all && (!worthShowing(m.Name) || strings.Contains(m.Name, "[")) { // metrics of parts are too many to print
			hidden++
			continue
		}
		value := func(v *float64) string {
			if v == nil {
				return "-"
			}
			return term.Quantity(*v, m.Unit)
		}
		change := ""
		if m.Relative != nil {
			change = fmt.Sprintf("%+.2f %%", *m.Relative*100)
		}
		t.Row(m.Name, value(m.A), value(m.B), change)
	}
	if t.Rows() == 0 && hidden == 0 {
		fmt.Fprintln(p.out, "no metric differs")
		return nil
	}
	if t.Rows() > 0 {
		if err := t.Write(p.out, p.style()); err != nil {
			return err
		}
		if hidden > 0 {
			fmt.Fprintln(p.out)
		}
	}
	switch hidden {
	case 0:
	case 1:
		fmt.Fprintln(p.out, "1 other differs; --all shows it")
	default:
		fmt.Fprintf(p.out, "%d others differ; --all shows them\n", hidden)
	}
	return nil
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
