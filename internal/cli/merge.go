package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"farflash/study"
)

func (p *program) merge() *cobra.Command {
	var f studyFlags
	cmd := &cobra.Command{
		Use:   "merge SHARD... -o DIR",
		Short: "Put the shards of a sweep together",
		Long: `Put the directories that farflash sweep --shard wrote together into one, with the table,
curves.json and report of the whole sweep. Directories of different sweeps are refused. If
trials are missing they are listed, and the exit code is 1; the sweep's command with the
merged directory as -o, and without --shard, runs them.`,
		Example: "  farflash merge runs/first runs/second -o runs/all",
		Args:    arguments(1, -1, "the directories of a sweep's shards"),
		RunE: func(_ *cobra.Command, args []string) error {
			if f.dir == "" {
				return usagef("merge: -o is missing; name the directory that the shards are merged into")
			}
			if err := checkMetrics(f.metrics); err != nil {
				return err
			}
			folder, plan, outcomes, err := study.Merge(f.dir, args, buildVersion())
			if err != nil {
				return badInput(err)
			}
			if err := p.showSweep(plan, folder, outcomes, &f); err != nil {
				return err
			}
			missing := 0
			for _, o := range outcomes {
				if o.State != study.Pending {
					continue
				}
				if missing++; missing <= mostListed {
					p.note("missing: %s, seed %d", labelOf(plan, o), o.Seed)
				}
			}
			if missing > mostListed {
				p.note("missing: %d more", missing-mostListed)
			}
			if missing > 0 {
				return failed(fmt.Errorf("%d of %d trials are missing; run the sweep again with -o %s and without --shard", missing, len(outcomes), folder.Path()))
			}
			return p.verdict(plan, folder, outcomes, &f, false)
		},
	}
	fl := cmd.Flags()
	fl.StringVarP(&f.dir, "output", "o", "", "write the whole sweep to `DIR`, which must not exist")
	fl.BoolVar(&f.json, "json", false, "print what was found as JSON on standard output, and nothing else")
	fl.BoolVar(&f.quiet, "quiet", false, "no table and no remarks")
	registerMetrics(cmd, &f.metrics)
	return cmd
}
