package cli

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"farflash/ftl"
	"farflash/ftl/waf"
	"farflash/internal/cli/verb"
	"farflash/internal/term"
	"farflash/scenario"
)

// wafRow is one policy's write amplification.
type wafRow struct {
	Policy     string  `json:"policy"`
	OfDrive    bool    `json:"of_drive"` // the drive's own
	Closed     float64 `json:"closed_form"`
	Simulated  float64 `json:"simulated"`
	Difference float64 `json:"difference"` // simulated / closed - 1
}

// wafAnswer is what farflash waf --json prints.
type wafAnswer struct {
	Scenario         string    `json:"scenario"`
	OverProvisioning float64   `json:"over_provisioning"`
	Alpha            float64   `json:"alpha"` // physical over logical space
	Blocks           int       `json:"blocks"`
	Pages            int       `json:"pages_per_block"`
	Rows             []wafRow  `json:"rows"`
	Mix              *wafBlend `json:"sequential_mix,omitempty"`
}

// wafBlend is eq. 7 fitted to the drive's policy.
type wafBlend struct {
	Turn   float64      `json:"turn"`
	Slope  float64      `json:"slope"`
	Random float64      `json:"random"`
	Eta    float64      `json:"eta"`
	Mu     float64      `json:"mu"`
	Gamma  float64      `json:"gamma"`
	RMS    float64      `json:"rms_error"`
	Points [][3]float64 `json:"points"` // sequential share, simulated, fitted
}

// Bounds of the simulated pool: the closed forms are limits for many blocks, and
// hold for any block of more than a few pages.
const (
	wafBlocks = 2000
	wafPages  = 128
)

func (p *program) waf() *cobra.Command {
	var set []string
	seed := uint64(1)
	asJSON, quick, fit := false, false, false
	cmd := &cobra.Command{
		Use:   "waf PRESET|SCENARIO",
		Short: "Write amplification: closed form, simulated and fitted",
		Long: `Set the write amplification of a drive's spare space and victim policy beside the
closed forms: uniform random writes of whole pages, simulated with the drive's own
translation layer on one pool of 2000 blocks. Then a share of the writes is made
sequential, and the curve of minTCO's equation 7 is fitted.

Physical space is all blocks of the drive: what a drive keeps free or open makes its
real figure a little higher.

With --fit the share is swept in steps of a twentieth, for the drive's own policy alone,
and the curve is also written as the section that farflash plan takes for a drive's waf.`,
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
				return verb.Usagef("--quick leaves out the sequential writes that --fit sweeps; give one of the two")
			}
			a, err := amplify(s, seed, quick, fit)
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
	cmd.Flags().Uint64Var(&seed, "seed", seed, "seed of the random numbers")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&quick, "quick", false, "only the drive's own policy, and no sequential writes")
	cmd.Flags().BoolVar(&fit, "fit", false, "sweep the sequential share finely, and fit equation 7")
	verb.Must(cmd.RegisterFlagCompletionFunc("set", completePath))
	return cmd
}

// The shares of sequential writes that are simulated.
var (
	fewShares  = []float64{0, 0.25, 0.5, 0.75, 0.9, 1}
	fineShares = []float64{0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1}
)

