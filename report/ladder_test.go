package report

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"farflash/experiment/trial"
	"farflash/result"
)

// protocolRows and protocolOf describe a protocol run in which two chunks ask the same target, which bids.
var protocolRows = []string{"> request", "< bid", "tentative", "> accept", "accepted", "canceled", "data", "disk",
	"disk", "< ack", "put"}

func protocolOf() [][]float64 {
	return [][]float64{
		{1, 4, 9, -1, 1000, 1002, 0, 0}, {1, 4, 9, -1, 1002, 1004, 0, 0}, {1, 4, 9, -1, 1010, 1200, 1002, 1006},
		{1, 4, 9, -1, 1004, 1006, 0, 0}, {1, 4, 9, -1, 1020, 1150, 1006, 1160},
		{2, 5, 9, -1, 1200, 1400, 1030, 1036}, {1, 4, 9, -1, 1020, 1150, 1018, 0}, {0, -1, 9, -1, 900, 1150, 0, 0},
		{1, -1, 9, -1, 1150, 1460, 0, 0}, {1, 4, 9, -1, 1460, 1462, 0, 0}, {1, 4, -1, -1, 1000, 1462, 0, 0},
	}
}

// protocolColumns are the columns of the matrix.
var protocolColumns = []string{"chunk", "gateway", "target", "from", "begin", "end", "given", "ended"}

