package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"farflash/internal/cli/verb"
	"farflash/internal/term"
	"farflash/scenario"
	"farflash/shape"
)

func (p *program) explain() *cobra.Command {
	return &cobra.Command{
		Use:   "explain [PATH]",
		Short: "Say what a key of a scenario means",
		Long: `Say what a key of a scenario means, what to write, and its default. Without a path
it lists the sections.`,
		Example: `  farflash explain
  farflash explain ssd.collection
  farflash explain 'workload[0].trace.skip_bad'`,
		Args:              verb.Arguments(0, 1, "one path, such as ssd.over_provisioning"),
		ValidArgsFunction: completePath,
		RunE: func(cmd *cobra.Command, args []string) error {
			path := ""
			if len(args) == 1 {
				path = args[0]
			}
			d, err := scenario.Describe(path)
			if err != nil {
				return verb.BadInput(err)
			}
			return p.describe(d)
		},
	}
}

// describe prints a description.
func (p *program) describe(d shape.Description) error {
	style := p.style()
	if d.Path != "" {
		fmt.Fprintln(p.out, style.Bold(d.Path))
	}
	for line := range strings.Lines(d.Doc) {
		for _, part := range wrap(strings.TrimSpace(line), 78) {
			fmt.Fprintf(p.out, "  %s\n", part)
		}
	}
	fmt.Fprintf(p.out, "  Value: %s.\n", d.Value)
	if len(d.Keys) == 0 {
		fmt.Fprintf(p.out, "  Default: %s\n", d.Default)
		return nil
	}
	fmt.Fprintln(p.out)
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
		for i, part := range wrap(meaning, 60) {
			if i > 0 {
				t.Row("", "", part)
				continue
			}
			t.Row(key, k.Default, part)
		}
	}
	return t.Write(p.out, style)
}

// wrap cuts text into lines of at most so many characters.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, w := range strings.Fields(text) {
		if line != "" && term.Width(line)+1+term.Width(w) > width {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += w
	}
	return append(lines, line)
}
