package report

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"farflash/experiment/trial"
	"farflash/result"
)

// TestProtocol verifies that a run with a protocol record shows it, with a separate picture of the negotiation if there
// are bids.
func TestProtocol(t *testing.T) {
	cols := []string{"chunk", "gateway", "target", "from", "begin", "end", "given", "ended"}
	r := result.New(trial.Vocabulary(), "sha256:00", 1, "test")
	rows := []string{"> request", "< bid", "tentative", "> accept", "accepted", "canceled", "data", "disk", "disk",
		"< ack", "put"}
	v := [][]float64{
		{1, 4, 9, -1, 1000, 1002, 0, 0}, {1, 4, 9, -1, 1002, 1004, 0, 0}, {1, 4, 9, -1, 1010, 1200, 1002, 1006},
		{1, 4, 9, -1, 1004, 1006, 0, 0}, {1, 4, 9, -1, 1020, 1150, 1006, 1160},
		{2, 5, 9, -1, 1200, 1400, 1030, 1036}, {1, 4, 9, -1, 1020, 1150, 1018, 0}, {0, -1, 9, -1, 900, 1150, 0, 0},
		{1, -1, 9, -1, 1150, 1460, 0, 0}, {1, 4, 9, -1, 1460, 1462, 0, 0}, {1, 4, -1, -1, 1000, 1462, 0, 0},
	}
	r.SetMatrix("cluster.protocol", rows, cols, v)
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

// TestProtocolOfAChain verifies that data and pulls connect targets, and that reads reach the gateway.
func TestProtocolOfAChain(t *testing.T) {
	rows := []string{"> take", "> take", "= pull", "< pull", "data", "data", "> read", "disk reads", "got"}
	v := [][]float64{
		{1, 4, 9, -1, 1000, 1002, 0, 0}, {1, 4, 7, -1, 1000, 1002, 0, 0}, {1, -1, 7, 9, 1002, 1004, 0, 0},
		{1, 4, 7, -1, 1002, 1005, 0, 0},
		{1, 4, 7, -1, 1010, 1120, 1005, 0}, {1, 4, 9, 7, 1020, 1130, 1018, 0},
		{2, 5, 9, -1, 1040, 1042, 0, 0}, {2, -1, 9, -1, 1200, 1500, 0, 0}, {2, 5, 9, 9, 1502, 1600, 1500, 0},
	}
	list := make([]rung, len(rows))
	for i, x := range v {
		list[i] = rung{rows[i], int(x[0]), int(x[1]), int(x[2]), int(x[3]), x[4], x[5], x[6], x[7]}
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
