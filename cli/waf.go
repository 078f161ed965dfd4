package cli

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"farflash/cli/verb"
	"farflash/internal/term"
	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/policy/ftl"
	"farflash/policy/ftl/waf"
	"farflash/scenario"
	"farflash/workload/runs"
)

// wafRow is the write amplification of one policy and layout.
type wafRow struct {
	Policy string `json:"policy"`
	// layout of the write streams; with --skew, --mix, --trace or --streams
	Streams    string   `json:"streams,omitempty"`
	AtRandom   bool     `json:"at_random,omitempty"` // the trace's runs, moved to random places
	OfDrive    bool     `json:"of_drive"`            // the drive's own policy
	Closed     *float64 `json:"closed_form"`         // null: no closed form is known
	Simulated  float64  `json:"simulated"`
	Difference *float64 `json:"difference"` // simulated / closed - 1
}

// wafAnswer is the output of farflash waf --json.
type wafAnswer struct {
	Scenario         string    `json:"scenario"`
	OverProvisioning float64   `json:"over_provisioning"`
	Alpha            float64   `json:"alpha"` // physical over logical space
	Blocks           int       `json:"blocks"`
	Pages            int       `json:"pages_per_block"`
	Skew             *wafSkew  `json:"skew,omitempty"`
	Trace            *wafTrace `json:"trace,omitempty"`
	Sequential       float64   `json:"sequential,omitempty"` // share of the page writes that is sequential; with --mix
	Rows             []wafRow  `json:"rows"`
	Mix              *wafBlend `json:"sequential_mix,omitempty"`
}

// wafSkew sends a share of the writes to a share of the space.
type wafSkew struct {
	Writes float64 `json:"writes"`
	Space  float64 `json:"space"`
}

// wafTrace describes the trace whose writes are simulated.
type wafTrace struct {
	File    string  `json:"file"`
	Runs    int     `json:"runs"`
	Mean    float64 `json:"mean_pages"` // of a run
	Page    int64   `json:"page_bytes"`
	Pages   int32   `json:"pages"` // distinct pages written
	Written float64 `json:"written_times"`
}

// wafLoad holds the flags for non-uniform loads and for the separation of data into streams.
type wafLoad struct {
	skew    string
	mix     string
	trace   string
	how     traceFlags // how the trace is read
	streams []string
}

// wafLayouts are the values of --streams.
var wafLayouts = units.Names[waf.Layout]{"mixed", "survivors", "classes", "partitions"}

// wafSays describes each of wafLayouts.
var wafSays = [...]string{"one stream", "a stream for moved data", "streams for hot, cold and the moved data of each",
	"separate blocks for hot and cold, in the best ratio"}

