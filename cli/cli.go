// Package cli implements the command line, one file per verb. It only reads flags, calls the library and prints.
//
// Main runs one command and returns its exit code: 0 on success, 1 if a run failed, was interrupted, panicked or could
// not be written, 2 for bad usage or bad input, 3 if a --fail-if condition held. Results go to standard output,
// everything else to standard error. The names of verbs, flags and files are a contract with other programs, documented
// in docs/reference.
//
// It leaves out anything that a program importing the library would want.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"farflash/cli/calibratecli"
	"farflash/cli/verb"
	"farflash/experiment/trial"
	"farflash/internal/spelling"
	"farflash/internal/term"
	"farflash/planner/tco/sheet"
	"farflash/result"
	"farflash/scenario"
	"farflash/scenario/shape"
	"farflash/study"
)

// program is one invocation of the program.
type program struct {
	in      io.Reader
	out     io.Writer // text for people; control characters are escaped
	data    io.Writer // same destination as out, byte for byte
	err     io.Writer
	stdout  io.Writer // stdout and stderr are the writers that the caller passed
	stderr  io.Writer
	written *sink
	ending  ending
}

// verbs returns the part of the invocation that verbs in packages of their own use.
func (p *program) verbs() *verb.Program {
	return &verb.Program{In: p.in, Out: p.out, Data: p.data, Note: p.note, Style: p.style, Keeping: p.keeping,
		Hangup: p.hangup, Unfinished: p.unfinished, Progress: p.progress, Version: buildVersion(),
		Cache: func(dir string, quiet bool) (*study.Cache, error) {
			name, err := programName()
			if err != nil {
				return nil, verb.Failed(
					fmt.Errorf("cannot read the program's executable, which identifies results in the cache: "+
						"%w", err))
			}
			return p.openCache(&studyFlags{cache: dir, runFlags: runFlags{quiet: quiet}}, name)
		}}
}

// newProgram wraps the streams of an invocation.
func newProgram(in io.Reader, out, errw io.Writer) *program {
	p := &program{in: in, stdout: out, stderr: errw, written: &sink{w: out}}
	p.data = p.written
	p.out = term.Visible(p.written, p.style())
	p.err = term.Visible(errw, p.errorStyle())
	return p
}

// sink records the first write error, so that callers need not check each line of a table. Once a write has failed, the
// later ones fail with the same error. Safe for concurrent use.
type sink struct {
	mu  sync.Mutex
	w   io.Writer
	err error
}

// Write implements io.Writer.
func (s *sink) Write(text []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.w.Write(text)
	if err != nil {
		s.err = fmt.Errorf("standard output: %w", err)
	}
	return n, s.err
}

// flush returns the first error of writing to standard output, nil if all writes succeeded.
func (p *program) flush() error {
	p.written.mu.Lock()
	defer p.written.mu.Unlock()
	return p.written.err
}

// Main runs one command and returns its exit code.
func Main(args []string, in io.Reader, out, errw io.Writer) int {
	if os.Getenv("GOGC") == "" {
		collectLate()
	}
	p := newProgram(in, out, errw)
	root := p.root()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(p.out)
	root.SetErr(p.err)
	err := p.carry(root.ExecuteContext)
	if full := p.flush(); full != nil && (err == nil || errors.Is(err, full)) {
		err = verb.Failed(full)
	}
	if err == nil {
		return verb.ExitDone
	}
	var f *verb.Error
	if !errors.As(err, &f) {
		f = &verb.Error{Code: verb.ExitUsage, Err: err}
	}
	if errors.Is(err, trial.ErrInterrupted) || errors.Is(err, context.Canceled) {
		f.Code = verb.ExitFailed
	}
	if f.Err != nil {
		p.complain(f.Err)
	}
	return f.Code
}

// complain prints an error. Mistakes in a scenario or a table start their lines with the position, as editors expect;
// any other error is prefixed with the program's name.
func (p *program) complain(err error) {
	var located shape.Errors
	var rows sheet.TableErrors
	if errors.As(err, &located) || errors.As(err, &rows) {
		fmt.Fprintln(p.err, err)
		return
	}
	fmt.Fprintf(p.err, "farflash: %v\n", err)
}

// note prints a remark, which is not part of the results, to standard error.
func (p *program) note(format string, args ...any) {
	fmt.Fprintf(p.err, "farflash: "+format+"\n", args...)
}

// Command returns the tree of verbs and flags, for generators of documentation; use Main to run it.
func Command() *cobra.Command { return new(program).root() }

