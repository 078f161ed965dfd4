package flashcli

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"farflash/cli/verb"
	"farflash/flash/bench"
	"farflash/flash/kv"
	"farflash/internal/term"
	"farflash/numeric/units"
)

// kvBenchFlags are those of both verbs.
type kvBenchFlags struct {
	memory, value sizeFlag
	systems       []string
	class         string
	mixed, json   bool
}

func (f *kvBenchFlags) add(cmd *cobra.Command, c *bench.KVConfig) {
	f.memory.bytes, f.value.bytes, f.class = units.Bytes(c.Memory), units.Bytes(c.Value), c.Class.String()
	var systems []string
	for _, s := range c.Systems {
		systems = append(systems, s.String())
	}
	fl := cmd.Flags()
	fl.Int64Var(&c.Keys, "keys", c.Keys, "`number` of keys")
	fl.Var(&f.value, "value-size", "`size` of values")
	fl.StringVar(&f.class, "class", f.class, "async, data or durable")
	fl.Var(&f.memory, "pages", "`size` of each system's cache of pages")
	fl.StringSliceVar(&f.systems, "systems", systems,
		"systems to measure; the first is compared with each of the others: "+strings.Join(bench.KVNames(), ", "))
	fl.IntVarP(&c.Clients, "clients", "c", c.Clients, "`number` of clients, each with a connection")
	fl.IntVar(&c.Depth, "depth", c.Depth, "`requests` in flight per connection")
	fl.IntVar(&c.Rounds, "rounds", c.Rounds, "`rounds`, each of which measures every system")
	fl.DurationVar(&c.Time, "time", c.Time, "`time` per measurement")
	fl.Uint64Var(&c.Seed, "seed", c.Seed, "random seed")
	fl.BoolVar(&f.mixed, "mixed", false,
		"clients and servers share all processors")
	fl.BoolVar(&f.json, "json", false, "print JSON")
}

func (f *kvBenchFlags) apply(c *bench.KVConfig) (err error) {
	c.Memory, c.Value, c.Pinned = int64(f.memory.bytes), int(min(f.value.bytes, units.GiB)), !f.mixed
	c.Systems = nil
	for _, name := range f.systems {
		var s bench.KVSystem
		if err := s.UnmarshalText([]byte(name)); err != nil {
			return verb.Usagef("--systems: %w", err)
		}
		c.Systems = append(c.Systems, s)
	}
	if c.Class, err = kv.ParseClass(f.class); err != nil {
		return verb.Usagef("--class: %w", err)
	}
	if err := c.Validate(); err != nil {
		return verb.Usagef("%w", err)
	}
	if c.Server, err = BenchServers(); err != nil {
		return err
	}
	c.Server = append(c.Server, "kv")
	return nil
}

func (p *program) kvBench() *cobra.Command {
	c := bench.DefaultKVConfig()
	var f kvBenchFlags
	puts, keys := 0.0, bench.Uniform.String()
	cmd := &cobra.Command{
		Use:   "bench [DIR]",
		Short: "Measure stores used by one-sided operations against servers that run the same table",
		Long: `Measure gets and puts, as flash bench measures reads and writes. With verbs the
clients run the table, by one-sided operations; with socket and socket+uring a
server does.`,
		Example: `  farflash flash kv bench /mnt/nvme --clients 16 --puts 0.5
  farflash flash kv bench --distribution zipf --misses 0.1`,
		Args: verb.Arguments(0, 1, "at most one directory for the files"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.Workload.Keys.UnmarshalText([]byte(keys)); err != nil {
				return verb.Usagef("--distribution: %w", err)
			}
			c.Workload.Mix = bench.Mix{Get: 1 - puts, Put: puts}
			return p.measureKV(cmd, &f, &c, args, fmt.Sprintf("%.3g %% puts, keys %s", 100*puts, keys))
		},
	}
	f.add(cmd, &c)
	fl := cmd.Flags()
	fl.Float64Var(&puts, "puts", 0, "`share` of puts, 0 to 1")
	fl.Float64Var(&c.Misses, "misses", 0, "`share` of gets of keys that are not there")
	fl.StringVar(&keys, "distribution", keys, "`kind` of distribution of keys: uniform or zipf")
	return cmd
}

