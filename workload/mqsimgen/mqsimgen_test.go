package mqsimgen

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"farflash/block"
	"farflash/internal/inputs"
	"farflash/numeric/units"
	"farflash/workload"
)

// settings reads the <name>value</name> elements of a part of an MQSim file; the real parser is in package peer.
func settings(text string) map[string]string {
	found := make(map[string]string)
	for _, m := range regexp.MustCompile(`<(\w+)>([^<>]*)</(\w+)>`).FindAllStringSubmatch(text, -1) {
		if m[1] == m[3] {
			found[m[1]] = strings.TrimSpace(m[2])
		}
	}
	return found
}

func number(t *testing.T, s map[string]string, name string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(s[name], 64)
	if err != nil {
		t.Fatalf("%s is %q", name, s[name])
	}
	return v
}

func list(t *testing.T, s map[string]string, name string) []int {
	t.Helper()
	var ids []int
	for _, field := range strings.Split(s[name], ",") {
		id, err := strconv.Atoi(field)
		if err != nil {
			t.Fatalf("%s is %q", name, s[name])
		}
		ids = append(ids, id)
	}
	return ids
}

// TestSameRequestsAsMQSim compares every request of every synthetic flow of the cases.
func TestSameRequestsAsMQSim(t *testing.T) {
	root := inputs.Path(t, "cases/mqsim")
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		dir := filepath.Join(root, entry.Name())
		workloadXML, err := os.ReadFile(filepath.Join(dir, "workload.xml"))
		if err != nil {
			t.Fatal(err)
		}
		flowTexts := regexp.MustCompile(
			`(?s)<IO_Flow_Parameter_Set_Synthetic>(.*?)</IO_Flow_Parameter_Set_Synthetic>`).FindAllStringSubmatch(string(workloadXML), -1)
		if len(flowTexts) == 0 {
			continue // a trace
		}
		if testing.Short() && strings.HasPrefix(entry.Name(), "A12") {
			continue // 800,000 requests
		}
		t.Run(entry.Name(), func(t *testing.T) { compareCase(t, dir, flowTexts) })
		compared++
	}
	if compared == 0 {
		t.Error("no case has a synthetic flow")
	}
}

