package flashcli

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"farflash/cli/verb"
	"farflash/flash/bench"
	"farflash/internal/term"
	"farflash/numeric/units"
)

// benchFlags holds the flags of flash bench.
type benchFlags struct {
	size, memory, block sizeFlag
	systems             []string
	connections         []int
	profile             bool
	register            bool
	together            bool
	mixed               bool
	json                bool
}

func (f *benchFlags) add(cmd *cobra.Command, c *bench.Config) {
	f.size.bytes, f.memory.bytes, f.block.bytes = units.Bytes(c.Size), units.Bytes(c.Memory), units.Bytes(c.Block)
	fl := cmd.Flags()
	fl.Var(&f.size, "size", "`size` of the file")
	fl.Var(&f.memory, "memory", "`size` of the pool's page cache")
	fl.Float64Var(&c.Space, "room", c.Space,
		"pool space as a `multiple` of --size; without spare space random writes keep collection busy")
	fl.Var(&f.block, "block", "request `size`")
	fl.StringSliceVar(&f.systems, "systems", names(c.Systems),
		"systems to measure; the first is compared with each of the others: "+strings.Join(bench.Names(), ", "))
	fl.IntSliceVarP(&f.connections, "connections", "c", []int{c.Connections},
		"`numbers` of connections, measured in turn")
	fl.IntVar(&c.Depth, "depth", c.Depth, "`requests` in flight per connection")
	fl.Float64Var(&c.Writes, "writes", c.Writes, "`share` of writes, 0 to 1")
	fl.BoolVar(&c.Atomics, "atomics", false,
		"fetch-and-add on random words of the first MiB, and check the sum (verbs and verbs-polled only)")
	fl.BoolVar(&f.profile, "profile", false, "profile the servers' CPU time")
	fl.BoolVar(&f.register, "register", false,
		"measure only the cost of registering 1 MiB to 10 GiB of files and memory")
	fl.IntVar(&c.Rounds, "rounds", c.Rounds, "`rounds`, each of which measures every system")
	fl.DurationVar(&c.Time, "time", c.Time, "`time` per measurement")
	fl.Float64Var(&c.Load, "load", c.Load, "open loop at this `share` of the second system's maximum")
	fl.DurationVar(&c.Spin, "spin", c.Spin,
		"`time` that a thread serving verbs polls before it sleeps, while requests arrive within that time; "+
			"0s: sleep at once")
	fl.IntVar(&c.Threads, "threads", c.Threads,
		"io_uring `threads` that serve verbs; 0: half the number of processors")
	fl.Uint64Var(&c.Seed, "seed", c.Seed, "random seed of the addresses, a `number`")
	fl.BoolVar(&f.together, "together", false,
		"clients and servers in one process, unlike a real daemon: Go's scheduler may run both on one thread")
	fl.BoolVar(&f.mixed, "mixed", false,
		"clients and servers share all processors")
	fl.BoolVar(&f.json, "json", false, "print JSON")
}

func names(systems []bench.System) []string {
	var out []string
	for _, s := range systems {
		out = append(out, s.String())
	}
	return out
}

func (f *benchFlags) apply(c *bench.Config) error {
	c.Size, c.Memory, c.Block = int64(f.size.bytes), int64(f.memory.bytes), int(f.block.bytes)
	c.Systems = nil
	for _, name := range f.systems {
		var s bench.System
		if err := s.UnmarshalText([]byte(name)); err != nil {
			return verb.Usagef("--systems: %w", err)
		}
		c.Systems = append(c.Systems, s)
	}
	if len(f.connections) == 0 || f.profile && len(f.connections) > 1 {
		return verb.Usagef("--connections: give at least one number; with --profile, exactly one")
	}
	for _, n := range f.connections {
		c.Connections = n
		if err := c.Validate(); err != nil {
			return verb.Usagef("%w", err)
		}
	}
	return nil
}

