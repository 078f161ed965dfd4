package report

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"farflash/internal/term"
	"farflash/planner/drives"
	"farflash/planner/tco"
	"farflash/planner/tco/calendar"
)

func gigabytes(v float64) string { return term.Size(v * 1e9) }

// daysText formats a duration in days.
func daysText(days float64) string {
	switch {
	case math.IsInf(days, 1):
		return "forever"
	case days >= 2*tco.Year:
		return term.Significant(days/tco.Year, 3) + " y"
	}
	return term.Significant(days, 3) + " d"
}

// names joins up to most names.
func names(list []string, most int) string {
	if len(list) <= most {
		return strings.Join(list, ", ")
	}
	return strings.Join(list[:most], ", ") + fmt.Sprintf(" and %d more", len(list)-most)
}

// mostDrives and mostMoves limit the listed drives and moves.
const (
	mostDrives = 40
	mostMoves  = 12
)

// WritePlanText prints the outcome of a plan.
func WritePlanText(w io.Writer, o *drives.Outcome, style term.Style) error {
	a := o.Assessment
	fmt.Fprintf(w, "%s\n\n",
		term.Wrap(fmt.Sprintf("%s: %s, by %s", style.Bold(o.Plan.Name), placed(a), judgedBy(o)), "  "))
	t := term.NewTable(term.Left("drive"), term.Right("workloads"), term.Right("GB/day"), term.Right("S"),
		term.Right("WAF"), term.Right("space"), term.Right("IOPS"), term.Right("serves"), term.Left("until"),
		term.Right("wear"),
		term.Right("cost"), term.Left("holds"))
	for i := range o.Drives {
		d := &o.Drives[i]
		s := &d.State
		if i == mostDrives && len(o.Drives) > mostDrives+1 {
			t.Row(fmt.Sprintf("and %d more (see drives.csv with -o DIR)", len(o.Drives)-i))
			break
		}
		if s.Workloads == 0 {
			t.Row(d.Name, "0", "", "", "", "", "", "", "unused", "", term.Money(s.Cost))
			continue
		}
		t.Row(d.Name, strconv.Itoa(s.Workloads), term.Significant(s.WriteRate, 4), term.Percent(s.Sequential),
			fmt.Sprintf("%.2f", s.WAF), term.Percent(s.SpaceShare), term.Percent(s.IOPSShare),
			daysText(s.Lifetime), until(d), term.Percent(s.WearAtDeath), term.Money(s.Cost), names(d.Workloads, 4))
	}
	if err := t.Write(w, style); err != nil {
		return err
	}
	for _, x := range o.Placements {
		if x.Refused != "" {
			fmt.Fprintf(w, "\n%s: no drive can take it: %s", style.Bad(x.Workload), x.Refused)
		}
	}
	if a.Refused > 0 {
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w)
	t = term.NewTable(term.Left(""), term.Right(""), term.Left(""))
	for _, x := range planSums(o) {
		t.Row(x[0], x[1], x[2])
	}
	if err := t.Write(w, style); err != nil {
		return err
	}
	if o.Calendar != nil {
		if err := writeCalendar(w, o, style); err != nil {
			return err
		}
	}
	if err := writeAssumptions(w, o, style); err != nil {
		return err
	}
	if len(o.Moves) > 0 {
		why := "off drives that are worn out before the horizon"
		if o.Calendar != nil {
			why = "at reviews"
		}
		fmt.Fprintf(w, "\n%d moves %s:\n", len(o.Moves), why)
		t := term.NewTable(term.Right("day"), term.Left("workload"), term.Left("from"), term.Left("to"),
			term.Right("copied"))
		shown := o.Moves
		if len(shown) > mostMoves+1 {
			shown = shown[:mostMoves]
		}
		for i := range shown {
			m := &shown[i]
			t.Row(fmt.Sprintf("%.0f", m.Day), m.Workload, m.From, moveTo(m), gigabytes(m.Copied))
		}
		if err := t.Write(w, style); err != nil {
			return err
		}
		if more := len(o.Moves) - len(shown); more > 0 {
			fmt.Fprintf(w, "and %d more (see --json)\n", more)
		}
	}
	return nil
}