// root returns the root command with all verbs below it.
func (p *program) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "farflash",
		Short: "Simulate, size and serve flash storage",
		Long: `Farflash simulates flash drives, networks, and systems of both, and reports how
long requests take and where the time goes. It also plans drive purchases, and
serves real flash over the network.

  farflash run quickstart             simulate a preset: a table here, a report on disk
  farflash init > my.yaml             write a scenario to start from
  farflash run my.yaml --set ssd.over_provisioning=12%
  farflash compare my.yaml my.yaml,ssd.over_provisioning=12%
  farflash explain ssd.collection     describe a key
  farflash trace info hm_0.csv        describe a trace`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          verb.Unknown,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cmd.Help()
		},
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetFlagErrorFunc(wrongFlag)
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages |",
		fmt.Sprintf(".FlagUsagesWrapped %d |", term.TableWidth)))
	root.AddCommand(p.run(), p.check(), p.explain(), p.list(), p.init(), p.trace(), p.waf(), p.convert(),
		p.compare(), p.sweep(), p.headroom(), p.plan(), p.predict(), calibratecli.Command(p.verbs()), p.merge(),
		p.export(), p.report(), p.diff(), p.reproduce(), p.flash(), p.cite(), p.version(), p.completion())
	for _, cmd := range root.Commands() {
		giveExamples(cmd)
	}
	root.InitDefaultHelpCmd()
	help, _, err := root.Find([]string{"help"})
	verb.Must(err)
	help.Run, help.RunE = nil, func(_ *cobra.Command, args []string) error {
		cmd, rest, err := root.Find(args)
		if err != nil || len(rest) > 0 && cmd.HasSubCommands() {
			return verb.Unknown(cmd, rest)
		}
		return cmd.Help()
	}
	return root
}

// giveExamples completes the help of verbs that only group subcommands: one without examples of its own shows the first
// example of each visible subcommand.
func giveExamples(cmd *cobra.Command) {
	var lines []string
	for _, c := range cmd.Commands() {
		if c.Hidden {
			continue
		}
		giveExamples(c)
		first, _, _ := strings.Cut(c.Example, "\n")
		lines = append(lines, first)
		if len(cmd.Commands()) == 1 {
			lines = append(lines, strings.Split(c.Example, "\n")[1:]...)
		}
	}
	if cmd.Example == "" {
		cmd.Example = strings.Join(lines, "\n")
	}
}

// open loads the scenario that an argument names, with the changes from --set and other flags applied.
func (p *program) open(name string, set []string, more ...shape.Change) (*scenario.Scenario, error) {
	return p.load(name, set, more, scenario.Parse)
}

// openWorkload loads a scenario that need not have a drive.
func (p *program) openWorkload(name string, set []string) (*scenario.Scenario, error) {
	return p.load(name, set, nil, scenario.ParseWorkload)
}

func (p *program) load(name string, set []string, more []shape.Change,
	parse func(shape.Source, []shape.Change) (*scenario.Scenario, error)) (*scenario.Scenario, error) {
	changes, err := parseChanges(set)
	if err != nil {
		return nil, err
	}
	src, err := p.find(name)
	if err != nil {
		return nil, err
	}
	s, err := parse(src, append(changes, more...))
	return s, verb.BadInput(err)
}

// find returns the source of the scenario that an argument names: a file, a preset, a run directory (the scenario that
// was run), or - for standard input.
func (p *program) find(name string) (shape.Source, error) {
	if name == "-" {
		text, err := shape.Read(p.in)
		return shape.Source{File: "stdin", Text: text}, verb.BadInput(err)
	}
	src, err := scenario.Find(name)
	if err != nil {
		ran, none := scenario.Find(filepath.Join(name, result.ScenarioFile))
		if none == nil {
			return ran, nil
		}
	}
	return src, verb.BadInput(err)
}

// wrongFlag reports an unknown flag or an invalid value of a flag.
func wrongFlag(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var value *pflag.InvalidValueError
	if errors.As(err, &value) {
		if use := flagTakes(value.GetFlag().Value.Type()); use != "" {
			return verb.Usagef("%s: --%s %q is not possible; use %s", verb.Name(cmd), value.GetFlag().Name,
				value.GetValue(), use)
		}
	}
	if !errors.As(err, &unknown) {
		return verb.Usagef("%s: %v; see %s --help", verb.Name(cmd), err, cmd.CommandPath())
	}
	flag := unknown.GetSpecifiedName()
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	hint := ""
	if best := spelling.Nearest(flag, names); best != "" && len(flag) > 1 {
		hint = " did you mean --" + best + "?"
	}
	dashes := "--"
	if unknown.GetSpecifiedShortnames() != "" {
		dashes = "-"
	}
	return verb.Usagef("%s: unknown flag %s%s;%s see %s --help", verb.Name(cmd), dashes, flag, hint, cmd.CommandPath())
}

// flagTakes describes the values that a flag of a kind accepts, "" for kinds whose own error says so.
func flagTakes(kind string) string {
	switch kind {
	case "uint64":
		return "a whole number from 0 to 18446744073709551615"
	case "uint32":
		return "a whole number from 0 to 4294967295"
	case "int", "int64":
		return "a whole number of at most 18 digits"
	case "float64":
		return "a number"
	case "bool":
		return "true or false"
	case "duration":
		return "a time such as 30s or 5m"
	}
	return ""
}

// buildVersion returns the module version, or the revision, that this binary was built from.
func buildVersion() string {
	b, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := b.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	revision, changed := "", ""
	for _, s := range b.Settings {
		switch s.Key {
		case "vcs.revision":
			revision = s.Value[:min(len(s.Value), 12)]
		case "vcs.modified":
			if s.Value == "true" {
				changed = "+changes"
			}
		}
	}
	if revision == "" {
		return "devel"
	}
	return "devel-" + revision + changed
}
