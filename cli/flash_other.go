//go:build !linux

package cli

import (
	"runtime"

	"github.com/spf13/cobra"

	"farflash/cli/verb"
)

// flash reports that the real flash stack does not support this system.
func (p *program) flash() *cobra.Command {
	return &cobra.Command{
		Use:                "flash",
		Short:              "Real flash, served over the network (Linux only)",
		DisableFlagParsing: true,
		RunE: func(*cobra.Command, []string) error {
			return verb.Usagef("flash: pools of real devices need Linux (io_uring, O_DIRECT), and this is %s; "+
				"simulations run here, too", runtime.GOOS)
		},
	}
}

// servers returns the command that starts the servers to be measured: none on this system.
func servers() ([]string, error) { return nil, nil }
