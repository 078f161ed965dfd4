package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"farflash/cli/verb"
	"farflash/experiment/trial"
	"farflash/planner/objects"
	"farflash/report"
	"farflash/scenario/shape"
	"farflash/study"
)

// planClusterFlags holds the flags of farflash plan cluster.
type planClusterFlags struct {
	studyFlags
	init   bool
	keys   []*string // values of the flags in needFlags, in the same order
	drives []string
	nics   []string
}

// needFlags lists the flags that set a key of the need.
var needFlags = []struct{ flag, key, help string }{
	{"rate", "rate", "arrival rate, in `chunks` per second"},
	{"chunk", "chunk", "chunk `size`"},
	{"reads", "reads", "`share` of gets"},
	{"put-p99", "put_p99", "limit on the 99th percentile `time` of puts"},
	{"get-p99", "get_p99", "limit on the 99th percentile `time` of gets"},
	{"replicas", "replicas", "number of `copies` of each chunk"},
	{"survive", "survive", "number of `nodes` that may be down"},
	{"protocols", "protocols", "`names` of candidate protocols, separated by commas"},
	{"group-sizes", "group_sizes", "candidate `sizes` of groups, separated by commas"},
}

func (p *program) planCluster() *cobra.Command {
	var f planClusterFlags
	cmd := &cobra.Command{
		Use:   "cluster [NEED]",
		Short: "Find the cheapest object cluster for a rate and a latency",
		Long: `Find the cheapest object cluster that puts and gets chunks at a given rate and
99th percentile of latency: the number of nodes, the drive, the NIC, the protocol
and the group size. The need is a YAML file, flags, or both.

Designs that a bound excludes are not simulated. The others run in an open loop at
the needed rate, with several seeds. A design meets the need if no queue grows and
the upper end of the 95 % interval of the 99th percentile is below the limit. With
--survive this must hold with all nodes, and with that many nodes down while their
pieces are rebuilt.

The plan directory holds plan.json, report.html, need.yaml with every default, and
the run directories in trials. Repeat the command to resume an interrupted search.`,
		Example: `  farflash plan cluster --init > need.yaml
  farflash plan cluster need.yaml
  farflash plan cluster --rate 20000 --put-p99 2ms --drive rate=400MiB/s,price=220 --nic rate=10Gbps,price=250`,
		Args: verb.Arguments(0, 1, "at most one need file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.init {
				_, err := io.WriteString(p.data, objects.Template)
				return verb.Failed(err)
			}
			return p.runPlanCluster(cmd, args, &f)
		},
	}
	fl := cmd.Flags()
	fl.BoolVar(&f.init, "init", false, "print a commented example need, and exit")
	for _, x := range needFlags {
		f.keys = append(f.keys, fl.String(x.flag, "", x.help))
	}
	fl.StringArrayVar(&f.drives, "drive", nil,
		"a candidate drive: `KEY=VALUE,...` with name, rate, price, capacity and watts (repeatable)")
	fl.StringArrayVar(&f.nics, "nic", nil,
		"a candidate NIC: `KEY=VALUE,...` with name, rate, price and watts (repeatable)")
	fl.StringArrayVar(&f.set, "set", nil, "change a value of the need: `path=value` (repeatable)")
	fl.Uint64Var(&f.seed, "seed", 1, "random seed")
	fl.IntVar(&f.reps, "reps", 5, "simulate each design `N` times, with seeds seed, seed+1, ...")
	fl.StringVarP(&f.dir, "output", "o", "",
		"write the plan to `DIR`, or resume the one there (default runs/NAME-plan-DIGEST)")
	fl.BoolVar(&f.json, "json", false, "print only plan.json, on standard output")
	fl.BoolVar(&f.quiet, "quiet", false, "no table, no progress and no remarks")
	fl.IntVarP(&f.jobs, "jobs", "j", 0, "run at most `N` simulations at once (default one per processor)")
	fl.StringVar(&f.cache, "cache", "",
		"cache results in `DIR` (default farflash in the user's cache folder)")
	fl.BoolVar(&f.noCache, "no-cache", false, "do not use the cache")
	dirs := func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
	verb.Must(cmd.RegisterFlagCompletionFunc("output", dirs))
	verb.Must(cmd.RegisterFlagCompletionFunc("cache", dirs))
	return cmd
}

// changes returns the changes that the flags make to the need.
func (f *planClusterFlags) changes(cmd *cobra.Command) ([]shape.Change, error) {
	var out []shape.Change
	for i, x := range needFlags {
		if !cmd.Flags().Changed(x.flag) {
			continue
		}
		value := *f.keys[i]
		if x.key == "protocols" || x.key == "group_sizes" {
			value = "[" + value + "]"
		}
		out = append(out, shape.Change{Path: x.key, Value: value, Flag: "--" + x.flag})
	}
	for _, x := range []struct {
		flag, key string
		values    []string
	}{{"--drive", "drives", f.drives}, {"--nic", "nics", f.nics}} {
		if len(x.values) == 0 {
			continue
		}
		var list []string
		for _, v := range x.values {
			item, err := mapping(v)
			if err != nil {
				return nil, verb.Usagef("%s: %w", x.flag, err)
			}
			list = append(list, item)
		}
		out = append(out, shape.Change{Path: x.key, Value: "[" + strings.Join(list, ", ") + "]", Flag: x.flag})
	}
	set, err := parseChanges(f.set)
	return append(out, set...), err
}

