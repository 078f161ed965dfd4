//go:build !linux

package cli

import (
	"runtime"

	"github.com/spf13/cobra"

	"farflash/cli/verb"
)

// flash returns a verb that reports that the real stack does not run on this system.
func (p *program) flash() *cobra.Command {
	return &cobra.Command{
		Use:                "flash",
		Short:              "Real flash, served over the network (Linux only)",
		DisableFlagParsing: true,
		RunE: func(*cobra.Command, []string) error {
			return verb.Usagef("flash: pools of real devices need Linux (io_uring, O_DIRECT), and this is %s; "+
				"simulations run here", runtime.GOOS)
		},
	}
}

// servers returns no command line, because this system has no servers to measure.
func servers() ([]string, error) { return nil, nil }