func compareCase(t *testing.T, dir string, flowTexts [][]string) {
	configXML, err := os.ReadFile(filepath.Join(dir, "ssdconfig.xml"))
	if err != nil {
		t.Fatal(err)
	}
	c := settings(string(configXML))
	geometry := drive{
		Channels: int(number(t, c, "Flash_Channel_Count")), ChipsPerChannel: int(number(t, c, "Chip_No_Per_Channel")),
		DiesPerChip: int(number(t, c, "Die_No_Per_Chip")), PlanesPerDie: int(number(t, c, "Plane_No_Per_Die")),
		BlocksPerPlane: int(number(t, c, "Block_No_Per_Plane")), PagesPerBlock: int(number(t, c, "Page_No_Per_Block")),
		SectorsPerPage:   int(number(t, c, "Page_Capacity")) / 512,
		OverProvisioning: number(t, c, "Overprovisioning_Ratio"),
	}
	var flows []map[string]string
	var may []resources
	for _, text := range flowTexts {
		s := settings(text[1])
		flows = append(flows, s)
		may = append(may, resources{list(t, s, "Channel_IDs"), list(t, s, "Chip_IDs"), list(t, s, "Die_IDs"),
			list(t, s, "Plane_IDs")})
	}
	ranges, err := rangesOf(geometry, may)
	if err != nil {
		t.Fatal(err)
	}
	generators := make([]*Generator, len(flows))
	for i, s := range flows {
		cfg := Config{
			ReadFraction:  number(t, s, "Read_Percentage") / 100,
			HotFraction:   number(t, s, "Percentage_of_Hot_Region") / 100,
			Aligned:       s["Generated_Aligned_Addresses"] == "true",
			Alignment:     int64(number(t, s, "Address_Alignment_Unit")),
			MeanSize:      int64(number(t, s, "Average_Request_Size")),
			SizeDeviation: int64(number(t, s, "Variance_Request_Size")),
			Seed:          int32(number(t, s, "Seed")), WorkingSet: number(t, s, "Working_Set_Percentage") / 100,
			Range:    ranges[i],
			Requests: int64(number(t, s, "Total_Requests_To_Generate")), StopTime: int64(number(t, s, "Stop_Time")),
		}
		switch s["Address_Distribution"] {
		case "STREAMING":
			cfg.Addresses = Streaming
		case "RANDOM_HOTCOLD":
			cfg.Addresses = HotCold
		}
		if s["Request_Size_Distribution"] == "NORMAL" {
			cfg.Sizes = Normal
		}
		if s["Synthetic_Generator_Type"] == "BANDWIDTH" {
			cfg.Mode, cfg.BytesPerSecond = Bandwidth, int64(number(t, s, "Bandwidth"))
		}
		if generators[i], err = New(cfg); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.Open(filepath.Join(dir, "requests.csv.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	content, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	scanner := bufio.NewScanner(content)
	line := 0
	var rec workload.Record
	for scanner.Scan() {
		line++
		var want [5]int64
		for i, field := range strings.Split(scanner.Text(), ",") {
			if want[i], err = strconv.ParseInt(field, 10, 64); err != nil {
				t.Fatal(err)
			}
		}
		g := generators[want[0]]
		if err := g.Next(&rec); err != nil {
			t.Fatalf("line %d: %v", line, err)
		}
		op := block.Write
		if want[2] == 1 {
			op = block.Read
		}
		if rec.Op != op || rec.Offset != want[3]*512 || rec.Size != want[4]*512 {
			t.Fatalf("line %d: MQSim has %s; we have %s sector %d, %d sectors", line, scanner.Text(), rec.Op,
				rec.Offset/512, rec.Size/512)
		}
		if !g.closed() && rec.Time != units.Duration(want[1])*units.Nanosecond {
			t.Fatalf("line %d: MQSim has %s; ours arrives at %v", line, scanner.Text(), rec.Time)
		}
	}
	for i, g := range generators {
		if err := g.Next(&rec); err != io.EOF {
			t.Errorf("flow %d goes on behind MQSim's end: %v", i, err)
		}
	}
}

func TestOpenLoop(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Mode, cfg.BytesPerSecond, cfg.StopTime = Bandwidth, 262144000, 1e9 // 64,000 requests/s of 4 KiB: 15,625 ns
	g, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	records, err := workload.Collect(g)
	if err != nil {
		t.Fatal(err)
	}
	// Poisson: the count of 64,000 has a standard deviation of 253; truncation to ns adds 2.
	if n := float64(len(records)); math.Abs(n-64002) > 5*253 {
		t.Errorf("%v requests in a second", n)
	}
	for i := 1; i < len(records); i++ {
		if records[i].Time < records[i-1].Time || records[i].Time > units.Second {
			t.Fatalf("request %d at %v", i, records[i].Time)
		}
	}
}

func TestHotColdAndNormal(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Addresses, cfg.HotFraction, cfg.Sizes, cfg.MeanSize, cfg.SizeDeviation, cfg.Requests = HotCold, 0.2, Normal,
		64, 8, 100000
	cfg.ReadFraction = 0.3
	g, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	records, err := workload.Collect(g)
	if err != nil {
		t.Fatal(err)
	}
	var hot, reads, sum, squares float64
	for _, r := range records {
		if r.Offset/512 <= 419430 {
			hot++
		}
		if r.Op == block.Read {
			reads++
		}
		s := float64(r.Size / 512)
		sum += s
		squares += s * s
	}
	n := float64(len(records))
	mean := sum / n
	// Five standard errors each; rounding up moves the mean by one half.
	for _, c := range []struct {
		name           string
		got, want, tol float64
	}{
		{"hot share", hot / n, 0.8, 5 * math.Sqrt(0.16/n)},
		{"read share", reads / n, 0.3, 5 * math.Sqrt(0.21/n)},
		{"mean size", mean, 64.5, 5 * 8 / math.Sqrt(n)},
		{"size deviation", math.Sqrt(squares/n - mean*mean), 8, 0.1},
	} {
		if math.Abs(c.got-c.want) > c.tol {
			t.Errorf("%s is %v, want %v within %v", c.name, c.got, c.want, c.tol)
		}
	}
}

func TestRefused(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"read fraction": func(c *Config) { c.ReadFraction = math.NaN() },
		"working set":   func(c *Config) { c.WorkingSet = 0 },
		"alignment":     func(c *Config) { c.Alignment = 0 },
		"mean size":     func(c *Config) { c.MeanSize = 0 },
		"range":         func(c *Config) { c.Range = Range{5, 4} },
		"neither":       func(c *Config) { c.Requests = 0 },
		"bandwidth":     func(c *Config) { c.Mode, c.BytesPerSecond = Bandwidth, 100 },
		"hot region":    func(c *Config) { c.Addresses, c.HotFraction = HotCold, 1 },
		"seed":          func(c *Config) { c.Seed = -1 },
		"seed 2147483643; it must be from 0 to 2147483642": func(c *Config) { c.Seed = math.MaxInt32 - 4 },
	} {
		cfg := DefaultConfig()
		change(&cfg)
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	cfg := DefaultConfig()
	cfg.Sizes, cfg.SizeDeviation = Normal, 100
	g, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := workload.Collect(g); err == nil || !strings.Contains(err.Error(), "MQSim reads as 42949") {
		t.Errorf("negative size: %v", err)
	}
	if _, err := rangesOf(drive{1, 1, 1, 1, 1, 1, 1, 0},
		[]resources{{[]int{1}, []int{0}, []int{0}, []int{0}}}); err == nil ||
		!strings.Contains(err.Error(), "channel 1 does not exist") {
		t.Errorf("channel: %v", err)
	}
}

// TestOrigin verifies that offsets are relative to the origin, and that a request that alignment moves before it ends
// the flow.
func TestOrigin(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Requests, cfg.Range, cfg.Origin = 200, Range{First: 1000, Last: 1999}, 1000
	g, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var rec workload.Record
	for range cfg.Requests {
		if err := g.Next(&rec); err != nil || rec.Offset < 0 || rec.Offset >= 1000*512 {
			t.Fatalf("a request at %d: %v", rec.Offset, err)
		}
	}
	cfg.Alignment = 3000
	if g, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := g.Next(&rec); err == nil ||
			!strings.Contains(err.Error(), "512000 bytes before its flow's first sector") {
			t.Errorf("error %v", err)
		}
	}
}

func TestNextDoesNotAllocate(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Requests = 1 << 40
	g, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var rec workload.Record
	if n := testing.AllocsPerRun(1000, func() { g.Next(&rec) }); n != 0 {
		t.Errorf("%v allocations a request", n)
	}
}

func BenchmarkNext(b *testing.B) {
	cfg := DefaultConfig()
	cfg.Requests = 1 << 40
	g, err := New(cfg)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	var rec workload.Record
	for range b.N {
		g.Next(&rec)
	}
}

func Example() {
	cfg := DefaultConfig()
	cfg.Requests = 2
	g, _ := New(cfg)
	var rec workload.Record
	for g.Next(&rec) == nil {
		fmt.Println(rec.Op, rec.Offset%4096, rec.Size)
	}
	// Output:
	// read 0 4096
	// read 0 4096
}

// TestRounded reproduces a rounding of MQSim. The first states of the generator may be negative for some seeds; the
// multiple of the modulus subtracted from a difference above 2^53 is then rounded. With it, 2,955 of these requests are
// reads; without it, 3,033 would be.
func TestRounded(t *testing.T) {
	c := DefaultConfig()
	c.ReadFraction, c.Seed, c.Requests = .5, 5641, 6060
	g, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	reads := 0
	var r workload.Record
	for g.Next(&r) == nil {
		if r.Op == block.Read {
			reads++
		}
	}
	if reads != 2955 {
		t.Errorf("%d reads, MQSim has 2955", reads)
	}
}
