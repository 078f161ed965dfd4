package flashcli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"farflash/cli/verb"
	"farflash/flash/cfs/live"
	"farflash/flash/server"
	"farflash/internal/spelling"
	"farflash/internal/term"
)

// flashCtl returns the verb for a daemon that serves a pool.
func (p *program) flashCtl() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ctl",
		Short: "A daemon that serves a pool",
		Long: `Look at a running daemon, over its socket beside the pool's first device. Only
its user and the superuser may. Files are changed with farflash flash fs.`,
		Args: verb.Unknown,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(p.ctlStatus())
	return cmd
}

func (p *program) ctlStatus() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "status POOL",
		Short: "Show what a daemon serves, and to how many",
		Long: `Show the addresses of the daemon that serves a pool, the pool's use, and for
each export and protocol its clients, operations and latencies since the daemon
started.`,
		Example: `  farflash flash ctl status data.img
  farflash flash ctl status data.img --json`,
		Args: verb.Arguments(1, 1, "the first device of a pool"),
		RunE: func(_ *cobra.Command, args []string) error {
			x, raw, err := status(args[0])
			switch {
			case err != nil:
				return err
			case asJSON:
				return p.JSON(raw)
			}
			return verb.Failed(p.showStatus(args[0], &x))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// status asks the daemon that serves a pool.
func status(device string) (x server.Status, raw json.RawMessage, err error) {
	files, err := live.Dial(device)
	switch {
	case errors.Is(err, live.ErrAbsent):
		return x, nil, verb.BadInput(fmt.Errorf("%s: no daemon serves it; start one: farflash flash serve %[1]s", device))
	case err != nil:
		return x, nil, verb.BadInput(err)
	}
	y, err := files.Do(context.Background(), live.Request{Op: live.Report}, nil, nil)
	if err := errors.Join(err, files.Close()); err != nil {
		return x, nil, verb.Failed(fmt.Errorf("%s: %w", device, err))
	}
	if err := json.Unmarshal(y.Report, &x); err != nil {
		return x, nil, verb.Failed(fmt.Errorf("%s: the daemon is another version: %w", device, err))
	}
	return x, y.Report, nil
}

// showStatus prints a status.
func (p *program) showStatus(device string, x *server.Status) error {
	state := "serving"
	if x.Unready != "" {
		state = x.Unready
	}
	fmt.Fprintf(p.Out, "%s: pool %s, %s for %v\n", device, x.Pool, state,
		time.Since(x.Began).Round(time.Second))
	fmt.Fprintf(p.Out, "%s of %s used, write amplification %.2f", term.Size(float64(x.Used)),
		term.Size(float64(x.Capacity)), x.WriteAmplification)
	if all := x.Hits + x.Misses; all > 0 {
		fmt.Fprintf(p.Out, ", %.1f %% of requests from memory", 100*float64(x.Hits)/float64(all))
	}
	if x.Damaged > 0 {
		fmt.Fprintf(p.Out, ", %s", spelling.Plural(int(x.Damaged), "damaged page"))
	}
	fmt.Fprintf(p.Out, "\n%s\n", strings.Join(x.Addresses, ", "))
	if len(x.Exports) == 0 {
		fmt.Fprintln(p.Out, "no client has opened an export")
		return nil
	}
	fmt.Fprintln(p.Out)
	t := term.NewTable(term.Left("export"), term.Left("protocol"), term.Right("clients"), term.Left("kind"),
		term.Right("operations"), term.Right("data"), term.Right("p50"), term.Right("p99"))
	for i := range x.Exports {
		e := &x.Exports[i]
		first := []string{e.Export, e.Protocol, fmt.Sprint(e.Clients)}
		if e.Failed > 0 {
			first[1] += fmt.Sprintf(", %d failed", e.Failed)
		}
		for _, kind := range []string{"read", "write", "flush", "trim", "zero", "cache"} {
			of, ok := e.Kinds[kind]
			if !ok {
				continue
			}
			t.Row(slices.Concat(first, []string{kind, term.Count(float64(of.Count)), term.Size(float64(of.Bytes)),
				latency(of.P50), latency(of.P99)})...)
			first = []string{"", "", ""}
		}
		if first[0] != "" {
			t.Row(slices.Concat(first, []string{"", "", "", "", ""})...)
		}
	}
	return t.Write(p.Out, p.Style())
}

// latency formats seconds; "" without a latency.
func latency(seconds float64) string {
	if seconds == 0 {
		return ""
	}
	return term.Quantity(seconds*1e6, "us")
}