// mapping turns "rate=400MiB/s,price=220" into a YAML mapping.
func mapping(text string) (string, error) {
	parts, err := study.SplitValues(text)
	if err != nil {
		return "", err
	}
	for i, part := range parts {
		key, value, ok := strings.Cut(part, "=")
		if !ok || key == "" || value == "" {
			return "", fmt.Errorf("%q is not a list of KEY=VALUE, such as rate=400MiB/s,price=220", text)
		}
		parts[i] = key + ": " + strconv.Quote(value)
	}
	return "{" + strings.Join(parts, ", ") + "}", nil
}

// runPlanCluster runs the search and shows its findings, also those of an interrupted search.
func (p *program) runPlanCluster(cmd *cobra.Command, args []string, f *planClusterFlags) error {
	if err := f.check(2); err != nil {
		return err
	}
	changes, err := f.changes(cmd)
	if err != nil {
		return err
	}
	var src shape.Source
	if len(args) == 1 {
		if src, err = p.find(args[0]); err != nil {
			return err
		}
	} else if len(changes) == 0 {
		return verb.Usagef("plan cluster: give a need file, or --rate, --put-p99, --drive and " +
			"--nic; farflash plan cluster --init prints an example")
	}
	need, err := objects.Load(src, changes)
	if err != nil {
		return verb.BadInput(err)
	}
	folder, plan, err := p.searchCluster(cmd.Context(), need, f)
	if plan == nil {
		return err
	}
	if err != nil && !errors.Is(err, trial.ErrInterrupted) && !errors.Is(err, context.Canceled) {
		return verb.Failed(err)
	}
	complete := err == nil
	err = nil // an interruption is reported after the findings
	if err := p.keepPlan(folder, plan, need, complete); err != nil {
		return err
	}
	switch {
	case f.json:
		err = p.verbs().JSON(objects.Describe(plan, need, complete, runOf))
	case !f.quiet:
		if err = verb.Failed(report.WriteSizingText(p.out, plan, p.style())); err == nil {
			fmt.Fprintf(p.out, "\nplan directory: %s\n", folder.Path())
		}
	}
	switch {
	case err != nil:
		return err
	case !complete:
		return verb.Failed(fmt.Errorf("interrupted after %d designs, which are in %s; repeat the command to "+
			"continue", len(plan.Points), folder.Path()))
	case plan.Best == nil:
		return verb.Failed(errors.New("no design meets the need"))
	}
	return nil
}

// searchCluster runs the search in its folder. The plan is nil if the search did not start.
func (p *program) searchCluster(ctx context.Context, need *objects.File, f *planClusterFlags) (*study.Folder,
	*objects.Plan, error) {
	name, err := programName()
	if err != nil {
		return nil, nil, verb.Failed(
			fmt.Errorf("cannot read the program's executable, which identifies results in the cache: %w", err))
	}
	cache, err := p.openCache(&f.studyFlags, name)
	if err != nil {
		return nil, nil, err
	}
	p.keeping() // before the folder exists: once it is visible, others may expect the command to continue from it
	folder, err := openSearch(study.Search{Name: need.Name, Digest: need.Digest, Seed: f.seed, Reps: f.reps}, "plan",
		f.dir, study.Program{Version: buildVersion(), Name: name})
	if err != nil {
		return nil, nil, verb.BadInput(err)
	}
	seeds := make([]uint64, f.reps)
	for i := range seeds {
		seeds[i] = f.seed + uint64(i)
	}
	defer p.unfinishedStudy(folder, cache)()
	progress := p.progress("plan", "options", f.quiet, justEnds)
	sizer := &objects.Sizer{Need: need.Need,
		Runner: &study.Runner{Workers: f.jobs, Version: buildVersion(), Cache: cache, Folder: folder,
			Warn: func(err error) {
				if !f.quiet {
					p.note("%v", err)
				}
			},
		}}
	plan, err := objects.Search(ctx, need.Need, sizer, seeds, func(s objects.Step) {
		note := need.Label(s.Design)
		if s.Best != nil {
			note += fmt.Sprintf("; best so far %v", s.Best.Cost)
		}
		progress.Update(int64(s.Decided), int64(s.Of), note)
	})
	progress.Stop()
	return folder, plan, err
}

// openSearch opens the folder of a search. The default name is derived from the need, with a number appended if the
// folder belongs to a different search.
func openSearch(s study.Search, kind, dir string, program study.Program) (*study.Folder, error) {
	if dir != "" {
		return study.OpenSearch(dir, s, program)
	}
	first := defaultRun(s.Name+"-"+kind, s.Digest)
	dir = first
	for n := 2; ; n++ {
		folder, err := study.OpenSearch(dir, s, program)
		if !errors.Is(err, study.ErrOther) {
			return folder, err
		}
		dir = fmt.Sprintf("%s-%d", first, n)
	}
}

// runOf returns the path of a run relative to the plan's directory.
func runOf(digest string, seed uint64) string {
	return filepath.ToSlash(study.Place(trial.Trial{Digest: digest, Seed: seed}))
}

// keepPlan writes the findings into the plan's folder.
func (p *program) keepPlan(folder *study.Folder, plan *objects.Plan, need *objects.File, complete bool) error {
	if err := folder.WriteJSON("plan.json", objects.Describe(plan, need, complete, runOf)); err != nil {
		return verb.Failed(err)
	}
	var page bytes.Buffer
	err := report.WriteSizing(&page, plan,
		report.Study{Scenario: need.Text, Version: buildVersion(), Command: commandLine()}, runOf)
	if err != nil {
		return verb.Failed(fmt.Errorf("report: %w", err))
	}
	return verb.Failed(errors.Join(folder.Write("report.html", page.Bytes()),
		folder.Write("need.yaml", []byte(need.Text))))
}