// TestProtocol verifies that a run that recorded its protocol shows it, with a zoom on the negotiation if there are
// bids.
func TestProtocol(t *testing.T) {
	r := result.New(trial.Vocabulary(), "sha256:00", 1, "test")
	cols, v := protocolColumns, protocolOf()
	r.SetMatrix("cluster.protocol", protocolRows, cols, v)
	page := func() string {
		var b bytes.Buffer
		if err := WriteHTML(&b, Run{Result: r}); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	text := page()
	for _, want := range []string{"The protocol, message by message", "gateway 4: A", "gateway 5: B", "target 9",
		"request of A: gateway 4, target 9, 0 us to 2 us",
		"window of 190 us from 10 us to 200 us; since 2 us, until 6 us",
		"A in 8 us", "Time 0 is 1.00 ms", "write of another chunk: -100 us to 150 us"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if n := strings.Count(text, `<svg class="chart"`); n != 2 {
		t.Errorf("%d charts, not 2", n)
	}
	r.SetMatrix("cluster.protocol", []string{"> request", "< rate", "data"}, cols, [][]float64{v[0], v[1], v[6]})
	if text = page(); strings.Count(text, `<svg class="chart"`) != 1 || strings.Contains(text, "windows that it bid") {
		t.Error("without bids there is more than one chart, or windows")
	}
}

// TestProtocolOfAChain verifies that data and pulls are drawn from target to target, and reads towards the gateway.
func TestProtocolOfAChain(t *testing.T) {
	rows := []string{"> take", "> take", "= pull", "< pull", "data", "data", "> read", "disk reads", "got"}
	v := [][]float64{
		{1, 4, 9, -1, 1000, 1002, 0, 0}, {1, 4, 7, -1, 1000, 1002, 0, 0}, {1, -1, 7, 9, 1002, 1004, 0, 0},
		{1, 4, 7, -1, 1002, 1005, 0, 0},
		{1, 4, 7, -1, 1010, 1120, 1005, 0}, {1, 4, 9, 7, 1020, 1130, 1018, 0},
		{2, 5, 9, -1, 1040, 1042, 0, 0}, {2, -1, 9, -1, 1200, 1500, 0, 0}, {2, 5, 9, 9, 1502, 1600, 1500, 0},
	}
	list := make([]ladderStep, len(rows))
	for i, x := range v {
		list[i] = ladderStep{rows[i], int(x[0]), int(x[1]), int(x[2]), int(x[3]), x[4], x[5], x[6], x[7]}
	}
	c := ladderOf(list, false)
	var lanes, arrows, boxes []string
	for _, l := range c.Lanes {
		lanes = append(lanes, fmt.Sprint(l.Name, "/", l.Rows))
	}
	for _, a := range c.Arrows {
		arrows = append(arrows, fmt.Sprint(c.Kinds[a.Kind].Name, " ", a.From, ">", a.To, " ", a.Sent))
	}
	for _, b := range c.Boxes {
		boxes = append(boxes, fmt.Sprint(c.Kinds[b.Kind].Name, " ", b.Lane, "/", b.Row, " ", b.From))
	}
	for _, x := range []struct{ what, is, want string }{
		{"lanes", strings.Join(lanes, "; "), "gateway 4: A/1; gateway 5: B/1; target 7/2; target 9/2"},
		{"arrows", strings.Join(arrows, "; "),
			"take 0>3 1000; take 0>2 1000; pull 3>2 1002; pull 2>0 1002; first frame of data 0>2 1005; first frame " +
				"of data 2>3 1018; read 1>3 1040; first frame of data 3>1 1500"},
		{"boxes", strings.Join(boxes, "; "),
			"data received 2/0 1010; data received 3/0 1020; disk reads 3/1 1200; data received 1/0 1502"},
	} {
		if x.is != x.want {
			t.Errorf("%s: %s, not %s", x.what, x.is, x.want)
		}
	}
	if from, to, ok := binding(list); !ok || from != 992 || to != 1028 {
		t.Errorf("bound from %v to %v (%v)", from, to, ok)
	}
}

// TestNegotiation verifies that the zoom covers the time from the first request to its answer, or to the answers of two
// whose requests are within four times that duration; the expected values were worked out by hand.
func TestNegotiation(t *testing.T) {
	ask := func(chunk int, at float64) ladderStep {
		return ladderStep{"> request", chunk, 1, 2, -1, at, at + 1, 0, 0}
	}
	tell := func(chunk int, at float64) ladderStep {
		return ladderStep{"> accept", chunk, 1, 2, -1, at, at + 1, 0, 0}
	}
	for name, c := range map[string]struct {
		list     []ladderStep
		from, to float64
		ok       bool
	}{
		"one":                {[]ladderStep{ask(1, 0), tell(1, 9)}, -0.6, 12.4, true},
		"two that are near":  {[]ladderStep{ask(1, 0), tell(1, 9), ask(2, 39), tell(2, 49)}, -3, 62, true},
		"two that are apart": {[]ladderStep{ask(1, 0), tell(1, 9), ask(2, 40), tell(2, 49)}, -0.6, 12.4, true},
		"the nearest of three": {[]ladderStep{ask(1, 0), tell(1, 9), ask(2, 30), tell(2, 39), ask(3, 35), tell(3, 54)},
			28.5, 61, true},
		"in another order":       {[]ladderStep{ask(1, 20), tell(1, 29), ask(2, 10), tell(2, 24)}, 8.8, 34.8, true},
		"one that has no answer": {[]ladderStep{ask(1, 0), tell(1, 9), ask(2, 5)}, -0.6, 12.4, true},
		"several of one multicast": {[]ladderStep{ask(1, 0), tell(1, 9), tell(1, 10.5), tell(1, 30)}, -0.69, 14.26,
			true},
		"the first request":   {[]ladderStep{ask(1, 3), ask(1, 0), tell(1, 9)}, -0.6, 12.4, true},
		"only what others do": {[]ladderStep{ask(0, 0), tell(0, 9)}, 0, 0, false},
		"no request":          {[]ladderStep{tell(1, 9)}, 0, 0, false},
		"no answer":           {[]ladderStep{ask(1, 0)}, 0, 0, false},
		"what is no message":  {[]ladderStep{{"data", 1, 1, 2, -1, 0, 1, 0, 0}}, 0, 0, false},
	} {
		from, to, ok := negotiation(c.list)
		if ok != c.ok || math.Abs(from-c.from) > 1e-9 || math.Abs(to-c.to) > 1e-9 {
			t.Errorf("%s: from %v to %v, %v; not %v to %v", name, from, to, ok, c.from, c.to)
		}
	}
	// Other chunks are drawn below the recorded ones.
	v := protocolOf()
	list := make([]ladderStep, len(v))
	for i, x := range v {
		list[i] = ladderStep{protocolRows[i], int(x[0]), int(x[1]), int(x[2]), int(x[3]), x[4], x[5], x[6], x[7]}
	}
	c := ladderOf(list, false)
	if b := c.Boxes[0]; b.From != 900 || b.Label != "" {
		t.Errorf("drawn first is %+v", b)
	}
	for _, b := range c.Boxes[1:] {
		if b.Label == "" {
			t.Errorf("over what is followed lies %+v", b)
		}
	}
}

// TestProtocolOfTheFirst verifies that the gateway, the target and the chunk with the lowest numbers are drawn, and the
// note about reads.
func TestProtocolOfTheFirst(t *testing.T) {
	list := []ladderStep{
		{"> read", 1, 0, 0, -1, 0, 2, 0, 0}, {"disk reads", 1, -1, 0, -1, 2, 40, 0, 0},
		{"got", 1, 0, 0, 0, 42, 55, 40, 0},
	}
	c := ladderOf(list, false)
	if len(c.Lanes) != 2 || c.Lanes[0].Name != "gateway 0: A" || c.Lanes[1].Name != "target 0" || len(c.Arrows) != 2 ||
		c.Arrows[0].From != 0 || c.Arrows[0].To != 1 || c.Arrows[1].From != 1 || c.Arrows[1].To != 0 {
		t.Errorf("lanes %+v, arrows %+v", c.Lanes, c.Arrows)
	}
	r := result.New(trial.Vocabulary(), "sha256:00", 1, "test")
	var rows []string
	var v [][]float64
	for _, x := range list {
		rows = append(rows, x.kind)
		v = append(v, []float64{float64(x.chunk), float64(x.gateway), float64(x.target), float64(x.from), x.begin,
			x.end, x.given, x.ended})
	}
	r.SetMatrix("cluster.protocol", rows, protocolColumns, v)
	const note = "what its link received, and what its disk wrote. Below each gateway: its reads."
	if f := protocolFigures(&Run{Result: r}); len(f) != 1 || !strings.HasSuffix(f[0].Note, note) {
		t.Errorf("%d figures; the note is %q", len(f), f[0].Note)
	}
	r.SetMatrix("cluster.protocol", rows[:2], protocolColumns, v[:2])
	if f := protocolFigures(&Run{Result: r}); len(f) != 1 || strings.Contains(f[0].Note, "gateway") {
		t.Errorf("without reads there are %d figures; the note is %q", len(f), f[0].Note)
	}
}

// TestBinding verifies the span from the first answer to the last data of its chunk, and that there is none without
// data.
func TestBinding(t *testing.T) {
	list := []ladderStep{
		{"> request", 1, 4, 9, -1, 0, 2, 0, 0}, {"data", 1, 4, 9, -1, 3, 4, 2, 0}, {"> take", 0, 4, 9, -1, 5, 7, 0, 0},
		{"> take", 1, 4, 9, -1, 10, 12, 0, 0}, {"> take", 2, 4, 8, -1, 11, 13, 0, 0}, {"data", 1, 4, 9, -1, 20, 90, 15, 0},
		{"data", 2, 4, 8, -1, 60, 90, 55, 0}, {"data", 1, 4, 7, -1, 15, 90, 14, 0},
	}
	if from, to, ok := binding(list); !ok || from != 6 || to != 24 { // 10 to 20, and 0.4 of that on both sides
		t.Errorf("from %v to %v, %v", from, to, ok)
	}
	if _, _, ok := binding(list[:5]); ok {
		t.Error("there are data before the answer only, and a span")
	}
	list[5].begin = 10
	if _, _, ok := binding(list[:6]); ok {
		t.Error("there is a span of no time")
	}
	if _, _, ok := binding(list[:3]); ok {
		t.Error("there is no answer, and a span")
	}
}
