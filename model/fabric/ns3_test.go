package fabric

import (
	"bufio"
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"farflash/internal/golden"
	"farflash/model/fabric/cc"
	"farflash/model/fabric/setting"
	"farflash/numeric/units"
)

// ns3Setup returns the configuration of HPCC's ns-3 in a row of testdata/ns3.txt: the settings of its run.py for hosts
// of a rate.
func ns3Setup(t *testing.T, scheme string, rate units.BitRate) Config {
	t.Helper()
	gigabits := int64(rate / units.Gbps)
	c := HPCC(DefaultConfig())
	c.Payload = 1000
	c.RoundTrip.Longest = true
	c.Buffer = units.Bytes(max(1, 16*gigabits/50)) * units.MiB
	c.Acks.Class, c.Acks.HostClass = HPCCClass, 0
	g := &c.CongestionControl
	c.ECN.Rate, c.ECN.Kmin, c.ECN.Kmax, c.ECN.Pmax = rate, units.Bytes(4*gigabits)*units.KB,
		units.Bytes(16*gigabits)*units.KB, 0.2
	mellanox := cc.MellanoxDCQCN(rate)
	switch scheme {
	case "pfc":
		c.ECN.Enabled = false
		g.Algorithm = cc.SchemeNone
		if rate == 10*units.Gbps {
			// The reference was changed by hand: 4096 B more.
			c.PFC.Headroom = setting.Headroom{Kind: HeadroomFixed, Size: 7846}
		}
	case "dcqcn":
		g.Algorithm, g.DCQCN = cc.SchemeDCQCN, mellanox
	case "dcqcn-paper":
		mellanox.AlphaInterval, mellanox.RateDecreaseInterval = 50*units.Microsecond, 50*units.Microsecond
		mellanox.RateIncreaseTimer, mellanox.FastRecovery = 55*units.Microsecond, 5
		g.Algorithm, g.DCQCN = cc.SchemeDCQCN, mellanox
	case "dcqcn-window":
		mellanox.Window = cc.WindowScaled
		g.Algorithm, g.DCQCN = cc.SchemeDCQCN, mellanox
		c.Acks.HostClass = HPCCClass
	case "dctcp":
		g.Algorithm = cc.SchemeDCTCP
		c.ECN.Kmin, c.ECN.Kmax, c.ECN.Pmax = units.Bytes(3*gigabits)*units.KB, units.Bytes(3*gigabits)*units.KB, 1
		c.Acks.HostClass = HPCCClass
	case "timely":
		g.Algorithm = cc.SchemeTimely
		g.Timely.RateAI, g.Timely.RateHAI = units.BitRate(gigabits)*units.Mbps, units.BitRate(5*gigabits)*units.Mbps
		c.Telemetry = Telemetry{Size: 8}
	case "hpcc":
		g.Algorithm = cc.SchemeHPCC
		g.HPCC.MaxStage, g.HPCC.RateAI = 0, units.BitRate(4*gigabits/10)*units.Mbps
		c.Telemetry = Telemetry{Size: 42, AckSize: 28, Multiple: 4}
		c.Acks.HostClass = HPCCClass
	default:
		t.Fatalf("there is no scheme %q", scheme)
	}
	return c
}

// TestNS3Answers compares incasts of 1 MB messages over a star with the results of HPCC's ns-3 in the file. It also
// covers clones that lack some of the reference's cases.
func TestNS3Answers(t *testing.T) {
	f, err := os.Open("testdata/ns3.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows := 0
	var met []*ns3Met
	for s := bufio.NewScanner(f); s.Scan(); {
		line, _, _ := strings.Cut(s.Text(), "#")
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		rows++
		i := slices.IndexFunc(met, func(m *ns3Met) bool { return m.scheme == fields[0] })
		if i < 0 {
			i = len(met)
			met = append(met, &ns3Met{scheme: fields[0]})
		}
		t.Run(strings.Join(fields[:2], "-")+fmt.Sprint("-", len(fields)-4),
			func(t *testing.T) { ns3Row(t, fields, met[i]) })
	}
	if rows < 50 {
		t.Errorf("only %d rows", rows)
	}
	lines := golden.Head("scheme", ">incasts", ">flows", ">to the nanosecond", ">mean of an incast off by, at most",
		">pauses, reference", ">pauses, ours")
	for _, m := range met {
		lines = append(lines,
			golden.Row("`"+m.scheme+"`", fmt.Sprint(m.rows), fmt.Sprint(m.flows), fmt.Sprint(m.same),
				fmt.Sprintf("%.2f %%", 100*m.worst), fmt.Sprint(m.theirs), fmt.Sprint(m.pauses)))
	}
	golden.Table(t, "../../docs/validation/ns3.md", "ns3-answers", "seed 1", lines, *update)
}

var update = flag.Bool("update", false, "write the table of docs/validation/ns3.md")

// ns3Met counts how many rows of a scheme match the reference.
type ns3Met struct {
	scheme            string
	rows, flows, same int
	worst             float64
	theirs, pauses    uint64
}

// ns3Row checks one row: scheme, rate, pause frames, accuracy, and completion times of hosts 1 on in nanoseconds.
func ns3Row(t *testing.T, row []string, met *ns3Met) {
	var rate units.BitRate
	if err := rate.UnmarshalText([]byte(row[1])); err != nil {
		t.Fatal(err)
	}
	var want []float64
	sum := 0.0
	for _, x := range row[4:] {
		v, err := strconv.ParseFloat(x, 64)
		if err != nil {
			t.Fatal(err)
		}
		want, sum = append(want, v), sum+v
	}
	r := newRig(t, ns3Setup(t, row[0], rate), star(t, len(want)+1, rate, units.Microsecond), 1)
	for i := range want {
		r.mustSend(t, int32(i+1), 0, HPCCClass, units.MB)
	}
	r.run(t, 1e7)
	r.drained(t)
	got := 0.0
	for i, m := range r.net.Messages() {
		ns := float64(m.Acked / units.Nanosecond)
		got += ns
		met.flows++
		if ns == want[i] {
			met.same++
		}
		if row[3] == "exact" && ns != want[i] {
			t.Errorf("host %d is done after %v ns, ns-3 says %v", i+1, ns, want[i])
		}
	}
	pauses, err := strconv.ParseFloat(row[2], 64)
	if err != nil {
		t.Fatal(err)
	}
	met.rows++
	met.worst = max(met.worst, math.Abs(got/sum-1))
	met.theirs, met.pauses = met.theirs+uint64(pauses), met.pauses+r.net.Counters.Pauses
	most := 0.0 // tolerance for the number of pauses
	if row[3] != "exact" {
		var share float64
		if _, err := fmt.Sscanf(row[3], "%f%%", &share); err != nil {
			t.Fatal(err)
		}
		if math.Abs(got/sum-1) > share/100 {
			t.Errorf("the mean is %.0f ns, ns-3's %.0f; %s is allowed", got/float64(len(want)),
				sum/float64(len(want)), row[3])
		}
		most = max(1, pauses*0.1)
	}
	if p := float64(r.net.Counters.Pauses); math.Abs(p-pauses) > most {
		t.Errorf("%v pauses, ns-3 has %v", p, pauses)
	}
	if d := r.net.Counters.DropCount(); d != 0 {
		t.Errorf("%d packets are lost", d)
	}
}