// judgedBy names the placement algorithm and its objective.
func judgedBy(o *drives.Outcome) string {
	switch {
	case o.Calendar != nil:
		return fmt.Sprintf("%v, for the lowest TCO until day %.0f", o.Plan.Algorithm, float64(o.Plan.Horizon))
	case !(o.Data > 0): // no data written, so no cost per gigabyte
		return fmt.Sprintf("%v, for the lowest TCO", o.Plan.Algorithm)
	}
	return fmt.Sprintf("%v, for the lowest cost per GB written", o.Plan.Algorithm)
}

// until describes the end of a drive's service, and how often it is replaced before.
func until(d *drives.DriveRow) string {
	switch n := len(d.Replaced); n {
	case 0:
		return d.EndsBy
	case 1:
		return d.EndsBy + ", replaced once"
	default:
		return fmt.Sprintf("%s, replaced %d times", d.EndsBy, n)
	}
}

// calendarItems lists the items with payments.
func calendarItems(b *calendar.Book) (list []calendar.Item) {
	for _, item := range calendar.Items() {
		if b.Money[item] != 0 {
			list = append(list, item)
		}
	}
	return list
}

// calendarRows returns the years of a plan: per item and in total, the payments of each year, their sum, and the
// present value on day 0.
func calendarRows(o *drives.Outcome) (rows [][]string) {
	b := o.Calendar
	list := calendarItems(b)
	line := func(name string, of func(calendar.Item) float64) {
		row, all := []string{name}, 0.0
		for _, item := range list {
			v := of(item)
			all += v
			row = append(row, term.Money(v))
		}
		rows = append(rows, append(row, term.Money(all)))
	}
	for y := range b.Years {
		line(strconv.Itoa(y+1), func(i calendar.Item) float64 { return b.Years[y][i] })
	}
	line("all", func(i calendar.Item) float64 { return b.Money[i] })
	if o.Plan.Costs.Discount > 0 {
		line("on day 0", func(i calendar.Item) float64 { return b.Present[i] })
	}
	return rows
}

// mostDays limits the listed days of purchases.
const mostDays = 12

// purchases lists the purchases, one line per day.
func purchases(o *drives.Outcome) (days []string, more int) {
	type bought struct {
		day   float64
		model string
		again bool
	}
	var order []bought
	count := map[bought]int{}
	for _, e := range o.Calendar.Entries() {
		if e.What != calendar.Purchases && e.What != calendar.Replacements {
			continue
		}
		x := bought{math.Round(e.Day), o.Drives[e.Drive].Model, e.What == calendar.Replacements}
		if count[x] == 0 {
			order = append(order, x)
		}
		count[x]++
	}
	last := math.Inf(-1)
	for _, x := range order {
		what := fmt.Sprintf("%d x %s", count[x], x.model)
		if x.again {
			what += " to replace worn-out drives"
		}
		if x.day == last {
			days[len(days)-1] += ", " + what
			continue
		}
		last = x.day
		days = append(days, fmt.Sprintf("day %.0f: %s", x.day, what))
	}
	if len(days) > mostDays+1 {
		return days[:mostDays], len(days) - mostDays
	}
	return days, 0
}

func writeCalendar(w io.Writer, o *drives.Outcome, style term.Style) error {
	fmt.Fprintln(w)
	columns := []term.Column{term.Left("year")}
	for _, item := range calendarItems(o.Calendar) {
		columns = append(columns, term.Right(strings.ToLower(item.String())))
	}
	t := term.NewTable(append(columns, term.Right("all"))...)
	for _, row := range calendarRows(o) {
		t.Row(row...)
	}
	if err := t.Write(w, style); err != nil {
		return err
	}
	days, more := purchases(o)
	if len(days) == 0 {
		return nil
	}
	fmt.Fprintln(w, "\npurchases:")
	for _, d := range days {
		fmt.Fprintf(w, "  %s\n", d)
	}
	if more > 0 {
		fmt.Fprintf(w, "  and %d more days (see --json)\n", more)
	}
	return nil
}

