package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"farflash/cli/verb"
)

func (p *program) cite() *cobra.Command {
	return &cobra.Command{
		Use:   "cite [SCENARIO]",
		Short: "Print what to cite, as BibTeX",
		Long: `Print BibTeX entries for the models that a scenario uses (default quickstart).
A run directory holds them as citations.bib.`,
		Example: `  farflash cite
  farflash cite src-system > src.bib`,
		Args:              verb.Arguments(0, 1, "at most one scenario"),
		ValidArgsFunction: completeScenario,
		RunE: func(cmd *cobra.Command, args []string) error {
			name := "quickstart"
			if len(args) == 1 {
				name = args[0]
			}
			s, err := p.open(name, nil)
			if err != nil {
				return err
			}
			fmt.Fprint(p.data, s.Citations())
			return nil
		},
	}
}
