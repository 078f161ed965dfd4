package reproduce

import (
	"context"
	"fmt"
)

// The Replicast paper's figures 9, 10, 12 and 13: throughputs of the three protocols with disks of 400 and 1000 MiB/s. It prints
// the numbers of the first two in tables 2 and 3 and none of the others, of which its text says how they compare.

var (
	replicastProtocols = []string{"uch-ccp", "replicast-m", "replicast-h"}
	replicastDisks     = []string{"400", "1000"} // MiB/s
)

// rateFigure is a figure of throughputs.
type rateFigure struct {
	puts
	r *Report
}

// add adds the cases of all protocols and disks; without a time as SURGE it is that of the tables.
func (f *rateFigure) add(gateways int, chunk, surge, steady string) {
	for _, disk := range replicastDisks {
		until := surge
		if until == "" {
			until = surgeTime(chunk, disk)
		}
		for _, protocol := range replicastProtocols {
			f.cases = append(f.cases, putCase{gateways, chunk, disk, protocol, until, steady})
		}
	}
}

// bars adds the figure's bars, and a row for each, with what the paper prints.
func (f *rateFigure) bars(gateways int, chunk string, printed map[string][]replicastCell) {
	for w := range ways {
		for _, protocol := range replicastProtocols {
			c := Curve{Panel: fmt.Sprintf("%v: %v, %d gateways, 90 targets", w, chunk, gateways), Name: protocol, XLabel: "disks", YLabel: "chunks a second", YUnit: "1/s"}
			for k, disk := range replicastDisks {
				i := f.find(gateways, chunk, disk, protocol)
				rate := f.mean(i, w, "cluster.put.iops")
				c.Names, c.X, c.Y = append(c.Names, disk+" MiB/s"), append(c.X, float64(k)), append(c.Y, rate)
				row := Row{Label: f.cases[i].label() + ", " + w.String(), Metric: "chunks a second", Ours: rate, Unit: "1/s", Meets: above(0), Expect: "plotted, not printed"}
				if w == inSteadyState {
					row.Expect = fmt.Sprintf("the warm-up cut, control messages queued; %.0f %% of the bound", 100*f.mean(i, w, "cluster.bound.reached"))
				}
				for _, x := range printed[disk] {
					if w == asSURGE && x.chunk == chunk && x.protocol == protocol {
						row.Paper, row.Meets, row.Expect = number(x.rate), near(x.rate, 0.03), "within 3 %"
						if x.differs != "" {
							row.Meets, row.Expect = near(x.rate, farOff), "within 7 %: "+x.differs
						}
					}
				}
				f.r.Rows = append(f.r.Rows, row)
			}
			f.r.Curves = append(f.r.Curves, c)
		}
	}
}

// grows is how many times more a protocol puts on disks of 1000 than on those of 400 MiB/s.
func (f *rateFigure) grows(w way, gateways int, chunk, protocol string) float64 {
	return f.rate(w, gateways, chunk, "1000", protocol) / f.rate(w, gateways, chunk, "400", protocol)
}

// over is how many times more Replicast-M puts than another protocol.
func (f *rateFigure) over(w way, gateways int, chunk, disk, other string) float64 {
	return f.rate(w, gateways, chunk, disk, "replicast-m") / f.rate(w, gateways, chunk, disk, other)
}

// claim adds a row for a sentence of the paper.
func (r *Report) claim(w way, what string, paper *float64, ours float64, unit string, ok bool, expect string) {
	r.Rows = append(r.Rows, Row{Label: what + ", " + w.String(), Metric: "text", Paper: paper, Ours: ours, Unit: unit, Meets: when(ok), Expect: expect})
}

var printedRates = map[string][]replicastCell{"400": replicastTable2, "1000": replicastTable3}

func rateExperiment(figure, chunk string, gateways int, run func(context.Context, Options, *rateFigure) error) Experiment {
	return Experiment{ID: "replicast-fig" + figure, Title: fmt.Sprintf("Put throughput of three protocols: %s chunks, %d gateways, disks of 400 and 1000 MiB/s", chunk, gateways),
		Paper: replicastPaper + "figure " + figure, run: func(ctx context.Context, o Options) (*Report, error) {
			f := &rateFigure{r: &Report{}}
			if err := run(ctx, o, f); err != nil {
				return nil, err
			}
			return f.r, nil
		}}
}

