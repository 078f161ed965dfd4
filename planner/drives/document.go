package drives

import (
	"math"

	"farflash/planner/tco/calendar"
)

// Document is the output of farflash plan --json. Money is in the plan's currency, data in GB.
type Document struct {
	Schema     string               `json:"schema"`
	Name       string               `json:"name"`
	Algorithm  string               `json:"algorithm"`
	Objective  string               `json:"objective"` // calendar or paper
	Drives     []DriveDocument      `json:"drives"`
	Placements []PlacementDocument  `json:"placements"`
	Metrics    Metrics              `json:"metrics"`
	Costs      []SliceDocument      `json:"costs"`
	Calendar   *CalendarDocument    `json:"calendar,omitempty"`
	Bound      *BoundDocument       `json:"bound,omitempty"`
	Moves      []MoveDocument       `json:"moves,omitempty"`
	Risk       *Risk                `json:"uncertainty,omitempty"`
	RestsOn    []Assumption         `json:"assumptions"`
	Explain    *ExplanationDocument `json:"explain,omitempty"`
}

// DriveDocument is a drive with its workloads.
type DriveDocument struct {
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
	// Replaced are the days of replacement, by objective calendar.
	Replaced []float64 `json:"replaced_days,omitempty"`
}

// PlacementDocument is the drive of a workload, or the reason why it has none.
type PlacementDocument struct {
	Workload string `json:"workload"`
	Drive    string `json:"drive"`
	Refused  string `json:"refused_for,omitempty"`
	// Cost is its share of the money, by objective calendar.
	Cost float64 `json:"cost,omitempty"`
}

// CalendarDocument lists payments by item, year and day. Present is discounted to day 0; the other amounts are
// undiscounted.
type CalendarDocument struct {
	Present map[string]float64   `json:"present"`
	Years   []map[string]float64 `json:"years"`
	Entries []EntryDocument      `json:"entries"`
}

// EntryDocument is a payment on a given day.
type EntryDocument struct {
	Day   float64 `json:"day"`
	Drive string  `json:"drive"`
	For   string  `json:"for"`
	Money float64 `json:"money"`
}

// Metrics are the totals.
type Metrics struct {
	TCO         float64  `json:"tco"`
	PerGB       *float64 `json:"tco_per_gb"` // null: no workload writes
	Data        float64  `json:"data_gb"`
	Space       float64  `json:"space.utilisation"`
	SpaceCV     float64  `json:"space.cv"`
	IOPS        float64  `json:"iops.utilisation"`
	IOPSCV      float64  `json:"iops.cv"`
	Disks       int      `json:"disks"`
	Refused     int      `json:"refused"`
	Limited     float64  `json:"endurance_limited"`
	TBe         float64  `json:"tbe"`
	PerTBeMonth float64  `json:"tco_per_tbe_month"`
	Failures    float64  `json:"expected_failures"`
	FailureCost float64  `json:"failure_cost"`
	Rebuilt     float64  `json:"rebuilt_gb"`
	Embodied    float64  `json:"carbon.embodied_kg"`
	Operational float64  `json:"carbon.operational_kg"`
}

// SliceDocument is a part of the cost.
type SliceDocument struct {
	Name string  `json:"name"`
	Cost float64 `json:"cost"`
}

// BoundDocument is the proven lower bound, per GB and in total; null if no bound is proven, with the reason in the
// note.
type BoundDocument struct {
	TCO   *float64 `json:"tco,omitempty"`
	PerGB *float64 `json:"tco_per_gb"`
	Gap   *float64 `json:"gap"`
	Note  string   `json:"note,omitempty"`
}

// MoveDocument is a move of a workload.
type MoveDocument struct {
	Day      float64 `json:"day"`
	Workload string  `json:"workload"`
	From     string  `json:"from"`
	To       string  `json:"to"`
	CopiedGB float64 `json:"copied_gb"`
	Bought   bool    `json:"drive_is_bought,omitempty"`
	Refused  string  `json:"refused_for,omitempty"`
}

// ExplanationDocument explains the placement of a workload.
type ExplanationDocument struct {
	Workload string           `json:"workload"`
	Drive    string           `json:"drive"`
	Next     string           `json:"next"`
	Worse    float64          `json:"next_is_worse_by"`
	Choices  []ChoiceDocument `json:"choices"`
}

// ChoiceDocument is a candidate drive for a workload.
type ChoiceDocument struct {
	Drive    string  `json:"drive"`
	PerGB    float64 `json:"tco_per_gb,omitempty"`
	Score    float64 `json:"score,omitempty"`
	WAF      float64 `json:"waf,omitempty"`
	Lifetime float64 `json:"lifetime_days,omitempty"`
	Obstacle string  `json:"obstacle,omitempty"`
}

