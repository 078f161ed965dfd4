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
		Short: "Make a scenario of another program's files",
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
		Short: "Make a scenario of MQSim's two files",
		Long: `Make a scenario of MQSim's two files, on standard output. It makes the same
requests as MQSim. It also reproduces MQSim's deviations from a real drive and
its way of counting latency, unless --compat none is given. Traces are looked
for beside the workload file, then in the working directory, and named by
absolute paths. Comments at the head list what has no counterpart. What is not
modelled is refused by name.`,
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
		Long: `Make a scenario of a fio job file, on standard output: a flow for each job and
copy. Sizes that fio would take from the device are those of the --drive. A
scenario can also name the job file itself ("workload: [{fio: job.fio}]").

farflash list fio-options lists the options that are understood. Others are
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
output. The keys in the file tell which of them it is. It reproduces the
deviations of that program from a real network. --compat none makes a network
without them, of the same shape, rates, flows and thresholds. Files that the
configuration names are looked for beside it, in the folder above it, then in
the working directory, and named by absolute paths. Comments at the head list
what has no counterpart. What is not modelled is refused by name.`,
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
		Short: "Make a scenario of csg-htsim's connection matrix and topology",
		Long: `Make a scenario of csg-htsim's files, on standard output: a connection matrix
with its triggers, and a topology. Without a topology the network is the
three-tier fat-tree that htsim makes for that number of hosts. It is RoCE at line rate
over lossless queues, as in htsim_roce. What is not modelled is refused with its
line.`,
		Example: `  farflash convert htsim incast.cm > incast.yaml && farflash run incast.yaml
  farflash convert htsim allreduce.cm leaf_spine.topo --mtu 4096B > allreduce.yaml`,
		Args: verb.Arguments(1, 2, "a connection matrix, and a topology file if there is one"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.Rate.UnmarshalText([]byte(rate)); err != nil || o.Rate <= 0 {
				return verb.Usagef("--rate: %q is not possible; use a rate such as 100Gbps", rate)
			}
			if err := o.MTU.UnmarshalText([]byte(mtu)); err != nil || o.MTU <= 0 {
				return verb.Usagef("--mtu: %q is not possible; use a size such as 4096B", mtu)
			}
			if len(args) > 1 {
				if cmd.Flags().Changed("rate") {
					return verb.Usagef("--rate: %s has the links' rates", args[1])
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
	cmd.Flags().StringVar(&rate, "rate", rate, "`rate` of all links without a topology file, as htsim's -linkspeed")
	cmd.Flags().StringVar(&mtu, "mtu", mtu, "payload `size` of a packet, as htsim's -mtu")
	return cmd
}
