package fabric

import (
	"bufio"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"farflash/model/fabric/topo"
	"farflash/numeric/units"
)

// TestHTSimAnswers compares lossless incasts over a fat tree with the results of csg-htsim in testdata/htsim.txt.
func TestHTSimAnswers(t *testing.T) {
	f, err := os.Open("testdata/htsim.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows := 0
	for s := bufio.NewScanner(f); s.Scan(); {
		line, _, _ := strings.Cut(s.Text(), "#")
		row := strings.Fields(line)
		if len(row) == 0 {
			continue
		}
		rows++
		var rate units.BitRate
		number := func(text string) float64 {
			v, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			return v
		}
		if err := rate.UnmarshalText([]byte(row[0])); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		c := plain()
		c.Payload, c.Header, c.Acks.Size = units.Bytes(number(row[1])), 64, 64
		c.PFC.Threshold, c.PFC.Reserve = Threshold{Size: 15 * (c.Payload + 64)}, 0
		c.PFC.ResumeOffset = 3 * (c.Payload + 64)
		g := build(t, topo.Config{FatTree: &topo.FatTree{K: 4}}, rate, rate, units.Microsecond)
		r := newRig(t, c, g, 1)
		packets := (units.MB + c.Payload - 1) / c.Payload
		for _, host := range row[4:] {
			r.mustSend(t, int32(number(host)), 0, 1, packets*c.Payload)
		}
		r.run(t, 1e7)
		r.drained(t)
		last := 0.0
		for _, m := range r.net.Messages() {
			last = max(last, float64(m.Acked)/float64(units.Microsecond))
		}
		want := number(row[2])
		off := 100 * (last/want - 1)
		switch {
		case row[3] == "exact":
			if strconv.FormatFloat(last, 'g', 6, 64) != row[2] {
				t.Errorf("%s: the last ACK comes after %.6g us", line, last)
			}
		case math.Abs(off) > number(row[3]):
			t.Errorf("%s: the last ACK comes after %.6g us, %+.2f %%", line, last, off)
		}
		t.Logf("%s: %.6g us, %+.3f %%, %d pauses", line, last, off, r.net.Counters.Pauses)
	}
	if rows < 30 {
		t.Errorf("only %d rows", rows)
	}
}