// writeAssumptions prints the assumptions that the answer rests on.
func writeAssumptions(w io.Writer, o *drives.Outcome, style term.Style) error {
	fmt.Fprintln(w, "\nassumptions:")
	t := term.NewTable(term.Left(""), term.Left(""), term.Left("")).Indent("  ")
	of := ""
	for _, x := range o.Plan.Assumptions() {
		if x.Of != of {
			of = x.Of
			t.Row(style.Bold(of))
		}
		name := x.Name
		if of != "" {
			name = "  " + name
		}
		t.Row(name, x.Value, x.Source)
	}
	return t.Write(w, style)
}

// placed counts workloads and drives.
func placed(a *tco.Assessment) string {
	drives := "drives"
	if a.Used == 1 {
		drives = "drive"
	}
	return fmt.Sprintf("%d of %d workloads on %d %s", a.Placed, a.Placed+a.Refused, a.Used, drives)
}

// moveTo describes the destination of a workload.
func moveTo(m *drives.Move) string {
	switch {
	case m.To == "":
		return "nowhere: " + m.Refused
	case m.NeedsNewDrive:
		return m.To + " (bought that day)"
	}
	return m.To
}

// planSums lists the plan's figures: name, value, remark.
func planSums(o *drives.Outcome) [][3]string {
	a := o.Assessment
	what, when := "purchase and operation over the drives' service", "by the workloads in that time"
	if o.Calendar != nil {
		if what, when = "to serve all workloads until the plan's end",
			"by the workloads until then"; o.Plan.Costs.Discount > 0 {
			what += ", discounted to day 0"
		}
	}
	list := [][3]string{{"TCO", term.Money(o.Cost), what}, {"written", gigabytes(o.Data), when},
		{"per GB written", perGB(o), ""}}
	switch {
	case o.Exact:
		list = append(list, [3]string{"proven bound", term.Money(o.Objective()),
			"no plan is cheaper: all possible plans were examined"})
	case o.LeastCost > 0:
		list = append(list, [3]string{"proven bound", term.Money(o.LeastCost),
			fmt.Sprintf("no plan costs less; this one is at most %.2f %% above it", 100*o.Gap())})
	case o.Bound > 0:
		list = append(list, [3]string{"proven bound", term.Money(o.Bound),
			fmt.Sprintf("no plan costs less per GB; this one is at most %.2f %% above it", 100*o.Gap())})
	case o.BoundNote != "":
		list = append(list, [3]string{"proven bound", "-", o.BoundNote})
	}
	snia, worn, risk := ", failures included",
		[3]string{"endurance-limited", term.Percent(a.EnduranceLimited), "of the used drives wear out"},
		"expected, drives x AFR x years: "
	if o.Calendar != nil {
		n := 0
		for i := range o.Drives {
			n += len(o.Drives[i].Replaced)
		}
		worn = [3]string{"replaced", strconv.Itoa(n),
			fmt.Sprintf("worn-out drives; %s of the used drives wear out at least once",
				term.Percent(a.EnduranceLimited))}
		snia, risk = "", "expected, part of the TCO: "
	}
	embodied := ""
	if all := o.Carbon.Total(); all > 0 {
		embodied = term.Percent(o.Carbon.Embodied/all) + " embodied"
	}
	if r := o.Risk; r != nil {
		list = append(list, [3]string{"holds", fmt.Sprintf("%s +- %s", term.Percent(r.Holds), term.Percent(r.Within)),
			fmt.Sprintf("share of %d draws that this placement serves: %s", r.Draws, o.Plan.Uncertainty.Text())})
		if r.Median > 0 {
			what := "TCO in these"
			if o.Calendar == nil && o.Data > 0 {
				what = "per GB in these"
			}
			list = append(list, [3]string{what, fmt.Sprintf("%s to %s", term.Money(r.Low), term.Money(r.High)),
				fmt.Sprintf("90 %% of the draws that it serves; median %s", term.Money(r.Median))})
		}
		if r.Again > 0 {
			list = append(list, [3]string{"regret", term.Percent(r.Regret),
				fmt.Sprintf("mean of %d draws: extra cost over a plan computed for that draw", r.Again)})
		}
	}
	return append(list,
		[3]string{"per effective TB-month", perTBe(o),
			fmt.Sprintf("SNIA's $/TBe/month%s, for %s TBe", snia, term.Significant(o.TBe, 3))},
		[3]string{"space used", term.Percent(a.SpaceShare), fmt.Sprintf("mean over the drives; CV %.3f", a.SpaceCV)},
		[3]string{"IOPS used", term.Percent(a.IOPSShare), fmt.Sprintf("mean over the drives; CV %.3f", a.IOPSCV)},
		worn,
		[3]string{"failures", term.Significant(o.Failures.Expected, 3),
			fmt.Sprintf("%s%s, %s rewritten", risk, term.Money(o.Failures.Cost()), gigabytes(o.Failures.Rebuilt))},
		[3]string{"carbon", term.Significant(o.Carbon.Total()/1000, 3) + " t CO2e", embodied})
}