func (p *program) kvYCSB() *cobra.Command {
	c := bench.DefaultKVConfig()
	var f kvBenchFlags
	cmd := &cobra.Command{
		Use:   "ycsb WORKLOAD [DIR]",
		Short: "Measure stores under a workload of YCSB",
		Long: `Measure a core workload of YCSB, a to f, with the systems of kv bench. A table has
no order: scans read neighbours in it.`,
		Example: `  farflash flash kv ycsb a
  farflash flash kv ycsb e /mnt/nvme`,
		Args: verb.Arguments(1, 2, "a workload of YCSB, a to f, and at most one directory for the files"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if c.Workload, err = bench.YCSB(strings.ToLower(args[0])); err != nil {
				return verb.Usagef("%w", err)
			}
			return p.measureKV(cmd, &f, &c, args[1:], "YCSB "+strings.ToUpper(args[0]))
		},
	}
	f.add(cmd, &c)
	cmd.Flags().Int64Var(&c.Space, "inserts", c.Space,
		"space for this `number` of inserted keys, which are then inserted again")
	return cmd
}

// measureKV measures, and prints the result.
func (p *program) measureKV(cmd *cobra.Command, f *kvBenchFlags, c *bench.KVConfig, args []string, what string) error {
	if len(args) > 0 {
		c.Dir = args[0]
	}
	if err := f.apply(c); err != nil {
		return err
	}
	if !f.json {
		c.Note = func(s string) { fmt.Fprintln(cmd.ErrOrStderr(), s) }
	}
	r, err := bench.RunKV(*c)
	switch {
	case err != nil:
		return verb.BadInput(err)
	case f.json:
		return p.benchJSON(r)
	}
	fmt.Fprintf(p.Out, "%s; %d keys with values of %v, class %s\n%d clients at depth %d, %d rounds of %v\n", what, c.Keys,
		units.Bytes(c.Value), r.Class, r.Clients, r.Depth, c.Rounds, c.Time.Round(time.Millisecond))
	p.printProcessors(r.Processors[0], r.Processors[1])
	p.printKV(r)
	return nil
}

func (p *program) printKV(r *bench.KVReport) {
	columns := []term.Column{term.Left(""), term.Right("operations/s"), term.Right("p50 (us)"), term.Right("p99 (us)"),
		term.Right("CPU us/operation")}
	systems := term.NewTable(columns...)
	moved := term.NewTable(term.Left(""), term.Right("requests/operation"), term.Right("device reads/operation"))
	apart := term.NewTable(term.Left(""), term.Left("operation"), term.Right("p50 (us)"), term.Right("p99 (us)"),
		term.Right("p99.9 (us)"))
	for _, o := range r.Outcomes {
		systems.Row(o.System.String(), median(o.Rate, term.Rate), median(o.P50, whole), median(o.P99, whole),
			median(o.CPU, whole))
		moved.Row(o.System.String(), fmt.Sprintf("%.2f", o.Network.Median), fmt.Sprintf("%.2f", o.Reads.Median))
		for _, k := range o.Apart() {
			apart.Row(o.System.String(), k.Name, median(k.P50, whole), median(k.P99, whole), median(k.P999, whole))
		}
	}
	p.table(systems)
	p.table(moved)
	p.table(apart)
	var ratios []ratio
	for _, x := range r.Ratios {
		ratios = append(ratios, ratio{x.A.String(), x.B.String(), [4]bench.Spread{x.Rate, x.P50, x.P99, x.CPU}})
	}
	p.printRatios(columns, ratios, r.Confidence)
}
