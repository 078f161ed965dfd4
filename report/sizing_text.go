package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"farflash/internal/term"
	"farflash/numeric/stats"
	"farflash/numeric/units"
	"farflash/planner/objects"
)

// mostOptions limits the options listed on a terminal.
const mostOptions = 20

// WriteSizingText prints the cheapest cluster, the cost of the alternatives, and the reasons.
func WriteSizingText(w io.Writer, p *objects.Plan, style term.Style) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s\n%s\n", style.Bold(p.Need.Name), needText(p.Need), effortText(p))
	if p.Best == nil {
		fmt.Fprintf(&b, "\n%s\n", style.Bad(bestText(p)))
		for _, a := range p.Advice() {
			fmt.Fprintf(&b, "  possible with %s\n", a.Text)
		}
	} else {
		fmt.Fprintf(&b, "\n%s\n", style.Bold(bestText(p)))
		t := term.NewTable(term.Left(""), term.Left("")).Indent("  ")
		for _, f := range bestFacts(p) {
			t.Row(f.Name, f.Value)
		}
		if err := t.Write(&b, style); err != nil {
			return err
		}
	}
	if list := byProtocol(p); len(list) > 0 {
		fmt.Fprintf(&b, "\nthe cheapest with each protocol\n\n")
		if err := writeProtocols(&b, p, list, style); err != nil {
			return err
		}
	}
	fmt.Fprintf(&b, "\noptions\n\n")
	if err := writeOptions(&b, p, style); err != nil {
		return err
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// needText describes the need in one line.
func needText(n *objects.Need) string {
	kept := fmt.Sprintf("x %d", n.Replicas)
	if n.Code.Data > 0 {
		kept = fmt.Sprintf("as %d+%d pieces", n.Code.Data, n.Code.Parity)
	}
	text := fmt.Sprintf("%s chunks/s of %v %s", term.Count(n.Rate), n.Chunk, kept)
	if n.Reads > 0 {
		text += fmt.Sprintf(", %v of them read", n.Reads)
	}
	if n.Reads < 1 {
		text += fmt.Sprintf(", p99 of puts below %v", n.PutP99)
	}
	switch {
	case n.GetP99 == 0:
	case n.Reads < 1:
		text += fmt.Sprintf(", of gets below %v", n.GetP99)
	default:
		text += fmt.Sprintf(", p99 of gets below %v", n.GetP99)
	}
	if n.Capacity > 0 {
		text += fmt.Sprintf(", %v stored", n.Capacity)
	}
	if n.Survive > 0 {
		text += fmt.Sprintf(", with %s down", counted(n.Survive, "node"))
	}
	return text
}

// counted formats a number of things.
func counted(k int, name string) string {
	if k == 1 {
		return "1 " + name
	}
	return fmt.Sprintf("%d %ss", k, name)
}

// effortText describes the extent of the search.
func effortText(p *objects.Plan) string {
	each := " each"
	if len(p.Points) == 1 {
		each = ""
	}
	return fmt.Sprintf("%s, %s simulated for %v%s, %s", counted(len(p.Candidates), "option"),
		counted(len(p.Points), "design"), p.Need.Until(), each, seedsText(p.Seeds))
}

// bestText names the chosen design.
func bestText(p *objects.Plan) string {
	c := p.Best
	if c == nil {
		if slices.ContainsFunc(p.Candidates, func(c *objects.Candidate) bool { return c.State == objects.Open }) {
			return "no design found: the search was interrupted"
		}
		return "no design meets the need"
	}
	text := fmt.Sprintf("%s: %s with %s and %s, protocol %v", term.Money(float64(c.Cost)), counted(c.Nodes, "node"),
		p.Need.Drives[c.Drive].Name, p.Need.NICs[c.NIC].Name, c.Protocol)
	if c.Group > 0 {
		text += fmt.Sprintf(", groups of %d", c.Group)
	}
	return text
}

// bestFacts lists the grounds for the choice.
func bestFacts(p *objects.Plan) []fact {
	c := p.Best
	n := p.Need
	var out []fact
	add := func(name, format string, args ...any) { out = append(out, fact{name, fmt.Sprintf(format, args...)}) }
	for _, m := range []*objects.Measured{c.Point.Intact, c.Point.Down} {
		if m == nil {
			continue
		}
		state := ""
		if m.Down > 0 {
			state = fmt.Sprintf(", %d down", m.Down)
		}
		if n.Reads < 1 {
			add("p99 of puts"+state, "%s, limit %v", intervalText(m.Put), n.PutP99)
		}
		if n.Reads > 0 && n.GetP99 > 0 {
			add("p99 of gets"+state, "%s, limit %v", intervalText(m.Get), n.GetP99)
		}
		add("done"+state, "%s chunks/s%s", term.Rate(m.Rate.Mean), withinText(m.Rate))
	}
	add("bound", "%s of the %s chunks/s that %s allow", term.Percent(n.Rate/c.Point.Bound.Chunks),
		term.Rate(c.Point.Bound.Chunks), resource(c.Point.Bound.Resource))
	add("one step fewer", "%s", fewerText(p))
	for _, r := range c.Remarks {
		add("remark", "%s", r)
	}
	return out
}

// resource names a bound's resource for use in a sentence.
func resource(name string) string {
	if name == "capacity" {
		return "the drives' capacities"
	}
	return "the " + name
}

// fewerText explains why one step fewer nodes is not enough.
func fewerText(p *objects.Plan) string {
	c := p.Best
	var below *objects.Point
	for _, x := range p.Near(c.Option) {
		if x.Nodes < c.Nodes && !x.Meets {
			below = x
		}
	}
	if below == nil {
		return c.Fewer
	}
	return fmt.Sprintf("%d: %s", below.Nodes, below.Why)
}

// intervalText formats a percentile and its interval.
func intervalText(x stats.Interval) string {
	return term.Latency(x.Mean) + withinText(x)
}

// withinText formats half of an interval as a share of its mean, "" for a single run.
func withinText(x stats.Interval) string {
	if x.N < 2 {
		return ""
	}
	return " +- " + term.Percent(x.Relative())
}

// byProtocol returns the cheapest candidate of each protocol, by cost, if the search compared protocols.
func byProtocol(p *objects.Plan) []*objects.Candidate {
	if !p.Need.Search.Others {
		return nil
	}
	var out []*objects.Candidate
	for _, s := range p.Schemes() {
		if c := p.Cheapest(s); c != nil {
			out = append(out, c)
		}
	}
	slices.SortStableFunc(out, func(a, b *objects.Candidate) int {
		switch {
		case a == p.Best || b != p.Best && a.Cost < b.Cost:
			return -1
		case b == p.Best || a.Cost > b.Cost:
			return 1
		}
		return 0
	})
	return out
}

func writeProtocols(b *strings.Builder, p *objects.Plan, list []*objects.Candidate, style term.Style) error {
	t := term.NewTable(term.Left("protocol"), term.Right("cost"), term.Right("extra"), term.Right("nodes"),
		term.Left("drive"), term.Left("nic"), term.Right("group"),
		term.Right("p99"), term.Right("of bound"), term.Left("bound by"))
	for _, c := range list {
		t.Row(protocolCells(p, c)...)
	}
	return t.Write(b, style)
}

// protocolCells returns a row of the table of protocols.
func protocolCells(p *objects.Plan, c *objects.Candidate) []string {
	n := p.Need
	more, group := "", ""
	if c != p.Best && p.Best.Cost > 0 { // a share of 0 is undefined
		more = "+" + term.Percent(float64(c.Cost/p.Best.Cost)-1)
	}
	if c.Group > 0 {
		group = fmt.Sprint(c.Group)
	}
	m := c.Point.Worst()
	return []string{c.Protocol.String(), term.Money(float64(c.Cost)), more, fmt.Sprint(c.Nodes),
		n.Drives[c.Drive].Name, n.NICs[c.NIC].Name, group,
		intervalText(m.P99()), term.Percent(n.Rate / c.Point.Bound.Chunks), c.Point.Bound.Resource}
}

// inOrder sorts candidates: those that meet the need by cost, then the others by state and by their lower bound on
// cost.
func inOrder(p *objects.Plan) []*objects.Candidate {
	rank := []objects.State{objects.Meets, objects.Open, objects.Costlier, objects.Short, objects.Impossible}
	cost := func(c *objects.Candidate) units.Money {
		if c.State == objects.Meets {
			return c.Cost
		}
		return c.From
	}
	out := slices.Clone(p.Candidates)
	slices.SortStableFunc(out, func(a, b *objects.Candidate) int {
		if x, y := slices.Index(rank, a.State), slices.Index(rank, b.State); x != y {
			return x - y
		}
		switch {
		case cost(a) < cost(b):
			return -1
		case cost(a) > cost(b):
			return 1
		}
		return 0
	})
	return out
}

// optionCells returns a row of the table of options.
func optionCells(p *objects.Plan, c *objects.Candidate) []string {
	n := p.Need
	count, cost, group, why := "", "", "", c.Why
	switch {
	case c.State == objects.Meets:
		count, cost, why = fmt.Sprint(c.Nodes), term.Money(float64(c.Cost)), "meets the need"
		if c == p.Best {
			why = "chosen"
		}
	case c.Least > 0:
		count, cost = fmt.Sprintf(">=%d", c.Least), ">="+term.Money(float64(c.From))
		if c.State == objects.Open {
			why = "not decided"
		}
	}
	if c.Group > 0 {
		group = fmt.Sprint(c.Group)
	}
	return []string{cost, count, n.Drives[c.Drive].Name, n.NICs[c.NIC].Name, c.Protocol.String(), group, why}
}

func writeOptions(b *strings.Builder, p *objects.Plan, style term.Style) error {
	t := term.NewTable(term.Right("cost"), term.Right("nodes"), term.Left("drive"), term.Left("nic"),
		term.Left("protocol"), term.Right("group"), term.Left("why"))
	list := inOrder(p)
	shown := list[:min(len(list), mostOptions)]
	for _, c := range shown {
		t.Row(optionCells(p, c)...)
	}
	if err := t.Write(b, style); err != nil {
		return err
	}
	if k := len(list) - len(shown); k > 0 {
		fmt.Fprintf(b, "and %d more, in plan.json and report.html\n", k)
	}
	return nil
}
