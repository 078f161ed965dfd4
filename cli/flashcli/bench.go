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

// benchFlags are those of flash bench.
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
	fl.Var(&f.size, "size", "`size` of what is read and written")
	fl.Var(&f.memory, "memory", "`size` of the pool's memory for pages")
	fl.Float64Var(&c.Room, "room", c.Room,
		"space of the pool as a `multiple` of size; without spare space random writes keep collection busy")
	fl.Var(&f.block, "block", "`size` of a request")
	fl.StringSliceVar(&f.systems, "systems", names(c.Systems),
		"systems to measure, the first against each of the others: "+strings.Join(bench.Names(), ", "))
	fl.IntSliceVarP(&f.connections, "connections", "c", []int{c.Connections},
		"`numbers` of connections, one after the other")
	fl.IntVar(&c.Depth, "depth", c.Depth, "`number` of outstanding requests of a connection")
	fl.Float64Var(&c.Writes, "writes", c.Writes, "`share` of the requests that write, 0 to 1")
	fl.BoolVar(&c.Atomics, "atomics", false,
		"add to random words of the first MiB and check the sum (verbs and verbs-polled only)")
	fl.BoolVar(&f.profile, "profile", false, "profile the servers' processor time")
	fl.BoolVar(&f.register, "register", false,
		"only measure the cost of registering files and memory of 1 MiB to 10 GiB")
	fl.IntVar(&c.Rounds, "rounds", c.Rounds, "`number` of rounds; each measures every system")
	fl.DurationVar(&c.Time, "time", c.Time, "`time` of one measurement")
	fl.Float64Var(&c.Load, "load", c.Load, "open loop: the load as a `share` of the second system's maximum")
	fl.DurationVar(&c.Spin, "spin", c.Spin,
		"`time` for which a thread that serves verbs polls before it sleeps, while requests follow each other within "+
			"it; 0s: it sleeps at once")
	fl.IntVar(&c.Threads, "threads", c.Threads,
		"`number` of threads that serve verbs through io_uring; 0 is half as many as processors")
	fl.Uint64Var(&c.Seed, "seed", c.Seed, "seed `number` of the random addresses")
	fl.BoolVar(&f.together, "together", false,
		"clients and servers in one process, where Go's scheduler may run them on one thread in turns; unlike a real "+
			"daemon")
	fl.BoolVar(&f.mixed, "mixed", false,
		"clients and servers on the same processors; otherwise each have half of them, as on machines of their own")
	fl.BoolVar(&f.json, "json", false, "print everything as JSON")
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
		return verb.Usagef("--connections: give a number of them; with --profile, one")
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
		Long: `Measure random reads and writes of a file by several systems in turns, over loopback. Clients are in this process, servers in another:

  verbs          one-sided reads and writes over iWARP, on the flash controller
  socket         requests over a plain connection, served by pread and pwrite past the page cache, with a goroutine per connection
  socket+uring   the same requests, served through io_uring
  socket-cached  the same as socket, through the page cache
  socket-c       the same as socket, by a server in C built with gcc; left out without gcc
  local          io_uring on the file, without a network: the upper limit
  verbs-polled   verbs with a client that polls for completions instead of being woken

Files are made in DIR (default: here) and removed afterwards; their file system decides the cost of a device read. Clients have
one half of the processors and servers the other one, as if they were two machines, for all systems alike; --mixed has them share all.
Rates and latencies depend on this machine and its load. Compare the ratios: each is of two measurements of one round, and is printed
with the least and the largest of all rounds.

Several numbers of connections are measured one after the other. --block 1MiB measures bandwidth, -c 1 --depth 1 the latency of a single request.

With --load requests are due at times that do not depend on answers, and latency counts from the due time.`,
		Example: `  farflash flash bench /mnt/nvme --connections 16 --depth 8
  farflash flash bench --load 0.8 --rounds 7
  farflash flash bench -c 1,4,16,64 --systems verbs,socket,socket-c
  farflash flash bench --register
  farflash flash bench --block 1MiB --connections 1 --depth 4 --systems verbs,socket`,
		Args: verb.Arguments(0, 1, "the folder where files may be made"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				c.Dir = args[0]
			}
			if err := f.apply(&c); err != nil {
				return err
			}
			c.Apart = !f.mixed
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

