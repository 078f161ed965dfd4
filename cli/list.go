package cli

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"farflash/cli/verb"
	"farflash/experiment/trial"
	"farflash/internal/term"
	"farflash/planner/tco/catalogue"
	"farflash/scenario"
	"farflash/workload/fiojob"
	"farflash/workload/trace"
)

// listed is one entry of a list.
type listed struct {
	Name string `json:"name"`
	Text string `json:"text"`
	Unit string `json:"unit,omitempty"`
}

// lists holds the lists that farflash list can show.
var lists = []struct {
	name string
	what func() []listed
}{
	{"presets", func() []listed {
		var out []listed
		for _, x := range scenario.Presets() {
			out = append(out, listed{Name: x.Name, Text: x.Description})
		}
		return out
	}},
	{"metrics", func() []listed {
		var out []listed
		for _, x := range trial.Vocabulary().Metrics.All() {
			out = append(out, listed{x.Name, x.Help, x.Unit})
		}
		return out
	}},
	{"formats", func() []listed {
		var out []listed
		for _, x := range trace.Formats() {
			out = append(out, listed{Name: x.String(), Text: x.Layout()})
		}
		return out
	}},
	{"drives", func() []listed {
		var out []listed
		for _, m := range catalogue.Models() {
			text := term.Size(m.Capacity * 1e9)
			if m.TBW > 0 {
				text += ", " + term.Size(m.TBW*1e12) + " written endurance"
			}
			if unknown := m.Unknown(); unknown != nil {
				text += "; a plan must state or estimate " + strings.Trim(fmt.Sprint(unknown), "[]")
			}
			out = append(out, listed{Name: m.Name, Text: text + " (" + m.Era + ")"})
		}
		return out
	}},
	{"fio-options", func() []listed {
		var out []listed
		for _, x := range fiojob.Options() {
			out = append(out, listed{Name: x})
		}
		return out
	}},
}

func listNames() []string {
	var names []string
	for _, l := range lists {
		names = append(names, l.name)
	}
	return names
}

func (p *program) list() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "list [" + strings.Join(listNames(), "|") + "]",
		Short: "List presets, metrics, trace formats, drives or fio options",
		Long: `List presets (the default) for farflash run and "ssd: NAME"; metrics of
result.json and --fail-if; trace formats; drives for plans; or the supported
options of fio job files.`,
		Example: `  farflash list
  farflash list metrics --json`,
		Args:      verb.Arguments(0, 1, "one of "+strings.Join(listNames(), ", ")),
		ValidArgs: listNames(),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := "presets"
			if len(args) == 1 {
				name = args[0]
			}
			for _, l := range lists {
				if l.name == name {
					return p.printList(l.what(), asJSON)
				}
			}
			return verb.Usagef("no list %q; use one of %s", name, strings.Join(listNames(), ", "))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (p *program) printList(items []listed, asJSON bool) error {
	if asJSON {
		w := json.NewEncoder(p.data)
		w.SetIndent("", "  ")
		return w.Encode(items)
	}
	t := term.NewTable(term.Left(""), term.Left(""), term.Left(""))
	for _, x := range items {
		if x.Unit != "" {
			t.Row(x.Name, x.Unit, x.Text)
		} else {
			t.Row(x.Name, x.Text)
		}
	}
	return t.Write(p.out, p.style())
}
