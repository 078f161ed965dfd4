package report

import (
	"bytes"
	"strings"
	"testing"

	"farflash/result"
)

// TestProtocol: a run that has taken down its protocol shows it, with the negotiation by itself if there are bids.
func TestProtocol(t *testing.T) {
	cols := []string{"chunk", "gateway", "target", "begin", "end", "given", "ended"}
	r := result.New("sha256:00", 1, "test")
	rows := []string{"> request", "< bid", "tentative", "> accept", "accepted", "canceled", "data", "disk", "disk", "< ack", "put"}
	v := [][]float64{
		{1, 4, 9, 1000, 1002, 0, 0}, {1, 4, 9, 1002, 1004, 0, 0}, {1, 4, 9, 1010, 1200, 1002, 1006}, {1, 4, 9, 1004, 1006, 0, 0}, {1, 4, 9, 1020, 1150, 1006, 1160},
		{2, 5, 9, 1200, 1400, 1030, 1036}, {1, 4, 9, 1020, 1150, 0, 0}, {0, -1, 9, 900, 1150, 0, 0}, {1, -1, 9, 1150, 1460, 0, 0}, {1, 4, 9, 1460, 1462, 0, 0}, {1, 4, -1, 1000, 1462, 0, 0},
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
	for _, want := range []string{"The protocol, message by message", "gateway 4: A", "gateway 5: B", "target 9", "request of A: gateway 4, target 9, 0 µs to 2 µs", "window of 190 µs from 10 µs to 200 µs; since 2 µs, until 6 µs",
		"A in 8 µs", "Time 0 is 1.00 ms", "disk of another chunk: -100 µs to 150 µs"} {
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
