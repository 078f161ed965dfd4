package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"farflash/internal/term"
	"farflash/report/chart"
)

// rung is a row of cluster.protocol; times in us.
type rung struct {
	kind                     string
	chunk, gateway, target   int
	begin, end, given, ended float64
}

// letter names a chunk that is followed.
func (x *rung) letter() string {
	if x.chunk == 0 {
		return "another chunk"
	}
	return string(rune('A' + x.chunk - 1))
}

// rungs are those of a run, with times from its first one on.
func (r *Run) rungs() (list []rung, from float64) {
	m, ok := r.Result.Matrix("cluster.protocol")
	if !ok || len(m.Cols) != 7 {
		return nil, 0
	}
	from = math.Inf(1)
	for i, kind := range m.Rows {
		v := m.V[i]
		list = append(list, rung{kind, int(v[0]), int(v[1]), int(v[2]), v[3], v[4], v[5], v[6]})
		if list[i].chunk > 0 && list[i].arrow() {
			from = min(from, v[3])
		}
	}
	if math.IsInf(from, 1) {
		return nil, 0
	}
	for i := range list {
		x := &list[i]
		for _, at := range []*float64{&x.begin, &x.end, &x.given, &x.ended} {
			*at -= from
		}
	}
	return list, from
}

// arrow tells a message; the first letter says which way it goes.
func (x *rung) arrow() bool {
	return strings.HasPrefix(x.kind, "> ") || strings.HasPrefix(x.kind, "< ")
}

// The looks of windows, data and disks, and those of messages in the order in which they come.
var (
	ladderBoxes = []chart.LadderKind{
		{Name: "window, tentative", Style: 7, Outline: true}, {Name: "window, accepted", Style: 2}, {Name: "window, canceled", Style: 1},
		{Name: "data received", Style: 0}, {Name: "disk writes", Style: 4}, {Name: "data of other chunks", Style: 0, Faint: true}, {Name: "disk, other chunks", Style: 4, Faint: true},
	}
	ladderArrows = []int{0, 3, 2, 6, 5, 1, 4}
)

// protocolFigures draw the protocol of the chunks that a run has taken down: one negotiation or two that meet, and all of it.
func protocolFigures(r *Run) []figure {
	list, from := r.rungs()
	if list == nil {
		return nil
	}
	c := ladderOf(list, false)
	c.X = chart.Axis{Label: "Time", Unit: chart.Micros}
	began := fmt.Sprintf("Time 0 is %s of simulated time. Lines are messages, from where they were sent to where they were received. Below each target: ", term.Seconds(from/1e6))
	note := began + "what its link received, and its disk."
	bids := slices.ContainsFunc(list, func(x rung) bool { return x.given > 0 })
	if bids {
		note = began + "the windows that it bid for each chunk, outlined as it gave them and filled as they were taken or taken back; what its link received; and its disk."
	}
	var out []figure
	if a, b, ok := negotiation(list); ok {
		zoom := ladderOf(list, true)
		zoom.X = c.X
		zoom.Frame = chart.Frame{Title: "a negotiation", Width: 1240}
		zoom.From, zoom.To = a, b
		out = append(out, figure{Caption: "Chunks that ask the same targets: who says what when", Wide: true, SVG: svg(chart.Ladder(zoom)),
			Note: began + "for how long each bid was tentative, with the time until its window begins, and what it became; what its link received; and its disk."})
		note = "The same chunks from the first request to the last acknowledgement. Below each target: the windows that it bid, outlined as it gave them and filled as they were taken or taken back; what its link received; and its disk."
	}
	c.Frame = chart.Frame{Title: "chunks from request to acknowledgement", Width: 1240}
	c.From = 0
	for i := range list {
		if x := &list[i]; x.chunk > 0 {
			c.To = max(c.To, x.end)
		}
	}
	c.From, c.To = -0.01*c.To, 1.01*c.To
	return append(out, figure{Caption: "Until they are on the disks", Note: note, Wide: true, SVG: svg(chart.Ladder(c))})
}

// negotiation is from when to when the two nearest first requests are answered, or the first one if they are far apart.
func negotiation(list []rung) (from, to float64, ok bool) {
	var asked, told []float64 // by chunk
	for i := range list {
		x := &list[i]
		if x.chunk == 0 || !x.arrow() {
			continue
		}
		for len(asked) < x.chunk {
			asked, told = append(asked, math.Inf(1)), append(told, 0)
		}
		k := x.chunk - 1
		switch x.kind {
		case "> request":
			asked[k] = min(asked[k], x.begin)
		case "> accept":
			if told[k] == 0 || x.begin < told[k]+1 { // the first one of them; the others of the same multicast come soon after
				told[k] = max(told[k], x.end)
			}
		}
	}
	if len(told) == 0 || slices.Max(told) == 0 {
		return 0, 0, false // no bids
	}
	from, to = asked[0], told[0]
	nearest := 4 * (told[0] - asked[0])
	for k := 1; k < len(asked); k++ {
		if d := math.Abs(asked[k] - asked[k-1]); d < nearest && told[k] > 0 {
			nearest, from, to = d, min(asked[k], asked[k-1]), max(told[k], told[k-1])
		}
	}
	margin := 0.06 * (to - from)
	return from - margin, to + 4*margin, true
}