// apply sets the load, and returns the layouts to simulate, none if no flag asks for a load or a layout.
func (l *wafLoad) apply(p *program, e *waf.Experiment, a *wafAnswer) ([]waf.Layout, error) {
	if l.skew == "" && l.mix == "" && l.trace == "" && l.streams == nil {
		return nil, nil
	}
	layouts := []waf.Layout{waf.OneFrontier, waf.SurvivorsApart}
	if l.trace != "" {
		if l.skew != "" || l.mix != "" {
			return nil, verb.Usagef("--trace has its own skew and mix; leave out --skew and --mix, or --trace")
		}
		in, err := l.how.open(p, l.trace)
		if err != nil {
			return nil, err
		}
		r, err := runs.Read(in)
		if err != nil {
			return nil, verb.BadInput(err)
		}
		if e.Blocks, e.Pages, err = r.Layout(e.Pages); err != nil {
			return nil, fmt.Errorf("%s: %w", l.trace, err)
		}
		e.Runs, a.Blocks, a.Pages = r.Runs, e.Blocks, e.Pages
		a.Trace = &wafTrace{l.trace, len(r.Runs), r.Mean, int64(r.Page), r.Pages, r.Turns}
	}
	if l.skew != "" {
		writes, space, ok := strings.Cut(l.skew, "/")
		w, err := strconv.ParseFloat(strings.TrimSuffix(writes, "%"), 64)
		f, err2 := strconv.ParseFloat(strings.TrimSuffix(space, "%"), 64)
		if !ok || err != nil || err2 != nil || !(w > 0 && w < 100 && f > 0 && f < 100) {
			return nil, verb.Usagef(
				"--skew %q is not a share of the writes and a share of the space in per cent; write for example 80/20", l.skew)
		}
		a.Skew = &wafSkew{w / 100, f / 100}
		e.Classes = waf.HotCold(a.Skew.Writes, a.Skew.Space)
		layouts = append(layouts, waf.StreamsApart, waf.Partitions)
	}
	if l.mix != "" {
		var share units.Fraction
		if err := share.UnmarshalText([]byte(l.mix)); err != nil || share < 0 || share > 1 {
			return nil, verb.Usagef("--mix %q is not a share of the writes; write for example 25%%", l.mix)
		}
		a.Sequential, e.Sequential = float64(share), float64(share)
		layouts = slices.DeleteFunc(layouts, func(x waf.Layout) bool { return x == waf.Partitions && share > 0 })
	}
	if l.streams == nil {
		return layouts, nil
	}
	layouts = nil
	for _, name := range l.streams {
		var x waf.Layout
		switch err := wafLayouts.Unmarshal([]byte(name), &x); {
		case err != nil:
			return nil, verb.Usagef("--streams: %v", err)
		case x > waf.SurvivorsApart && e.Classes == nil:
			return nil, verb.Usagef(
				"--streams %s separates hot from cold data, and the writes are uniform; give --skew, or leave it out",
				name)
		case x == waf.Partitions && e.Sequential > 0:
			return nil, verb.Usagef(
				"--streams %s keeps hot and cold data in separate blocks, and --mix writes sequentially over both; "+
					"leave one out", name)
		}
		layouts = append(layouts, x)
	}
	return layouts, nil
}

// atRandom moves runs to uniformly random places.
func atRandom(list [][2]int32, pages int, seed uint64) [][2]int32 {
	random := rng.NewStream(seed, "waf/places")
	out := slices.Clone(list)
	for i := range out {
		out[i][0] = int32(random.IntN(int64(pages) - int64(out[i][1]) + 1))
	}
	return out
}

// closedForm returns the closed form for a policy and a layout under a load, nil if none is known.
func closedForm(e *waf.Experiment) (*float64, error) {
	var v float64
	var err error
	switch {
	case e.Sequential > 0 || e.Runs != nil:
		return nil, nil
	case e.Classes == nil && e.Layout == waf.OneFrontier:
		v, err = e.Policy.WAF(e.Alpha, e.Pages)
	case e.Policy.Victim == ftl.FIFO && e.Layout == waf.OneFrontier:
		v, err = waf.MixedFIFO(e.Alpha, e.Classes)
	case e.Policy.Victim == ftl.FIFO && e.Layout == waf.Partitions:
		v, _, err = waf.SeparatedFIFO(e.Alpha, e.Classes)
	default:
		return nil, nil
	}
	return &v, err
}

// wafBlend is equation 7 fitted to simulations of the drive's policy.
type wafBlend struct {
	Turn   float64      `json:"turn"`
	Slope  float64      `json:"slope"`
	Random float64      `json:"random"`
	Eta    float64      `json:"eta"`
	Mu     float64      `json:"mu"`
	Gamma  float64      `json:"gamma"`
	RMS    float64      `json:"rms_error"`
	Points [][3]float64 `json:"points"` // sequential share, simulated, fitted
	// Knots is a piecewise linear curve of few points (share, amplification), and Off its largest relative error
	// against the simulated points; with --fit.
	Knots [][2]float64 `json:"knots,omitempty"`
	Off   float64      `json:"knots_off,omitempty"`
	Worst float64      `json:"fitted_off"` // largest relative error of equation 7
}

// Limits of the simulated pool: the closed forms are limits for many blocks, and hold for any block of more than a few
// pages.
const (
	wafBlocks = 2000
	wafPages  = 128
)

