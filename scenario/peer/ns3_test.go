package peer_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"farflash/internal/inputs"
	"farflash/numeric/units"
	"farflash/scenario/peer"
)

const hpccSmall = `TOPOLOGY_FILE t.txt
FLOW_FILE f.txt
# ours
CC_MODE 1
EWMA_GAIN 0.00390625
RATE_AI 8Mb/s
RATE_HAI 80Mb/s
RP_TIMER 300
L2_ACK_INTERVAL 1
KMAX_MAP 2 40000000000 640 100000000000 1600
KMIN_MAP 2 40000000000 160 100000000000 400
PMAX_MAP 2 40000000000 0.2 100000000000 0.2
LINK_DOWN 1000 3 4
`

const rdmaSmall = `ENABLE_QCN 1
TOPOLOGY_FILE t.txt
FLOW_FILE f.txt
DCTCP_GAIN 0.00390625
RATE_AI 40Mb/s
RATE_HAI 200Mb/s
RP_TIMER 60
BYTE_COUNTER 300000000
L2_CHUNK_SIZE 4000
L2_ACK_INTERVAL 256
KMAX 1000
KMIN 40
`

func ExampleReadHPCCConfig() {
	_, err := peer.ReadHPCCConfig("config.txt", strings.NewReader("CC_MODE 1\nEWMA_GIAN 0.0625\n"))
	fmt.Println(err)
	// Output: config.txt:2:1: unknown key "EWMA_GIAN"; did you mean EWMA_GAIN?
}

func TestHPCCConfig(t *testing.T) {
	c, err := peer.ReadHPCCConfig("c", strings.NewReader(hpccSmall))
	if err != nil {
		t.Fatal(err)
	}
	if c.CC_MODE != 1 || c.RATE_AI != 8*units.Mbps || c.RP_TIMER != 300*units.Microsecond ||
		c.ALPHA_RESUME_INTERVAL != 55*units.Microsecond ||
		c.MI_THRESH != 5 || !c.MULTI_RATE || c.BUFFER_SIZE != 16 || c.SIMULATOR_STOP_TIME != 3010*units.Millisecond {
		t.Errorf("%+v", c)
	}
	if want := (peer.NS3LinkDown{Time: units.Millisecond, A: 3, B: 4}); c.LINK_DOWN != want {
		t.Errorf("LINK_DOWN = %v, want %v", c.LINK_DOWN, want)
	}
	if got := c.At("CC_MODE"); got != "c:4:1" {
		t.Errorf("At = %s", got)
	}
	if c.At("MIN_RATE") != "c" || c.Has("MIN_RATE") {
		t.Error("MIN_RATE is said to be there")
	}
	if low, high, p, err := c.Marking(40 * units.Gbps); low != 160*units.KB || high != 640*units.KB || p != 0.2 ||
		err != nil {
		t.Error(low, high, p, err)
	}
	if _, _, _, err := c.Marking(25 * units.Gbps); err == nil ||
		err.Error() != "c:11:1: KMIN_MAP: no entry for links of 25Gbps; add the pair 25000000000 and a threshold in "+
			"units of 1000 bytes" {
		t.Error(err)
	}
}

