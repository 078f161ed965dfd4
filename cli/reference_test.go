package cli

import (
	"bytes"
	"flag"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"farflash/internal/golden"
)

var update = flag.Bool("update", false, "write docs/reference/cli.md anew")

var reference = filepath.Join("..", "docs", "reference", "cli.md")

// TestReference verifies that the reference in docs equals the program's help.
func TestReference(t *testing.T) {
	var b bytes.Buffer
	fmt.Fprint(&b, `# The command line

Generated from the program's help by `+"`go test ./cli -run TestReference -update`"+`.

Exit codes: 0 done, 1 a run failed (or was interrupted, or a check did not hold), 2 bad usage or bad input, 3 a `+"`--fail-if`"+` held.
Results go to standard output, everything else to standard error. A scenario is a file, the name of a preset, or `+"`-`"+` for standard
input. Ctrl-C stops cleanly: what is done is written and marked as incomplete; a second one ends the program at once.
`)
	p := &program{}
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		if n := strings.Count(cmd.Example, "\n"); cmd.HasParent() && n < 1 {
			t.Errorf("%s has %d lines of examples; its help ends with two at least", cmd.CommandPath(), n)
		}
		if cmd.Runnable() && cmd.HasParent() && !cmd.HasSubCommands() {
			long := cmd.Long
			if long == "" {
				long = cmd.Short + "."
			}
			fmt.Fprintf(&b, "\n## %s\n\n```\n%s\n```\n\n%s\n", cmd.CommandPath(), cmd.UseLine(), paragraphs(long))
			if cmd.Example != "" {
				fmt.Fprintf(&b, "\n```sh\n%s\n```\n", unindent(cmd.Example))
			}
			rows := 0
			cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
				if f.Name == "help" {
					return
				}
				if rows == 0 {
					fmt.Fprint(&b, "\n| flag | meaning |\n|---|---|\n")
				}
				rows++
				value, usage := pflag.UnquoteUsage(f)
				name := "--" + f.Name
				if f.Shorthand != "" {
					name = "-" + f.Shorthand + ", " + name
				}
				if value != "" {
					name += " " + value
				}
				if f.DefValue != "" && f.DefValue != "[]" && f.DefValue != "false" && f.DefValue != "0" {
					usage += " (default " + f.DefValue + ")"
				}
				fmt.Fprintf(&b, "| `%s` | %s |\n", name, usage)
			})
		}
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() {
				walk(c)
			}
		}
	}
	walk(p.root())
	golden.File(t, reference, b.Bytes(), *update, "go test ./cli -run TestReference -update")
}

// paragraphs formats indented lines of a help text as code.
func paragraphs(text string) string {
	var out []string
	code := false
	for _, line := range strings.Split(text, "\n") {
		indented := strings.HasPrefix(line, "  ")
		if indented != code && (indented || strings.TrimSpace(line) != "") {
			out = append(out, "```")
			code = indented
		}
		out = append(out, strings.TrimPrefix(line, "  "))
	}
	if code {
		out = append(out, "```")
	}
	return strings.Join(out, "\n")
}

func unindent(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], "  ")
	}
	return strings.Join(lines, "\n")
}