func (p *program) waf() *cobra.Command {
	var set []string
	asJSON, quick, fit := false, false, false
	var load wafLoad
	cmd := &cobra.Command{
		Use:   "waf PRESET|SCENARIO",
		Short: "Compare a drive's write amplification with closed forms",
		Long: `Compare a drive's write amplification with closed forms. The drive's translation
layer, over-provisioning and victim policy are simulated on one pool of 2000
blocks, under uniform random writes of whole pages; then with a sequential share of
the writes, to which minTCO's equation 7 is fitted. Physical space is all blocks of
the drive; blocks that it keeps free or open raise its real figure slightly.

--fit sweeps the sequential share in steps of a twentieth, finer where the curve is
steep, for the drive's own policy. It fits equation 7, and a polyline within 5 % of
the simulation. Both are printed as a plan's waf (farflash plan).

--skew 80/20 sends 80 % of the writes to 20 % of the space. --mix 25% makes a
quarter of the writes sequential. --trace draws runs of writes from a trace, with
its mix, sizes and write frequency per page, over the whole drive. These loads
compare the ways of --streams to separate data: mixed (one stream), survivors (a
stream for moved data), classes (streams for hot and cold data), partitions
(separate blocks for hot and cold data, in the best ratio).`,
		Example: `  farflash waf tlc-enterprise
  farflash waf tlc-enterprise --fit
  farflash waf mqsim-default --set ssd.over_provisioning=28%`,
		Args:              verb.Arguments(1, 1, "a scenario file or a preset's name"),
		ValidArgsFunction: completeScenario,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := p.open(args[0], set)
			if err != nil {
				return err
			}
			if quick && fit {
				return verb.Usagef("--quick omits the sequential writes that --fit sweeps; give one of the two")
			}
			if fit && (load.mix != "" || load.trace != "" || len(load.streams) > 1) {
				return verb.Usagef("--fit sweeps the sequential share for one of --streams; leave out " +
					"--mix and --trace, and name one of --streams")
			}
			x, err := wafDrive(s)
			if err != nil {
				return err
			}
			a, err := p.amplify(s.Name, x, load.how.seed, quick, fit, &load)
			if err != nil {
				return verb.Failed(err)
			}
			if asJSON {
				w := json.NewEncoder(p.data)
				w.SetIndent("", "  ")
				return verb.Failed(w.Encode(a))
			}
			return verb.Failed(p.printWAF(a))
		},
	}
	cmd.Flags().StringArrayVar(&set, "set", nil, "change a value: `path=value` (repeatable)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&quick, "quick", false, "simulate only the drive's own policy, without sequential writes")
	cmd.Flags().BoolVar(&fit, "fit", false, "sweep the sequential share in fine steps, and fit equation 7")
	cmd.Flags().StringVar(&load.skew, "skew", "",
		"send a share of the writes to a share of the space, `writes/space` in per cent, such as 80/20")
	cmd.Flags().StringVar(&load.mix, "mix", "", "sequential `share` of the writes, such as 25%")
	cmd.Flags().StringVar(&load.trace, "trace", "", "simulate the writes of a trace `file`")
	load.how.register(cmd)
	cmd.Flags().StringSliceVar(&load.streams, "streams", nil,
		"ways to separate data: mixed, survivors, classes, partitions (default all that apply)")
	verb.Must(cmd.RegisterFlagCompletionFunc("set", completePath))
	return cmd
}

// Shares of sequential writes that are simulated.
var (
	fewShares  = []float64{0, 0.25, 0.5, 0.75, 0.9, 1}
	fineShares = []float64{0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8,
		0.85, 0.9, 0.95, 1}
)

// wafDrive returns the drive of a scenario: its own, or the one that all its targets share.
func wafDrive(s *scenario.Scenario) (*scenario.Drive, error) {
	switch x := s.SameDrive(); {
	case x != nil:
		return x, nil
	case s.HasDrives():
		return nil, verb.Usagef(
			"the targets of %s have different drives; give a preset or a scenario with one of them", s.Name)
	default:
		return nil, verb.BadInput(scenario.WithoutDrive(s.Name))
	}
}

