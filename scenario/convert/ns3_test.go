package convert_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"farflash/model/fabric"
	"farflash/model/fabric/cc"
	"farflash/numeric/units"
	"farflash/scenario"
	"farflash/scenario/convert"
	"farflash/scenario/shape"
)

const hpccText = `ENABLE_QCN 1
USE_DYNAMIC_PFC_THRESHOLD 1
PACKET_PAYLOAD_SIZE 1000
TOPOLOGY_FILE topology.txt
FLOW_FILE flow.txt
SIMULATOR_STOP_TIME 2.1
CC_MODE 1
ALPHA_RESUME_INTERVAL 1
RATE_DECREASE_INTERVAL 4
CLAMP_TARGET_RATE 0
RP_TIMER 300
EWMA_GAIN 0.00390625
FAST_RECOVERY_TIMES 1
RATE_AI 8Mb/s
RATE_HAI 80Mb/s
MIN_RATE 100Mb/s
DCTCP_RATE_AI 1000Mb/s
ERROR_RATE_PER_LINK 0.0000
L2_CHUNK_SIZE 4000
L2_ACK_INTERVAL 1
L2_BACK_TO_ZERO 0
HAS_WIN 0
GLOBAL_T 1
VAR_WIN 0
RATE_BOUND 1
ACK_HIGH_PRIO 1
PINT_LOG_BASE 1.05
LINK_DOWN 0 0 0
KMAX_MAP 1 40000000000 640
KMIN_MAP 1 40000000000 160
PMAX_MAP 1 40000000000 0.2
BUFFER_SIZE 12
`

const rdmaText = `ENABLE_QCN 1
USE_DYNAMIC_PFC_THRESHOLD 1
PACKET_LEVEL_ECMP 0
FLOW_LEVEL_ECMP 1
PAUSE_TIME 5
PACKET_PAYLOAD_SIZE 1000
TOPOLOGY_FILE mix/topology.txt
FLOW_FILE mix/flow.txt
TCP_FLOW_FILE mix/tcp.txt
SEND_IN_CHUNKS 0
APP_START_TIME 1.0
APP_STOP_TIME 10.0
SIMULATOR_STOP_TIME 2.01
CNP_INTERVAL 50
ALPHA_RESUME_INTERVAL 55
CLAMP_TARGET_RATE 1
CLAMP_TARGET_RATE_AFTER_TIMER 0
RP_TIMER 60
BYTE_COUNTER 300000000
DCTCP_GAIN 0.00390625
KMAX 1000
KMIN 40
PMAX 1.0
FAST_RECOVERY_TIMES 5
RATE_AI 40Mb/s
RATE_HAI 200Mb/s
ERROR_RATE_PER_LINK 0.0000
L2_CHUNK_SIZE 4000
L2_WAIT_FOR_ACK 0
L2_ACK_INTERVAL 256
L2_BACK_TO_ZERO 0
`

const (
	starText  = "4 1 3\n0\n0 1 40Gbps 0.001ms 0\n0 2 40Gbps 0.001ms 0\n0 3 40Gbps 0.001ms 0\n"
	ringText  = "4 2 4\n0 1\n0 1 40Gbps 1us 0\n0 1 40Gbps 1us 0\n0 2 40Gbps 1us 0\n1 3 40Gbps 1us 0\n"
	hpccFlows = "2\n2 1 3 100 20000 2.000000000\n3 1 3 100 20000 2.000000001\n"
	rdmaFlows = "2\n2 1 3 1000 2.0 9.5\n3 1 3 1000 2.001 9.5\n"
)

// ns3Files writes a peer's files. The configuration is in mix, as theirs is.
func ns3Files(t *testing.T, config, topology, flows, tcp string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "mix")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"config.txt": config, "topology.txt": topology, "flow.txt": flows,
		"tcp.txt": tcp} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "config.txt")
}

