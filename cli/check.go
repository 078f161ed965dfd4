package cli

import (
	"fmt"

	"farflash/cli/verb"
	"farflash/experiment/requests"
	"farflash/experiment/trial"

	"github.com/spf13/cobra"
)

func (p *program) check() *cobra.Command {
	var set []string
	resolve := false
	seed := uint64(1)
	cmd := &cobra.Command{
		Use:   "check SCENARIO",
		Short: "Check a scenario without running it",
		Long: `Check every key, value and combination of a scenario, and that each trace opens
and starts with a request. All errors are reported, with file, line and column.
The models are built as for a run, so a scenario that passes also runs.`,
		Example: `  farflash check my.yaml
  farflash check my.yaml --resolve > resolved.yaml`,
		Args:              verb.Arguments(1, 1, "a scenario file or a preset's name"),
		ValidArgsFunction: completeScenario,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := p.open(args[0], set)
			if err != nil {
				return err
			}
			if err := requests.Verify(s); err != nil {
				return verb.BadInput(err)
			}
			if err := trial.Check(cmd.Context(), s, seed); err != nil {
				return verb.BadInput(err)
			}
			digest, err := s.Digest()
			if err != nil {
				return verb.BadInput(err)
			}
			if resolve {
				fmt.Fprint(p.data, s.Resolved())
				return nil
			}
			fmt.Fprintf(p.out, "%s: ok, digest %s\n", s.Name, digest)
			return nil
		},
	}
	cmd.Flags().StringArrayVar(&set, "set", nil, "change a value: `path=value` (repeatable)")
	cmd.Flags().BoolVar(&resolve, "resolve", false, "print the resolved scenario, with every default")
	cmd.Flags().Uint64Var(&seed, "seed", seed, "random seed for preconditioning")
	verb.Must(cmd.RegisterFlagCompletionFunc("set", completePath))
	return cmd
}
