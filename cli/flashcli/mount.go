package flashcli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"farflash/cli/verb"
	"farflash/flash/cfs"
	"farflash/flash/client"
	"farflash/flash/mount"
	"farflash/flash/verbs/control"
)

// forever is how long --hard waits for a server.
const forever = 10 * 365 * 24 * time.Hour

func (p *program) flashMount() *cobra.Command {
	var f kvFlags
	var local fsFlags
	cfg, hard := mount.Config{}, false
	cmd := &cobra.Command{
		Use:   "mount ADDRESS DIRECTORY",
		Short: "Mount the files of a server or pool",
		Long: `Show the files of a server that runs with --files in a directory, by FUSE on
Linux, until Ctrl-C or umount. In place of the address there can be the device of
a pool that no daemon serves.

After half a minute without the server everything fails with EIO until it is
mounted again; with --hard programs wait.`,
		Example: `  farflash flash mount 127.0.0.1:9700 /mnt
  farflash flash mount data.img /mnt --cache 1s`,
		Args: verb.Arguments(2, 2, "a server's address or a pool's device, and a directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := mount.Available(); err != nil {
				return verb.BadInput(fmt.Errorf("%w; without it use a block device (farflash flash serve --nbd), or "+
					"farflash flash fs", err))
			}
			if x, err := os.Stat(args[1]); err != nil || !x.IsDir() {
				return verb.BadInput(fmt.Errorf("%s is no directory; make it first", args[1]))
			}
			cfg.Source = args[0]
			if x, err := os.Stat(args[0]); err == nil && !x.IsDir() && !strings.HasPrefix(args[0], "unix:") {
				return local.tree(p, append([]string{args[0]}, local.also...), func(files *cfs.FS) error {
					return p.mount(cmd.Context(), args[1], mount.Local(files), cfg)
				})
			}
			c, err := f.config()
			if err != nil {
				return err
			}
			c.Named = false
			if hard {
				c.Reconnect.Limit = forever
			}
			dialing, cancel := context.WithTimeout(cmd.Context(), 10*time.Second)
			defer cancel()
			conn, err := client.Dial(dialing, args[0], c)
			if err != nil {
				return verb.BadInput(fmt.Errorf("%s: %w", args[0], err))
			}
			can, err := conn.Files().Features(dialing)
			if err != nil {
				return verb.BadInput(errors.Join(fmt.Errorf("%s: %w", args[0], err), conn.Close()))
			}
			if can&control.FilesChange == 0 && !cfg.ReadOnly {
				cfg.ReadOnly = true
				p.Note("%s serves reads only, so the mount is read-only", args[0])
			}
			err = p.mount(cmd.Context(), args[1], mount.Remote(conn), cfg)
			return errors.Join(err, verb.Failed(conn.Close()))
		},
	}
	f.register(cmd)
	local.pool.register(cmd, usualMemory)
	fl := cmd.Flags()
	fl.StringArrayVar(&local.also, "also", nil, "another `device` of the pool (repeatable)")
	fl.BoolVar(&hard, "hard", false, "wait for the server as long as it takes")
	fl.DurationVar(&cfg.Cache, "cache", 0,
		"`time` that names and attributes are kept; above 0s other clients' changes are seen that much later")
	fl.BoolVar(&cfg.ReadOnly, "read-only", false, "mount for reading")
	return cmd
}

// mount mounts a tree until the program is interrupted, or somebody unmounts it.
func (p *program) mount(ctx context.Context, dir string, t mount.Tree, cfg mount.Config) error {
	if cfg.Cache < 0 || cfg.Cache > time.Hour {
		return verb.Usagef("--cache: %v; give 0s to 1h", cfg.Cache)
	}
	p.Keeping()
	m, err := mount.Mount(dir, t, cfg)
	if err != nil {
		return verb.BadInput(err)
	}
	fmt.Fprintf(p.Out, "%s is mounted at %s; Ctrl-C unmounts it\n", cfg.Source, dir)
	over := make(chan struct{})
	go func() {
		m.Wait()
		close(over)
	}()
	select {
	case <-over:
	case <-ctx.Done():
		if err := m.Unmount(); err != nil {
			return verb.Failed(err)
		}
	}
	fmt.Fprintln(p.Out, "unmounted")
	return nil
}
