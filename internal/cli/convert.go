package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"farflash/scenario"
)

func (p *program) convert() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "convert",
		Short: "Make a scenario of another program's files",
		Args:  p.unknownVerb,
		RunE:  func(cmd *cobra.Command, _ []string) error { return usagef("convert what? %s", "farflash convert mqsim ssdconfig.xml workload.xml") },
	}
	cmd.AddCommand(p.convertMQSim())
	return cmd
}

func (p *program) convertMQSim() *cobra.Command {
	number := 0
	compat := "mqsim"
	cmd := &cobra.Command{
		Use:   "mqsim SSDCONFIG.xml WORKLOAD.xml",
		Short: "Make a scenario of MQSim's two files",
		Args:  arguments(2, 2, "MQSim's device file and workload file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var c scenario.Compat
			if err := c.UnmarshalText([]byte(compat)); err != nil {
				return usagef("--compat: %w", err)
			}
			conv, err := scenario.FromMQSim(args[0], args[1], max(number, 1), c)
			if err != nil {
				return badInput(err)
			}
			fmt.Fprint(p.out, conv.Text())
			return nil
		},
	}
	cmd.Flags().IntVar(&number, "scenario", 0, "which of the workload file's scenarios, from 1")
	cmd.Flags().StringVar(&compat, "compat", compat, "reproduce MQSim's deviations (`mqsim`) or not (none)")
	return cmd
}
