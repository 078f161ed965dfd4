package cli

import (
	"encoding/json"
	"io"
	"math"

	"farflash/scenario/plan"
)

// planAnswer is what farflash plan --json prints.
type planAnswer struct {
	Schema     string           `json:"schema"`
	Name       string           `json:"name"`
	Algorithm  string           `json:"algorithm"`
	Drives     []planDrive      `json:"drives"`
	Placements []planPlacement  `json:"placements"`
	Metrics    planMetrics      `json:"metrics"`
	Costs      []planSlice      `json:"costs"`
	Bound      *planBound       `json:"bound,omitempty"`
	Moves      []planMove       `json:"moves,omitempty"`
	Explain    *planExplanation `json:"explain,omitempty"`
}

type planDrive struct {
	Name         string   `json:"name"`
	Model        string   `json:"model"`
	Domain       string   `json:"domain"`
	Workloads    []string `json:"workloads"`
	WriteGBDay   float64  `json:"write_gb_per_day"`
	Sequential   float64  `json:"sequential"`
	WAF          float64  `json:"waf"`
	SpaceGB      float64  `json:"space_gb"`
	SpaceShare   float64  `json:"space_utilisation"`
	IOPS         float64  `json:"iops"`
	IOPSShare    float64  `json:"iops_utilisation"`
	LifetimeDays float64  `json:"lifetime_days"`
	EndsBy       string   `json:"ends_by"`
	WearAtEnd    float64  `json:"wear_at_end"`
	Cost         float64  `json:"cost"`
	DataGB       float64  `json:"data_gb"`
	Failures     float64  `json:"expected_failures"`
	CarbonKg     float64  `json:"carbon_kg"`
}

type planPlacement struct {
	Workload string `json:"workload"`
	Drive    string `json:"drive"`
	Refused  string `json:"refused_for,omitempty"`
}

type planMetrics struct {
	TCO         float64 `json:"tco"`
	PerGB       float64 `json:"tco_per_gb"`
	Data        float64 `json:"data_gb"`
	Space       float64 `json:"space.utilisation"`
	SpaceCV     float64 `json:"space.cv"`
	IOPS        float64 `json:"iops.utilisation"`
	IOPSCV      float64 `json:"iops.cv"`
	Disks       int     `json:"disks"`
	Refused     int     `json:"refused"`
	Limited     float64 `json:"endurance_limited"`
	TBe         float64 `json:"tbe"`
	PerTBeMonth float64 `json:"tco_per_tbe_month"`
	Failures    float64 `json:"expected_failures"`
	FailureCost float64 `json:"failure_cost"`
	Rebuilt     float64 `json:"rebuilt_gb"`
	Embodied    float64 `json:"carbon.embodied_kg"`
	Operational float64 `json:"carbon.operational_kg"`
}

type planSlice struct {
	Name string  `json:"name"`
	Cost float64 `json:"cost"`
}

type planBound struct {
	PerGB float64 `json:"tco_per_gb"`
	Gap   float64 `json:"gap"`
	Note  string  `json:"note,omitempty"`
}

type planMove struct {
	Day      float64 `json:"day"`
	Workload string  `json:"workload"`
	From     string  `json:"from"`
	To       string  `json:"to"`
	CopiedGB float64 `json:"copied_gb"`
	Bought   bool    `json:"drive_is_bought,omitempty"`
	Refused  string  `json:"refused_for,omitempty"`
}

type planExplanation struct {
	Workload string       `json:"workload"`
	Drive    string       `json:"drive"`
	Next     string       `json:"next"`
	Worse    float64      `json:"next_is_worse_by"`
	Choices  []planChoice `json:"choices"`
}

type planChoice struct {
	Drive    string  `json:"drive"`
	PerGB    float64 `json:"tco_per_gb,omitempty"`
	Score    float64 `json:"score,omitempty"`
	WAF      float64 `json:"waf,omitempty"`
	Lifetime float64 `json:"lifetime_days,omitempty"`
	Obstacle string  `json:"obstacle,omitempty"`
}

func planJSON(w io.Writer, o *plan.Outcome, why *plan.Explanation) error {
	a := o.Assessment
	out := planAnswer{Schema: "farflash/plan/1", Name: o.Plan.Name, Algorithm: o.Plan.Algorithm.String(), Drives: []planDrive{}, Placements: []planPlacement{},
		Metrics: planMetrics{o.Cost, o.CostPerGB(), o.Data, a.SpaceShare, a.SpaceCV, a.IOPSShare, a.IOPSCV, a.Used, a.Refused, a.EnduranceLimited, o.TBe, o.PerMonth,
			o.Failures.Expected, o.Failures.Cost(), o.Failures.Rebuilt, o.Carbon.Embodied, o.Carbon.Operational}}
	for i := range o.Drives {
		d := &o.Drives[i]
		s := &d.State
		out.Drives = append(out.Drives, planDrive{d.Name, d.Model, d.Domain, append([]string{}, d.Workloads...), s.WriteRate, s.Sequential, s.WAF, s.Space, s.SpaceShare, s.Load, s.IOPSShare, s.Lifetime,
			d.EndsBy, s.WearAtDeath, s.Cost, s.Data, d.Failures.Expected, d.Carbon.Total()})
	}
	for _, x := range o.Placements {
		out.Placements = append(out.Placements, planPlacement(x))
	}
	for _, x := range o.Slices {
		out.Costs = append(out.Costs, planSlice{x.Name, x.Money})
	}
	if o.Bound > 0 {
		out.Bound = &planBound{PerGB: o.Bound, Gap: o.Gap()}
	} else if o.BoundNote != "" {
		out.Bound = &planBound{Note: o.BoundNote}
	}
	for _, m := range o.Moves {
		out.Moves = append(out.Moves, planMove{m.Day, m.Workload, m.From, m.To, m.Copied, m.NeedsNewDrive, m.Refused})
	}
	if why != nil {
		x := &planExplanation{Workload: why.Workload, Drive: why.Chosen, Next: why.Next}
		if !math.IsNaN(why.Worse) {
			x.Worse = why.Worse
		}
		for _, c := range why.Choices {
			x.Choices = append(x.Choices, planChoice{c.Drive, c.CostPerGB, c.Score, c.WAF, c.Lifetime, c.Obstacle})
		}
		out.Explain = x
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(out)
}
