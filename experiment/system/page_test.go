package system_test

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"farflash/experiment/trial/trialtest"
	"farflash/internal/golden"
)

var update = flag.Bool("update", false, "write the tables of docs/validation/nvmeof.md")

const nvmeofPage = "../../docs/validation/nvmeof.md"

// tcp switches a scenario's network and protocol to TCP.
var tcp = []string{"protocol=nvme-tcp", "fabric.transport=tcp", "fabric.congestion_control=tcp"}

// TestAlone compares the latency of single commands on both transports with docs/validation/nvmeof.md. With
// the same software, the transports differ by microseconds.
func TestAlone(t *testing.T) {
	const text = `
targets: [{count: 1, ssds: 1, ssd: tlc-enterprise}]
fabric: {host_link: 25Gbps}
workload: [{synthetic: {%s: {size: %s, interarrival: 1ms}, requests: 200}}]
`
	lines := golden.Head("", ">nvmeof", ">nvme-tcp")
	for _, c := range []struct{ op, size string }{{"read", "4KiB"}, {"write", "16KiB"}, {"write", "128KiB"}} {
		text := fmt.Sprintf(text, c.op+"s", c.size)
		var took [2]float64
		for i, set := range [][]string{nil, tcp} {
			took[i] = trialtest.Metric(t, trialtest.Run(t, text, 1, set...), c.op+".latency.mean")
		}
		same := append([]string{"nvmf.initiator=spdk-rdma", "nvmf.target=spdk-rdma"}, tcp...)
		if d := trialtest.Metric(t, trialtest.Run(t, text, 1, same...), c.op+".latency.mean") - took[0]; d < -2 ||
			d > 2 {
			t.Errorf("a %s of %s takes %.1f us longer on TCP with the same software", c.op, c.size, d)
		}
		lines = append(lines,
			golden.Row(c.size+" "+c.op, fmt.Sprintf("%.1f us", took[0]), fmt.Sprintf("%.1f us", took[1])))
	}
	golden.Table(t, nvmeofPage, "nvmeof-alone", "seed 1", lines, *update)
}

// TestIncastOfReads verifies the behaviour of an incast of reads over TCP: a window that is lost entirely waits for the
// minimum timeout, 200 ms.
func TestIncastOfReads(t *testing.T) {
	if testing.Short() {
		t.Skip("20,000 reads")
	}
	text, err := os.ReadFile("../../examples/short-queues.yaml")
	if err != nil {
		t.Fatal(err)
	}
	lines := golden.Head("", ">timeouts", ">packets sent again", ">median", ">longest")
	for _, c := range []struct {
		name string
		set  []string
	}{{"TCP, a buffer of 512 KiB", append([]string{"fabric.buffer=512KiB"}, tcp...)},
		{"TCP, a buffer of 4 MiB", append([]string{"fabric.buffer=4MiB"}, tcp...)},
		{"RDMA with PFC, a buffer of 4 MiB", []string{"fabric.buffer=4MiB"}}} {
		o := trialtest.Run(t, string(text), 1, append(c.set, "nvmf.queue_depth=4")...)
		x := func(name string) float64 { return trialtest.Metric(t, o, name) }
		late := x("read.latency.max") >= 200_000
		if late != (x("fabric.timeouts") > 0) {
			t.Errorf("%s: %v timeouts, and the longest read took %v us", c.name, x("fabric.timeouts"),
				x("read.latency.max"))
		}
		lines = append(lines,
			golden.Row(c.name, fmt.Sprint(x("fabric.timeouts")), fmt.Sprint(x("fabric.retransmits")),
				fmt.Sprintf("%.2f ms", x("read.latency.p50")/1000), fmt.Sprintf("%.1f ms", x("read.latency.max")/1000)))
	}
	golden.Table(t, nvmeofPage, "nvmeof-incast", "seed 1", lines, *update)
}