// amplify evaluates the closed forms and runs the simulations.
func (p *program) amplify(name string, x *scenario.Drive, seed uint64, quick, fit bool, load *wafLoad) (*wafAnswer,
	error) {
	c := &x.Collection
	own := waf.Policy{Victim: c.Victim, Choices: x.Choices(), Window: float64(c.Window)}
	alpha := waf.SpareFactor(x.OverProvisioning).Alpha()
	a := &wafAnswer{
		Scenario: name, OverProvisioning: float64(x.OverProvisioning), Alpha: alpha,
		Blocks: wafBlocks, Pages: min(x.Geometry.PagesPerBlock, wafPages),
	}
	e := waf.DefaultExperiment()
	e.Alpha, e.Blocks, e.Pages, e.Seed = alpha, a.Blocks, a.Pages, seed
	layouts, err := load.apply(p, &e, a)
	if err != nil {
		return nil, err
	}
	policies := []waf.Policy{own}
	apart := layouts != nil // layouts are compared, even if the load turns out to be uniform
	switch {
	case layouts == nil:
		layouts = []waf.Layout{waf.OneFrontier}
		if quick || fit {
			break
		}
		for _, x := range []waf.Policy{{Victim: ftl.Greedy}, {Victim: ftl.DChoices, Choices: 10},
			{Victim: ftl.DChoices, Choices: 2}, {Victim: ftl.FIFO}, {Victim: ftl.Random}} {
			if x.Victim != own.Victim || x.Victim == ftl.DChoices && x.Choices != own.Choices {
				policies = append(policies, x)
			}
		}
	case fit:
		layouts = layouts[:1]
	default:
		quick = true
	}
	for i, x := range policies {
		for _, e.Layout = range layouts {
			e.Policy = x
			closed, err := closedForm(&e)
			if err != nil {
				return nil, err
			}
			r, err := waf.Simulate(e)
			if err != nil {
				return nil, err
			}
			row := wafRow{Policy: x.String(), OfDrive: i == 0, Closed: closed, Simulated: r.WAF}
			if apart {
				row.Streams = wafLayouts.Name(e.Layout)
			}
			if closed != nil {
				off := r.WAF/(*closed) - 1
				row.Difference = &off
			}
			a.Rows = append(a.Rows, row)
		}
	}
	e.Layout = layouts[0]
	if e.Runs != nil {
		// The runs at random places are the baseline: in a short trace even uniform writes hit some pages more often.
		e.Runs = atRandom(e.Runs, e.Blocks*e.Pages, e.Seed)
		r, err := waf.Simulate(e)
		if err != nil {
			return nil, err
		}
		a.Rows = append(a.Rows,
			wafRow{Policy: own.String(), Streams: wafLayouts.Name(e.Layout), AtRandom: true, OfDrive: true,
				Simulated: r.WAF})
	}
	if quick {
		return a, nil
	}
	e.Policy = own
	e.Blocks /= 4
	shares, within := fewShares, math.Inf(1)
	if fit {
		shares, within = fineShares, waf.SweepWithin
	}
	points, err := waf.Sweep(e, shares, within)
	if err != nil {
		return nil, err
	}
	m, rms, err := waf.FitSequentialMix(points)
	if err != nil {
		return nil, err
	}
	b := &wafBlend{Turn: m.Turn, Slope: m.Slope, Random: m.Random, RMS: rms}
	b.Eta, b.Mu, b.Gamma = m.Parabola()
	for _, x := range points {
		b.Points = append(b.Points, [3]float64{x.S, x.WAF, m.At(x.S)})
		b.Worst = max(b.Worst, math.Abs(m.At(x.S)/x.WAF-1))
	}
	if fit {
		knots, off := waf.FitLines(points, waf.KnotsWithin)
		b.Off = off
		for _, x := range knots {
			b.Knots = append(b.Knots, [2]float64{x.S, max(1, x.WAF)})
		}
	}
	a.Mix = b
	return a, nil
}