func replicastFig9() Experiment {
	return rateExperiment("9", "128 KiB", 90, func(ctx context.Context, o Options, f *rateFigure) error {
		f.add(90, "128KiB", "", "200ms")
		f.add(90, "1MiB", "", "500ms") // the figure's text compares the growth of both
		if err := f.run(ctx, o, f.r); err != nil {
			return err
		}
		f.bars(90, "128KiB", printedRates)
		for w := range ways {
			m, large := f.grows(w, 90, "128KiB", "replicast-m"), f.grows(w, 90, "1MiB", "replicast-m")
			f.r.claim(w, "Replicast-M on disks 2.5 times as fast, 128 KiB", number(2.18), m, "x", within(m, 2.18, 0.1), "text: 2.18 times as much; within 10 %, as both of its parts are means")
			f.r.claim(w, "Replicast-M on disks 2.5 times as fast, 1 MiB", number(2.4), large, "x", within(large, 2.4, 0.1), "text: scales better for 1 MiB, 2.4 times as much; within 10 %")
			h := f.rate(w, 90, "128KiB", "400", "replicast-h") / f.rate(w, 90, "128KiB", "400", "replicast-m")
			f.r.claim(w, "Replicast-H over Replicast-M, disks 400", number(73400./80700), h, "x", h > 0.85 && h <= 1, "text: similar with the slower drives; above 0.85")
			other := max(f.grows(w, 90, "128KiB", "uch-ccp"), f.grows(w, 90, "128KiB", "replicast-h"))
			f.r.claim(w, "the better of UCH-CCP and Replicast-H on disks 2.5 times as fast", number(108900./58400), other, "x", other < m-0.2, "text: only Replicast-M scales almost linearly; at least 0.2 below it")
		}
		return nil
	})
}

func replicastFig10() Experiment {
	return rateExperiment("10", "16 KiB", 90, func(ctx context.Context, o Options, f *rateFigure) error {
		f.add(90, "16KiB", "10ms", "50ms")
		f.add(90, "128KiB", "10ms", "200ms") // what the figure's text compares it with
		if err := f.run(ctx, o, f.r); err != nil {
			return err
		}
		f.bars(90, "16KiB", printedRates)
		for w := range ways {
			for k, disk := range replicastDisks {
				paper := []float64{635750. / 536950, 907400. / 918500}[k]
				small, medium := f.over(w, 90, "16KiB", disk, "uch-ccp"), f.over(w, 90, "128KiB", disk, "uch-ccp")
				f.r.claim(w, "Replicast-M over UCH-CCP, 16 KiB, disks "+disk, number(paper), small, "x", small < medium,
					fmt.Sprintf("text: the benefit is far lower than for 128 KiB, where it is %.3g times", medium))
			}
		}
		return nil
	})
}

// smallCluster is figure 12 or 13: 30 gateways.
func smallCluster(figure, title, chunk, surge, steady string) Experiment {
	return rateExperiment(figure, title, 30, func(ctx context.Context, o Options, f *rateFigure) error {
		f.add(30, chunk, surge, steady)
		f.add(90, chunk, replicastTime[chunk][0], steady) // what the text compares the use of the disks with
		if err := f.run(ctx, o, f.r); err != nil {
			return err
		}
		f.bars(30, chunk, nil)
		for w := range ways {
			for _, disk := range replicastDisks {
				for _, other := range []string{"uch-ccp", "replicast-h"} {
					x := f.over(w, 30, chunk, disk, other)
					f.r.claim(w, "Replicast-M over "+other+", disks "+disk, nil, x, "x", x > 1, "plotted: Replicast-M is above both")
				}
			}
			m := f.grows(w, 30, chunk, "replicast-m")
			f.r.claim(w, "Replicast-M on disks 2.5 times as fast", nil, m, "x", m > 2 && m <= 2.5, "text: almost linear with the drives' throughput; above 2 and at most 2.5 times")
			other := max(f.grows(w, 30, chunk, "uch-ccp"), f.grows(w, 30, chunk, "replicast-h"))
			f.r.claim(w, "the better of the unicast protocols on disks 2.5 times as fast", nil, other, "x", other < m, "section IV-F of 90 gateways: unicast shows less improvement, so below it")
			for _, disk := range replicastDisks {
				busy := func(gateways int, protocol string) float64 {
					return float64(100 * f.mean(f.find(gateways, chunk, disk, protocol), w, "cluster.disk.utilisation"))
				}
				few, unicast, many := busy(30, "replicast-m"), busy(30, "uch-ccp"), busy(90, "replicast-m")
				f.r.claim(w, "disks "+disk+" busy with Replicast-M", nil, few, "%", few > unicast, fmt.Sprintf("text: 30 initiators achieve higher utilisation: above UCH-CCP's %.0f %%", unicast))
				f.r.claim(w, "disks "+disk+" busy with 30 gateways less those with 90", nil, few-many, "points", few < many,
					fmt.Sprintf("text: 30 initiators keep 90 targets busy enough. They do not: one chunk outstanding each is the bound; 90 gateways reach %.0f %%", many))
			}
		}
		return nil
	})
}

func replicastFig12() Experiment { return smallCluster("12", "128 KiB", "128KiB", "10ms", "200ms") }

func replicastFig13() Experiment { return smallCluster("13", "1 MiB", "1MiB", "40ms", "500ms") }
