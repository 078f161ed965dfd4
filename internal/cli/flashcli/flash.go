// Package flashcli is the verb flash of the command line: pools of real devices, what is in them, and serving it. Like package cli it does nothing but read flags,
// call the library and print.
package flashcli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"farflash/flash/ctl"
	"farflash/flash/pool"
	"farflash/internal/cli/verb"
	"farflash/internal/term"
	"farflash/units"
)

// program is one invocation.
type program struct{ *verb.Program }

// Command is the verb.
func Command(invocation *verb.Program) *cobra.Command {
	p := &program{invocation}
	cmd := &cobra.Command{
		Use:   "flash",
		Short: "Real flash, served over the network",
		Long:  `Make pools of files and block devices, check them, and serve what is in them over the network.`,
		Args:  verb.Unknown,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(p.flashFormat(), p.flashServe(), p.flashCheck(), p.flashFS(), p.flashBench(), p.flashBenchServers())
	return cmd
}

// sizeFlag is a quantity of bytes on the command line.
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
		return fmt.Errorf("%s is no size; give one like 10GiB", text)
	}
	s.bytes = n
	return nil
}

// Type implements pflag.Value.
func (s *sizeFlag) Type() string { return "size" }

// poolFlags say how a pool's devices are used.
type poolFlags struct {
	memory   sizeFlag
	cached   bool
	portable bool
}

// briefMemory is what a verb that looks at a pool and ends has for pages: handing it to the kernel takes longer than the verb.
const briefMemory = 8 * units.MiB

// register adds the flags to a verb that has so much memory for pages unless it is told otherwise.
func (f *poolFlags) register(cmd *cobra.Command, memory units.Bytes) {
	f.memory.bytes = memory
	fl := cmd.Flags()
	fl.Var(&f.memory, "memory", "`size` of the memory for pages")
	fl.BoolVar(&f.cached, "cached", false, "go through the operating system's page cache, not around it")
	fl.BoolVar(&f.portable, "portable", false, "do without io_uring")
}

func (f *poolFlags) options() (pool.Options, error) {
	o := pool.DefaultOptions()
	o.Cached, o.Portable = f.cached, f.portable
	o.Pool.Frames = int(f.memory.bytes / ctl.Page)
	if err := o.Pool.Validate(); err != nil {
		return o, verb.Usagef("--memory %v: %w", f.memory.bytes, err)
	}
	return o, nil
}

func (p *program) flashFormat() *cobra.Command {
	var size sizeFlag
	overwrite, cached, disk := false, false, ""
	cmd := &cobra.Command{
		Use:   "format FILE...",
		Short: "Make a pool of files or block devices",
		Long: `Make one pool of files or block devices, with a file system in it and in that one file, called disk. What does not exist is made, as large as --size needs;
what exists is used as it is, and must be empty: nothing but zeros. Data that is not known is never touched
without --overwrite.

--size is what can be in use at once. A file for it is about a seventh larger: collection needs room, and so do the
log and the checkpoints. The file is sparse; its room is taken when it is written.`,
		Example: `  farflash flash format data.img --size 10GiB
  farflash flash format /dev/nvme0n1 /dev/nvme1n1`,
		Args: verb.Arguments(1, -1, "one or several files or block devices"),
		RunE: func(_ *cobra.Command, args []string) error {
			o := pool.DefaultOptions()
			o.Overwrite, o.Cached = overwrite, cached
			o.Pool.Frames = int(briefMemory / ctl.Page)
			shape, err := makePool(o, uint64(size.bytes), disk, args...)
			if err != nil {
				return verb.BadInput(err)
			}
			fmt.Fprintf(p.Out, "%s: pool %v, %s in %d segments\n", strings.Join(args, ", "), shape.UUID, term.Size(float64(shape.Capacity*ctl.Page)), shape.AllSegments())
			return nil
		},
	}
	cmd.Flags().Var(&size, "size", "`size` that can be in use (default: what the devices hold)")
	cmd.Flags().StringVar(&disk, "disk", "disk", "`name` of the file that is made, as large as --size; empty: none")
	cmd.Flags().BoolVar(&overwrite, "overwrite", false, "format even what holds data, which is lost")
	cmd.Flags().BoolVar(&cached, "cached", false, "go through the operating system's page cache, not around it")
	return cmd
}
