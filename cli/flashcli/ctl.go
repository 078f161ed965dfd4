package flashcli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"farflash/cli/verb"
	"farflash/flash/cfs/live"
	"farflash/flash/qos"
	"farflash/flash/server"
	"farflash/internal/spelling"
	"farflash/internal/term"
)

// flashCtl returns the verb for a daemon that serves a pool.
func (p *program) flashCtl() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ctl",
		Short: "A daemon that serves a pool",
		Long: `Look at and control a running daemon, over its socket beside the
pool's first device, or at --control. Only its user and the superuser may. Files
are changed with farflash flash fs.`,
		Args: verb.Unknown,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(p.ctlStatus(), p.ctlLimit(), p.ctlDrain())
	return cmd
}

func (p *program) ctlStatus() *cobra.Command {
	asJSON, control := false, ""
	cmd := &cobra.Command{
		Use:   "status POOL",
		Short: "Show what a daemon serves, and to how many",
		Long: `Show the addresses of the daemon that serves a pool, the pool's use, and for
each export and protocol its clients, operations and latencies since the daemon
started; the limits of exports, and those that are drained.`,
		Example: `  farflash flash ctl status data.img
  farflash flash ctl status data.img --json`,
		Args: verb.Arguments(1, 1, "the first device of a pool"),
		RunE: func(_ *cobra.Command, args []string) error {
			x, raw, err := status(args[0], control)
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
	registerControl(cmd, &control)
	return cmd
}

// daemon is a connection to the daemon that serves a pool.
type daemon struct {
	device, control string
	files           *live.Files
}

// dialDaemon connects over the given socket; empty: over the one beside the device.
func dialDaemon(device, control string) (*daemon, error) {
	files, err := live.Dial(control, device)
	switch {
	case errors.Is(err, live.ErrAbsent) && control != "":
		return nil, verb.BadInput(fmt.Errorf("%s: no daemon serves it at %s", device, control))
	case errors.Is(err, live.ErrAbsent):
		return nil, verb.BadInput(fmt.Errorf("%s: no daemon serves it; start one: farflash flash serve %[1]s", device))
	case err != nil:
		return nil, verb.BadInput(err)
	}
	return &daemon{device, control, files}, nil
}

func (d *daemon) close() { _ = d.files.Close() } // everything was answered

// ask sends a request. The answer, in JSON, goes into x unless that is nil.
func (d *daemon) ask(ctx context.Context, r live.Request, x any) (json.RawMessage, error) {
	y, err := d.files.Do(ctx, r, nil, nil)
	if err != nil {
		return nil, verb.Failed(fmt.Errorf("%s: %w", d.device, err))
	}
	if x != nil {
		if err := json.Unmarshal(y.Report, x); err != nil {
			return nil, verb.Failed(fmt.Errorf("%s: the daemon is another version: %w", d.device, err))
		}
	}
	return y.Report, nil
}

// order gives an order, whose answer goes into x unless that is nil.
func (d *daemon) order(ctx context.Context, o server.Order, x any) error {
	order, err := json.Marshal(o)
	if err != nil {
		return verb.Failed(err)
	}
	_, err = d.ask(ctx, live.Request{Op: live.Control, Order: order}, x)
	return err
}

// status asks the daemon that serves a pool.
func status(device, control string) (x server.Status, raw json.RawMessage, err error) {
	d, err := dialDaemon(device, control)
	if err != nil {
		return x, nil, err
	}
	defer d.close()
	raw, err = d.ask(context.Background(), live.Request{Op: live.Report}, &x)
	return x, raw, err
}

func (p *program) ctlDrain() *cobra.Command {
	timeout, undo, control := 30*time.Second, false, ""
	cmd := &cobra.Command{
		Use:   "drain POOL EXPORT",
		Short: "Close an export to new clients until none has it open",
		Long: `Close an export to new clients, and wait until none has it open. Clients go on
until they close it. NVMe hosts cannot close it: what the daemon has accepted
completes, and Linux keeps other requests until --undo (the ANA state is
inaccessible).

After --timeout the command says who has it open, with exit code 1, and the export
stays closed to others, also after a restart of the daemon. The mark moves with the
file, and stays when another file replaces it.`,
		Example: `  farflash flash ctl drain data.img disk
  farflash flash ctl drain data.img disk --undo`,
		Args: verb.Arguments(2, 2, "the first device of a pool, and an export"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if timeout < 0 {
				return verb.Usagef("--timeout: %v; give a time such as 30s, or 0s to look once", timeout)
			}
			d, err := dialDaemon(args[0], control)
			if err != nil {
				return err
			}
			defer d.close()
			if undo {
				if err := d.order(cmd.Context(), server.Order{Export: args[1], Resume: true}, nil); err != nil {
					return err
				}
				fmt.Fprintf(p.Out, "%s: open to clients again\n", args[1])
				return nil
			}
			return p.drain(cmd.Context(), d, args[1], timeout)
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", timeout, "`time` to wait for clients to close the export")
	cmd.Flags().BoolVar(&undo, "undo", false, "open the export to clients again")
	registerControl(cmd, &control)
	return cmd
}

// drain waits until no client has an export open.
func (p *program) drain(ctx context.Context, d *daemon, name string, timeout time.Duration) error {
	var x server.Drain
	again := fmt.Sprintf("farflash flash ctl drain %s %s", d.device, name)
	if d.control != "" {
		again += " --control " + d.control
	}
	until, told := time.Now().Add(timeout), false
	for {
		if err := d.order(ctx, server.Order{Export: name, Drain: true}, &x); err != nil {
			return err
		}
		if len(x.Users) == 0 {
			break
		}
		open := fmt.Sprintf("%s: open at %s", x.Export, users(x.Users))
		switch left := time.Until(until); {
		case left <= 0:
			return verb.Failed(fmt.Errorf("%s; no other can open it; wait on: %s; or give up: %[2]s --undo", open,
				again))
		case !told:
			told = true
			p.Note("%s; waiting for %v", open, timeout)
		}
		select {
		case <-ctx.Done():
			return verb.Failed(fmt.Errorf("%s; no other can open it until: %s --undo", open, again))
		case <-time.After(min(100*time.Millisecond, max(time.Until(until), time.Millisecond))):
		}
	}
	if x.Brief != "" {
		p.Note("%s: a restart of the daemon opens it: %s", x.Export, x.Brief)
	}
	fmt.Fprintf(p.Out, "%s: no client has it open, and none can open it until: %s --undo\n", x.Export, again)
	if x.Hosts > 0 {
		fmt.Fprintf(p.Out, "%s: until then, requests of %s wait\n", x.Export, spelling.Plural(x.Hosts, "NVMe host"))
	}
	return nil
}

// users lists who has an export open, the first few.
func users(all []server.User) string {
	const most = 8
	var lines []string
	for i := 0; i < len(all); {
		n := 1
		for i+n < len(all) && all[i+n] == all[i] {
			n++
		}
		line := all[i].Protocol + " " + all[i].Peer
		if n > 1 {
			line += fmt.Sprintf(" (%d times)", n)
		}
		if i += n; len(lines) == most {
			return strings.Join(lines, ", ") + fmt.Sprintf(" and %d more", len(all)-i+n)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, ", ")
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
	fmt.Fprintf(p.Out, ", %s of map in memory", term.Size(float64(x.Map)))
	if x.Damaged > 0 {
		fmt.Fprintf(p.Out, ", %s", spelling.Plural(int(x.Damaged), "damaged page"))
	}
	fmt.Fprintf(p.Out, "\n%s\n", strings.Join(x.Addresses, ", "))
	all := maps.Clone(x.Limits)
	for name := range x.Configured {
		all[name] = x.Limits[name]
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(p.Out, "limit %s=%v", name, all[name])
		switch l, replaced := x.Configured[name]; {
		case replaced && l != qos.Limit{}:
			fmt.Fprintf(p.Out, ", set by flash ctl in place of %v", l)
		case replaced:
			fmt.Fprint(p.Out, ", set by flash ctl")
		}
		fmt.Fprintln(p.Out)
	}
	for _, d := range x.Draining {
		fmt.Fprintf(p.Out, "drained %s", d.Export)
		if len(d.Users) > 0 {
			fmt.Fprintf(p.Out, ", open at %s", users(d.Users))
		}
		fmt.Fprintln(p.Out)
	}
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
