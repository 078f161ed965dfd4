package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"farflash/internal/term"
)

// WriteText prints a run as tables for a terminal.
func WriteText(w io.Writer, run Run, style term.Style) error {
	var b strings.Builder
	r := run.Result
	b.WriteString(style.Bold(run.name()) + "\n")
	if r.Summary != "" {
		b.WriteString(term.Wrap(r.Summary, "") + "\n")
	}
	facts := []string{"seed " + strconv.FormatUint(r.Seed, 10), "digest " + shortDigest(r.Digest),
		"simulated " + term.Seconds(r.SimulatedS)}
	if run.Timing != nil {
		facts = append(facts, "took "+term.Seconds(run.Timing.WallS), term.Rate(run.Timing.EventsPerS)+" events/s")
	}
	b.WriteString(style.Dim(term.Wrap(strings.Join(facts, ", "), "")) + "\n")
	if r.WarmUp.UntilS > 0 {
		b.WriteString(style.Dim("measured after a warm-up of "+term.Seconds(r.WarmUp.UntilS)) + "\n")
	}
	if r.Steady != nil && r.Steady.Reached {
		b.WriteString(style.Dim(term.Wrap("ended in a steady state: "+r.Steady.Explain, "  ")) + "\n")
	}
	if err := run.latencies(&b, style); err != nil {
		return err
	}
	if err := run.cluster(&b, style); err != nil {
		return err
	}
	if err := run.system(&b, style); err != nil {
		return err
	}
	if err := run.drive(&b, style); err != nil {
		return err
	}
	if err := run.network(&b, style); err != nil {
		return err
	}
	if err := run.partText(&b, style); err != nil {
		return err
	}
	run.verdicts(&b, style)
	if run.Path != "" {
		b.WriteString("\nrun directory: " + run.Path + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Run) latencies(b *strings.Builder, style term.Style) error {
	ops := r.present()
	if len(ops) == 0 {
		return nil
	}
	t := term.NewTable(term.Left(""), term.Right("count"), term.Right("IOPS"), term.Right("bandwidth"),
		term.Right("mean"), term.Right("p50"),
		term.Right("p90"), term.Right("p99"), term.Right("p99.9"), term.Right("max"))
	for _, op := range ops {
		row := []string{op}
		for _, m := range []string{"count", "iops", "bandwidth", "latency.mean", "latency.p50", "latency.p90",
			"latency.p99", "latency.p99_9", "latency.max"} {
			row = append(row, r.written(op+"."+m))
		}
		t.Row(row...)
	}
	b.WriteByte('\n')
	return t.Write(b, style)
}

// barWidth is the width of a utilisation bar in characters.
const barWidth = 12

func (r *Run) drive(b *strings.Builder, style term.Style) error {
	t := term.NewTable(term.Left(""), term.Left(""), term.Left("")).Indent("  ")
	row := func(label, value, detail string) {
		if value != "" {
			t.Row(label, value, style.Dim(detail))
		}
	}
	row("write amplification", r.written("ssd.waf"), r.inTransient("; ")+r.sources()+r.inBytes())
	if v := r.written("ssd.gc.count"); v != "" {
		row("garbage collection", v+" blocks", some(r.written("ssd.gc.pages_moved"), "%s pages moved"))
	}
	row("SLC cache", some(r.written("ssd.slc.share"), "%s of writes"),
		some(r.written("ssd.slc.folds"), "%s blocks folded"))
	for _, u := range []struct{ label, metric, matrix string }{
		{"dies busy", "ssd.utilisation.die", "ssd.die.busy"},
		{"channels busy", "ssd.utilisation.channel", "ssd.channel.busy"},
	} {
		if v, ok := r.value(u.metric); ok {
			row(u.label, term.Bar(v, barWidth)+" "+term.Percent(v), r.busiest(u.matrix))
		}
	}
	row("host link busy", r.written("ssd.utilisation.link"), "")
	row("mapping cache hits", r.written("ssd.cmt.hit_ratio"), "")
	row("data cache hits", r.written("ssd.cache.hit_ratio"), "")
	if v := r.written("ssd.wear.mean"); v != "" {
		detail := some(r.written("ssd.wear.max"), "at most %s")
		if life := r.written("ssd.wear.life_used"); life != "" {
			detail += ", " + life + " of rated life"
		}
		row("erases per block", v+" on average", detail)
	}
	row("controller busy", r.written("ssd.utilisation.controller"), "")
	row("at rest", r.written("ssd.power_states.rested"), some(r.written("ssd.power_states.wakes"), "woken %s times"))
	row("held for power", some(r.written("ssd.power_limit.held"), "%s of operations"), "")
	row("energy", r.written("ssd.energy"), some(r.written("ssd.power"), "%s on average"))
	for _, op := range []string{"read", "write"} {
		if !r.manyCommands() {
			row("mean "+op, r.written(op+".latency.mean"), r.breakdown(op))
		} else if parts, sum := r.breakdownOf(op); sum > 0 {
			row(op+" in its drive", term.Latency(sum), parts)
		}
	}
	if !slices.ContainsFunc([]string{"ssd.waf", "ssd.utilisation.die"},
		func(m string) bool { _, ok := r.value(m); return ok }) {
		return nil
	}
	title := "drive"
	if len(r.eachDrive().number) > 1 {
		title = "drives, combined"
	}
	b.WriteString("\n" + style.Bold(title) + "\n")
	return t.Write(b, style)
}

// some formats value with format, "" for an empty value.
func some(value, format string) string {
	if value == "" {
		return ""
	}
	return fmt.Sprintf(format, value)
}

// sources lists the programmed pages by reason.
func (r *Run) sources() string {
	var parts []string
	for _, s := range []struct{ metric, name string }{{"host", "host"}, {"gc", "collection"}, {"mapping", "mapping"},
		{"wear", "wear levelling"}, {"refresh", "refresh"}, {"fold", "folding"}} {
		if v, ok := r.value("ssd.writes." + s.metric); ok && (v > 0 || s.metric == "host") {
			parts = append(parts, term.Count(v)+" "+s.name)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, " + ") + " pages"
}

// inTransient returns the note on a transient, "" without one.
func (r *Run) inTransient(then string) string {
	if r.Result.Transient == "" {
		return ""
	}
	return "of a transient" + then
}

// busiest formats the range of a matrix of utilisations, with one small bar per value if there are few.
func (r *Run) busiest(matrix string) string {
	m, ok := r.matrix(matrix, 1)
	if !ok {
		return ""
	}
	var all []float64
	var sparks []string
	for _, row := range m.V {
		sparks = append(sparks, term.Sparks(row))
		all = append(all, row...)
	}
	all = slices.DeleteFunc(all, math.IsNaN)
	if len(all) == 0 {
		return ""
	}
	text := fmt.Sprintf("%s to %s", term.Percent(slices.Min(all)), term.Percent(slices.Max(all)))
	if line := strings.Join(sparks, " "); term.Width(line) <= mostSparks {
		text = line + "  " + text
	}
	return text
}

// mostSparks is the largest number of small bars in a line.
const mostSparks = 16

// inBytes formats the write amplification in bytes if it is more than 10 % above that in pages, because the host writes
// less than a page at a time.
func (r *Run) inBytes() string {
	pages, ok := r.value("ssd.waf")
	bytes, of := r.value("ssd.waf.bytes")
	if !ok || !of || bytes < 1.1*pages {
		return ""
	}
	return "; " + r.written("ssd.waf.bytes") + " in bytes"
}

// manyCommands reports whether a request is not a single command to one drive, so that the drives do not account for
// all of its latency.
func (r *Run) manyCommands() bool {
	_, volume := r.value("raid.read.commands")
	return volume || r.overNetwork()
}

// breakdown formats the breakdown of an operation's latency in one line, largest part first.
func (r *Run) breakdown(op string) string {
	text, _ := r.breakdownOf(op)
	return text
}

// breakdownOf returns the line and the sum of the parts in microseconds.
func (r *Run) breakdownOf(op string) (string, float64) {
	m, ok := r.matrix("ssd.latency.breakdown", 1)
	if !ok {
		return "", 0
	}
	i := slices.Index(m.Rows, op)
	if i < 0 {
		return "", 0
	}
	names := make([]string, len(m.Cols))
	for k, c := range m.Cols {
		names[k] = phaseName(c)
	}
	return largestFirst(names, m.V[i]), total(m.V[i])
}

// largestFirst formats the parts of a whole as shares, without those that round to 0 %.
func largestFirst(names []string, v []float64) string {
	type part struct {
		name string
		v    float64
	}
	var parts []part
	total := 0.0
	for k, x := range v {
		if x > 0 {
			parts = append(parts, part{names[k], x})
			total += x
		}
	}
	slices.SortStableFunc(parts, func(a, b part) int {
		switch {
		case a.v > b.v:
			return -1
		case a.v < b.v:
			return 1
		}
		return 0
	})
	var text []string
	for _, p := range parts {
		if p.v < total/200 {
			break
		}
		text = append(text, fmt.Sprintf("%s %.0f %%", p.name, 100*p.v/total))
	}
	return strings.Join(text, ", ")
}

// phaseName returns a column of the latency breakdown in words.
func phaseName(column string) string {
	switch column {
	case "host":
		return "waiting in the host"
	case "queue":
		return "waiting in the queue"
	case "host_link":
		return "host link"
	case "dram":
		return "DRAM"
	case "cache":
		return "waiting for cache space"
	case "mapping":
		return "mapping lookup"
	case "wait":
		return "waiting for a die or channel"
	case "array":
		return "flash array"
	case "transfer":
		return "flash channel"
	case "controller":
		return "controller's processors"
	}
	return strings.ReplaceAll(column, "_", " ")
}

func (r *Run) verdicts(b *strings.Builder, style term.Style) {
	checks := r.Result.Checks
	if len(checks) > 0 {
		good := 0
		for _, c := range checks {
			if c.OK {
				good++
			}
		}
		line := fmt.Sprintf("checks: %d of %d hold", good, len(checks))
		if good == len(checks) {
			b.WriteString("\n" + style.Good(line) + "\n")
		} else {
			b.WriteString("\n" + style.Bad(line) + "\n")
		}
		for _, c := range checks {
			if !c.OK {
				b.WriteString(term.Wrap("  "+style.Bad("failed")+" "+c.Name+": "+c.Detail, "    ") + "\n")
			}
		}
	}
	if len(r.Result.Warnings) > 0 {
		b.WriteByte('\n')
	}
	for _, text := range r.Result.Warnings {
		b.WriteString(term.Wrap(style.Warning("warning:")+" "+text, "  ") + "\n")
	}
}