func (p *program) printBench(c *bench.Config, r *bench.Report) {
	kind := "reads"
	switch {
	case c.Atomics:
		kind = "additions"
	case c.Writes == 1:
		kind = "writes"
	case c.Writes > 0:
		kind = fmt.Sprintf("requests, %.3g %% of them writes", 100*c.Writes)
	}
	connections := "connections"
	if r.Connections == 1 {
		connections = "connection"
	}
	fmt.Fprintf(p.Out, "random %s of %v in %v, %d %s with %d at once, %d rounds of %v\n", kind, units.Bytes(r.Block),
		units.Bytes(c.Size),
		r.Connections, connections, c.Depth, c.Rounds, c.Time.Round(time.Millisecond))
	if slices.Equal(r.Clients, r.Servers) {
		fmt.Fprintf(p.Out, "clients and servers on %s\n", processors(r.Clients))
	} else {
		fmt.Fprintf(p.Out, "clients on %s, servers on %s\n", processors(r.Clients), processors(r.Servers))
	}
	if r.Offered > 0 {
		fmt.Fprintf(p.Out, "open loop, %.0f requests a second are due\n", r.Offered)
	}
	columns := []term.Column{term.Left(""), term.Right("IOPS"), term.Right("p50 (us)"), term.Right("p99 (us)"),
		term.Right("CPU us each")}
	moved := term.NewTable(term.Left(""), term.Right("Gbit/s"), term.Right("device reads a request"))
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
	if len(r.Ratios) > 0 {
		columns[0].Title = r.Ratios[0].A.String() + " over"
		ratios := term.NewTable(columns...)
		for _, x := range r.Ratios {
			ratios.Row(x.B.String(), median(x.Rate, share), median(x.P50, share), median(x.P99, share),
				median(x.CPU, share))
		}
		p.table(ratios)
	}
	fmt.Fprintf(p.Out, "\nMedians of the rounds, the least and the largest in brackets. A ratio's true\nmedian lies "+
		"between them with %.3g %% confidence. CPU: clients and servers.\n", 100*r.Confidence)
	for _, x := range r.Skipped {
		fmt.Fprintf(p.Out, "%v is left out: %s\n", x.System, x.Why)
	}
}

// processors names processors by their numbers.
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

// median formats a spread; write formats each of its figures.
func median(s bench.Spread, write func(float64) string) string {
	return fmt.Sprintf("%s (%s-%s)", write(s.Median), write(s.Low), write(s.High))
}

func whole(x float64) string { return fmt.Sprintf("%.0f", x) }

func share(x float64) string { return fmt.Sprintf("%.2f", x) }

// table prints a table after an empty line.
func (p *program) table(t *term.Table) {
	fmt.Fprintln(p.Out)
	_ = t.Write(p.Out, p.Style()) // errors on standard output are reported when it is closed
}

// flashBenchServers is the process that serves the systems of a bench.
func (p *program) flashBenchServers() *cobra.Command {
	return &cobra.Command{
		Use: benchServers, Hidden: true, Short: "Serve the systems of flash bench, which starts this by itself",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return bench.Serve(cmd.InOrStdin(), p.Out) },
	}
}

const benchServers = "bench-servers"

// BenchServers returns the command that starts that process.
func BenchServers() ([]string, error) {
	self, err := os.Executable()
	return []string{self, "flash", benchServers}, err
}

func (p *program) benchJSON(v any) error {
	e := json.NewEncoder(p.Out)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// benchRegister measures registration.
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
	fmt.Fprintf(p.Out, "what it takes until peers can reach so much, in microseconds, %d rounds\n\n%-10s %24s %24s "+
		"%30s\n", r.Rounds, "", "a file of a pool", "memory without pages", "memory, pages locked")
	for _, x := range out {
		shown := func(s bench.Spread) string { return fmt.Sprintf("%.1f (%.1f-%.1f)", s.Median, s.Low, s.High) }
		pinned := shown(x.Pinned)
		if x.Skipped != "" {
			pinned = "-"
		}
		fmt.Fprintf(p.Out, "%-10s %24s %24s %30s\n", term.Size(float64(x.Size)), shown(x.File), shown(x.Memory), pinned)
	}
	fmt.Fprintln(p.Out, "\nof a file no page is read and no memory taken; medians, least and largest in brackets")
	for _, x := range out {
		if x.Skipped != "" {
			fmt.Fprintf(p.Out, "%s of memory were not locked: %s\n", term.Size(float64(x.Size)), x.Skipped)
		}
	}
	return nil
}

// benchProfile prints the distribution of processor time.
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
	fmt.Fprintln(p.Out, "\nof servers' time; Go's scheduler, which works for both ends, is with them. The kernel's "+
		"time within a system call is the call's")
	return nil
}