// writes describes the load in words.
func (a *wafAnswer) writes() string {
	text := "uniform random writes"
	if a.Skew != nil {
		text = fmt.Sprintf("random writes, %s of them to %s of the space", term.Percent(a.Skew.Writes),
			term.Percent(a.Skew.Space))
	}
	if a.Trace != nil {
		return fmt.Sprintf("the writes of %s: %d runs of %.3g pages of %v on average, each page written %.3g times",
			a.Trace.File, a.Trace.Runs, a.Trace.Mean, units.Bytes(a.Trace.Page), a.Trace.Written)
	}
	if a.Sequential > 0 {
		text += fmt.Sprintf(", %s of all sequential", term.Percent(a.Sequential))
	}
	return text
}

func (p *program) printWAF(a *wafAnswer) error {
	fmt.Fprintf(p.out, "%s: over-provisioning %s, physical over logical space %.4f\n", a.Scenario,
		term.Percent(a.OverProvisioning), a.Alpha)
	fmt.Fprintf(p.out, "%s, %d blocks of data, %d pages per block\n\n", a.writes(), a.Blocks, a.Pages)
	style := p.style()
	apart := a.Rows[0].Streams != ""
	t := term.NewTable(term.Left("policy"), term.Right("closed form"), term.Right("simulated"),
		term.Right("difference"), term.Left(""))
	if apart {
		fmt.Fprintf(p.out, "victim policy: %s\n\n", a.Rows[0].Policy)
		t = term.NewTable(term.Left("streams"), term.Right("closed form"), term.Right("simulated"),
			term.Right("difference"), term.Left(""))
	}
	for _, r := range a.Rows {
		first, last, closed, off := r.Policy, "", "-", "-"
		if r.OfDrive {
			last = "the drive's policy"
		}
		if apart {
			var x waf.Layout
			if err := wafLayouts.Unmarshal([]byte(r.Streams), &x); err != nil {
				return err
			}
			if first, last = r.Streams, wafSays[x]; r.AtRandom {
				last = "the same runs at random places; the difference is due to the skew"
			}
		}
		if r.Closed != nil {
			closed, off = fmt.Sprintf("%.3f", *r.Closed), fmt.Sprintf("%+.2f %%", *r.Difference*100)
		}
		t.Row(first, closed, fmt.Sprintf("%.3f", r.Simulated), off, last)
	}
	if err := t.Write(p.out, style); err != nil || a.Mix == nil {
		return err
	}
	m := a.Mix
	fmt.Fprintf(p.out, "\nwith a sequential share S, %s: A(S) = %.3f S + %.3f up to S = %.3f, then %.3f S^2 + %.3f S "+
		"+ %.3f\n\n",
		a.Rows[0].Policy, m.Slope, m.Random, m.Turn, m.Eta, m.Mu, m.Gamma)
	t = term.NewTable(term.Right("sequential"), term.Right("simulated"), term.Right("fitted"))
	for _, x := range m.Points {
		t.Row(term.Percent(x[0]), fmt.Sprintf("%.3f", x[1]), fmt.Sprintf("%.3f", x[2]))
	}
	if err := t.Write(p.out, style); err != nil {
		return err
	}
	fmt.Fprintf(p.out, "\nequation 7 differs by at most %s, root mean square error %.3f; for a plan: waf: {random: "+
		"%.4f, sequential: %.4f, turn: %.4f, slope: %.4f}\n", term.Percent(m.Worst), m.RMS, m.Random,
		max(1, m.Points[len(m.Points)-1][2]), m.Turn, m.Slope)
	if m.Knots == nil {
		return nil
	}
	fmt.Fprintf(p.out, "\nstraight lines between %d points differ by at most %s; for a plan:\nwaf:\n  points:\n",
		len(m.Knots), term.Percent(m.Off))
	for _, x := range m.Knots {
		fmt.Fprintf(p.out, "    - {sequential: %.4f, waf: %.4f}\n", x[0], x[1])
	}
	return nil
}