// TestConfigErrors verifies that input which the programs silently ignore is an error with its position and a
// correction.
func TestConfigErrors(t *testing.T) {
	hpcc := func(s string) error { _, err := peer.ReadHPCCConfig("c", strings.NewReader(s)); return err }
	rdma := func(s string) error { _, err := peer.ReadNS3RDMAConfig("c", strings.NewReader(s)); return err }
	for _, c := range []struct {
		read       func(string) error
		text, want string
	}{
		{hpcc, hpccSmall, ""},
		{hpcc, "CC_MODE\n", "c:1:1: CC_MODE has no value"},
		{hpcc, "CC_MODE\nEWMA_GAIN 1\n", "c:2:1: CC_MODE has no value; the key EWMA_GAIN is in its place"},
		{hpcc, hpccSmall + "HAS_WIN 2\n", `c:14:9: HAS_WIN: "2" is neither 0 (no) nor 1 (yes)`},
		{hpcc, hpccSmall + "HAS_WIN 1 yes\n",
			`c:14:11: unexpected "yes" after the value of a key; start a new line for each key`},
		{hpcc, hpccSmall + "HAS_WIN 1\n\nHAS_WIN 0\n",
			"c:16:1: HAS_WIN is given twice; first on line 14. HPCC's ns-3 would use the last one; leave one of them out"},
		{hpcc, hpccSmall + "KMAX 100\n", "c:14:1: KMAX is a key of ns3-rdma, not of HPCC's ns-3"},
		{hpcc, hpccSmall + "# was HAS_WIN 1\n",
			"c:14:7: HPCC's ns-3 has no comments and would read this HAS_WIN; write #HAS_WIN, or leave the line out"},
		{hpcc, hpccSmall + "#HAS_WIN 1\n", ""},
		{hpcc, hpccSmall + "BUFFER_SIZE 1.5\n", `c:14:13: BUFFER_SIZE: "1.5" is not a whole number`},
		{hpcc, hpccSmall + "BUFFER_SIZE -1\n", "c:14:13: BUFFER_SIZE: -1 is negative"},
		{hpcc, hpccSmall + "BUFFER_SIZE 4096\n", "c:14:1: BUFFER_SIZE: must be from 1 to 4095 MiB, to fit in 32 bits"},
		{hpcc, hpccSmall + "MIN_RATE 1000\n", ""},
		{hpcc, hpccSmall + "MIN_RATE 1Mbit\n",
			`c:14:10: MIN_RATE: "1Mbit" is not a bit rate; write for example 40Gbps or 40Gb/s`},
		{hpcc, hpccSmall + "ALPHA_RESUME_INTERVAL 0.5\n",
			"c:14:23: ALPHA_RESUME_INTERVAL: 0.5 is truncated to whole us by the reference; write a whole number"},
		{hpcc, hpccSmall + "U_TARGET 0x1p-2\n", `c:14:10: U_TARGET: "0x1p-2" is not a number`},
		{hpcc, hpccSmall + "U_TARGET nan\n", `c:14:10: U_TARGET: "nan" is not a number`},
		{hpcc, strings.Replace(hpccSmall, "CC_MODE 1", "CC_MODE 2", 1),
			"c:4:1: CC_MODE: 2 is not one of 0 (none), 1 (DCQCN), 3 (HPCC), 7 (TIMELY), 8 (DCTCP), 10 (HPCC-PINT); " +
				"HPCC's ns-3 would run it as 0"},
		{hpcc, strings.Replace(hpccSmall, "EWMA_GAIN 0.00390625", "", 1),
			"c:4:1: no EWMA_GAIN; HPCC's ns-3 would use 0, the integer quotient 1/16, with which the rate's cuts " +
				"never change; write EWMA_GAIN 0.00390625, or 0.0625 if a sixteenth is meant"},
		{hpcc, "FLOW_FILE f\n", "c:1:1: no TOPOLOGY_FILE; without a topology there is nothing to simulate"},
		{hpcc, strings.Replace(hpccSmall, "L2_ACK_INTERVAL 1", "", 1),
			"c:4:1: no L2_ACK_INTERVAL; HPCC's ns-3 would use 0, with which senders ignore ACKs and no flow ends; " +
				"write L2_ACK_INTERVAL 1"},
		{hpcc, strings.Replace(hpccSmall, " 160 ", " 660 ", 1),
			"c:11:1: KMIN_MAP: 660 for 40Gbps is above its KMAX_MAP, 640"},
		{hpcc, "KMAX_MAP 2 1 1\n2", "c:2:1: KMAX_MAP has no value of pair 2 of 2"},
		{hpcc, "KMAX_MAP 2 1 1\n1 2", "c:2:1: KMAX_MAP: 1bps is given twice"},
		{hpcc, "PMAX_MAP 1 1 1.5", "c:1:14: PMAX_MAP: value for 1bps: 1.5 is above 1"},
		{hpcc, "KMAX_MAP 5000", "c:1:10: KMAX_MAP: number of pairs: 5000 is above 1024"},
		{hpcc, "LINK_DOWN 5 1", "c:1:13: LINK_DOWN has no two nodes after its time"},
		{hpcc, "LINK_DOWN x 1 2", `c:1:11: LINK_DOWN: time in us: "x" is not a whole number`},
		{hpcc, "LINK_DOWN 1 1 65536", "c:1:15: LINK_DOWN: node: 65536 is above 65535"},
		{hpcc, "KMAX_MAP 1 40Gbps 5",
			`c:1:12: KMAX_MAP: rate of pair 1 of 1, in bit/s: "40Gbps" is not a whole number`},
		{hpcc, "SIMULATOR_STOP_TIME 1e500", "c:1:21: SIMULATOR_STOP_TIME: 1e500 has an exponent out of range"},
		{hpcc, "SIMULATOR_STOP_TIME 1e", `c:1:21: SIMULATOR_STOP_TIME: "1e" is not a number`},
		{hpcc, "SIMULATOR_STOP_TIME " + strings.Repeat("1", 500),
			"c:1:21: SIMULATOR_STOP_TIME: 1111111111111111111111111111111111111111... has too many digits"},
		{hpcc, "EWMA_GAIN -1", "c:1:11: EWMA_GAIN: -1 is negative"},
		{hpcc, "nonsense 1", `c:1:1: unknown key "nonsense"; the keys of HPCC's ns-3 are ENABLE_QCN`},
		{hpcc, strings.Replace(hpccSmall, "CC_MODE 1", "CC_MODE 8", 1), ""},
		{rdma, rdmaSmall, ""},
		{rdma, rdmaSmall + "CC_MODE 1\n", "c:13:1: CC_MODE is a key of HPCC's ns-3, not of ns3-rdma"},
		{rdma, rdmaSmall + "PACKET_LEVEL_ECMP 1\nFLOW_LEVEL_ECMP 1\n",
			"c:13:1: PACKET_LEVEL_ECMP: excludes FLOW_LEVEL_ECMP; set one of them to 0"},
		{rdma, strings.Replace(rdmaSmall, "DCTCP_GAIN 0.00390625", "", 1),
			"c:1:1: no DCTCP_GAIN; ns3-rdma would use 0"},
		{rdma, strings.Replace(strings.Replace(rdmaSmall, "DCTCP_GAIN 0.00390625", "", 1), "QCN 1", "QCN 0", 1), ""},
		{rdma, strings.Replace(rdmaSmall, "KMIN 40", "KMIN 1001", 1), "c:12:1: KMIN: 1001 is above KMAX, 1000"},
		{rdma, strings.Replace(rdmaSmall, "L2_CHUNK_SIZE 4000", "", 1),
			"c:1:1: no L2_CHUNK_SIZE; ns3-rdma would use 0 and divide by it; write for example L2_CHUNK_SIZE 4000"},
	} {
		checkError(t, c.text, c.read(c.text), c.want)
	}
}