// TestNS3Refused verifies that settings that are not modelled are rejected by name and position.
func TestNS3Refused(t *testing.T) {
	for _, c := range []struct {
		name, base, old, new string
		topology, flows, tcp string
		compat               string
		want                 string // the directory is omitted: the files are temporary
	}{
		{"pacing off", hpccText, "RATE_BOUND 1", "RATE_BOUND 0", "", "", "", "",
			"config.txt:25:1: RATE_BOUND 0 sends at line rate"},
		{"go-back-0", hpccText, "L2_BACK_TO_ZERO 0", "L2_BACK_TO_ZERO 1", "", "", "", "",
			"config.txt:21:1: L2_BACK_TO_ZERO 1 returns to the start of a chunk"},
		{"rare ACKs", hpccText, "L2_ACK_INTERVAL 1\n", "L2_ACK_INTERVAL 2000\n", "", "", "", "",
			"config.txt:20:1: L2_ACK_INTERVAL 2000 leaves a flow's first packets without ACKs"},
		{"no pause time", hpccText, "HAS_WIN 0", "HAS_WIN 0\nPAUSE_TIME 0", "", "", "", "",
			"config.txt:23:1: PAUSE_TIME: must be positive"},
		{"loss of everything", hpccText, "LINK 0.0000", "LINK 1", "", "", "", "",
			"config.txt:18:1: ERROR_RATE_PER_LINK 1 loses every packet"},
		{"no such file", hpccText, "FLOW_FILE flow.txt", "FLOW_FILE flows.txt", "", "", "", "",
			"config.txt:5:1: FLOW_FILE flows.txt no such file next to the configuration"},
		{"too short", hpccText, "TIME 2.1", "TIME 2", "", "", "", "",
			"config.txt:6:1: SIMULATOR_STOP_TIME 2 must be after 2s, when the flows start"},
		{"no such link", hpccText, "LINK_DOWN 0 0 0", "LINK_DOWN 10 1 2", "", "", "", "",
			"config.txt:28:1: LINK_DOWN 1 2 no link between these nodes"},
		{"no threshold", hpccText, "KMIN_MAP 1 40000000000", "KMIN_MAP 1 10000000000", "", "", "", "",
			"config.txt:30:1: KMIN_MAP: no entry for links of 40Gbps"},
		{"telemetry at 40G", hpccText, "CC_MODE 1", "CC_MODE 3", "", "", "", "",
			"config.txt:7:1: CC_MODE 3 over a link of 40Gbps"},
		{"class 0", hpccText, "", "", "", "1\n2 1 0 100 20000 2.0\n", "", "",
			"flow.txt:2: priority group 0 is the class of control traffic"},
		{"parallel links", hpccText, "", "", ringText, "1\n2 3 3 100 20000 2.0\n", "", "",
			"topology.txt:4:1: a second link between the same two nodes"},
		{"delay of picoseconds", hpccText, "", "", strings.Replace(starText, "0.001ms", "0.0015005us", 1), "", "", "",
			"topology.txt:3:1: the delay, 1.501ns, is not a whole number"},
		{"unknown key", hpccText, "VAR_WIN 0", "VAR_WINN 0", "", "", "", "",
			`config.txt:24:1: unknown key "VAR_WINN"; did you mean VAR_WIN?`},
		{"wrong compat", hpccText, "", "", "", "", "", "ns3-rdma",
			"config.txt: a configuration of hpcc does not match compat: ns3-rdma; use hpcc or none"},

		{"ways by packet", rdmaText, "LEVEL_ECMP 0\nFLOW_LEVEL_ECMP 1", "LEVEL_ECMP 1\nFLOW_LEVEL_ECMP 0", "", "", "",
			"", "config.txt:3:1: PACKET_LEVEL_ECMP 1 sends each packet on another path"},
		{"chunks", rdmaText, "SEND_IN_CHUNKS 0", "SEND_IN_CHUNKS 1", "", "", "", "",
			"config.txt:10:1: SEND_IN_CHUNKS 1 is not modelled"},
		{"waits for ACKs", rdmaText, "WAIT_FOR_ACK 0", "WAIT_FOR_ACK 1", "", "", "", "",
			"config.txt:29:1: L2_WAIT_FOR_ACK 1 waits for an ACK"},
		{"chunk's beginning", rdmaText, "BACK_TO_ZERO 0", "BACK_TO_ZERO 1", "", "", "", "",
			"config.txt:31:1: L2_BACK_TO_ZERO 1 returns"},
		{"rare ACKs of packets", rdmaText, "L2_ACK_INTERVAL 256", "L2_ACK_INTERVAL 2000", "", "", "", "",
			"config.txt:30:1: L2_ACK_INTERVAL 2000 is not possible"},
		{"pause time", rdmaText, "PAUSE_TIME 5", "PAUSE_TIME 6", "", "", "", "",
			"config.txt:5:1: PAUSE_TIME 6us is not modelled under compat: ns3-rdma"},
		{"TCP", rdmaText, "", "", "", "", "1\n2 1 3 1000 2.0 9.5\n", "",
			"config.txt:9:1: TCP_FLOW_FILE mix/tcp.txt has 1 flows, and TCP is not modelled"},
		{"class of TCP", rdmaText, "", "", "", "1\n2 1 1 1000 2.0 9.5\n", "", "",
			"flow.txt:2: priority group 1 is reserved by the reference"},
		{"own stops", rdmaText, "", "", "", "2\n2 1 3 1000 2.0 2.005\n3 1 3 1000 2.0 2.006\n", "", "",
			"flow.txt:3: the flow stops at 2.006s, others at 2.005s"},
		{"one stops", rdmaText, "", "", "", "2\n2 1 3 1000 2.0 2.005\n3 1 3 1000 2.0 9\n", "", "",
			"flow.txt:3: the flow continues when others stop at 2.005s"},
		{"no receivers", rdmaText, "APP_START_TIME 1.0", "APP_START_TIME 2.5", "", "", "", "",
			"config.txt:11:1: APP_START_TIME 2.5 is after the first flow, 2s"},
		{"receivers end", rdmaText, "APP_STOP_TIME 10.0", "APP_STOP_TIME 2.005", "", "", "", "",
			"config.txt:12:1: APP_STOP_TIME 2.005 is before the end, 2.01s"},
		{"fast hosts", rdmaText, "", "", strings.Replace(starText, "40Gbps", "100Gbps", 1), "", "", "",
			"topology.txt:3:1: a host's link of 100Gbps"},
		{"both layouts", hpccText + "KMAX 3\n", "", "", "", "", "", "",
			"config.txt:7:1: CC_MODE is a key only of HPCC's ns-3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			config, topology, flows, tcp := strings.Replace(c.base, c.old, c.new, 1), c.topology, c.flows, c.tcp
			if c.old != "" && config == c.base {
				t.Fatalf("no %q", c.old)
			}
			if topology == "" {
				topology = starText
			}
			if flows == "" {
				flows = hpccFlows
				if c.base == rdmaText {
					flows = rdmaFlows
				}
			}
			if tcp == "" {
				tcp = "0\n"
			}
			file := ns3Files(t, config, topology, flows, tcp)
			_, err := convert.FromNS3(file, c.compat)
			if err == nil {
				t.Fatal("no error")
			}
			got := strings.ReplaceAll(err.Error(), filepath.Dir(file)+string(filepath.Separator), "")
			if !strings.HasPrefix(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// convertNS3 converts files in a temporary directory.
func convertNS3(t *testing.T, config, topology, flows, compat string) *convert.Conversion {
	t.Helper()
	c, err := convert.FromNS3(ns3Files(t, config, topology, flows, "0\n"), compat)
	if err != nil {
		t.Fatal(err)
	}
	// Its text must load to the same scenario.
	s, err := scenario.Parse(shape.Source{File: "a.yaml", Text: []byte(c.Text())}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !filepath.IsAbs(s.Fabric.Topology.File) {
		t.Errorf("topology %s is not an absolute path", s.Fabric.Topology.File)
	}
	return &convert.Conversion{Scenario: s, Notes: c.Notes}
}

func noted(t *testing.T, c *convert.Conversion, want string) {
	t.Helper()
	for _, n := range c.Notes {
		if strings.Contains(n, want) {
			return
		}
	}
	t.Errorf("no note has %q; there are\n%s", want, strings.Join(c.Notes, "\n"))
}

func TestFromHPCC(t *testing.T) {
	c := convertNS3(t, hpccText, starText, hpccFlows, "")
	x, s := c.Scenario.Fabric, c.Scenario
	if x.Compat != scenario.FabricCompatHPCC || x.Acks.Class != 3 || x.Acks.HostClass != 0 ||
		x.Buffer != 12*units.MiB || x.PFC.Headroom.Kind != fabric.HeadroomHPCC {
		t.Errorf("%+v", x.Config)
	}
	if s.Measure.Until.Time != 100*units.Millisecond || s.Flows[0].From != 2*units.Second ||
		!filepath.IsAbs(s.Flows[0].File) {
		t.Errorf("%+v %+v", s.Measure, s.Flows)
	}
	d := x.CongestionControl.DCQCN
	if !d.AlphaPerEpoch || !d.HyperFlat || !d.StageFromZero || d.ClampTarget != cc.ClampAfterIncrease ||
		d.RateHAI != 80*units.Mbps || d.Window != cc.WindowNone {
		t.Errorf("%+v", d)
	}
	noted(t, c, "ACK_HIGH_PRIO 1 changes only hosts")
	noted(t, c, "L2_CHUNK_SIZE has no effect")
	noted(t, c, "without effect under CC_MODE 1: DCTCP_RATE_AI, PINT_LOG_BASE")

	// Windows, a failing link, and times with an early start.
	config := strings.NewReplacer("HAS_WIN 0", "HAS_WIN 1", "VAR_WIN 0", "VAR_WIN 1", "LINK_DOWN 0 0 0",
		"LINK_DOWN 50 0 3", "CLAMP_TARGET_RATE 0", "CLAMP_TARGET_RATE 1").Replace(hpccText)
	c = convertNS3(t, config, starText, "1\n2 1 3 100 20000 1.5\n", "")
	x = c.Scenario.Fabric
	if d := x.CongestionControl.DCQCN; d.Window != cc.WindowScaled || d.ClampTarget != cc.ClampAlways {
		t.Errorf("%+v", d)
	}
	if from := c.Scenario.Flows[0].From; from != units.Second ||
		c.Scenario.Measure.Until.Time != 1100*units.Millisecond {
		t.Errorf("from %v until %v", from, c.Scenario.Measure.Until.Time)
	}
	if len(x.Failures) != 1 ||
		x.Failures[0] != (scenario.Failure{A: "s0", B: "h3", At: units.Second + 50*units.Microsecond}) {
		t.Errorf("%+v", x.Failures)
	}

	// Two priority groups, whose ACKs are in their flows' class, and a loss for all links without their own.
	c = convertNS3(t, strings.Replace(hpccText, "LINK 0.0000", "LINK 0.01", 1), starText,
		"2\n2 1 3 100 20000 2.0\n3 1 4 100 20000 2.0\n", "")
	if x = c.Scenario.Fabric; !x.Acks.Follow || x.Acks.HostClass != 0 || x.Loss != 0.01 {
		t.Errorf("%+v, loss %v", x.Acks, x.Loss)
	}
	c = convertNS3(t, strings.Replace(hpccText, "ACK_HIGH_PRIO 1", "ACK_HIGH_PRIO 0", 1), starText,
		"2\n2 1 3 100 20000 2.0\n3 1 4 100 20000 2.0\n", "")
	if x = c.Scenario.Fabric; !x.Acks.Follow || x.Acks.HostClass != 3 {
		t.Errorf("%+v", x.Acks)
	}

	// A network without compat: the same thresholds and sizes, none of the other deviations.
	c = convertNS3(t, hpccText, starText, hpccFlows, "none")
	x = c.Scenario.Fabric
	ours := fabric.DefaultConfig()
	if x.Compat != scenario.FabricCompatNone || x.PFC.Headroom != ours.PFC.Headroom || x.Acks.Class != 0 ||
		x.CNP.Echo || x.Rounding != fabric.Exact || x.Recovery != ours.Recovery {
		t.Errorf("%+v", x.Config)
	}
	if x.Header != 48 || x.Acks.Size != 60 || x.ECN.Ports[0].Kmin != 160*units.KB ||
		x.QueuePairs.Life != fabric.PerMessage {
		t.Errorf("%+v", x.Config)
	}
	noted(t, c, "compat none: payload, header (48B)")

	// Algorithms that carry data in their packets.
	at100 := strings.NewReplacer("40Gbps", "100Gbps").Replace(starText)
	for mode, want := range map[string]fabric.Telemetry{"3": {Size: 42, AckSize: 28, Multiple: 1}, "7": {Size: 8},
		"8": {}, "10": {Size: 1}, "0": {}} {
		config := strings.NewReplacer("CC_MODE 1", "CC_MODE "+mode, "40000000000", "100000000000").Replace(hpccText)
		if got := convertNS3(t, config, at100, hpccFlows, "").Scenario.Fabric.Telemetry; got != want {
			t.Errorf("CC_MODE %s: %+v, want %+v", mode, got, want)
		}
	}
	// Rates that their telemetry cannot encode are valid without compat.
	convertNS3(t, strings.Replace(hpccText, "CC_MODE 1", "CC_MODE 3", 1), starText, hpccFlows, "none")
	c = convertNS3(t, strings.Replace(hpccText, "ENABLE_QCN 1", "ENABLE_QCN 0", 1), starText, hpccFlows, "")
	noted(t, c, "ENABLE_QCN 0 disables marking")
	// More lines than the file's count.
	c = convertNS3(t, hpccText, starText, hpccFlows+"3 1 3 100 20000 2.5\n", "")
	noted(t, c, "lines after the 2 flows")
}

func TestFromNS3RDMA(t *testing.T) {
	c := convertNS3(t, rdmaText, starText, rdmaFlows, "")
	x, s := c.Scenario.Fabric, c.Scenario
	if x.Compat != scenario.FabricCompatNS3RDMA || x.Payload != 998 || x.Header != 22 || x.Acks.Every != 256 ||
		x.ECN.Ports[0].Kmin != 41200 || !x.CNP.Ticking {
		t.Errorf("%+v", x.Config)
	}
	list := s.Flows[0].List
	if len(list) != 2 || list[0].Src != 1 || list[0].Dst != 0 || list[0].Size != 998000 ||
		list[1].Start != units.Millisecond || s.Measure.Until.Time != 10*units.Millisecond {
		t.Errorf("%+v %+v", list, s.Measure)
	}
	d := x.CongestionControl.DCQCN
	if d.ClampTarget != cc.ClampAlways || !d.RaiseFirst || d.Gain != 1.0/256 || d.ByteCounter != 300*units.MB {
		t.Errorf("%+v", d)
	}
	for keys, want := range map[string]cc.Clamp{"CLAMP_TARGET_RATE 0\nCLAMP_TARGET_RATE_AFTER_TIMER 1": cc.ClampAfterIncrease, "CLAMP_TARGET_RATE 0\nCLAMP_TARGET_RATE_AFTER_TIMER 0": cc.ClampAfterBytes} {
		config := strings.Replace(rdmaText, "CLAMP_TARGET_RATE 1\nCLAMP_TARGET_RATE_AFTER_TIMER 0", keys, 1)
		if got := convertNS3(t, config, starText, rdmaFlows,
			"").Scenario.Fabric.CongestionControl.DCQCN.ClampTarget; got != want {
			t.Errorf("%q is %v, want %v", keys, got, want)
		}
	}
	c = convertNS3(t, strings.Replace(rdmaText, "USE_DYNAMIC_PFC_THRESHOLD 1", "USE_DYNAMIC_PFC_THRESHOLD 0", 1),
		starText, rdmaFlows, "")
	if th := c.Scenario.Fabric.PFC.Threshold; th.Dynamic || th.Size != 20600 {
		t.Errorf("%+v", th)
	}
	// All flows stop before the simulation does.
	c = convertNS3(t, rdmaText, starText, strings.ReplaceAll(rdmaFlows, "9.5", "2.005"), "")
	if c.Scenario.Measure.Until.Time != 5*units.Millisecond {
		t.Errorf("until %v", c.Scenario.Measure.Until.Time)
	}
	noted(t, c, "the flows stop at 2.005s")
	c = convertNS3(t, strings.Replace(rdmaText, "ENABLE_QCN 1", "ENABLE_QCN 0", 1), starText, rdmaFlows, "")
	if c.Scenario.Fabric.CongestionControl.Algorithm != cc.SchemeNone || c.Scenario.Fabric.ECN.Enabled {
		t.Errorf("%+v", c.Scenario.Fabric.Config)
	}
	x = convertNS3(t, rdmaText, starText, rdmaFlows, "none").Scenario.Fabric
	if x.CNP.Ticking || x.Rounding != fabric.Exact || x.PFC.Headroom.Kind != fabric.HeadroomAuto || x.Payload != 998 {
		t.Errorf("%+v", x.Config)
	}
}
