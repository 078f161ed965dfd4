// Package flashcli is the verb flash of the command line: pools of real devices, their contents, and serving them. Like
// package cli it only parses flags, calls the library and prints.
package flashcli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"farflash/cli/verb"
	"farflash/flash/ctl"
	"farflash/flash/pool"
	"farflash/internal/term"
	"farflash/numeric/units"
)

// program is one invocation.
type program struct{ *verb.Program }

// Command returns the verb.
func Command(invocation *verb.Program) *cobra.Command {
	p := &program{invocation}
	cmd := &cobra.Command{
		Use:   "flash",
		Short: "Real flash, served over the network",
		Long:  `Make pools of files and block devices, check them, and serve them over the network.`,
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
		return fmt.Errorf("%s is not a size; give one like 10GiB", text)
	}
	s.bytes = n
	return nil
}

// Type implements pflag.Value.
func (s *sizeFlag) Type() string { return "size" }

// poolFlags control the use of a pool's devices.
type poolFlags struct {
	memory   sizeFlag
	cached   bool
	portable bool
}

// briefMemory is the page memory of a verb that inspects a pool and exits: handing more to the kernel would take longer
// than the verb.
const briefMemory = 8 * units.MiB

// register adds the flags to a verb, with its default size of the page memory.
func (f *poolFlags) register(cmd *cobra.Command, memory units.Bytes) {
	f.memory.bytes = memory
	fl := cmd.Flags()
	fl.Var(&f.memory, "memory", "`size` of the memory for pages")
	fl.BoolVar(&f.cached, "cached", false, "use the operating system's page cache")
	fl.BoolVar(&f.portable, "portable", false, "do not use io_uring")
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
		Long: `Make one pool of files or block devices. It gets a file system with one file,
called disk. A file that does not exist is made, as large as --size needs. A
file or device that exists must be empty: only zeros. Other data are overwritten
only with --overwrite.

--size is how much can be in use at once. A file for it is about a seventh
larger: collection, the log and the checkpoints need room. The file is sparse
and takes its room when it is written.`,
		Example: `  farflash flash format data.img --size 10GiB
  farflash flash format /dev/nvme0n1 /dev/nvme1n1`,
		Args: verb.Arguments(1, -1, "one or several files or block devices"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o := pool.DefaultOptions()
			o.Overwrite, o.Cached = overwrite, cached
			o.Pool.Frames = int(briefMemory / ctl.Page)
			shape, err := p.makePool(o, uint64(size.bytes), disk, args...)
			if err != nil {
				return verb.BadInput(err)
			}
			fmt.Fprintf(p.Out, "%s: pool %v, %s in %d segments\n", strings.Join(args, ", "), shape.UUID,
				term.Size(float64(shape.Capacity*ctl.Page)), shape.AllSegments())
			if cmd.Context().Err() != nil {
				return verb.Failed(errors.New("interrupted: what was being formatted is a whole pool all the same"))
			}
			return nil
		},
	}
	cmd.Flags().Var(&size, "size", "`size` that can be in use (default: what the devices hold)")
	cmd.Flags().StringVar(&disk, "disk", "disk", "`name` of the file that is made, as large as --size; empty: none")
	cmd.Flags().BoolVar(&overwrite, "overwrite", false, "format devices that hold data; the data are lost")
	cmd.Flags().BoolVar(&cached, "cached", false, "use the operating system's page cache")
	return cmd
}