// ladderOf are the lanes, kinds, arrows and boxes. A bid is a box where its window is, or where it had which state.
func ladderOf(list []rung, states bool) chart.LadderChart {
	c := chart.LadderChart{Kinds: slices.Clone(ladderBoxes)}
	if states {
		c.Kinds[0].Name, c.Kinds[1].Name, c.Kinds[2].Name = "bid, tentative", "accepted", "canceled"
	}
	var gateways, targets []int
	most, windows := 0, false
	for i := range list {
		x := &list[i]
		most = max(most, x.chunk)
		windows = windows || x.kind == "tentative"
		if x.chunk > 0 && x.gateway >= 0 && !slices.Contains(gateways, x.gateway) {
			gateways = append(gateways, x.gateway)
		}
		if x.target >= 0 && !slices.Contains(targets, x.target) {
			targets = append(targets, x.target)
		}
	}
	slices.Sort(targets)
	rows := 0
	if windows {
		rows = most
	}
	for _, g := range gateways {
		c.Lanes = append(c.Lanes, chart.LadderLane{Name: fmt.Sprintf("gateway %d: %s", g, chunksOf(list, g))})
	}
	for _, t := range targets {
		c.Lanes = append(c.Lanes, chart.LadderLane{Name: fmt.Sprintf("target %d", t), Rows: rows + 2})
	}
	kinds := map[string]int{}
	for i := range list {
		x := &list[i]
		lane := len(gateways) + slices.Index(targets, x.target)
		if x.arrow() {
			name := x.kind[2:]
			if _, ok := kinds[name]; !ok {
				kinds[name] = len(c.Kinds)
				c.Kinds = append(c.Kinds, chart.LadderKind{Name: name, Style: ladderArrows[len(kinds)-1], Arrow: true})
			}
			a := chart.LadderArrow{Kind: kinds[name], From: slices.Index(gateways, x.gateway), To: lane, Sent: x.begin, Received: x.end,
				Title: fmt.Sprintf("%s of %s: gateway %d, target %d, %s to %s", name, x.letter(), x.gateway, x.target, chart.Micros.Format(x.begin), chart.Micros.Format(x.end))}
			if x.kind[0] == '<' {
				a.From, a.To = a.To, a.From
			}
			c.Arrows = append(c.Arrows, a)
			continue
		}
		b := chart.LadderBox{Lane: lane, From: x.begin, To: x.end, Label: x.letter()}
		if x.chunk == 0 {
			b.Label = ""
		}
		switch x.kind {
		case "tentative", "accepted", "canceled":
			b.Kind, b.Row, b.Title = slices.Index([]string{"tentative", "accepted", "canceled"}, x.kind), x.chunk-1, windowTitle(x)
			if states {
				c.Boxes = append(c.Boxes, bidStates(x, b)...)
				continue
			}
		case "data":
			b.Kind, b.Row = 3, rows
		case "disk":
			b.Kind, b.Row = 4, rows+1
		default:
			continue // a put has no row
		}
		if b.Row >= rows {
			if x.chunk == 0 {
				b.Kind += 2
			}
			b.Title = fmt.Sprintf("target %d, %s of %s: %s to %s", x.target, x.kind, x.letter(), chart.Micros.Format(x.begin), chart.Micros.Format(x.end))
		}
		c.Boxes = append(c.Boxes, b)
	}
	c.Kinds, c.Boxes, c.Arrows = present(c)
	return c
}

// stateTick is for how long a canceled bid is shown after it was, us.
const stateTick = 0.5

// bidStates are boxes for the states of a bid.
func bidStates(x *rung, b chart.LadderBox) []chart.LadderBox {
	b.From, b.To = x.given, x.ended
	if x.ended <= x.given {
		b.To = x.end // not decided when the picture ends
	}
	if x.kind == "accepted" {
		return []chart.LadderBox{b}
	}
	end := b
	b.Kind, b.Label = 0, fmt.Sprintf("%s in %s", b.Label, chart.Micros.Format(max(x.begin-x.given, 0)))
	if x.kind == "tentative" {
		return []chart.LadderBox{b}
	}
	end.From, end.To, end.Label = x.ended, x.ended+stateTick, ""
	return []chart.LadderBox{b, end}
}

// present leaves out the kinds that nothing is of.
func present(c chart.LadderChart) ([]chart.LadderKind, []chart.LadderBox, []chart.LadderArrow) {
	used := make([]bool, len(c.Kinds))
	for _, b := range c.Boxes {
		used[b.Kind] = true
	}
	for _, a := range c.Arrows {
		used[a.Kind] = true
	}
	now := make([]int, len(c.Kinds))
	var kinds []chart.LadderKind
	for i, k := range c.Kinds {
		if now[i] = len(kinds); used[i] {
			kinds = append(kinds, k)
		}
	}
	for i := range c.Boxes {
		c.Boxes[i].Kind = now[c.Boxes[i].Kind]
	}
	for i := range c.Arrows {
		c.Arrows[i].Kind = now[c.Arrows[i].Kind]
	}
	return kinds, c.Boxes, c.Arrows
}

// chunksOf names a gateway's chunks.
func chunksOf(list []rung, gateway int) string {
	var letters []string
	for i := range list {
		if x := &list[i]; x.chunk > 0 && x.gateway == gateway && !slices.Contains(letters, x.letter()) {
			letters = append(letters, x.letter())
		}
	}
	slices.Sort(letters)
	return strings.Join(letters, ", ")
}

func windowTitle(x *rung) string {
	state := x.kind
	if state == "tentative" {
		state = "bid"
	}
	s := fmt.Sprintf("target %d, %s of %s: window of %s from %s to %s", x.target, state, x.letter(), chart.Micros.Format(x.end-x.begin), chart.Micros.Format(x.begin), chart.Micros.Format(x.end))
	if x.ended > x.given {
		s += fmt.Sprintf("; since %s, until %s", chart.Micros.Format(x.given), chart.Micros.Format(x.ended))
	}
	return s
}
