//go:build !linux

package cli

import (
	"runtime"

	"github.com/spf13/cobra"

	"farflash/cli/verb"
)

// flash says that the real stack is not for this system.
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

// servers is the command of servers that are measured: there are none here.
func servers() ([]string, error) { return nil, nil }
