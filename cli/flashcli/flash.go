// Package flashcli implements the flash verb of the command line: pools of real devices, their files, and the daemon
// that serves them. Like package cli, it only reads flags, calls the library and prints.
package flashcli

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"farflash/cli/verb"
	"farflash/flash/ctl"
	"farflash/flash/pool"
	"farflash/internal/term"
	"farflash/numeric/units"
)

// program is one invocation of the program.
type program struct{ *verb.Program }

// Command returns the flash verb.
func Command(invocation *verb.Program) *cobra.Command {
	p := &program{invocation}
	cmd := &cobra.Command{
		Use:   "flash",
		Short: "Real flash, served over the network",
		Long:  `Format pools of files and block devices, check them, and serve them over the network.`,
		Args:  verb.Unknown,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(p.flashFormat(), p.flashServe(), p.flashCheck(), p.flashUpgrade(), p.flashSalvage(), p.flashCtl(),
		p.flashFS(), p.flashMount(), p.flashKV(), p.flashBench(), p.flashBenchServers())
	return cmd
}

// sizeFlag is a flag whose value is a quantity of bytes.
type sizeFlag struct{ bytes units.Bytes }

func (s *sizeFlag) String() string {
	if s.bytes == 0 {
		return ""
	}
	return s.bytes.String()
}

// Set implements pflag.Value.
func (s *sizeFlag) Set(text string) error {
	n, err := units.ParseBytes(text)
	switch {
	case err != nil:
		return err
	case n <= 0:
		return fmt.Errorf("%s is not a size; give one like 10GiB", text)
	}
	s.bytes = n
	return nil
}

// Type implements pflag.Value.
func (s *sizeFlag) Type() string { return "size" }

// poolFlags holds the flags for access to a pool's devices.
type poolFlags struct {
	memory   sizeFlag
	mapped   sizeFlag
	cached   bool
	portable bool
}

// briefMemory is the page memory of verbs that only open a pool briefly: registering more with the kernel would take
// longer than the verb itself.
const briefMemory = 8 * units.MiB

// The usual budgets: of the daemon, and of verbs that open a pool briefly, which suffices for 8 TB and is hardly used.
const (
	usualMemory = 256 * units.MiB
	mostMemory  = 512 * units.MiB
)

// register adds the flags to a verb.
func (f *poolFlags) register(cmd *cobra.Command, memory units.Bytes) {
	f.memory.bytes = memory
	fl := cmd.Flags()
	fl.Var(&f.memory, "memory", "`size` of memory for everything: pages, the map, buffers")
	fl.BoolVar(&f.cached, "cached", false, "use the operating system's page cache (no O_DIRECT)")
	fl.BoolVar(&f.portable, "portable", false, "do not use io_uring")
}

// options returns the options of a verb that opens a pool briefly.
func (f *poolFlags) options() pool.Options {
	o := pool.DefaultOptions()
	o.Cached, o.Portable = f.cached, f.portable
	o.Pool.Frames = int(briefMemory / ctl.Page)
	o.Pool.Budget = ctl.Budget{Memory: int64(f.memory.bytes), Map: int64(f.mapped.bytes), Most: o.Pool.Frames,
		Divided: func(d ctl.Division) { limitHeap(d.Heap) }}
	return o
}

// ofRuntime is what Go's runtime has beside the heap and counts with it: stacks, and its own state.
const ofRuntime = 16 << 20

// limitHeap makes the garbage collector keep within a budget's part, unless GOMEMLIMIT has less.
func limitHeap(heap int64) { debug.SetMemoryLimit(min(debug.SetMemoryLimit(-1), heap+ofRuntime)) }

// scarce is the error for a budget that a pool does not fit into.
func scarce(s *ctl.Scarce) error {
	is, need := units.Bytes(s.Memory), units.Bytes(s.Need)
	return verb.Usagef("--memory %v is too small for this pool and what is to be served: they need at least %v; use "+
		"--memory %v", is, need, need)
}

func (p *program) flashFormat() *cobra.Command {
	var size sizeFlag
	overwrite, cached, all, disk := false, false, false, ""
	cmd := &cobra.Command{
		Use:   "format FILE...",
		Short: "Format a pool of files or block devices",
		Long: `Format one pool of files or block devices, with a file system that holds one file,
called disk. A missing file is created, as large as --size needs. An existing file
or device must contain only zeros, unless --overwrite is given.

--size is the pool's capacity. The backing file is about a seventh larger, for
collection, the log and the checkpoints. It is sparse: space is allocated as it
is written, unless --preallocate is given. A first write to a sparse place makes
the host's file system write its own metadata too, so durable writes take longer.`,
		Example: `  farflash flash format data.img --size 10GiB
  farflash flash format /dev/nvme0n1 /dev/nvme1n1`,
		Args: verb.Arguments(1, -1, "one or more files or block devices"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o := pool.DefaultOptions()
			o.Overwrite, o.Cached = overwrite, cached
			o.Pool.Frames = int(briefMemory / ctl.Page)
			if all {
				x := p.Progress("preallocating", "bytes", false, "Ctrl-C removes the file")
				defer x.Stop()
				o.Preallocate = func(done, total int64) error {
					x.Update(done, total, "")
					return cmd.Context().Err()
				}
			}
			shape, err := p.makePool(o, uint64(size.bytes), disk, args...)
			if errors.Is(err, context.Canceled) {
				return verb.Failed(errors.New("interrupted; no pool was made"))
			}
			if err != nil {
				return verb.BadInput(err)
			}
			fmt.Fprintf(p.Out, "%s: pool %v, %s in %d segments\n", strings.Join(args, ", "), shape.UUID,
				term.Size(float64(shape.Capacity*ctl.Page)), shape.AllSegments())
			if cmd.Context().Err() != nil {
				return verb.Failed(errors.New("interrupted; the pool was formatted completely"))
			}
			return nil
		},
	}
	cmd.Flags().Var(&size, "size", "pool `size` (default: the capacity of the devices)")
	cmd.Flags().StringVar(&disk, "disk", "disk", "`name` of the file to create, with the pool's capacity; empty: none")
	cmd.Flags().BoolVar(&overwrite, "overwrite", false, "format devices that hold data, which is lost")
	cmd.Flags().BoolVar(&all, "preallocate", false, "write all of the files that are created")
	cmd.Flags().BoolVar(&cached, "cached", false, "use the operating system's page cache (no O_DIRECT)")
	return cmd
}
