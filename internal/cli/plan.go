package cli

import "github.com/spf13/cobra"

func (p *program) plan() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Find what to build",
		Long:  `Find the cheapest design that does what is needed.`,
		Args:  p.unknownVerb,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cmd.Help()
		},
	}
	cmd.AddCommand(p.planCluster())
	return cmd
}
