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

// planClusterFlags are those of farflash plan cluster.
type planClusterFlags struct {
	studyFlags
	init   bool
	keys   []*string // values of the flags that set keys
	drives []string
	nics   []string
}

// needFlags are the flags that set a key of the need.
var needFlags = []struct{ flag, key, help string }{
	{"rate", "rate", "rate of arriving `chunks`, per second"},
	{"chunk", "chunk", "`size` of a chunk"},
	{"reads", "reads", "`share` of the chunks that are read"},
	{"put-p99", "put_p99", "limit of the 99th percentile of puts, a `time`"},
	{"get-p99", "get_p99", "limit of the 99th percentile of gets, a `time`"},
	{"replicas", "replicas", "`copies` of each chunk"},
	{"survive", "survive", "number of `nodes` that may be down"},
	{"protocols", "protocols", "`names` of protocols to choose from, with commas"},
	{"group-sizes", "group_sizes", "`sizes` of groups to choose from, with commas"},
}

func (p *program) planCluster() *cobra.Command {
	var f planClusterFlags
	cmd := &cobra.Command{
		Use:   "cluster [NEED]",
		Short: "Find the cheapest object cluster for a rate and a latency",
		Long: `Find the cheapest object cluster that puts and gets chunks at a given rate within
a 99th percentile of latency. The answer is the number of nodes, the drive, the
NIC, the protocol and the size of groups. The need is a YAML file, flags, or both;
--init prints one to start from.

Designs that bounds rule out are not simulated. The others are simulated with
several seeds in an open loop at the needed rate. A design meets the need if no
queue grows and the upper end of the 95 % interval of the 99th percentile is
below the limit. With --survive this must hold with all nodes, and again with
that many nodes down, while the pieces that they held are rebuilt.

The plan's directory holds plan.json, report.html, need.yaml with every default,
and in trials a run directory of each simulation. The same command continues an
interrupted search.`,
		Example: `  farflash plan cluster --init > need.yaml
  farflash plan cluster need.yaml
  farflash plan cluster need.yaml --put-p99 1ms --survive 1 -o plans/tight
  farflash plan cluster --rate 20000 --put-p99 2ms --drive rate=400MiB/s,price=220 --nic rate=10Gbps,price=250`,
		Args: verb.Arguments(0, 1, "at most one file with the need"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.init {
				_, err := io.WriteString(p.data, objects.Template)
				return verb.Failed(err)
			}
			return p.runPlanCluster(cmd, args, &f)
		},
	}
	fl := cmd.Flags()
	fl.BoolVar(&f.init, "init", false, "print a commented need to start from, and exit")
	for _, x := range needFlags {
		f.keys = append(f.keys, fl.String(x.flag, "", x.help))
	}
	fl.StringArrayVar(&f.drives, "drive", nil,
		"a drive to choose from: `KEY=VALUE,...` with name, rate, price, capacity and watts (repeatable)")
	fl.StringArrayVar(&f.nics, "nic", nil,
		"a NIC to choose from: `KEY=VALUE,...` with name, rate, price and watts (repeatable)")
	fl.StringArrayVar(&f.set, "set", nil, "change a value of the need: `path=value` (repeatable)")
	fl.Uint64Var(&f.seed, "seed", 1, "seed of the random numbers")
	fl.IntVar(&f.reps, "reps", 5, "simulate each design `N` times, with the seeds seed, seed+1, ...")
	fl.StringVarP(&f.dir, "output", "o", "",
		"write the plan to `DIR`, or continue the one there (default runs/NAME-plan-DIGEST)")
	fl.BoolVar(&f.json, "json", false, "print only plan.json, on standard output")
	fl.BoolVar(&f.quiet, "quiet", false, "no table, no progress and no remarks")
	fl.IntVarP(&f.jobs, "jobs", "j", 0, "run at most `N` simulations at once (default one a processor)")
	fl.StringVar(&f.cache, "cache", "",
		"cache results of trials in `DIR` (default farflash in the user's cache folder)")
	fl.BoolVar(&f.noCache, "no-cache", false, "do not use the cache of results")
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

// mapping converts "rate=400MiB/s,price=220" to its form in a file.
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

// runPlanCluster searches and shows the results, including partial ones.
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
		return verb.Usagef("plan cluster: say what is needed in a file, or with --rate, --put-p99, --drive and " +
			"--nic; farflash plan cluster --init prints a file to start from")
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
	err = nil // for the calls below
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
		return verb.Failed(fmt.Errorf("interrupted after %d designs; %s holds their runs; run the same command to "+
			"continue", len(plan.Points), folder.Path()))
	case plan.Best == nil:
		return verb.Failed(errors.New("no design meets the need"))
	}
	return nil
}

// searchCluster runs the search in its directory. The plan is nil if it did not start.
func (p *program) searchCluster(ctx context.Context, need *objects.File, f *planClusterFlags) (*study.Folder,
	*objects.Plan, error) {
	name, err := programName()
	if err != nil {
		return nil, nil, verb.Failed(
			fmt.Errorf("this program's own file cannot be read, and the cache needs it to tell results apart: %w", err))
	}
	cache, err := p.openCache(&f.studyFlags, name)
	if err != nil {
		return nil, nil, err
	}
	p.keeping() // before the directory exists: whoever sees it may rely on the command being resumable
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

// openSearch opens the directory of a search. By default it is named after the need, with a number appended if that
// name is taken.
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

// runOf returns the path of a run below the plan's directory.
func runOf(digest string, seed uint64) string {
	return filepath.ToSlash(study.Place(trial.Trial{Digest: digest, Seed: seed}))
}

// keepPlan writes the results into the plan's directory.
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
