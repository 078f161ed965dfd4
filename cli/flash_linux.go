package cli

import (
	"github.com/spf13/cobra"

	"farflash/cli/flashcli"
)

// flash returns the verb of the real stack.
func (p *program) flash() *cobra.Command { return flashcli.Command(p.verbs()) }

// servers returns the command line that starts the servers to be measured.
func servers() ([]string, error) { return flashcli.BenchServers() }
