package objects

import (
	"farflash/numeric/stats"
)

const schema = "farflash/cluster-plan/1"

// Document is the content of plan.json.
type Document struct {
	Schema     string              `json:"schema"` // farflash/cluster-plan/1
	Name       string              `json:"name"`
	Digest     string              `json:"digest"` // of the need
	Complete   bool                `json:"complete"`
	Need       string              `json:"need"` // YAML, with every default
	Seeds      []uint64            `json:"seeds"`
	Best       *CandidateDocument  `json:"best"` // null: no design meets the need
	Candidates []CandidateDocument `json:"candidates"`
	Points     []PointDocument     `json:"points"`
	Advice     []string            `json:"advice"` // if no design meets the need
}

// CandidateDocument is an option with its result.
type CandidateDocument struct {
	Drive    string   `json:"drive"`
	NIC      string   `json:"nic"`
	Protocol string   `json:"protocol"`
	Group    int      `json:"group,omitempty"`
	State    State    `json:"state"`
	Why      string   `json:"why,omitempty"`
	Least    int      `json:"least_nodes,omitempty"`
	From     float64  `json:"least_cost,omitempty"`
	Nodes    int      `json:"nodes,omitempty"`
	Cost     float64  `json:"cost,omitempty"`
	Remarks  []string `json:"remarks,omitempty"`
}

// PointDocument is a simulated design.
type PointDocument struct {
	Drive    string            `json:"drive"`
	NIC      string            `json:"nic"`
	Protocol string            `json:"protocol"`
	Group    int               `json:"group,omitempty"`
	Nodes    int               `json:"nodes"`
	Cost     float64           `json:"cost"`
	Meets    bool              `json:"meets"`
	Why      string            `json:"why,omitempty"`
	Bound    BoundDocument     `json:"bound"`
	Intact   *MeasuredDocument `json:"intact,omitempty"`
	Down     *MeasuredDocument `json:"down,omitempty"`
}

// BoundDocument is the bottleneck of a design.
type BoundDocument struct {
	Resource string  `json:"resource"`
	Rate     float64 `json:"rate"` // chunks per second
}

// MeasuredDocument holds the results of a design's runs.
type MeasuredDocument struct {
	Down   int              `json:"down"`
	PutP99 IntervalDocument `json:"put_p99"` // us
	GetP99 IntervalDocument `json:"get_p99"`
	Rate   IntervalDocument `json:"rate"` // chunks per second
	Runs   []RunDocument    `json:"runs"`
}

// IntervalDocument is a mean over the runs and half its 95 % interval, null if there was only one run.
type IntervalDocument struct {
	Mean float64  `json:"mean"`
	Half *float64 `json:"half"`
}

// RunDocument is one run.
type RunDocument struct {
	Digest string  `json:"digest"`
	Seed   uint64  `json:"seed"`
	Run    string  `json:"run"` // its directory, relative to the plan's
	PutP99 float64 `json:"put_p99"`
	GetP99 float64 `json:"get_p99"`
	Rate   float64 `json:"rate"`
	Growth float64 `json:"backlog_growth"`
	Drift  float64 `json:"drift"`
}

// Describe converts a plan to the document of plan.json. place returns the directory of a run.
func Describe(p *Plan, need *File, complete bool, place func(digest string, seed uint64) string) Document {
	n := p.Need
	d := Document{Schema: schema, Name: n.Name, Digest: need.Digest, Complete: complete, Need: need.Plain,
		Seeds: p.Seeds, Candidates: []CandidateDocument{}, Points: []PointDocument{}, Advice: []string{}}
	for _, c := range p.Candidates {
		x := CandidateDocument{n.Drives[c.Drive].Name, n.NICs[c.NIC].Name, c.Protocol.String(), c.Group, c.State,
			c.Why, c.Least, float64(c.From), c.Nodes, float64(c.Cost), c.Remarks}
		d.Candidates = append(d.Candidates, x)
		if c == p.Best {
			d.Best = &x
		}
	}
	for _, q := range p.Points {
		d.Points = append(d.Points,
			PointDocument{n.Drives[q.Drive].Name, n.NICs[q.NIC].Name, q.Protocol.String(), q.Group, q.Nodes,
				float64(n.Cost(q.Design)), q.Meets, q.Why,
				BoundDocument{q.Bound.Resource, q.Bound.Chunks}, describeRuns(q.Intact, place),
				describeRuns(q.Down, place)})
	}
	if p.Best == nil {
		for _, a := range p.Advice() {
			d.Advice = append(d.Advice, a.Text)
		}
	}
	return d
}

func describeRuns(m *Measured, place func(digest string, seed uint64) string) *MeasuredDocument {
	if m == nil {
		return nil
	}
	x := &MeasuredDocument{Down: m.Down, PutP99: describeInterval(m.Put), GetP99: describeInterval(m.Get),
		Rate: describeInterval(m.Rate)}
	for _, s := range m.Samples {
		x.Runs = append(x.Runs,
			RunDocument{s.Digest, s.Seed, place(s.Digest, s.Seed), s.Put, s.Get, s.Rate, s.Growth, s.Drift})
	}
	return x
}

func describeInterval(x stats.Interval) IntervalDocument {
	d := IntervalDocument{Mean: x.Mean}
	if x.N > 1 {
		d.Half = &x.Half
	}
	return d
}
