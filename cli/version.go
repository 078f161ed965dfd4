package cli

import (
	"encoding/json"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"farflash/cli/verb"
)

func (p *program) version() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the program's version",
		Example: `  farflash version
  farflash version --json`,
		Args: verb.Arguments(0, 0, "none"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if asJSON {
				return verb.Failed(json.NewEncoder(p.data).Encode(map[string]string{
					"version": buildVersion(), "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH,
				}))
			}
			fmt.Fprintf(p.out, "farflash %s (%s, %s/%s)\n", buildVersion(), runtime.Version(), runtime.GOOS,
				runtime.GOARCH)
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
