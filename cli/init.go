package cli

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"farflash/cli/verb"
	"farflash/scenario"
)

// template is the scenario that init writes.
//
//go:embed template.yaml
var template string

func (p *program) init() *cobra.Command {
	preset := ""
	cmd := &cobra.Command{
		Use:   "init [FILE]",
		Short: "Write a scenario to start from",
		Long: `Write a commented scenario, or a copy of a preset, to a new file or to standard
output.`,
		Example: `  farflash init my.yaml
  farflash init --preset src-ssd-a > a.yaml`,
		Args: verb.Arguments(0, 1, "at most one file name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			text := template
			if preset != "" {
				var err error
				if text, err = scenario.PresetText(preset); err != nil {
					return verb.BadInput(err)
				}
			}
			if len(args) == 0 || args[0] == "-" {
				fmt.Fprint(p.data, text)
				return nil
			}
			return writeNew(args[0], []byte(text))
		},
	}
	cmd.Flags().StringVar(&preset, "preset", "", "copy the preset of this `name`")
	verb.Must(cmd.RegisterFlagCompletionFunc("preset", completePreset))
	return cmd
}

// createNew creates a file for writing. The file must not exist yet; its folder must.
func createNew(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	switch folder := filepath.Dir(name); {
	case errors.Is(err, os.ErrExist):
		return nil, verb.Usagef("%s already exists and is not overwritten; name another", name)
	case errors.Is(err, os.ErrNotExist):
		return nil, verb.Usagef("cannot write %s: no directory %s; create it first", name, folder)
	case err != nil:
		return nil, verb.BadInput(err)
	}
	return f, nil
}

// writeNew writes a file that must not exist yet.
func writeNew(name string, text []byte) error {
	f, err := createNew(name)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return verb.Failed(errors.Join(err, f.Close()))
}