func (p *program) flashBench() *cobra.Command {
	c := bench.DefaultConfig()
	var f benchFlags
	cmd := &cobra.Command{
		Use:   "bench [DIR]",
		Short: "Measure one-sided access to flash against a socket and pread",
		Long: `Measure random reads and writes of a file over loopback, by several systems in
turn. Clients run in this process, servers in another:

  verbs          one-sided reads and writes over iWARP, on the flash controller
  socket         requests over a plain connection, a goroutine per connection,
                 pread and pwrite with O_DIRECT
  socket+uring   the same requests, served through io_uring
  socket-cached  socket through the page cache
  socket-c       socket with a server in C, built with gcc; omitted without gcc
  local          io_uring on the file, without a network: the upper limit
  verbs-polled   verbs with a client that polls for completions
  nvme-tcp       NVMe/TCP on the flash controller, a queue per connection

Files are created in DIR (default: the working directory) and removed afterwards;
its file system determines the cost of a device read. Clients have half of the
processors and servers the other half, like two machines. Rates and latencies
depend on this machine and its load. Compare the ratios: each is of two
measurements of one round, and is printed with its range over the rounds.

--block 1MiB measures bandwidth, -c 1 --depth 1 the latency of a single request.
With --load, requests are due at times independent of completions, and latency
counts from the due time.`,
		Example: `  farflash flash bench /mnt/nvme --connections 16 --depth 8
  farflash flash bench --block 1MiB --connections 1 --depth 4 --systems verbs,socket`,
		Args: verb.Arguments(0, 1, "at most one directory for the files"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				c.Dir = args[0]
			}
			if err := f.apply(&c); err != nil {
				return err
			}
			c.Pinned = !f.mixed
			if !f.together {
				var err error
				if c.Server, err = BenchServers(); err != nil {
					return err
				}
			}
			if !f.json {
				c.Note = func(s string) { fmt.Fprintln(cmd.ErrOrStderr(), s) }
			}
			switch {
			case f.register:
				return p.benchRegister(&c, f.json)
			case f.profile:
				return p.benchProfile(&c, f.json)
			}
			all, err := bench.Scale(c, f.connections)
			if err != nil {
				return verb.BadInput(err)
			}
			if f.json {
				return p.benchJSON(all)
			}
			for i, r := range all {
				if i > 0 {
					fmt.Fprintln(p.Out)
				}
				p.printBench(&c, r)
			}
			return nil
		},
	}
	f.add(cmd, &c)
	return cmd
}

// ratio is the outcomes of a system over those of another: rate, median, p99 and processor time.
type ratio struct {
	of, over string
	spreads  [4]bench.Spread
}

// printRatios prints ratios in the columns of the outcomes, and what the ranges mean.
func (p *program) printRatios(columns []term.Column, ratios []ratio, confidence float64) {
	if len(ratios) > 0 {
		columns[0].Title = ratios[0].of + " over"
		t := term.NewTable(columns...)
		for _, x := range ratios {
			t.Row(x.over, median(x.spreads[0], share), median(x.spreads[1], share), median(x.spreads[2], share),
				median(x.spreads[3], share))
		}
		p.table(t)
	}
	fmt.Fprintf(p.Out, "\nMedians of the rounds, with the range in brackets. A ratio's true median lies\n"+
		"within the range with %.3g %% confidence. CPU: clients and servers.\n", 100*confidence)
}

func (p *program) printProcessors(clients, servers []int) {
	if slices.Equal(clients, servers) {
		fmt.Fprintf(p.Out, "clients and servers on %s\n", processors(clients))
		return
	}
	fmt.Fprintf(p.Out, "clients on %s, servers on %s\n", processors(clients), processors(servers))
}

func (p *program) printBench(c *bench.Config, r *bench.Report) {
	kind := "reads"
	switch {
	case c.Atomics:
		kind = "fetch-and-adds"
	case c.Writes == 1:
		kind = "writes"
	case c.Writes > 0:
		kind = fmt.Sprintf("requests, %.3g %% of them writes", 100*c.Writes)
	}
	connections := "connections"
	if r.Connections == 1 {
		connections = "connection"
	}
	fmt.Fprintf(p.Out, "random %s of %v in %v, %d %s at depth %d, %d rounds of %v\n", kind, units.Bytes(r.Block),
		units.Bytes(c.Size),
		r.Connections, connections, c.Depth, c.Rounds, c.Time.Round(time.Millisecond))
	p.printProcessors(r.Clients, r.Servers)
	if r.Offered > 0 {
		fmt.Fprintf(p.Out, "open loop, %.0f requests/s\n", r.Offered)
	}
	columns := []term.Column{term.Left(""), term.Right("IOPS"), term.Right("p50 (us)"), term.Right("p99 (us)"),
		term.Right("CPU us/request")}
	moved := term.NewTable(term.Left(""), term.Right("Gbit/s"), term.Right("device reads/request"))
	systems := term.NewTable(columns...)
	for _, o := range r.Outcomes {
		systems.Row(o.System.String(), median(o.Rate, term.Rate), median(o.P50, whole), median(o.P99, whole),
			median(o.CPU, whole))
		reads := ""
		if o.Reads.Median > 0 {
			reads = fmt.Sprintf("%.3f", o.Reads.Median)
		}
		moved.Row(o.System.String(), term.Significant(r.Gbps(o.Rate.Median), 3), reads)
	}
	p.table(systems)
	p.table(moved)
	var ratios []ratio
	for _, x := range r.Ratios {
		ratios = append(ratios, ratio{x.A.String(), x.B.String(), [4]bench.Spread{x.Rate, x.P50, x.P99, x.CPU}})
	}
	p.printRatios(columns, ratios, r.Confidence)
	for _, x := range r.Skipped {
		fmt.Fprintf(p.Out, "%v is omitted: %s\n", x.System, x.Why)
	}
}

