package cli

import (
	"path/filepath"

	"github.com/spf13/cobra"

	"farflash/cli/verb"
	"farflash/result"
	"farflash/study"
)

func (p *program) merge() *cobra.Command {
	var f studyFlags
	cmd := &cobra.Command{
		Use:   "merge SHARD... -o DIR",
		Short: "Merge the shards of a sweep",
		Long: `Merge the directories written by farflash sweep --shard. Table, curves.json and
report are byte for byte those of the whole sweep, except for the command in the
report. Every shard must be given exactly once, be complete, and come from the
same sweep and build. Failed trials stay failed; to rerun them, repeat the sweep's
command without --shard and with -o naming the merged directory.`,
		Example: `  farflash merge runs/first runs/second -o runs/all
  farflash merge runs/shard-*of4 -o runs/all --metric 'read.latency.*'`,
		Args: verb.Arguments(1, -1, "the directories of a sweep's shards"),
		RunE: func(_ *cobra.Command, args []string) error {
			if f.dir == "" {
				return verb.Usagef("merge: -o is missing; name a new directory for the merged sweep")
			}
			if err := checkMetrics(f.metrics); err != nil {
				return err
			}
			whole := p.unfinished(result.Unfinished(filepath.Dir(filepath.Clean(f.dir))))
			folder, plan, outcomes, err := study.Merge(f.dir, args)
			whole()
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
	fl.StringVarP(&f.dir, "output", "o", "", "write the merged sweep to `DIR`, which must be new or empty")
	fl.BoolVar(&f.json, "json", false, "print JSON")
	fl.BoolVar(&f.quiet, "quiet", false, "no table, no progress and no remarks")
	registerMetrics(cmd, &f.metrics)
	return cmd
}
