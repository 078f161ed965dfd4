package reproduce

import (
	"context"
	"fmt"
	"math"
)

func replicastTable5() Experiment {
	return Experiment{ID: "replicast-table5", Title: "How often a target is asked for a bid while another is tentative: 90 gateways, 90 targets, disks of 1000 MiB/s",
		Paper: replicastPaper + "table 5", run: runReplicastTable5}
}

// tentativeTime is for how long the paper has a bid be tentative, us: it is sent, and the answer comes.
const tentativeTime = 7

// runReplicastTable5 sets the table's arithmetic, its formula put right, beside what targets count. The formula that the paper prints,
// 1 - lambda exp(-lambda t), is no probability of an arrival; its figures are those of 1 - exp(-lambda t).
func runReplicastTable5(ctx context.Context, o Options) (*Report, error) {
	r := &Report{}
	var p puts
	table := []struct {
		chunk              string
		interval, rate, is float64 // us, 1/us, %
	}{{"16KiB", 11, 0.09, 46.7}, {"128KiB", 50, 0.02, 13}, {"1MiB", 500, 0.002, 1.39}}
	for _, x := range table {
		p.cases = append(p.cases, putCase{90, x.chunk, "1000", "replicast-m", replicastTime[x.chunk][0], replicastTime[x.chunk][1]})
	}
	if err := p.run(ctx, o, r); err != nil {
		return nil, err
	}
	curves := []Curve{{Name: "paper"}, {Name: "Poisson, as SURGE"}, {Name: "counted, as SURGE"}, {Name: "Poisson, steady"}, {Name: "counted, steady"}}
	add := func(k, i int, chunk string, v float64) {
		c := &curves[k]
		c.Panel, c.XLabel, c.YLabel, c.YUnit = "put requests that come while a bid is tentative", "chunk", "share of requests", "fraction"
		c.Names, c.X, c.Y = append(c.Names, chunk), append(c.X, float64(i)), append(c.Y, v)
	}
	for i, x := range table {
		right := 100 * arrival(tentativeTime/(1/x.rate))
		wrong := 100 * (1 - float64(x.rate*math.Exp(-x.rate*tentativeTime)))
		r.Rows = append(r.Rows,
			Row{Label: x.chunk, Metric: "1 - exp(-lambda t)", Paper: number(x.is), Ours: right, Unit: "%", Meets: near(x.is, 0.01), Expect: "the table's lambda and 7 us: within 1 %"},
			Row{Label: x.chunk, Metric: "1 - lambda exp(-lambda t)", Paper: number(x.is), Ours: wrong, Unit: "%", Meets: when(!within(wrong, x.is, 0.5)), Expect: "the formula as it is printed, which does not give the table"})
		add(0, i, x.chunk, x.is/100)
		for w := range ways {
			label := x.chunk + ", " + w.String()
			interval, tentative := p.mean(i, w, "cluster.bid.interval"), p.mean(i, w, "cluster.bid.tentative")
			poisson, counted := 100*arrival(tentative/interval), 100*p.mean(i, w, "cluster.bid.overlap")
			rows := []Row{
				{Label: label, Metric: "put interarrival time at a target", Ours: interval, Unit: "us", Meets: above(0), Expect: "ten groups share all puts; of longer runs shorter at 1 MiB, whose 30 ms are mostly start-up"},
				{Label: label, Metric: "a bid is tentative for", Ours: tentative, Unit: "us", Meets: near(tentativeTime, 0.2),
					Expect: "the paper's 7 us within 20 %: messages take the whole link, but nine bids take turns on the gateway's"},
				{Label: label, Metric: "Poisson, of these two", Ours: poisson, Unit: "%", Meets: above(0), Expect: "1 - exp(-tentative / interarrival)"},
				{Label: label, Metric: "counted at targets", Ours: counted, Unit: "%", Meets: near(poisson, 0.5), Expect: "within half of Poisson's: puts of a closed loop are not independent"},
			}
			if w == asSURGE {
				rows[0].Paper, rows[0].Meets, rows[0].Expect = number(x.interval), near(x.interval, 0.15), "ten groups share all puts; within 15 %: the paper rounds 56.8 us at 128 KiB to 50"
				rows[1].Paper, rows[1].Meets, rows[1].Expect = number(tentativeTime), near(tentativeTime, 0.03), "two control messages of 2.42 us and two trips of 1 us: 6.85 us"
				rows[2].Paper, rows[2].Meets, rows[2].Expect = number(x.is), near(x.is, 0.15), "within 15 % of the table, as the interarrival times are"
				rows[3].Paper, rows[3].Meets = number(x.is), above(0.9*poisson)
				rows[3].Expect = fmt.Sprintf("Poisson's %.3g %% and what the start adds: all gateways ask at once, nine a group, in runs of %.0f requests a target", poisson, p.mean(i, w, "cluster.bid.requests")/90)
			}
			r.Rows = append(r.Rows, rows...)
			add(1+2*int(w), i, x.chunk, poisson/100)
			add(2+2*int(w), i, x.chunk, counted/100)
		}
	}
	r.Curves = curves
	return r, nil
}

// arrival is the chance of at least one arrival of a Poisson process where so many are expected.
func arrival(expected float64) float64 { return -math.Expm1(-expected) }