// amplify computes and simulates.
func amplify(s *scenario.Scenario, seed uint64, quick, fit bool) (*wafAnswer, error) {
	c := &s.SSD.Collection
	own := waf.Policy{Victim: c.Victim, Choices: s.SSD.Choices(), Window: float64(c.Window)}
	alpha := waf.SpareFactor(s.SSD.OverProvisioning).Alpha()
	a := &wafAnswer{
		Scenario: s.Name, OverProvisioning: float64(s.SSD.OverProvisioning), Alpha: alpha,
		Blocks: wafBlocks, Pages: min(s.SSD.Geometry.PagesPerBlock, wafPages),
	}
	policies := []waf.Policy{own}
	if !quick && !fit {
		for _, x := range []waf.Policy{{Victim: ftl.Greedy}, {Victim: ftl.DChoices, Choices: 10}, {Victim: ftl.DChoices, Choices: 2}, {Victim: ftl.FIFO}, {Victim: ftl.Random}} {
			if x.Victim != own.Victim || x.Victim == ftl.DChoices && x.Choices != own.Choices {
				policies = append(policies, x)
			}
		}
	}
	e := waf.DefaultExperiment()
	e.Alpha, e.Blocks, e.Pages, e.Seed = alpha, a.Blocks, a.Pages, seed
	for i, x := range policies {
		closed, err := x.WAF(alpha, a.Pages)
		if err != nil {
			return nil, err
		}
		e.Policy = x
		r, err := waf.Simulate(e)
		if err != nil {
			return nil, err
		}
		a.Rows = append(a.Rows, wafRow{x.String(), i == 0, closed, r.WAF, r.WAF/closed - 1})
	}
	if quick {
		return a, nil
	}
	e.Policy = own
	e.Blocks /= 4
	var points []waf.MixPoint
	shares := fewShares
	if fit {
		shares = fineShares
	}
	for _, share := range shares {
		e.Sequential = share
		r, err := waf.Simulate(e)
		if err != nil {
			return nil, err
		}
		points = append(points, waf.MixPoint{S: share, WAF: r.WAF})
	}
	m, rms, err := waf.FitSequentialMix(points)
	if err != nil {
		return nil, err
	}
	b := &wafBlend{Turn: m.Turn, Slope: m.Slope, Random: m.Random, RMS: rms}
	b.Eta, b.Mu, b.Gamma = m.Parabola()
	for _, x := range points {
		b.Points = append(b.Points, [3]float64{x.S, x.WAF, m.At(x.S)})
	}
	a.Mix = b
	return a, nil
}

func (p *program) printWAF(a *wafAnswer) error {
	fmt.Fprintf(p.out, "%s: over-provisioning %s of the flash, physical over logical space %.4f\n", a.Scenario, term.Percent(a.OverProvisioning), a.Alpha)
	fmt.Fprintf(p.out, "uniform random writes, %d blocks' worth of data, %d pages a block\n\n", a.Blocks, a.Pages)
	style := p.style()
	t := term.NewTable(term.Left("policy"), term.Right("closed form"), term.Right("simulated"), term.Right("difference"), term.Left(""))
	for _, r := range a.Rows {
		own := ""
		if r.OfDrive {
			own = "this drive's"
		}
		t.Row(r.Policy, fmt.Sprintf("%.3f", r.Closed), fmt.Sprintf("%.3f", r.Simulated), fmt.Sprintf("%+.2f %%", r.Difference*100), own)
	}
	if err := t.Write(p.out, style); err != nil || a.Mix == nil {
		return err
	}
	m := a.Mix
	fmt.Fprintf(p.out, "\na share of the writes sequential, %s: A(S) = %.3f S + %.3f up to S = %.3f, then %.3f S^2 + %.3f S + %.3f\n\n",
		a.Rows[0].Policy, m.Slope, m.Random, m.Turn, m.Eta, m.Mu, m.Gamma)
	t = term.NewTable(term.Right("sequential"), term.Right("simulated"), term.Right("fitted"))
	for _, x := range m.Points {
		t.Row(term.Percent(x[0]), fmt.Sprintf("%.3f", x[1]), fmt.Sprintf("%.3f", x[2]))
	}
	if err := t.Write(p.out, style); err != nil {
		return err
	}
	fmt.Fprintf(p.out, "\nroot mean square error %.3f; for a plan: waf: {random: %.4f, sequential: %.4f, turn: %.4f, slope: %.4f}\n", m.RMS, m.Random, max(1, m.Points[len(m.Points)-1][2]), m.Turn, m.Slope)
	return nil
}
