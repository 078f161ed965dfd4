package cli

import (
	"github.com/spf13/cobra"

	"farflash/internal/cli/verb"
	"farflash/study"
)

func (p *program) merge() *cobra.Command {
	var f studyFlags
	cmd := &cobra.Command{
		Use:   "merge SHARD... -o DIR",
		Short: "Put the shards of a sweep together",
		Long: `Put the directories that farflash sweep --shard wrote together into one, with the table,
curves.json and report of the whole sweep: the same files, to the byte, that the sweep writes
where it is run whole; only the command in the report differs. All shards must be there, once,
finished, and from the same sweep and build of the program. Trials that failed stay failed;
the sweep's command with the merged directory as -o, and without --shard, tries them again.`,
		Example: `  farflash merge runs/first runs/second -o runs/all
  farflash merge runs/shard-*of4 -o runs/all && farflash report runs/all`,
		Args: verb.Arguments(1, -1, "the directories of a sweep's shards"),
		RunE: func(_ *cobra.Command, args []string) error {
			if f.dir == "" {
				return verb.Usagef("merge: -o is missing; name the directory that the shards are merged into")
			}
			if err := checkMetrics(f.metrics); err != nil {
				return err
			}
			folder, plan, outcomes, err := study.Merge(f.dir, args)
			if err != nil {
				return verb.BadInput(err)
			}
			if err := p.showSweep(plan, folder, outcomes, &f); err != nil {
				return err
			}
			return p.verdict(plan, folder, outcomes, &f, false)
		},
	}
	fl := cmd.Flags()
	fl.StringVarP(&f.dir, "output", "o", "", "write the whole sweep to `DIR`, which must not exist or be empty")
	fl.BoolVar(&f.json, "json", false, "print what was found as JSON on standard output, and nothing else")
	fl.BoolVar(&f.quiet, "quiet", false, "no table and no remarks")
	registerMetrics(cmd, &f.metrics)
	return cmd
}
