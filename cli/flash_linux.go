package cli

import (
	"github.com/spf13/cobra"

	"farflash/cli/flashcli"
)

// flash is the verb of the real flash stack.
func (p *program) flash() *cobra.Command { return flashcli.Command(p.verbs()) }

// servers returns the command that starts the servers to be measured.
func servers() ([]string, error) { return flashcli.BenchServers() }
