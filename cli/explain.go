package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"farflash/cli/verb"
	"farflash/experiment/trial"
	"farflash/internal/term"
	"farflash/result"
	"farflash/scenario"
	"farflash/scenario/shape"
)

func (p *program) explain() *cobra.Command {
	return &cobra.Command{
		Use:   "explain [PATH]",
		Short: "Describe a scenario key or a metric",
		Long: `Describe a scenario key, its values and its default; or a metric, its unit and
which direction is better. Without a path, list the sections.`,
		Example: `  farflash explain
  farflash explain ssd.collection
  farflash explain 'tenant[0].slowdown.mean'`,
		Args:              verb.Arguments(0, 1, "one path, such as ssd.over_provisioning"),
		ValidArgsFunction: completePath,
		RunE: func(cmd *cobra.Command, args []string) error {
			path := ""
			if len(args) == 1 {
				path = args[0]
			}
			d, err := scenario.Describe(path)
			if m, ok := trial.Vocabulary().Metrics.Lookup(path); err != nil && ok {
				return p.describeMetric(m)
			}
			if err != nil {
				return verb.BadInput(err)
			}
			return p.describe(d)
		},
	}
}

// describeMetric prints the meaning of a metric.
func (p *program) describeMetric(m result.Definition) error {
	fmt.Fprintln(p.out, p.style().Bold(m.Name))
	for _, part := range term.Lines("A metric: "+m.Help+".", 78) {
		fmt.Fprintf(p.out, "  %s\n", part)
	}
	better := map[result.Direction]string{result.LowerIsBetter: "Lower is better.",
		result.HigherIsBetter: "Higher is better.", result.NeitherBetter: "Neither direction is better."}
	_, err := fmt.Fprintf(p.out, "  Unit: %s. %s\n", m.Unit, better[m.Better])
	return err
}

// describe prints a description of keys.
func (p *program) describe(d shape.Description) error {
	style := p.style()
	if d.Path != "" {
		fmt.Fprintln(p.out, style.Bold(d.Path))
	}
	for line := range strings.Lines(d.Doc) {
		for _, part := range term.Lines(strings.TrimSpace(line), 78) {
			fmt.Fprintf(p.out, "  %s\n", part)
		}
	}
	if len(d.Values) == 0 {
		fmt.Fprintf(p.out, "  Value: %s.\n", d.Value)
	}
	if len(d.Keys) == 0 {
		fmt.Fprintf(p.out, "  Default: %s\n", d.Default)
		return p.describeValues(d.Values)
	}
	fmt.Fprintln(p.out)
	// The meaning gets the rest of the 80 columns.
	keys, defaults := term.Width("key"), term.Width("default")
	for _, k := range d.Keys {
		keys, defaults = max(keys, term.Width(k.Path[strings.LastIndexByte(k.Path, '.')+1:])),
			max(defaults, term.Width(k.Default))
	}
	width := max(80-2-keys-2-defaults-2, 24)
	t := term.NewTable(term.Left("key"), term.Left("default"), term.Left("meaning")).Indent("  ")
	for _, k := range d.Keys {
		key := k.Path[strings.LastIndexByte(k.Path, '.')+1:]
		meaning := k.Doc
		if first, _, ok := strings.Cut(meaning, ". "); ok {
			meaning = first + "."
		}
		if meaning == "" {
			meaning = k.Value
		}
		for i, part := range term.Lines(meaning, width) {
			if i > 0 {
				t.Row("", "", part)
				continue
			}
			t.Row(key, k.Default, part)
		}
	}
	return t.Write(p.out, style)
}

// describeValues prints the meaning of each word that a key accepts.
func (p *program) describeValues(values []shape.ValueDescription) error {
	if len(values) == 0 {
		return nil
	}
	fmt.Fprintln(p.out)
	words := term.Width("value")
	for _, v := range values {
		words = max(words, term.Width(v.Word))
	}
	t := term.NewTable(term.Left("value"), term.Left("meaning")).Indent("  ")
	for _, v := range values {
		word := v.Word
		for _, part := range term.Lines(v.Doc, 80-2-words-2) {
			t.Row(word, part)
			word = ""
		}
	}
	return t.Write(p.out, p.style())
}