// describeCalendar omits items without payments.
func describeCalendar(o *Outcome) *CalendarDocument {
	b := o.Calendar
	c := &CalendarDocument{Present: map[string]float64{}, Years: make([]map[string]float64, len(b.Years)),
		Entries: []EntryDocument{}}
	for y := range c.Years {
		c.Years[y] = map[string]float64{}
	}
	for _, item := range calendar.Items() {
		if b.Money[item] == 0 {
			continue
		}
		c.Present[item.Key()] = b.Present[item]
		for y := range b.Years {
			c.Years[y][item.Key()] = b.Years[y][item]
		}
	}
	for _, e := range b.Entries() {
		c.Entries = append(c.Entries,
			EntryDocument{Day: e.Day, Drive: o.Drives[e.Drive].Name, For: e.What.Key(), Money: e.Money})
	}
	return c
}

// Describe builds the document of an outcome; why explains one workload's placement, or is nil.
func Describe(o *Outcome, why *Explanation) *Document {
	a := o.Assessment
	out := &Document{Schema: "farflash/plan/1", Name: o.Plan.Name, Algorithm: o.Plan.Algorithm.String(),
		Objective: PaperObjective.String(), Risk: o.Risk, RestsOn: o.Plan.Assumptions(), Drives: []DriveDocument{},
		Placements: []PlacementDocument{},
		Metrics: Metrics{
			TCO: o.Cost, Data: o.Data,
			Space: a.SpaceShare, SpaceCV: a.SpaceCV, IOPS: a.IOPSShare, IOPSCV: a.IOPSCV, Disks: a.Used,
			Refused: a.Refused, Limited: a.EnduranceLimited,
			TBe: o.TBe, PerTBeMonth: o.PerMonth,
			Failures: o.Failures.Expected, FailureCost: o.Failures.Cost(), Rebuilt: o.Failures.Rebuilt,
			Embodied: o.Carbon.Embodied, Operational: o.Carbon.Operational,
		}}
	if o.Data > 0 {
		per := o.CostPerGB()
		out.Metrics.PerGB = &per
	}
	for i := range o.Drives {
		d := &o.Drives[i]
		s := &d.State
		out.Drives = append(out.Drives, DriveDocument{
			Name: d.Name, Model: d.Model, Domain: d.Domain, Workloads: append([]string{}, d.Workloads...),
			WriteGBDay: s.WriteRate, Sequential: s.Sequential, WAF: s.WAF, SpaceGB: s.Space, SpaceShare: s.SpaceShare,
			IOPS: s.Load, IOPSShare: s.IOPSShare,
			LifetimeDays: s.Lifetime, EndsBy: d.EndsBy, WearAtEnd: s.WearAtDeath, Cost: s.Cost, DataGB: s.Data,
			Failures: d.Failures.Expected, CarbonKg: d.Carbon.Total(), Replaced: d.Replaced,
		})
	}
	for _, x := range o.Placements {
		out.Placements = append(out.Placements, PlacementDocument(x))
	}
	for _, x := range o.Slices {
		out.Costs = append(out.Costs, SliceDocument{Name: x.Name, Cost: x.Money})
	}
	if o.Calendar != nil {
		out.Objective, out.Calendar = CalendarObjective.String(), describeCalendar(o)
	}
	switch {
	case o.LeastCost > 0:
		gap := o.Gap()
		out.Bound = &BoundDocument{TCO: &o.LeastCost, Gap: &gap}
		if o.Data > 0 {
			per := o.LeastCost / o.Data
			out.Bound.PerGB = &per
		}
	case o.Bound > 0:
		gap := o.Gap()
		out.Bound = &BoundDocument{PerGB: &o.Bound, Gap: &gap}
	case o.BoundNote != "":
		out.Bound = &BoundDocument{Note: o.BoundNote}
	}
	for _, m := range o.Moves {
		out.Moves = append(out.Moves,
			MoveDocument{Day: m.Day, Workload: m.Workload, From: m.From, To: m.To, CopiedGB: m.Copied,
				Bought: m.NeedsNewDrive, Refused: m.Refused})
	}
	if why == nil {
		return out
	}
	x := &ExplanationDocument{Workload: why.Workload, Drive: why.Chosen, Next: why.Next}
	if !math.IsNaN(why.Worse) && !math.IsInf(why.Worse, 0) {
		x.Worse = why.Worse
	}
	for _, c := range why.Choices {
		if why.Whole {
			c.CostPerGB = 0
		}
		x.Choices = append(x.Choices,
			ChoiceDocument{Drive: c.Drive, PerGB: c.CostPerGB, Score: c.Score, WAF: c.WAF, Lifetime: c.Lifetime,
				Obstacle: c.Obstacle})
	}
	out.Explain = x
	return out
}
