package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"farflash/internal/term"
	"farflash/report/chart"
)

// ladderStep is a row of cluster.protocol; times are in us.
type ladderStep struct {
	kind                     string
	chunk, gateway, target   int
	from                     int // the sending target of a message to another target, or of data; -1: none
	begin, end, given, ended float64
}

// letter returns the name of a recorded chunk.
func (x *ladderStep) letter() string {
	if x.chunk == 0 {
		return "another chunk"
	}
	return string(rune('A' + x.chunk - 1))
}

// rungs returns the rows of a run, with times relative to the first one of a recorded chunk, which is at from.
func (r *Run) rungs() (list []ladderStep, from float64) {
	m, ok := r.matrix("cluster.protocol", 1)
	if !ok || len(m.Cols) != 8 {
		return nil, 0
	}
	from = math.Inf(1)
	for i, kind := range m.Rows {
		v := m.V[i]
		list = append(list, ladderStep{kind, int(v[0]), int(v[1]), int(v[2]), int(v[3]), v[4], v[5], v[6], v[7]})
		switch x := &list[i]; {
		case x.chunk == 0:
		case x.arrow():
			from = min(from, x.begin)
		case x.kind == "data" || x.kind == "got":
			from = min(from, x.given)
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

// arrow reports whether the row is a message; the first letter of its kind gives the direction.
func (x *ladderStep) arrow() bool {
	return len(x.kind) > 2 && x.kind[1] == ' '
}

// Styles of windows, data and disks, and those of messages in order of appearance.
var (
	ladderBoxes = []chart.LadderKind{
		{Name: "window, tentative", Style: 7, Outline: true}, {Name: "window, accepted", Style: 2},
		{Name: "window, canceled", Style: 1},
		{Name: "data received", Style: 0}, {Name: "disk writes", Style: 4}, {Name: "disk reads", Style: 5},
		{Name: "data of other chunks", Style: 0, Faint: true}, {Name: "disk, other chunks", Style: 4, Faint: true},
		{Name: "disk reads, other chunks", Style: 5, Faint: true}, {Name: "first frame of data", Style: 0, Arrow: true},
	}
	ladderArrows = []int{3, 2, 6, 5, 1, 4, 7}
)

// protocolFigures draws the protocol of the chunks that a run recorded: a zoom on one negotiation, or on two that
// overlap, and the whole.
func protocolFigures(r *Run) []figure {
	list, from := r.rungs()
	if list == nil {
		return nil
	}
	c := ladderOf(list, false)
	c.X = chart.Axis{Label: "Time", Unit: chart.Micros}
	c.Frame = chart.Frame{Title: "chunks from request to acknowledgement", Width: 1240}
	c.From = 0
	for i := range list {
		if x := &list[i]; x.chunk > 0 {
			c.To = max(c.To, x.end)
		}
	}
	began := fmt.Sprintf(
		"Time 0 is %s of simulated time. Lines are messages and first frames of data, from sender to receiver. Below "+
			"each target: ", term.Seconds(from/1e6))
	below := "what its link received, and what its disk wrote."
	if slices.ContainsFunc(list, func(x ladderStep) bool { return slices.Contains(windowStates, x.kind) }) {
		below = "the windows that it bid for each chunk (outlined: offered; filled: accepted or withdrawn), what its " +
			"link received, and what its disk wrote."
	}
	if slices.ContainsFunc(list, func(x ladderStep) bool { return x.kind == "got" }) {
		below += " Below each gateway: its reads."
	}
	said := strings.Replace(below,
		"the windows that it bid for each chunk (outlined: offered; filled: accepted or withdrawn)",
		"how long each bid was tentative, when its window starts, and its outcome", 1)
	note := began + below
	var out []figure
	a, b, ok := negotiation(list)
	caption := "Messages of chunks that ask the same targets"
	if ok && b-a >= mostOfAll*c.To {
		a, b, ok = binding(list)
		caption = "From a chunk's first request to its first data"
	}
	if ok && b-a < mostOfAll*c.To {
		zoom := ladderOf(list, true)
		zoom.X = c.X
		zoom.Frame = chart.Frame{Title: "a negotiation", Width: 1240}
		zoom.From, zoom.To = a, b
		out = append(out, figure{Caption: caption, Wide: true, SVG: svg(chart.Ladder(zoom)),
			Note: began + said})
		note = "The same chunks from the first request to the last acknowledgement. Below each target: " + below
	}
	c.From, c.To = -0.01*c.To, 1.01*c.To
	return append(out, figure{Caption: "From the first request to the disks", Note: note, Wide: true,
		SVG: svg(chart.Ladder(c))})
}

// mostOfAll is the largest share of the whole picture for which a zoom is drawn.
const mostOfAll = 0.5

// Messages that start and finish a negotiation.
var (
	asking  = []string{"> request", "> read request"}
	telling = []string{"> accept", "> take", "> read"}
)

// negotiation returns the time span in which the two closest first requests are answered, or the first one if they are
// far apart.
func negotiation(list []ladderStep) (from, to float64, ok bool) {
	var asked, told []float64 // times by chunk
	for i := range list {
		x := &list[i]
		if x.chunk == 0 || !x.arrow() {
			continue
		}
		for len(asked) < x.chunk {
			asked, told = append(asked, math.Inf(1)), append(told, 0)
		}
		k := x.chunk - 1
		switch {
		case slices.Contains(asking, x.kind):
			asked[k] = min(asked[k], x.begin)
		case slices.Contains(telling, x.kind) && (told[k] == 0 || x.begin < told[k]+1):
			// the first answer, and those of the same multicast, which follow within 1 us
			told[k] = max(told[k], x.end)
		}
	}
	first := slices.IndexFunc(told, func(at float64) bool { return at > 0 })
	if first < 0 || math.IsInf(asked[first], 1) {
		return 0, 0, false // a protocol without bids
	}
	from, to = asked[first], told[first]
	nearest := 4 * (to - from)
	for k := first + 1; k < len(asked); k++ {
		if d := math.Abs(asked[k] - asked[k-1]); d < nearest && told[k] > 0 {
			nearest, from, to = d, min(asked[k], asked[k-1]), max(told[k], told[k-1])
		}
	}
	margin := 0.06 * (to - from)
	return from - margin, to + 4*margin, true
}

// binding returns the time span from shortly before the first chunk has its targets until all of them receive its data.
func binding(list []ladderStep) (from, to float64, ok bool) {
	chunk := 0
	for i := range list {
		x := &list[i]
		if x.chunk > 0 && slices.Contains(telling, x.kind) && chunk == 0 {
			chunk, from = x.chunk, x.begin
		}
		if x.kind == "data" && x.chunk == chunk {
			to = max(to, x.begin)
		}
	}
	margin := 0.4 * (to - from)
	return from - margin, to + margin, chunk > 0 && to > from
}

// windowStates names the states of windows, in the order of their boxes in ladderBoxes. The box* constants are the
// indexes of the other boxes.
var windowStates = []string{"tentative", "accepted", "canceled"}

const (
	boxData = iota + 3
	boxWrites
	boxReads
	boxOthers  = 3 // offset from a box to its counterpart for other chunks
	arrowFirst = boxReads + boxOthers + 1
)

// ladderOf returns the chart's lanes, kinds, arrows and boxes. A bid is a box at the time of its window or, with
// states, boxes at the times of its states.
func ladderOf(list []ladderStep, states bool) chart.LadderChart {
	c := chart.LadderChart{Kinds: slices.Clone(ladderBoxes)}
	if states {
		c.Kinds[0].Name, c.Kinds[1].Name, c.Kinds[2].Name = "bid, tentative", "accepted", "canceled"
	}
	l := lanesOf(list)
	c.Lanes = l.lanes(list)
	kinds := map[string]int{}
	for i := range list {
		x := &list[i]
		if x.arrow() {
			name := x.kind[2:]
			if _, ok := kinds[name]; !ok {
				kinds[name] = len(c.Kinds)
				c.Kinds = append(c.Kinds,
					chart.LadderKind{Name: name, Style: ladderArrows[(len(kinds)-1)%len(ladderArrows)], Arrow: true})
			}
			if a := l.message(x); a.From >= 0 && a.To >= 0 {
				a.Kind = kinds[name]
				c.Arrows = append(c.Arrows, a)
			}
			continue
		}
		if a, ok := l.first(x); ok {
			c.Arrows = append(c.Arrows, a)
		}
		b := chart.LadderBox{Lane: l.target(x.target), Kind: slices.Index(windowStates, x.kind), Row: x.chunk - 1,
			From: x.begin, To: x.end, Label: x.letter()}
		if b.Kind >= 0 {
			b.Title = windowTitle(x)
			if states {
				c.Boxes = append(c.Boxes, bidStates(x, b)...)
				continue
			}
			c.Boxes = append(c.Boxes, b)
			continue
		}
		switch x.kind {
		case "data":
			b.Kind, b.Row = boxData, l.rows
		case "got":
			b.Kind, b.Row, b.Lane = boxData, 0, slices.Index(l.gateways, x.gateway)
		case "disk":
			b.Kind, b.Row = boxWrites, l.rows+1
		case "disk reads":
			b.Kind, b.Row = boxReads, l.rows+1
		default:
			continue // puts and gets have no row
		}
		if x.chunk == 0 {
			b.Kind += boxOthers
			b.Label = ""
		}
		b.Title = fmt.Sprintf("%s, %s of %s: %s to %s", c.Lanes[b.Lane].Name, boxTitles[x.kind], x.letter(),
			chart.Micros.Format(x.begin), chart.Micros.Format(x.end))
		c.Boxes = append(c.Boxes, b)
	}
	// Draw recorded chunks over the others.
	slices.SortStableFunc(c.Boxes, func(a, b chart.LadderBox) int { return behind(b) - behind(a) })
	c.Kinds, c.Boxes, c.Arrows = present(c)
	return c
}

var boxTitles = map[string]string{"data": "data", "got": "data", "disk": "write", "disk reads": "read"}

// behind returns 1 for boxes of other chunks.
func behind(b chart.LadderBox) int {
	if b.Kind >= boxData+boxOthers && b.Kind < arrowFirst {
		return 1
	}
	return 0
}

// ladderLanes holds the nodes of a ladder.
type ladderLanes struct {
	gateways, targets []int
	rows              int // rows per target for windows
	got               int // rows per gateway for data it reads
}

func lanesOf(list []ladderStep) ladderLanes {
	var l ladderLanes
	most, windows := 0, false
	for i := range list {
		x := &list[i]
		most = max(most, x.chunk)
		windows = windows || x.kind == "tentative"
		if x.kind == "got" {
			l.got = 1
		}
		if x.chunk > 0 && x.gateway >= 0 && !slices.Contains(l.gateways, x.gateway) {
			l.gateways = append(l.gateways, x.gateway)
		}
		if x.target >= 0 && !slices.Contains(l.targets, x.target) {
			l.targets = append(l.targets, x.target)
		}
	}
	slices.Sort(l.targets)
	if windows {
		l.rows = most
	}
	return l
}

func (l *ladderLanes) lanes(list []ladderStep) []chart.LadderTrack {
	var out []chart.LadderTrack
	for _, g := range l.gateways {
		out = append(out, chart.LadderTrack{Name: fmt.Sprintf("gateway %d: %s", g, chunksOf(list, g)), Rows: l.got})
	}
	for _, t := range l.targets {
		out = append(out, chart.LadderTrack{Name: fmt.Sprintf("target %d", t), Rows: l.rows + 2})
	}
	return out
}

// target returns the lane of a target, -1 if it has none.
func (l *ladderLanes) target(t int) int {
	k := slices.Index(l.targets, t)
	if k < 0 {
		return -1
	}
	return len(l.gateways) + k
}

// message returns the arrow of a message.
func (l *ladderLanes) message(x *ladderStep) chart.LadderArrow {
	a := chart.LadderArrow{From: slices.Index(l.gateways, x.gateway), To: l.target(x.target), Sent: x.begin,
		Received: x.end}
	from, to := fmt.Sprintf("gateway %d", x.gateway), fmt.Sprintf("target %d", x.target)
	switch x.kind[0] {
	case '<':
		a.From, a.To, from, to = a.To, a.From, to, from
	case '=':
		a.From, from = l.target(x.from), fmt.Sprintf("target %d", x.from)
	}
	a.Title = fmt.Sprintf("%s of %s: %s, %s, %s to %s", x.kind[2:], x.letter(), from, to,
		chart.Micros.Format(x.begin), chart.Micros.Format(x.end))
	return a
}

// first returns the arrow of a chunk's first data frame, and whether it is drawn.
func (l *ladderLanes) first(x *ladderStep) (chart.LadderArrow, bool) {
	a := chart.LadderArrow{Kind: arrowFirst, Sent: x.given, Received: x.begin,
		From: slices.Index(l.gateways, x.gateway), To: l.target(x.target)}
	switch {
	case x.chunk == 0 || x.kind != "data" && x.kind != "got":
		return a, false
	case x.kind == "got":
		a.From, a.To = a.To, a.From
	case x.from >= 0:
		a.From = l.target(x.from)
	}
	a.Title = fmt.Sprintf("first frame of %s, sent at %s, arrives at %s", x.letter(), chart.Micros.Format(x.given),
		chart.Micros.Format(x.begin))
	return a, a.From >= 0 && a.To >= 0
}

// stateTick is the time for which a bid is drawn after its cancellation, in us.
const stateTick = 0.5

// bidStates returns the boxes of a bid's states.
func bidStates(x *ladderStep, b chart.LadderBox) []chart.LadderBox {
	b.From, b.To = x.given, x.ended
	if x.ended <= x.given {
		b.To = x.end // undecided when the recording ends
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

// present removes the kinds without boxes or arrows.
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

// chunksOf lists the recorded chunks of a gateway.
func chunksOf(list []ladderStep, gateway int) string {
	var letters []string
	for i := range list {
		if x := &list[i]; x.chunk > 0 && x.gateway == gateway && !slices.Contains(letters, x.letter()) {
			letters = append(letters, x.letter())
		}
	}
	slices.Sort(letters)
	return strings.Join(letters, ", ")
}

func windowTitle(x *ladderStep) string {
	state := x.kind
	if state == "tentative" {
		state = "bid"
	}
	s := fmt.Sprintf("target %d, %s of %s: window of %s from %s to %s", x.target, state, x.letter(),
		chart.Micros.Format(x.end-x.begin), chart.Micros.Format(x.begin), chart.Micros.Format(x.end))
	if x.ended > x.given {
		s += fmt.Sprintf("; since %s, until %s", chart.Micros.Format(x.given), chart.Micros.Format(x.ended))
	}
	return s
}
