package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"farflash/cli/verb"
	"farflash/scenario"
	"farflash/scenario/convert"
)

func (p *program) convert() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "convert",
		Short: "Convert another program's files to a scenario",
		Args:  verb.Unknown,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(p.convertMQSim(), p.convertNS3(), p.convertHTSim(), p.convertFio())
	return cmd
}

func (p *program) convertMQSim() *cobra.Command {
	number := 0
	compat := "mqsim"
	cmd := &cobra.Command{
		Use:   "mqsim SSDCONFIG.xml WORKLOAD.xml",
		Short: "Convert MQSim's two files to a scenario",
		Long: `Convert MQSim's two files to a scenario, on standard output. The scenario issues
the same requests as MQSim. Unless --compat is none, it also reproduces MQSim's
deviations from a real drive and its definition of latency. Traces are looked up
in the workload file's directory, then in the working directory, and written as
absolute paths. Comments at the top list settings without a counterpart.
Features that are not modelled are refused by name.`,
		Example: `  farflash convert mqsim ssdconfig.xml workload.xml > mq.yaml && farflash run mq.yaml
  farflash convert mqsim ssdconfig.xml workload.xml --compat none > native.yaml`,
		Args: verb.Arguments(2, 2, "MQSim's device file and workload file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var c scenario.Compat
			if err := c.UnmarshalText([]byte(compat)); err != nil {
				return verb.Usagef("--compat: %w", err)
			}
			if cmd.Flags().Changed("scenario") && number < 1 {
				return verb.Usagef("--scenario %d is not possible; scenarios are numbered from 1", number)
			}
			conv, err := convert.FromMQSim(args[0], args[1], max(number, 1), c)
			if err != nil {
				return verb.BadInput(err)
			}
			if number == 0 && conv.Scenarios > 1 {
				p.note("%s has %d scenarios and this is the first; --scenario N selects another", args[1], conv.Scenarios)
			}
			fmt.Fprint(p.data, conv.Text())
			return nil
		},
	}
	cmd.Flags().IntVar(&number, "scenario", 0, "convert scenario `N` of the workload file (default the first)")
	cmd.Flags().StringVar(&compat, "compat", compat, "whose deviations to reproduce: `mqsim or none`")
	return cmd
}

func (p *program) convertFio() *cobra.Command {
	drive := "tlc-enterprise"
	cmd := &cobra.Command{
		Use:   "fio JOB.fio",
		Short: "Convert a fio job file to a scenario",
		Long: `Convert a fio job file to a scenario, on standard output, with one flow for each
job and clone. Sizes that fio takes from the device come from --drive. A scenario
can also name the job file itself ("workload: [{fio: job.fio}]").

farflash list fio-options lists the supported options. Others are refused by
name.`,
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
	cmd.Flags().StringVar(&drive, "drive", drive, "run the jobs on the drive of this `preset`")
	verb.Must(cmd.RegisterFlagCompletionFunc("drive", completePreset))
	return cmd
}

func (p *program) convertNS3() *cobra.Command {
	compat := ""
	cmd := &cobra.Command{
		Use:   "ns3 CONFIG.txt",
		Short: "Convert a configuration of HPCC's ns-3 or of ns3-rdma to a scenario",
		Long: `Convert a configuration of HPCC's ns-3 or of ns3-rdma to a scenario, on standard
output. Its keys identify the program. The scenario reproduces that program's
deviations from a real network; --compat none keeps only the topology, rates,
flows and thresholds. Files that the configuration names are looked up in its
directory, the parent directory and the working directory, and written as
absolute paths. Comments at the top list settings without a counterpart.
Features that are not modelled are refused by name.`,
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
	cmd.Flags().StringVar(&compat, "compat", compat,
		"whose deviations to reproduce: `hpcc, ns3-rdma or none` (default the file's own program)")
	return cmd
}

func (p *program) convertHTSim() *cobra.Command {
	o := convert.DefaultHTSim()
	rate, mtu := o.Rate.String(), o.MTU.String()
	cmd := &cobra.Command{
		Use:   "htsim TRAFFIC.cm [NETWORK.topo]",
		Short: "Convert csg-htsim's connection matrix and topology to a scenario",
		Long: `Convert csg-htsim's files to a scenario, on standard output: a connection matrix
with its triggers, and a topology. Without a topology file the network is the
three-tier fat-tree that htsim builds for that number of hosts. Transport is RoCE
at line rate over lossless queues, as in htsim_roce. Features that are not
modelled are refused with their line.`,
		Example: `  farflash convert htsim incast.cm > incast.yaml && farflash run incast.yaml
  farflash convert htsim allreduce.cm leaf_spine.topo --mtu 4096B > allreduce.yaml`,
		Args: verb.Arguments(1, 2, "a connection matrix, and optionally a topology file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.Rate.UnmarshalText([]byte(rate)); err != nil || o.Rate <= 0 {
				return verb.Usagef("--rate: %q is not possible; use a rate such as 100Gbps", rate)
			}
			if err := o.MTU.UnmarshalText([]byte(mtu)); err != nil || o.MTU <= 0 {
				return verb.Usagef("--mtu: %q is not possible; use a size such as 4096B", mtu)
			}
			if len(args) > 1 {
				if cmd.Flags().Changed("rate") {
					return verb.Usagef("--rate: %s sets the link rates; leave it out", args[1])
				}
				o.Topology = args[1]
			}
			conv, err := convert.FromHTSim(args[0], o)
			if err != nil {
				return verb.BadInput(err)
			}
			fmt.Fprint(p.data, conv.Text())
			return nil
		},
	}
	cmd.Flags().StringVar(&rate, "rate", rate, "link `rate` without a topology file, as htsim's -linkspeed")
	cmd.Flags().StringVar(&mtu, "mtu", mtu, "packet payload `size`, as htsim's -mtu")
	return cmd
}
