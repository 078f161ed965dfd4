package flashcli

import (
	"encoding/json"
	"fmt"
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
	json                bool
}

func (f *benchFlags) register(cmd *cobra.Command, c *bench.Config) {
	f.size.bytes, f.memory.bytes, f.block.bytes = units.Bytes(c.Size), units.Bytes(c.Memory), units.Bytes(c.Block)
	fl := cmd.Flags()
	fl.Var(&f.size, "size", "`size` of what is read and written")
	fl.Var(&f.memory, "memory", "`size` of the pool's memory for pages")
	fl.Var(&f.block, "block", "`size` of a request")
	fl.StringSliceVar(&f.systems, "systems", names(c.Systems), "what is measured, the first against each of the others: verbs, socket, socket+uring, socket-cached")
	fl.IntVarP(&c.Connections, "connections", "c", c.Connections, "`number` of connections")
	fl.IntVar(&c.Depth, "depth", c.Depth, "`number` of requests of a connection under way at once")
	fl.Float64Var(&c.Writes, "writes", c.Writes, "`share` of the requests that write, 0 to 1")
	fl.IntVar(&c.Rounds, "rounds", c.Rounds, "`number` of rounds; each measures every system")
	fl.DurationVar(&c.Time, "time", c.Time, "`time` of one measurement")
	fl.Float64Var(&c.Load, "load", c.Load, "open loop: the `share` of what the second system can do at most that is offered to all")
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
	if err := c.Validate(); err != nil {
		return verb.Usagef("%w", err)
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

Files are made in DIR (default: here) and removed afterwards; their file system decides what a device read costs. Clients share
the processors with servers. So rates and latencies are this machine's, and busy machines give small ones; what compares are the ratios,
each of two measurements of one round, with the least and the largest of all rounds.

With --load requests are due at times that do not depend on answers, and latency counts from when a request was due.`,
		Example: `  farflash flash bench /mnt/nvme --connections 16 --depth 8
  farflash flash bench --load 0.8 --rounds 7
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
			r, err := bench.Run(c)
			if err != nil {
				return verb.BadInput(err)
			}
			if f.json {
				e := json.NewEncoder(p.Out)
				e.SetIndent("", "  ")
				return e.Encode(r)
			}
			p.printBench(&c, r)
			return nil
		},
	}
	f.register(cmd, &c)
	return cmd
}

func (p *program) printBench(c *bench.Config, r *bench.Report) {
	kind := "reads"
	switch {
	case c.Writes == 1:
		kind = "writes"
	case c.Writes > 0:
		kind = fmt.Sprintf("requests, %.3g %% of them writes", 100*c.Writes)
	}
	fmt.Fprintf(p.Out, "random %s of %s in %s, %d connections with %d at once, %d rounds of %v\n", kind, term.Size(float64(c.Block)), term.Size(float64(c.Size)),
		c.Connections, c.Depth, c.Rounds, c.Time.Round(time.Millisecond))
	if r.Offered > 0 {
		fmt.Fprintf(p.Out, "open loop, %.0f requests a second are due\n", r.Offered)
	}
	fmt.Fprintf(p.Out, "\n%-18s %21s %21s %21s %21s %12s\n", "", "IOPS", "p50 (us)", "p99 (us)", "processor us each", "device reads")
	shown := func(s bench.Spread) string { return fmt.Sprintf("%.0f (%.0f-%.0f)", s.Median, s.Low, s.High) }
	for _, o := range r.Outcomes {
		reads := ""
		if o.Reads.Median > 0 {
			reads = fmt.Sprintf("%.3f", o.Reads.Median)
		}
		fmt.Fprintf(p.Out, "%-18v %21s %21s %21s %21s %12s\n", o.System, shown(o.Rate), shown(o.P50), shown(o.P99), shown(o.CPU), reads)
	}
	share := func(s bench.Spread) string { return fmt.Sprintf("%.2f (%.2f-%.2f)", s.Median, s.Low, s.High) }
	for _, x := range r.Ratios {
		fmt.Fprintf(p.Out, "%-18s %21s %21s %21s %21s\n", "over "+x.B.String(), share(x.Rate), share(x.P50), share(x.P99), share(x.CPU))
	}
	fmt.Fprintf(p.Out, "\nmedians of the rounds, least and largest in brackets; a ratio's true median lies between with %.3g %% confidence\n", 100*r.Confidence)
}
