package peer_test

import (
	"bytes"
	"errors"
	"io"
	"math/big"
	"reflect"
	"strings"
	"testing"

	"farflash/internal/patience"
	"farflash/numeric/units"
	"farflash/scenario/peer"

	"pgregory.net/rapid"
)

func TestNS3Completions(t *testing.T) {
	const text = "0b000101 0b000001 10000 100 20000 2000000000 12382 8592\n0b012c01 0b000101 1 2 3 4 5 6\n"
	got, err := peer.ReadNS3Completions("fct.txt", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	want := peer.NS3Completion{Src: 1, Dst: 0, SrcPort: 10000, DstPort: 100, Bytes: 20000, Start: 2 * units.Second,
		FCT: 12382 * units.Nanosecond, Ideal: 8592 * units.Nanosecond}
	if len(got) != 2 || got[0] != want || got[1].Src != 300 {
		t.Errorf("%+v", got)
	}
	var out bytes.Buffer
	got[1].FCT += 999 // less than a nanosecond: truncated
	if err := peer.WriteNS3Completions(&out, got); err != nil || out.String() != text {
		t.Errorf("%q, %v", out.String(), err)
	}
	for _, c := range []struct{ text, want string }{
		{"0b000102 0b000001 1 2 3 4 5 6\n",
			`f:1:1: sip: "0b000102" is not an address of a host; that of host 1 is 0b000101`},
		{"0b000101 1 1 2 3 4 5 6\n", `f:1:10: dip: "1" is not an address of a host; that of host 1 is 0b000101`},
		{"0b000101 0b000001 65536 2 3 4 5 6\n", "f:1:19: sport: 65536 is above 65535"},
		{"0b000101 0b000001 1 2 3 4 5\n",
			`f:1:27: ideal_ns is missing after "5"; the line is "sip dip sport dport bytes start_ns fct_ns ideal_ns"`},
		{"0b000101 0b000001 1 2 3 4 5 6 7\n",
			`f:1:31: unexpected "7"; the line is "sip dip sport dport bytes start_ns fct_ns ideal_ns"`},
		{"0b000101 0b000001 1 2 3 4 99999999999999999 6\n",
			"f:1:27: fct_ns: 99999999999999999 is above 9223372036854775"},
	} {
		_, err := peer.ReadNS3Completions("f", strings.NewReader(c.text))
		checkError(t, c.text, err, c.want)
	}
	if err := peer.WriteNS3Completions(brokenWriter{}, got); err == nil {
		t.Error("an error in writing is lost")
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("broken") }

func TestNS3Pauses(t *testing.T) {
	const text = "2000001234 3 1 2 1\n2000005678 0 0 1 0\n"
	got, err := peer.ReadNS3Pauses("pfc.txt", strings.NewReader(text))
	want := []peer.NS3Pause{
		{Time: 2000001234 * units.Nanosecond, Node: 3, Switch: true, Port: 2, Pause: true},
		{Time: 2000005678 * units.Nanosecond, Node: 0, Port: 1},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	var out bytes.Buffer
	if err := peer.WriteNS3Pauses(&out, got); err != nil || out.String() != text {
		t.Errorf("%q, %v", out.String(), err)
	}
	for _, c := range []struct{ text, want string }{
		{"1 2 2 1 1\n", "p:1:5: node type: 2 is above 1"},
		{"1 2 1 0 1\n", "p:1:1: port 0 of node 2; ports count from 1"},
		{"1 2 1 1 1 1\n", `p:1:11: unexpected "1"`},
		{"1 2 1 1\n", `p:1:7: type is missing after "1"; the line is "time_ns node node_type port type"`},
		{"-1 2 1 1 1\n", "p:1:1: time: -1 is negative"},
	} {
		_, err := peer.ReadNS3Pauses("p", strings.NewReader(c.text))
		checkError(t, c.text, err, c.want)
	}
}

// TestNS3RoundTrip verifies that written files read back unchanged.
func TestNS3RoundTrip(t *testing.T) {
	ns := rapid.Map(rapid.Int64Range(0, 9223372036854775),
		func(n int64) units.Duration { return units.Duration(n) * units.Nanosecond })
	node := rapid.IntRange(0, 65535)
	rapid.Check(t, func(t *rapid.T) {
		c := []peer.NS3Completion{{
			Src: node.Draw(t, "src"), Dst: node.Draw(t, "dst"), SrcPort: rapid.Uint16().Draw(t, "sport"),
			DstPort: rapid.Uint16().Draw(t, "dport"),
			Bytes:   units.Bytes(rapid.Int64Range(0, 1<<62).Draw(t, "bytes")), Start: ns.Draw(t, "start"),
			FCT: ns.Draw(t, "fct"), Ideal: ns.Draw(t, "ideal"),
		}}
		var b bytes.Buffer
		if err := peer.WriteNS3Completions(&b, c); err != nil {
			t.Fatal(err)
		}
		if got, err := peer.ReadNS3Completions("f", &b); err != nil || !reflect.DeepEqual(got, c) {
			t.Fatalf("%+v became %+v, %v", c, got, err)
		}
		p := []peer.NS3Pause{{Time: ns.Draw(t, "time"), Node: node.Draw(t, "node"),
			Switch: rapid.Bool().Draw(t, "switch"), Port: rapid.IntRange(1, 1<<20).Draw(t, "port"),
			Pause: rapid.Bool().Draw(t, "pause")}}
		if err := peer.WriteNS3Pauses(&b, p); err != nil {
			t.Fatal(err)
		}
		if got, err := peer.ReadNS3Pauses("p", &b); err != nil || !reflect.DeepEqual(got, p) {
			t.Fatalf("%+v became %+v, %v", p, got, err)
		}
	})
}

// TestNS3Surplus verifies that the records the programs would read are returned when a file continues after them, as
// files distributed with HPCC's ns-3 do.
func TestNS3Surplus(t *testing.T) {
	check := func(err error, n int, want peer.NS3SurplusError) {
		t.Helper()
		var surplus *peer.NS3SurplusError
		if !errors.As(err, &surplus) || *surplus != want || n != want.Count {
			t.Errorf("%d read, %v; want %+v", n, err, want)
		}
	}
	f, err := peer.ReadHPCCFlows("f", strings.NewReader("1\n1 0 3 100 1 2\n\n2 0 3 100 1 2\n"), nil)
	check(err, len(f), peer.NS3SurplusError{At: "f:4:1", Noun: "flow", Count: 1})
	top, err := peer.ReadNS3Topology("t", strings.NewReader("3 0 1\n0 1 1Gbps 1ns 0\n0 2 1Gbps 1ns 0\n"))
	check(err, len(top.Links), peer.NS3SurplusError{At: "t:3:1", Noun: "link", Count: 1})
}

// TestNS3Seconds verifies that times are parsed exactly, against rational arithmetic.
func TestNS3Seconds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[0-9]{1,6}(\.[0-9]{0,30})?(e[+-]?[0-9])?`).Draw(t, "seconds")
		exact, ok := new(big.Rat).SetString(text)
		if !ok {
			t.Fatal(text)
		}
		exact.Mul(exact, big.NewRat(int64(units.Second), 1)).Add(exact, big.NewRat(1, 2))
		want := new(big.Int).Div(exact.Num(), exact.Denom())
		flows, err := peer.ReadHPCCFlows("f", strings.NewReader("1\n1 0 3 100 1 "+text+"\n"), nil)
		switch {
		case !want.IsInt64() && err == nil:
			t.Fatalf("%s is out of range", text)
		case want.IsInt64() && (err != nil || int64(flows[0].Start) != want.Int64()):
			t.Fatalf("%s s: %v, %v; want %v ps", text, flows, err, want)
		}
	})
	if got := peer.LayoutHPCC.String() + peer.LayoutNS3RDMA.String() +
		peer.NS3Layout(7).String(); got != "hpccns3-rdmaNS3Layout(7)" {
		t.Error(got)
	}
}

// fuzz runs a reader on arbitrary input: it must not panic.
func fuzz(f *testing.F, read func([]byte), seeds ...string) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(_ *testing.T, b []byte) {
		defer patience.Limit()()
		read(b)
	})
}

func FuzzHPCCConfig(f *testing.F) {
	fuzz(f, func(b []byte) {
		if c, err := peer.ReadHPCCConfig("x", bytes.NewReader(b)); err == nil {
			c.Ignored()
			_, _, _, _ = c.Marking(40 * units.Gbps)
		}
	}, hpccSmall, "KMAX_MAP 3 1 1")
}

func FuzzNS3RDMAConfig(f *testing.F) {
	fuzz(f, func(b []byte) {
		_, _ = peer.DetectNS3("x", bytes.NewReader(b))
		_, _ = peer.ReadNS3RDMAConfig("x", bytes.NewReader(b))
	}, rdmaSmall, hpccSmall)
}

func FuzzNS3Topology(f *testing.F) {
	fuzz(f, func(b []byte) {
		top, err := peer.ReadNS3Topology("x", bytes.NewReader(b))
		if err != nil {
			return
		}
		for node, ports := range top.Ports() {
			for _, l := range ports {
				if top.Links[l].A != node && top.Links[l].B != node || top.Links[l].Rate <= 0 ||
					top.Links[l].Delay < 0 {
					panic("a port of another node")
				}
			}
		}
	}, "4 1 2\n3\n3 0 40Gbps 1us 0\n3 1 100Gb/s 0.001ms 0.5\n", "1 0 0\n")
}

func FuzzNS3Flows(f *testing.F) {
	fuzz(f, func(b []byte) {
		flows, err := peer.ReadHPCCFlows("x", bytes.NewReader(b), nil)
		for i := range flows {
			if err == nil && (flows[i].Start < 0 || flows[i].Bytes <= 0 || i > 0 && flows[i].Start < flows[i-1].Start) {
				panic("a flow that cannot be")
			}
		}
		_, _ = peer.ReadNS3RDMAFlows("x", bytes.NewReader(b), nil)
		_, _ = peer.ReadNS3RDMATCPFlows("x", bytes.NewReader(b), nil)
	}, "1\n1 0 3 100 20000 2.000000000\n", "1\n2 1 3 10000000 2.0 9.5\n", "2\n0 1\n", "1\n1 0 3 100 1 1e-300\n",
		"1\n1 0 3 100 1 00000000000000000000000000000001.5e1")
}

func FuzzNS3Results(f *testing.F) {
	fuzz(f, func(b []byte) {
		if c, err := peer.ReadNS3Completions("x", bytes.NewReader(b)); err == nil {
			_ = peer.WriteNS3Completions(io.Discard, c)
		}
		if p, err := peer.ReadNS3Pauses("x", bytes.NewReader(b)); err == nil {
			_ = peer.WriteNS3Pauses(io.Discard, p)
		}
	}, "0b000101 0b000001 10000 100 20000 2000000000 12382 8592\n", "2000001234 3 1 2 1\n")
}