// perGB formats the cost per gigabyte, "-" if there is none.
func perGB(o *drives.Outcome) string {
	if !(o.Data > 0) {
		return "-"
	}
	return term.Money(o.CostPerGB())
}

// perTBe formats the cost per effective terabyte and month, "-" if there is none.
func perTBe(o *drives.Outcome) string {
	if !(o.TBe > 0) {
		return "-"
	}
	return term.Money(o.PerMonth)
}

// WriteExplanationText prints why a workload is placed where it is.
func WriteExplanationText(w io.Writer, x *drives.Explanation, style term.Style) error {
	switch {
	case x.Chosen == "":
		fmt.Fprintf(w, "%s: no drive can take it\n\n", style.Bold(x.Workload))
	case x.Next == "":
		fmt.Fprintf(w, "%s is on %s: no other drive can take it\n\n", style.Bold(x.Workload), x.Chosen)
	case math.Abs(x.Worse) < 5e-7:
		fmt.Fprintf(w, "%s is on %s: %s would cost the same\n\n", style.Bold(x.Workload), x.Chosen, x.Next)
	case math.IsInf(x.Worse, 0):
		fmt.Fprintf(w, "%s is on %s, where it costs nothing; the next best is %s\n\n", style.Bold(x.Workload),
			x.Chosen, x.Next)
	default:
		word, what := "more", "a GB written"
		if x.Whole {
			what = "the pool"
		}
		if x.Worse < 0 {
			word = "less"
		}
		fmt.Fprintf(w, "%s is on %s: on the next best, %s, %s would cost %s %% %s\n\n", style.Bold(x.Workload),
			x.Chosen, x.Next, what, term.Significant(100*math.Abs(x.Worse), 3), word)
	}
	money := "$/GB of the pool"
	if x.Whole {
		money = "$ for the pool"
	}
	t := term.NewTable(term.Left("drive"), term.Right(money), term.Right("WAF there"), term.Right("serves"),
		term.Left(""))
	for i, c := range x.Choices {
		if i == 15 && len(x.Choices) > 16 {
			t.Row(fmt.Sprintf("and %d more", len(x.Choices)-i))
			break
		}
		switch {
		case c.Obstacle != "":
			t.Row(c.Drive, "", "", "", c.Obstacle)
		case c.Chosen:
			t.Row(c.Drive, term.Money(c.CostPerGB), fmt.Sprintf("%.2f", c.WAF), daysText(c.Lifetime), "chosen")
		default:
			more := ""
			if best := x.Choices[0]; best.Chosen && best.CostPerGB != 0 { // a share of 0 is undefined
				more = changeText(best.CostPerGB, c.CostPerGB)
			}
			t.Row(c.Drive, term.Money(c.CostPerGB), fmt.Sprintf("%.2f", c.WAF), daysText(c.Lifetime), more)
		}
	}
	return t.Write(w, style)
}
