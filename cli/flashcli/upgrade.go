package flashcli

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"farflash/cli/verb"
	"farflash/flash/cfs"
	"farflash/flash/ctl/media"
)

func (p *program) flashUpgrade() *cobra.Command {
	var f poolFlags
	cmd := &cobra.Command{
		Use:   "upgrade FILE...",
		Short: "Give a pool the newest layout",
		Long: `Print the layouts of a pool and its file system, and give the file system the
newest one, in place; older versions of the program refuse it from then on. It
need not be upgraded: older layouts work as they always did.`,
		Example: `  farflash flash upgrade data.img
  farflash flash upgrade a.img b.img`,
		Args: verb.Arguments(1, -1, "the devices of one pool"),
		RunE: func(_ *cobra.Command, args []string) (err error) {
			opened, done, err := p.openPool(f.options(), args)
			if err != nil {
				return err
			}
			defer done(&err)
			tree, err := cfs.Open(opened, cfs.Config{Now: time.Now})
			if err != nil {
				return verb.BadInput(fmt.Errorf("%s: %w", args[0], err))
			}
			was, name := tree.Layout(), strings.Join(args, ", ")
			if was == cfs.Version {
				fmt.Fprintf(p.Out, "%s: pool of layout %d, file system of layout %d: the newest\n", name, media.Version, was)
				return nil
			}
			if err := tree.Upgrade(); err != nil {
				return verb.Failed(fmt.Errorf("%s: %w", args[0], err))
			}
			fmt.Fprintf(p.Out, "%s: pool of layout %d, file system of layout %d, which was %d\n", name, media.Version,
				tree.Layout(), was)
			return nil
		},
	}
	f.register(cmd, mostMemory)
	return cmd
}