// processors formats processor numbers.
func processors(numbers []int) string {
	if len(numbers) == 1 {
		return fmt.Sprintf("processor %d", numbers[0])
	}
	var parts []string
	for i := 0; i < len(numbers); {
		j := i
		for j+1 < len(numbers) && numbers[j+1] == numbers[j]+1 {
			j++
		}
		part := strconv.Itoa(numbers[i])
		if j > i {
			part += "-" + strconv.Itoa(numbers[j])
		}
		parts = append(parts, part)
		i = j + 1
	}
	return "processors " + strings.Join(parts, ",")
}

// median formats a spread as median (low-high), each figure with write.
func median(s bench.Spread, write func(float64) string) string {
	return fmt.Sprintf("%s (%s-%s)", write(s.Median), write(s.Low), write(s.High))
}

func whole(x float64) string { return fmt.Sprintf("%.0f", x) }

func share(x float64) string { return fmt.Sprintf("%.2f", x) }

// table prints a table after an empty line.
func (p *program) table(t *term.Table) {
	fmt.Fprintln(p.Out)
	_ = t.Write(p.Out, p.Style()) // errors of standard output are reported when it is closed
}

// flashBenchServers is the hidden verb that serves the systems of a bench, in a process of its own.
func (p *program) flashBenchServers() *cobra.Command {
	return &cobra.Command{
		Use: benchServers, Hidden: true, Short: "Serve the systems of flash bench, which starts this verb",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 { // of stores
				return bench.ServeKV(cmd.InOrStdin(), p.Out)
			}
			return bench.Serve(cmd.InOrStdin(), p.Out)
		},
	}
}

const benchServers = "bench-servers"

// BenchServers returns the command line that starts that process.
func BenchServers() ([]string, error) {
	self, err := os.Executable()
	return []string{self, "flash", benchServers}, err
}

func (p *program) benchJSON(v any) error {
	e := json.NewEncoder(p.Out)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// benchRegister measures the registration of memory.
func (p *program) benchRegister(c *bench.Config, asJSON bool) error {
	r := bench.DefaultRegister()
	r.Dir, r.Rounds, r.Note = c.Dir, c.Rounds, c.Note
	out, err := bench.Register(r)
	switch {
	case err != nil:
		return verb.BadInput(err)
	case asJSON:
		return p.benchJSON(out)
	}
	fmt.Fprintf(p.Out, "time to register a region for peers, in microseconds, %d rounds\n\n%-10s %24s %24s "+
		"%30s\n", r.Rounds, "", "file of a pool", "memory, untouched", "memory, locked")
	for _, x := range out {
		shown := func(s bench.Spread) string { return fmt.Sprintf("%.1f (%.1f-%.1f)", s.Median, s.Low, s.High) }
		pinned := shown(x.Pinned)
		if x.Skipped != "" {
			pinned = "-"
		}
		fmt.Fprintf(p.Out, "%-10s %24s %24s %30s\n", term.Size(float64(x.Size)), shown(x.File), shown(x.Memory), pinned)
	}
	fmt.Fprintln(p.Out, "\nregistering a file reads no page and takes no memory; medians, with the range in brackets")
	for _, x := range out {
		if x.Skipped != "" {
			fmt.Fprintf(p.Out, "%s of memory could not be locked: %s\n", term.Size(float64(x.Size)), x.Skipped)
		}
	}
	return nil
}

// benchProfile prints where the processor time goes.
func (p *program) benchProfile(c *bench.Config, asJSON bool) error {
	out, err := bench.Processor(*c)
	switch {
	case err != nil:
		return verb.BadInput(err)
	case asJSON:
		return p.benchJSON(out)
	}
	fmt.Fprintf(p.Out, "%-14s %8s", "", "samples")
	for part := range bench.Parts {
		fmt.Fprintf(p.Out, " %11v", part)
	}
	fmt.Fprintln(p.Out)
	for _, x := range out {
		fmt.Fprintf(p.Out, "%-14v %8d", x.System, x.Samples)
		for _, s := range x.Shares {
			fmt.Fprintf(p.Out, " %9.1f %%", 100*s)
		}
		fmt.Fprintln(p.Out)
	}
	fmt.Fprintln(p.Out, "\nshares of the servers' CPU time, including Go's scheduler, which serves both ends. Kernel "+
		"time within a system call counts as the call's")
	return nil
}
