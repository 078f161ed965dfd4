package report

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"farflash/internal/term"
	"farflash/planner/drives"
	"farflash/tco"
)

func gigabytes(v float64) string { return term.Size(v * 1e9) }

// daysText writes days.
func daysText(days float64) string {
	switch {
	case math.IsInf(days, 1):
		return "for ever"
	case days >= 2*tco.Year:
		return term.Significant(days/tco.Year, 3) + " y"
	}
	return term.Significant(days, 3) + " d"
}

// some names are many.
func names(list []string, most int) string {
	if len(list) <= most {
		return strings.Join(list, ", ")
	}
	return strings.Join(list[:most], ", ") + fmt.Sprintf(" and %d more", len(list)-most)
}

// mostDrives is how many drives are listed.
const mostDrives = 40

// WritePlanText prints what comes of a plan.
func WritePlanText(w io.Writer, o *drives.Outcome, style term.Style) error {
	a := o.Assessment
	fmt.Fprintf(w, "%s: %s, by %s\n\n", style.Bold(o.Plan.Name), placed(a), o.Plan.Algorithm)
	t := term.NewTable(term.Left("drive"), term.Right("workloads"), term.Right("GB/day"), term.Right("S"), term.Right("WAF"), term.Right("space"), term.Right("IOPS"), term.Right("serves"), term.Left("until"), term.Right("wear"),
		term.Right("cost"), term.Left("holds"))
	for i := range o.Drives {
		d := &o.Drives[i]
		s := &d.State
		if i == mostDrives && len(o.Drives) > mostDrives+1 {
			t.Row(fmt.Sprintf("and %d more (-o DIR writes all)", len(o.Drives)-i))
			break
		}
		if s.Workloads == 0 {
			t.Row(d.Name, "0", "", "", "", "", "", "", "unused", "", term.Money(s.Cost))
			continue
		}
		t.Row(d.Name, strconv.Itoa(s.Workloads), term.Significant(s.WriteRate, 4), term.Percent(s.Sequential), fmt.Sprintf("%.2f", s.WAF), term.Percent(s.SpaceShare), term.Percent(s.IOPSShare),
			daysText(s.Lifetime), d.EndsBy, term.Percent(s.WearAtDeath), term.Money(s.Cost), names(d.Workloads, 4))
	}
	if err := t.Write(w, style); err != nil {
		return err
	}
	for _, x := range o.Placements {
		if x.Refused != "" {
			fmt.Fprintf(w, "\n%s: no drive takes it, for %s", style.Bad(x.Workload), x.Refused)
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
	if len(o.Moves) > 0 {
		fmt.Fprintf(w, "\n%d moves when drives are worn out before the horizon:\n", len(o.Moves))
		t := term.NewTable(term.Right("day"), term.Left("workload"), term.Left("from"), term.Left("to"), term.Right("copied"))
		for _, m := range o.Moves[:min(len(o.Moves), 12)] {
			t.Row(fmt.Sprintf("%.0f", m.Day), m.Workload, m.From, moveTo(&m), gigabytes(m.Copied))
		}
		if err := t.Write(w, style); err != nil {
			return err
		}
	}
	return nil
}

// placed counts workloads and drives.
func placed(a *tco.Assessment) string {
	drives := "drives"
	if a.Used == 1 {
		drives = "drive"
	}
	return fmt.Sprintf("%d of %d workloads on %d %s", a.Placed, a.Placed+a.Refused, a.Used, drives)
}

// moveTo says where a workload goes.
func moveTo(m *drives.Move) string {
	switch {
	case m.To == "":
		return "nowhere, for " + m.Refused
	case m.NeedsNewDrive:
		return m.To + ", bought then"
	}
	return m.To
}

// planSums are the plan's figures: name, value, remark.
func planSums(o *drives.Outcome) [][3]string {
	a := o.Assessment
	list := [][3]string{
		{"TCO", term.Money(o.Cost), "purchase and running cost over the drives' service"},
		{"written", gigabytes(o.Data), "by the workloads in that time"},
		{"a GB written", "$" + term.Significant(o.CostPerGB(), 4), ""},
	}
	switch {
	case o.Exact:
		list = append(list, [3]string{"proven bound", "$" + term.Significant(o.CostPerGB(), 4), "this plan is the best there is: every plan was looked at"})
	case o.Bound > 0:
		list = append(list, [3]string{"proven bound", "$" + term.Significant(o.Bound, 4), fmt.Sprintf("no plan costs less a GB; this one is within %.2f %% of it", 100*o.Gap())})
	case o.BoundNote != "":
		list = append(list, [3]string{"proven bound", "-", o.BoundNote})
	}
	list = append(list,
		[3]string{"an effective TB and month", term.Money(o.PerMonth), fmt.Sprintf("SNIA's $/TBe/month, failures included; %s TBe", term.Significant(o.TBe, 3))},
		[3]string{"space used", term.Percent(a.SpaceShare), fmt.Sprintf("mean of the drives; CV %.3f", a.SpaceCV)},
		[3]string{"IOPS used", term.Percent(a.IOPSShare), fmt.Sprintf("mean of the drives; CV %.3f", a.IOPSCV)},
		[3]string{"endurance-limited", term.Percent(a.EnduranceLimited), "of the used drives are worn out before anything else ends them"},
		[3]string{"failures", term.Significant(o.Failures.Expected, 3), fmt.Sprintf("expected: drives x AFR x years; %s, %s rewritten", term.Money(o.Failures.Cost()), gigabytes(o.Failures.Rebuilt))},
		[3]string{"carbon", term.Significant(o.Carbon.Total()/1000, 3) + " t CO2e", fmt.Sprintf("%s embodied", term.Percent(o.Carbon.Embodied/o.Carbon.Total()))})
	return list
}

// WriteExplanationText prints why a workload is where it is.
func WriteExplanationText(w io.Writer, x *drives.Explanation, style term.Style) error {
	switch {
	case x.Chosen == "":
		fmt.Fprintf(w, "%s: no drive takes it\n\n", style.Bold(x.Workload))
	case x.Next == "":
		fmt.Fprintf(w, "%s is on %s: no other drive can take it\n\n", style.Bold(x.Workload), x.Chosen)
	case math.Abs(x.Worse) < 5e-7:
		fmt.Fprintf(w, "%s is on %s: %s would do as well\n\n", style.Bold(x.Workload), x.Chosen, x.Next)
	default:
		word := "more"
		if x.Worse < 0 {
			word = "less"
		}
		fmt.Fprintf(w, "%s is on %s: on %s, the next, a GB of the whole pool would cost %s %% %s\n\n", style.Bold(x.Workload), x.Chosen, x.Next, term.Significant(100*math.Abs(x.Worse), 3), word)
	}
	t := term.NewTable(term.Left("drive"), term.Right("$/GB of the pool"), term.Right("WAF there"), term.Right("it serves"), term.Left(""))
	for i, c := range x.Choices {
		if i == 15 && len(x.Choices) > 16 {
			t.Row(fmt.Sprintf("and %d more", len(x.Choices)-i))
			break
		}
		switch {
		case c.Obstacle != "":
			t.Row(c.Drive, "", "", "", c.Obstacle)
		case c.Chosen:
			t.Row(c.Drive, term.Significant(c.CostPerGB, 6), fmt.Sprintf("%.2f", c.WAF), daysText(c.Lifetime), "chosen")
		default:
			t.Row(c.Drive, term.Significant(c.CostPerGB, 6), fmt.Sprintf("%.2f", c.WAF), daysText(c.Lifetime))
		}
	}
	return t.Write(w, style)
}
