package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"farflash/convert"
	"farflash/internal/cli/verb"
	"farflash/scenario"
)

func (p *program) convert() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "convert",
		Short: "Make a scenario of another program's files",
		Args:  verb.Unknown,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(p.convertMQSim(), p.convertNS3(), p.convertFio())
	return cmd
}

func (p *program) convertMQSim() *cobra.Command {
	number := 0
	compat := "mqsim"
	cmd := &cobra.Command{
		Use:   "mqsim SSDCONFIG.xml WORKLOAD.xml",
		Short: "Make a scenario of MQSim's two files",
		Long: `Make a scenario of MQSim's two files, on standard output. It reproduces MQSim's
deviations from a real drive and its way of counting latency unless --compat none is
given, and makes the same requests as MQSim. Traces are looked for beside the
workload file, then in the working directory, and named by absolute paths. Comments
at its head say what has no counterpart; what is not modelled is refused by name.`,
		Example: `  farflash convert mqsim ssdconfig.xml workload.xml > mq.yaml && farflash run mq.yaml
  farflash convert mqsim ssdconfig.xml workload.xml --compat none > native.yaml`,
		Args: verb.Arguments(2, 2, "MQSim's device file and workload file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var c scenario.Compat
			if err := c.UnmarshalText([]byte(compat)); err != nil {
				return verb.Usagef("--compat: %w", err)
			}
			if cmd.Flags().Changed("scenario") && number < 1 {
				return verb.Usagef("--scenario %d is not possible; they count from 1", number)
			}
			conv, err := convert.FromMQSim(args[0], args[1], max(number, 1), c)
			if err != nil {
				return verb.BadInput(err)
			}
			if number == 0 && conv.Scenarios > 1 {
				p.note("%s has %d scenarios; this is the first. --scenario N takes another", args[1], conv.Scenarios)
			}
			fmt.Fprint(p.data, conv.Text())
			return nil
		},
	}
	cmd.Flags().IntVar(&number, "scenario", 0, "which `N` of the workload file's scenarios (default the first)")
	cmd.Flags().StringVar(&compat, "compat", compat, "whose deviations to reproduce: `mqsim or none`")
	return cmd
}

func (p *program) convertFio() *cobra.Command {
	drive := "tlc-enterprise"
	cmd := &cobra.Command{
		Use:   "fio JOB.fio",
		Short: "Make a scenario of a fio job file",
		Long: `Make a scenario of a fio job file, on standard output: a flow for each job and copy.
Sizes that fio would take from the device are those of the --drive. A scenario can
also name the job file itself ("workload: [{fio: job.fio}]").

The options that are understood are listed by farflash list fio-options; others are
refused by name.`,
		Example: `  farflash convert fio randread.fio > randread.yaml && farflash run randread.yaml
  farflash convert fio randread.fio --drive mqsim-default > randread.yaml`,
		Args: verb.Arguments(1, 1, "one job file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			conv, err := convert.FromFio(args[0], drive)
			if err != nil {
				return verb.BadInput(err)
			}
			fmt.Fprint(p.data, conv.Text())
			return nil
		},
	}
	cmd.Flags().StringVar(&drive, "drive", drive, "the `preset` whose drive the jobs run on")
	verb.Must(cmd.RegisterFlagCompletionFunc("drive", completePreset))
	return cmd
}

func (p *program) convertNS3() *cobra.Command {
	compat := ""
	cmd := &cobra.Command{
		Use:   "ns3 CONFIG.txt",
		Short: "Make a scenario of a configuration of HPCC's ns-3 or of ns3-rdma",
		Long: `Make a scenario of a configuration of HPCC's ns-3 or of ns3-rdma, on standard
output; the keys in the file tell which of them it is. It reproduces the deviations of
that program from a real network unless --compat none is given, which makes a
network as it should be of the same shape, rates, flows and thresholds. Files that
the configuration names are looked for beside it, in the folder above it, then in the
working directory, and named by absolute paths. Comments at its head say what has no
counterpart; what is not modelled is refused by name.`,
		Example: `  farflash convert ns3 mix/config.txt > mix.yaml && farflash run mix.yaml
  farflash convert ns3 config-burst.txt --compat none > native.yaml`,
		Args: verb.Arguments(1, 1, "one configuration file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var c scenario.FabricCompat
			if compat != "" {
				if err := c.UnmarshalText([]byte(compat)); err != nil {
					return verb.Usagef("--compat: %w", err)
				}
			}
			conv, err := convert.FromNS3(args[0], compat)
			if err != nil {
				return verb.BadInput(err)
			}
			fmt.Fprint(p.data, conv.Text())
			return nil
		},
	}
	cmd.Flags().StringVar(&compat, "compat", compat, "whose deviations to reproduce: `hpcc, ns3-rdma or none` (default the file's own program)")
	return cmd
}