// checkError verifies that err starts with want, or is nil if want is empty.
func checkError(t *testing.T, text string, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("%.300q: %v", text, err)
	case want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)):
		t.Errorf("%.300q:\n got %v\nwant %s", text, err, want)
	}
}

func TestIgnored(t *testing.T) {
	c, err := peer.ReadHPCCConfig("c",
		strings.NewReader(hpccSmall+"PAUSE_TIME 5\nACK_HIGH_PRIO 1\nUSE_DYNAMIC_PFC_THRESHOLD 1\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"c:14:1: PAUSE_TIME has no effect: a pause lasts until it is resumed",
		"c:15:1: ACK_HIGH_PRIO 1 changes only hosts: switches queue and account ACKs with the data",
	}
	if got := c.Ignored(); !reflect.DeepEqual(got, want) {
		t.Errorf("%q", got)
	}
	r, err := peer.ReadNS3RDMAConfig("c", strings.NewReader(rdmaSmall+"NP_SAMPLING_INTERVAL 0\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Ignored(); len(got) != 1 {
		t.Errorf("%q", got)
	}
	if low, high, p := r.Marking(); low != 41200 || high != 1030000 || p != 1 {
		t.Error(low, high, p)
	}
}

func TestDetectNS3(t *testing.T) {
	for _, c := range []struct {
		text string
		want peer.NS3Layout
		err  string
	}{
		{hpccSmall, peer.LayoutHPCC, ""},
		{rdmaSmall, peer.LayoutNS3RDMA, ""},
		{"ENABLE_QCN 1\n", 0, "c:1:1: unknown configuration, of HPCC's ns-3 or of ns3-rdma"},
		{"KMAX 1\nENABLE_QCN 1\nCC_MODE 1\n", 0,
			"c:3:1: CC_MODE is a key only of HPCC's ns-3, but KMAX on line 1 is one only of ns3-rdma; keep the " +
				"keys of one of them"},
	} {
		got, err := peer.DetectNS3("c", strings.NewReader(c.text))
		checkError(t, c.text, err, c.err)
		if got != c.want {
			t.Errorf("%q: %v, want %v", c.text, got, c.want)
		}
	}
}

func TestNS3Topology(t *testing.T) {
	const good = "4 1 3\n3\n3 0 40Gbps 1us 0\n3 1 100Gb/s 0.001ms 0.5\n2 3 40000000000 0.000001 0.0\n\nFirst line: " +
		"prose\n3 1 prose\n"
	top, err := peer.ReadNS3Topology("t", strings.NewReader(good))
	if err != nil {
		t.Fatal(err)
	}
	want := []peer.NS3Link{
		{A: 3, B: 0, Rate: 40 * units.Gbps, Delay: units.Microsecond, Line: 3},
		{A: 3, B: 1, Rate: 100 * units.Gbps, Delay: units.Microsecond, ErrorRate: 0.5, Line: 4},
		{A: 2, B: 3, Rate: 40 * units.Gbps, Delay: units.Microsecond, Line: 5},
	}
	if !reflect.DeepEqual(top.Links, want) || top.Nodes != 4 || !top.IsSwitch(3) || top.IsSwitch(0) ||
		top.IsSwitch(-1) || top.IsSwitch(9) {
		t.Errorf("%+v", top)
	}
	if got := top.Ports(); !reflect.DeepEqual(got, [][]int{{0}, {1}, {2}, {0, 1, 2}}) {
		t.Error(got)
	}
	if top.At(1) != "t:4:1" || top.Parallel() != nil {
		t.Error(top.At(1), top.Parallel())
	}
	top, err = peer.ReadNS3Topology("t", strings.NewReader("2 0 2\n\n0 1 1Gbps 1ns 0\n1 0 1Gbps 1ns 0"))
	if err != nil || !reflect.DeepEqual(top.Parallel(), []int{1}) {
		t.Error(top, err)
	}
	for _, c := range []struct{ text, want string }{
		{"", `t:1:1: the file is empty; its first line is "nodes switches links"`},
		{"4 1\n", `t:1:3: number of links is missing after "1"; the line is "nodes switches links"`},
		{"4 5 1\n", "t:1:3: number of switches: 5 is above 4"},
		{"0 0 0\n", "t:1:1: no nodes"},
		{"65537 0 0\n", "t:1:1: number of nodes: 65537 is above 65536"},
		{"4 1 3 1\n", `t:1:7: unexpected "1"; the line is "nodes switches links"`},
		{"4 2 0\n3\n", "t:3:1: the file ends after 1 of 2 ids of switches"},
		{"4 2 0\n3 3\n", "t:2:3: switch 3 is named twice"},
		{"4 1 0\n4\n", "t:2:1: id of a switch: 4 is above 3"},
		{"4 1 1\n3\n", "t:3:1: the file ends after 0 of 1 links"},
		{"4 1 1\n3 0 1 1Gbps 1us 0\n",
			`t:2:3: "0" follows the end of a line; the next line is "a b rate delay error_rate"`},
		{"4 1 1\n3\n0 4 1Gbps 1us 0\n", "t:3:3: node b: 4 is above 3"},
		{"4 1 1\n3\n-1 3 1Gbps 1us 0\n", "t:3:1: node a: -1 is negative"},
		{"4 1 1\n3\n2 2 1Gbps 1us 0\n", "t:3:3: a link from node 2 to itself"},
		{"4 1 1\n3\n2 3 1Gbps 1us\n",
			`t:3:11: error rate is missing after "1us"; the line is "a b rate delay error_rate"`},
		{"4 1 1\n3\n2 3 1Gbps 1us 2\n", "t:3:15: error rate: 2 is above 1"},
		{"4 1 1\n3\n2 3 1Gbps -1us 0\n", "t:3:11: delay: -1 is negative"},
		{"4 1 1\n3\n2 3 1Gbps 1m 0\n", `t:3:11: delay: "1m" is not a time; write for example 1us, 1000ns or 0.000001s`},
		{"4 1 1\n3\n2 3 0Gbps 1us 0\n", "t:3:5: rate: 0Gbps is not a possible rate"},
		{"4 1 1\n3\n2 3 0.3bps 1us 0\n", "t:3:5: rate: 0.3bps is not a whole number of bits per second"},
		{"4 1 1\n3\n2 3 99999999999Gbps 1us 0\n", "t:3:5: rate: 99999999999 is out of range"},
		{"4 1 1\n3\n2 3 1Gbps 1us 0 0\n", `t:3:17: unexpected "0"; the line is "a b rate delay error_rate"`},
		{"4 1 1\n3\n2 3 1Gbps 1us 0\n1 3 1Gbps 1us 0\n",
			"t:4:1: the file declares 1 links, but here is one more"},
	} {
		_, err := peer.ReadNS3Topology("t", strings.NewReader(c.text))
		checkError(t, c.text, err, c.want)
	}
}

func TestNS3Flows(t *testing.T) {
	top, err := peer.ReadNS3Topology("t", strings.NewReader("4 1 0\n3\n"))
	if err != nil {
		t.Fatal(err)
	}
	hpcc, err := peer.ReadHPCCFlows("f",
		strings.NewReader("3\n1 0 3 100 20000 2.000000001\n2 0 3 100 1 2.0000000010004999999\n2 0 3 100 1 "+
			"2.00000000100050e0\nprose 1\n"), top)
	if err != nil {
		t.Fatal(err)
	}
	if want := (peer.NS3Flow{Src: 1, Dst: 0, Priority: 3, Port: 100, Bytes: 20000,
		Start: 2*units.Second + units.Nanosecond, Line: 2}); hpcc[0] != want {
		t.Errorf("%+v, want %+v", hpcc[0], want)
	}
	if a, b := hpcc[1].Start, hpcc[2].Start; a != 2*units.Second+units.Nanosecond || b != a+1 {
		t.Errorf("starts %d and %d ps are not to the nearest, halves up", a, b)
	}
	rdma, err := peer.ReadNS3RDMAFlows("f", strings.NewReader("2\n2 1 3 10000000 2.5 9.5\n1 2 3 1 2.0 9.5\n"), top)
	if err != nil {
		t.Fatal(err)
	}
	if want := (peer.NS3Flow{Src: 2, Dst: 1, Priority: 3, Packets: 10000000, Start: 2500 * units.Millisecond,
		Stop: 9500 * units.Millisecond, Line: 2}); rdma[0] != want {
		t.Errorf("%+v, want %+v", rdma[0], want)
	}
	tcp, err := peer.ReadNS3RDMATCPFlows("f", strings.NewReader("1\n2 1 3 0 2.5 9.5\n"), nil)
	if err != nil || !tcp[0].Unlimited {
		t.Error(tcp, err)
	}
	for _, c := range []struct {
		rdma       bool
		text, want string
	}{
		{false, "", "f:1:1: the file is empty; it must start with the number of flows"},
		{false, "x\n", `f:1:1: number of flows: "x" is not a whole number`},
		{false, "0\n", ""},
		{false, "1\n", "f:2:1: the file ends after 0 of 1 flows"},
		{false, "1 0 1 3 100 1 2\n",
			`f:1:3: "0" follows the end of a line; the next line is "src dst pg dport bytes start"`},
		{false, "1\n0 3 3 100 1 2\n", "f:2:3: dst: node 3 is a switch; flows are between hosts"},
		{false, "1\n0 0 3 100 1 2\n", "f:2:3: dst: a flow from host 0 to itself"},
		{false, "1\n4 0 3 100 1 2\n", "f:2:1: src: 4 is above 3"},
		{false, "1\n1 0 8 100 1 2\n", "f:2:5: priority group: 8 is above 7"},
		{false, "1\n1 0 3 100 0 2\n", "f:2:11: size: a flow of 0 bytes never ends"},
		{false, "1\n1 0 3 100 4294967296 2\n", "f:2:11: size: 4294967296 is above 4294967295"},
		{false, "1\n1 0 3 100 1 -2\n", "f:2:13: start: -2 is negative"},
		{false, "1\n1 0 3 100 1 1e9\n", "f:2:13: start: 1e9 is out of range"},
		{false, "1\n1 0 3 100 1\n", `f:2:11: start is missing after "1"; the line is "src dst pg dport bytes start"`},
		{false, "2\n1 0 3 100 1 2\n1 0 3 100 1 1.9\n",
			"f:3:13: start: 1.9s is before the flow above, 2s; HPCC's ns-3 needs flows in order of their starts"},
		{false, "1\n1 0 3 100 1 2\n1 0 3 100 1 2\n", "f:3:1: the file declares 1 flows, but here is one more"},
		{true, "1\n1 0 3 0 2 3\n", "f:2:7: packets: a flow of 0 packets sends nothing"},
		{true, "1\n1 0 3 1 2 2\n", "f:2:11: stop: 2s is not after the start, 2s"},
		{true, "1\n1 0 3 100 1 2 3\n", `f:2:15: unexpected "3"; the line is "src dst pg packets start stop"`},
	} {
		read := peer.ReadHPCCFlows
		if c.rdma {
			read = peer.ReadNS3RDMAFlows
		}
		_, err := read("f", strings.NewReader(c.text), top)
		checkError(t, c.text, err, c.want)
	}
}

func TestNS3ReadErrors(t *testing.T) {
	broken := iotest.ErrReader(errors.New("broken"))
	for i, read := range readers {
		if err := read(broken); err == nil || !strings.Contains(err.Error(), "broken") {
			t.Errorf("reader %d: %v", i, err)
		}
	}
}

// readers lists all readers.
var readers = []func(io.Reader) error{
	func(r io.Reader) error { _, err := peer.ReadHPCCConfig("x", r); return err },
	func(r io.Reader) error { _, err := peer.ReadNS3RDMAConfig("x", r); return err },
	func(r io.Reader) error { _, err := peer.DetectNS3("x", r); return err },
	func(r io.Reader) error { _, err := peer.ReadNS3Topology("x", r); return err },
	func(r io.Reader) error { _, err := peer.ReadHPCCFlows("x", r, nil); return err },
	func(r io.Reader) error { _, err := peer.ReadNS3RDMAFlows("x", r, nil); return err },
	func(r io.Reader) error { _, err := peer.ReadNS3Completions("x", r); return err },
	func(r io.Reader) error { _, err := peer.ReadNS3Pauses("x", r); return err },
}

// TestNS3Cases reads every case of the references and rewrites their results.
func TestNS3Cases(t *testing.T) {
	root := inputs.Path(t, "cases/ns3")
	cases, lines := 0, 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasPrefix(d.Name(), "config") || !strings.HasSuffix(d.Name(), ".txt") {
			return err
		}
		cases++
		n, err := readCase(path)
		lines += n
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if cases < 100 || lines < 1000 {
		t.Errorf("%d cases with %d lines of results; there are more", cases, lines)
	}
}

// readCase reads a case and returns the number of lines of its results.
func readCase(config string) (int, error) {
	dir := filepath.Dir(config)
	text, err := os.ReadFile(config)
	if err != nil {
		return 0, err
	}
	layout, err := peer.DetectNS3(config, bytes.NewReader(text))
	if err != nil {
		return 0, err
	}
	topologyFile, flowFile := "", ""
	flows := peer.ReadHPCCFlows
	if layout == peer.LayoutHPCC {
		c, err := peer.ReadHPCCConfig(config, bytes.NewReader(text))
		if err != nil {
			return 0, err
		}
		topologyFile, flowFile = c.TOPOLOGY_FILE, c.FLOW_FILE
	} else {
		c, err := peer.ReadNS3RDMAConfig(config, bytes.NewReader(text))
		if err != nil {
			return 0, err
		}
		dir = filepath.Dir(dir) // its file names are relative to the directory it was run in
		topologyFile, flowFile, flows = c.TOPOLOGY_FILE, c.FLOW_FILE, peer.ReadNS3RDMAFlows
		f, err := open(filepath.Join(dir, c.TCP_FLOW_FILE))
		if err != nil {
			return 0, err
		}
		if _, err := peer.ReadNS3RDMATCPFlows(c.TCP_FLOW_FILE, f, nil); err != nil {
			return 0, err
		}
	}
	f, err := open(filepath.Join(dir, topologyFile))
	if err != nil {
		return 0, err
	}
	top, err := peer.ReadNS3Topology(topologyFile, f)
	if err != nil {
		return 0, err
	}
	if f, err = open(filepath.Join(dir, flowFile)); err != nil {
		return 0, err
	}
	if _, err := flows(filepath.Join(dir, flowFile), f, top); err != nil {
		return 0, err
	}
	lines := 0
	for name, again := range map[string]func(string, io.Reader, io.Writer) (int, error){"fct.txt": rewriteFCT,
		"pfc.txt": rewritePFC} {
		f, err := open(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return 0, err
		}
		was, err := io.ReadAll(f)
		if err != nil {
			return 0, err
		}
		var out bytes.Buffer
		n, err := again(filepath.Join(dir, name), bytes.NewReader(was), &out)
		if err != nil {
			return 0, err
		}
		if !bytes.Equal(was, out.Bytes()) {
			return 0, fmt.Errorf("%s/%s is not written as it was read", dir, name)
		}
		lines += n
	}
	return lines, nil
}

func rewriteFCT(name string, r io.Reader, w io.Writer) (int, error) {
	c, err := peer.ReadNS3Completions(name, r)
	if err != nil {
		return 0, err
	}
	return len(c), peer.WriteNS3Completions(w, c)
}

func rewritePFC(name string, r io.Reader, w io.Writer) (int, error) {
	p, err := peer.ReadNS3Pauses(name, r)
	if err != nil {
		return 0, err
	}
	return len(p), peer.WriteNS3Pauses(w, p)
}

// open reads a file, or its .gz.
func open(path string) (io.Reader, error) {
	if b, err := os.ReadFile(path); err == nil {
		return bytes.NewReader(b), nil
	}
	b, err := os.ReadFile(path + ".gz")
	if err != nil {
		return nil, err
	}
	return gzip.NewReader(bytes.NewReader(b))
}
