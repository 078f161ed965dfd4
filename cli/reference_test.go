package cli

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"farflash/internal/golden"
)

var update = flag.Bool("update", false, "write docs/reference/cli.md anew")

var reference = filepath.Join("..", "docs", "reference", "cli.md")

// TestReference verifies that the reference in docs matches the program's help.
func TestReference(t *testing.T) {
	var b bytes.Buffer
	fmt.Fprint(&b, `# The command line

Generated from the program's help by `+"`go test ./cli -run TestReference -update`"+`.

Exit codes: 0 done, 1 a run failed (or was interrupted, or a check failed), 2 bad usage or bad input, 3 a `+"`--fail-if`"+` held.
Results go to standard output, everything else to standard error. A scenario is a file, the name of a preset, or `+"`-`"+` for standard
input. Ctrl-C stops cleanly: results so far are written and marked as incomplete; a second Ctrl-C ends the program at once.
`)
	p := &program{}
	common := commonFlags(p.root())
	fmt.Fprint(&b, "\n## Common flags\n\nA verb names those that it takes below its own flags.\n\n| flag | meaning |\n|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(common)) {
		fmt.Fprint(&b, common[name])
	}
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		if n := strings.Count(cmd.Example, "\n"); cmd.HasParent() && n < 1 {
			t.Errorf("%s has %d lines of examples; its help ends with two at least", cmd.CommandPath(), n)
		}
		if documented(cmd) {
			long := cmd.Long
			if long == "" {
				long = cmd.Short + "."
			}
			fmt.Fprintf(&b, "\n## %s\n\n```\n%s\n```\n\n%s\n", cmd.CommandPath(), cmd.UseLine(), paragraphs(long))
			if cmd.Example != "" {
				fmt.Fprintf(&b, "\n```sh\n%s\n```\n", unindent(cmd.Example))
			}
			var rows, names []string
			for _, r := range flagRows(cmd) {
				if common[r.name] == r.text {
					names = append(names, "`"+r.name+"`")
				} else {
					rows = append(rows, r.text)
				}
			}
			if rows != nil {
				fmt.Fprintf(&b, "\n| flag | meaning |\n|---|---|\n%s", strings.Join(rows, ""))
			}
			if names != nil {
				fmt.Fprintf(&b, "\n[Common flags](#common-flags): %s.\n", strings.Join(names, ", "))
			}
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

// documented reports whether a command has a section: verbs that only group others, which have no flags, have none.
func documented(cmd *cobra.Command) bool {
	return cmd.Runnable() && cmd.HasParent() && (!cmd.HasSubCommands() || cmd.Flags().HasFlags())
}

// flagRow is a flag's row in a table.
type flagRow struct{ name, text string }

// flagRows returns the rows of a verb's own flags, in order of name.
func flagRows(cmd *cobra.Command) (rows []flagRow) {
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Name == "help" {
			return
		}
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
		rows = append(rows, flagRow{"--" + f.Name, fmt.Sprintf("| `%s` | %s |\n", name, usage)})
	})
	return rows
}

// leastCommon is the number of verbs with the same row from which a flag is described once for all of them.
const leastCommon = 2

// commonFlags returns the rows that several verbs share, by the flag's name. Of two such rows of one flag the more
// frequent one is common.
func commonFlags(root *cobra.Command) map[string]string {
	count := map[flagRow]int{}
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		if documented(cmd) {
			for _, r := range flagRows(cmd) {
				count[r]++
			}
		}
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() {
				walk(c)
			}
		}
	}
	walk(root)
	common := map[string]string{}
	for r, n := range count {
		best := flagRow{r.name, common[r.name]}
		if n >= leastCommon && (n > count[best] || n == count[best] && r.text < best.text) {
			common[r.name] = r.text
		}
	}
	return common
}

// paragraphs turns the indented lines of a help text into code blocks.
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
