package objects

import (
	"fmt"

	"farflash/model/cluster"
	"farflash/numeric/units"
	"farflash/result"
	"farflash/sim"
)

// nodeSums is the nodes' activity up to the end of a slice, and the frames waiting for disks at that time.
type nodeSums struct {
	gateways, targets cluster.NodeBytes
	nodes             []cluster.NodeBytes // individually, if they are few enough
	waiting, most     int                 // frames

	ofGateways, ofTargets sim.Time // processor time
}

// namedNodes is the largest number of nodes with rows of their own in cluster.gateway.bytes and cluster.target.bytes.
const namedNodes = 2000

// look samples the state at the end of a slice.
func (n *nodeSums) look(c *cluster.Cluster, at sim.Time) {
	n.gateways, n.targets = c.SumBytes()
	n.waiting, n.most = c.DiskFrames()
	n.ofGateways, n.ofTargets = c.ProcessorTime(at)
	if gateways, targets := c.Nodes(); gateways+targets <= namedNodes {
		n.nodes = c.AppendBytes(nil)
	}
}

// fillNodes fills in the statistics of messages, links and disk queues over the measured slices.
func fillNodes(r *result.Result, c *cluster.Cluster, slices []*slice, from, last *slice, span float64) {
	k, f := &last.counters, &from.counters
	for _, x := range []struct {
		name     string
		now, was uint64
	}{
		{"cluster.replica.count", k.Replicas, f.Replicas}, {"cluster.message.count", k.Messages, f.Messages},
		{"cluster.frame.count", k.Frames, f.Frames},
		{"cluster.ding.count", k.Dings, f.Dings}, {"cluster.choosy.retries", k.Impatient, f.Impatient},
		{"cluster.reject.count", k.LateRejected, f.LateRejected},
	} {
		r.Set(x.name, float64(x.now-x.was))
	}
	gateways, targets := c.Nodes()
	data, control := last.targets.Data-from.targets.Data, last.targets.Control-from.targets.Control
	r.Set("cluster.tx.bytes", float64(last.gateways.Sent+last.targets.Sent-from.gateways.Sent-from.targets.Sent))
	r.Set("cluster.rx.data", float64(data+last.gateways.Data-from.gateways.Data))
	r.Set("cluster.rx.control", float64(control+last.gateways.Control-from.gateways.Control))
	sum, most := 0, 0
	for _, x := range slices {
		sum += x.waiting
		most = max(most, x.most)
	}
	r.Set("cluster.disk.queue.mean", float64(sum)/float64(len(slices)*targets))
	r.Set("cluster.disk.queue.max", float64(most))
	if span > 0 {
		busy := func(n units.Bytes) float64 { return c.OnLink(n).Seconds() / span / float64(targets) }
		r.Set("cluster.rx.busy.data", busy(data))
		r.Set("cluster.rx.busy.control", busy(control))
		if c.Config().Processor != (cluster.Processor{}) {
			r.Set("cluster.processor.gateway", (last.ofGateways-from.ofGateways).Seconds()/span/float64(gateways))
			r.Set("cluster.processor.target", (last.ofTargets-from.ofTargets).Seconds()/span/float64(targets))
		}
	}
	if len(last.nodes) > 0 {
		table(r, "cluster.gateway.bytes", last.nodes[:gateways], from.nodes)
		table(r, "cluster.target.bytes", last.nodes[gateways:], from.nodes[gateways:])
	}
}

// table fills in the bytes sent and received by each node.
func table(r *result.Result, name string, last, from []cluster.NodeBytes) {
	rows, v := make([]string, len(last)), make([][]float64, len(last))
	for i := range last {
		rows[i] = fmt.Sprint(i)
		v[i] = []float64{float64(last[i].Sent - from[i].Sent), float64(last[i].Data - from[i].Data),
			float64(last[i].Control - from[i].Control)}
	}
	r.SetMatrix(name, rows, []string{"sent", "data", "control"}, v)
}
