package flashcli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"farflash/cli/verb"
	"farflash/flash/cfs"
	"farflash/flash/qos"
	"farflash/flash/server"
	"farflash/scenario/shape"
)

// limit is the limit of an export.
type limit struct {
	name string
	rate qos.Limit
	at   shape.Position // in a config
}

// parseLimit parses NAME=RATE.
func parseLimit(text string) (l limit, err error) {
	name, what, ok := strings.Cut(text, "=")
	if l.name = server.Name(name); !ok || l.name == "" {
		return l, fmt.Errorf("give NAME=RATE, such as disk=100MB/s")
	}
	l.rate, err = qos.ParseLimit(what)
	return l, err
}

// fault is an error of the limit.
func (l limit) fault(err error) error {
	if l.at.File == "" {
		return fmt.Errorf("--limit: %w", err)
	}
	return &shape.Error{At: l.at, Msg: err.Error()}
}

// limits are limits as they were given.
type limits []limit

// byName returns the limits by name. An export has one.
func (all limits) byName() (map[string]qos.Limit, error) {
	by := map[string]qos.Limit{}
	for _, l := range all {
		if _, twice := by[l.name]; twice {
			return nil, l.fault(fmt.Errorf("%s is given twice; give all its limits at once, such as "+
				"%[1]s=100MB/s,5000iops", l.name))
		}
		by[l.name] = l.rate
	}
	return by, nil
}

// known verifies that the exports exist.
func (all limits) known(there func(name string) bool, names func() ([]string, error)) error {
	for _, l := range all {
		if !there(l.name) {
			exist, err := names()
			if err == nil {
				err = server.Absent(l.name, exist)
			}
			return l.fault(err)
		}
	}
	return nil
}

// relimit takes the limits of a config that is read again. Those that flash ctl has set stay, unless the config has
// changed for their exports.
func (f *serveFlags) relimit(s *server.Server, tree *cfs.FS, now limits) error {
	by, err := now.byName()
	if err == nil {
		err = now.known(f.there(tree))
	}
	if err != nil {
		return err
	}
	if err := s.Configure(by); err != nil {
		return err
	}
	f.rates = now
	return nil
}

func (p *program) ctlLimit() *cobra.Command {
	control := ""
	cmd := &cobra.Command{
		Use:   "limit POOL NAME=RATE...",
		Short: "Change the limits of exports",
		Long: `Change limits, given as to farflash flash serve --limit, or none. They act at once,
and outlive the daemon, until its config or --limit has another limit for the
export than now. They belong to the export's name.`,
		Example: `  farflash flash ctl limit data.img disk=100MB/s,5000iops
  farflash flash ctl limit data.img disk=latency logs=none`,
		Args: verb.Arguments(2, -1, "the first device of a pool, and NAME=RATE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var all limits
			for _, text := range args[1:] {
				l, err := parseLimit(text)
				if err != nil {
					return verb.BadInput(fmt.Errorf("%q: %w", text, err))
				}
				all = append(all, l)
			}
			d, err := dialDaemon(args[0], control)
			if err != nil {
				return err
			}
			defer d.close()
			for _, l := range all {
				var x server.Limited
				if err := d.order(cmd.Context(), server.Order{Export: l.name, Limit: &l.rate}, &x); err != nil {
					return err
				}
				if x.Brief != "" {
					p.Note("%s: a restart of the daemon brings back the limit of before: %s", l.name, x.Brief)
				}
				fmt.Fprintf(p.Out, "%s: %v\n", l.name, l.rate)
			}
			return nil
		},
	}
	registerControl(cmd, &control)
	return cmd
}
