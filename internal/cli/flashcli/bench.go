package flashcli

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"farflash/flash/bench"
	"farflash/internal/cli/verb"
	"farflash/internal/term"
	"farflash/units"
)

// benchFlags are those of flash bench.
type benchFlags struct {
	size, memory, block sizeFlag
	systems             []string
	connections         []int
	profile             bool
	register            bool
	json                bool
}

func (f *benchFlags) add(cmd *cobra.Command, c *bench.Config) {
	f.size.bytes, f.memory.bytes, f.block.bytes = units.Bytes(c.Size), units.Bytes(c.Memory), units.Bytes(c.Block)
	fl := cmd.Flags()
	fl.Var(&f.size, "size", "`size` of what is read and written")
	fl.Var(&f.memory, "memory", "`size` of the pool's memory for pages")
	fl.Float64Var(&c.Room, "room", c.Room, "the pool's room, as a `multiple` of size; where there is none to spare, random writes have it collected all the while")
	fl.Var(&f.block, "block", "`size` of a request")
	fl.StringSliceVar(&f.systems, "systems", names(c.Systems), "what is measured, the first against each of the others: "+strings.Join(bench.Names(), ", "))
	fl.IntSliceVarP(&f.connections, "connections", "c", []int{c.Connections}, "`numbers` of connections, one after the other")
	fl.IntVar(&c.Depth, "depth", c.Depth, "`number` of requests of a connection under way at once")
	fl.Float64Var(&c.Writes, "writes", c.Writes, "`share` of the requests that write, 0 to 1")
	fl.BoolVar(&c.Atomics, "atomics", false, "add to random words of the first MiB, and see that the sum is right; of verbs and verbs-polled only")
	fl.BoolVar(&f.profile, "profile", false, "say where servers' processor time goes, by a profile of each system")
	fl.BoolVar(&f.register, "register", false, "measure what it costs to register files and memory, of 1 MiB to 10 GiB, and nothing else")
	fl.IntVar(&c.Rounds, "rounds", c.Rounds, "`number` of rounds; each measures every system")
	fl.DurationVar(&c.Time, "time", c.Time, "`time` of one measurement")
	fl.Float64Var(&c.Load, "load", c.Load, "open loop: the `share` of what the second system can do at most that is offered to all")
	fl.DurationVar(&c.Spin, "spin", 0, "`time` for which a thread that serves verbs looks for more before it sleeps, such as 50us")
	fl.IntVar(&c.Threads, "threads", c.Threads, "`number` of threads that serve verbs through io_uring; 0 is half as many as processors")
	fl.Uint64Var(&c.Seed, "seed", c.Seed, "`number` that the places are drawn with")
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
		Long: `Measure random reads and writes of a file by several systems in turns, over loopback, in this process:

  verbs          one-sided reads and writes over iWARP, on the flash controller
  socket         requests over a plain connection, served by pread and pwrite around the page cache, a goroutine a connection
  socket+uring   the same requests, served through io_uring
  socket-cached  the same as socket, through the page cache
  socket-c       the same as socket, by a server in C, which gcc makes; left out without it
  local          io_uring on the file, without a network: what there is at most
  verbs-polled   verbs whose client looks for completions instead of being woken

Files are made in DIR (default: here) and removed afterwards; their file system decides what a device read costs. Clients share
the processors with servers. So rates and latencies are this machine's, and busy machines give small ones; what compares are the ratios,
each of two measurements of one round, with the least and the largest of all rounds.

Several numbers of connections are measured one after the other. --block 1MiB shows bandwidth, -c 1 --depth 1 a lone request's latency.

With --load requests are due at times that do not depend on answers, and latency counts from when a request was due.`,
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
	fmt.Fprintf(p.Out, "random %s of %s in %s, %d connections with %d at once, %d rounds of %v\n", kind, term.Size(float64(r.Block)), term.Size(float64(c.Size)),
		r.Connections, c.Depth, c.Rounds, c.Time.Round(time.Millisecond))
	if r.Offered > 0 {
		fmt.Fprintf(p.Out, "open loop, %.0f requests a second are due\n", r.Offered)
	}
	fmt.Fprintf(p.Out, "\n%-18s %21s %8s %21s %21s %21s %12s\n", "", "IOPS", "Gbit/s", "p50 (us)", "p99 (us)", "processor us each", "device reads")
	shown := func(s bench.Spread) string { return fmt.Sprintf("%.0f (%.0f-%.0f)", s.Median, s.Low, s.High) }
	for _, o := range r.Outcomes {
		reads := ""
		if o.Reads.Median > 0 {
			reads = fmt.Sprintf("%.3f", o.Reads.Median)
		}
		fmt.Fprintf(p.Out, "%-18v %21s %8.3g %21s %21s %21s %12s\n", o.System, shown(o.Rate), r.Gbps(o.Rate.Median), shown(o.P50), shown(o.P99), shown(o.CPU), reads)
	}
	share := func(s bench.Spread) string { return fmt.Sprintf("%.2f (%.2f-%.2f)", s.Median, s.Low, s.High) }
	for _, x := range r.Ratios {
		fmt.Fprintf(p.Out, "%-18s %21s %8s %21s %21s %21s\n", "over "+x.B.String(), share(x.Rate), "", share(x.P50), share(x.P99), share(x.CPU))
	}
	fmt.Fprintf(p.Out, "\nmedians of the rounds, least and largest in brackets; a ratio's true median lies between with %.3g %% confidence\n", 100*r.Confidence)
	for _, x := range r.Skipped {
		fmt.Fprintf(p.Out, "%v is left out: %s\n", x.System, x.Why)
	}
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
	fmt.Fprintf(p.Out, "what it takes until peers can reach so much, in microseconds, %d rounds\n\n%-10s %24s %24s %30s\n", r.Rounds, "", "a file of a pool", "memory without pages", "memory, pages locked")
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

// benchProfile says where processor time goes.
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
	fmt.Fprintln(p.Out, "\nof servers' time; Go's scheduler, which works for both ends, is with them. The kernel's time within a system call is the call's")
	return nil
}
