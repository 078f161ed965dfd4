package cli

import (
	"github.com/spf13/cobra"

	"farflash/cli/flashcli"
)

// flash is the real stack.
func (p *program) flash() *cobra.Command { return flashcli.Command(p.verbs()) }

// servers is the command of servers that are measured.
func servers() ([]string, error) { return flashcli.BenchServers() }
