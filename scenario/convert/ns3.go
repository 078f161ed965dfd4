package convert

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"farflash/model/fabric"
	"farflash/numeric/units"
	"farflash/scenario"
	"farflash/scenario/peer"
	"farflash/scenario/shape"
)

// FromNS3 converts a configuration file of HPCC's ns-3 or of ns3-rdma to a scenario; the file's keys identify the
// program. compat is the peer whose deviations are reproduced: "" is the file's own, none is a network without
// deviations and with the same shape, rates, flows and thresholds. Files are looked for in the configuration's
// directory, in its parent and in the working directory. Every key has a counterpart or a note, or is rejected by name.
func FromNS3(config, compat string) (*Conversion, error) {
	layout, err := peer.ReadFile(config, peer.DetectNS3)
	if err != nil {
		return nil, err
	}
	own := map[peer.NS3Layout]scenario.FabricCompat{peer.LayoutHPCC: scenario.FabricCompatHPCC,
		peer.LayoutNS3RDMA: scenario.FabricCompatNS3RDMA}[layout]
	chosen := own
	if compat != "" {
		if err := chosen.UnmarshalText([]byte(compat)); err != nil {
			return nil, err
		}
		if chosen != own && chosen != scenario.FabricCompatNone {
			return nil, fmt.Errorf(
				"%s: a configuration of %v does not match compat: %s; use %s or none", config,
				layout, compat, own)
		}
	}
	c := &ns3Conversion{Conversion: &Conversion{Scenario: &scenario.Scenario{}, Scenarios: 1}, file: config,
		compat: chosen}
	folder := config
	if abs, err := filepath.Abs(config); err == nil {
		folder = abs
	}
	c.Scenario.Name = "ns3"
	if parent := filepath.Base(filepath.Dir(folder)); parent != "/" && parent != "." {
		c.Scenario.Name = parent
	}
	c.note("converted from %s of %v", filepath.Base(config), layout)
	x := scenario.DefaultFabric()
	x.Compat, x.Config = chosen, chosen.Config()
	c.x = &x
	c.Scenario.Fabric = &x
	if layout == peer.LayoutHPCC {
		err = c.hpcc()
	} else {
		err = c.rdma()
	}
	if err != nil {
		return nil, err
	}
	// The result must be a valid scenario: it is parsed back.
	if _, err := scenario.Parse(shape.Source{File: c.Scenario.Name + ".yaml", Text: []byte(c.Scenario.Resolved())},
		nil); err != nil {
		return nil, fmt.Errorf("%s describes an invalid network:\n%w", config, err)
	}
	return c.Conversion, nil
}

// ns3Conversion is a conversion in progress.
type ns3Conversion struct {
	*Conversion
	file     string
	compat   scenario.FabricCompat
	x        *scenario.Fabric
	topology *peer.NS3Topology
	topoFile string
}

// exact reports whether none of the peer's deviations is reproduced.
func (c *ns3Conversion) exact() bool { return c.compat == scenario.FabricCompatNone }

// refuseKey is the error for a key whose value is not modelled.
func refuseKey(at, key string, value any, why string) error {
	return fmt.Errorf("%s: %s %v %s", at, key, value, why)
}

// find resolves the name of a file in the configuration.
func (c *ns3Conversion) find(at, key, name string) (string, error) {
	path := filepath.FromSlash(name)
	if filepath.IsAbs(path) {
		if exists(path) {
			return path, nil
		}
		return "", refuseKey(at, key, name, "no such file")
	}
	dir := filepath.Dir(c.file)
	for _, p := range []string{filepath.Join(dir, path), filepath.Join(dir, "..", path), path} {
		if exists(p) {
			return filepath.Abs(p)
		}
	}
	return "", refuseKey(at, key, name,
		"no such file next to the configuration, in the folder above it, or in the working directory")
}

// surplus converts the error about records that the peer would not read to a note.
func (c *ns3Conversion) surplus(err error) error {
	var s *peer.NS3SurplusError
	if errors.As(err, &s) {
		c.note("%s: lines after the %d %ss that the file declares are ignored, as by the reference",
			s.At, s.Count, s.Noun)
		return nil
	}
	return err
}

// shape reads the topology and sets its file name.
func (c *ns3Conversion) shape(at, name, lossAt string, loss float64) error {
	path, err := c.find(at, "TOPOLOGY_FILE", name)
	if err != nil {
		return err
	}
	if c.topology, err = peer.ReadFile(path, peer.ReadNS3Topology); c.surplus(err) != nil {
		return err
	}
	c.topoFile = path
	c.x.Topology.File = path
	if loss >= 1 {
		return refuseKey(lossAt, "ERROR_RATE_PER_LINK", loss,
			"loses every packet on links whose own error rate is 0; use less than 1")
	}
	c.x.Loss = units.Fraction(loss)
	if p := c.topology.Parallel(); len(p) > 0 {
		if !c.exact() {
			return fmt.Errorf("%s: a second link between the same two nodes: the reference uses the last of them "+
				"only; leave the others out, or convert with --compat none, which uses all", c.topology.At(p[0]))
		}
		c.note("%d links are parallel to others; all are used, where the reference uses the last of parallel "+
			"links only", len(p))
	}
	for i, l := range c.topology.Links {
		if !c.exact() && l.Delay%units.Nanosecond != 0 {
			return fmt.Errorf("%s: the delay, %v, is not a whole number of nanoseconds, which the reference truncates it "+
				"to; round it, or convert with --compat none", c.topology.At(i), l.Delay)
		}
	}
	host, up := units.BitRate(0), units.BitRate(0)
	for _, l := range c.topology.Links {
		if c.topology.IsSwitch(l.A) && c.topology.IsSwitch(l.B) {
			up = max(up, l.Rate)
		} else {
			host = max(host, l.Rate)
		}
	}
	// The file's links have rates of their own; these are informative.
	c.x.HostLink, c.x.UpLink = host, up
	if up == 0 {
		c.x.UpLink = host
	}
	if len(c.topology.Links) > 0 {
		c.x.Delay = c.topology.Links[0].Delay
	}
	return nil
}

// flowList reads and validates a flow file.
func (c *ns3Conversion) flowList(path string,
	read func(string, io.Reader, *peer.NS3Topology) ([]peer.NS3Flow, error)) ([]peer.NS3Flow, error) {
	list, err := peer.ReadFile(path,
		func(name string, r io.Reader) ([]peer.NS3Flow, error) { return read(name, r, c.topology) })
	if c.surplus(err) != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s:1:1: no flows, so there is nothing to simulate", path)
	}
	for _, f := range list {
		if f.Priority == 0 {
			return nil, fmt.Errorf(
				"%s:%d: priority group 0 is the class of control traffic, which is never paused and uses no buffer; "+
					"use 1 to 7, such as 3", path, f.Line)
		}
	}
	return list, nil
}

// begin returns the second that times count from: that of the first flow's start, but at most most.
func begin(list []peer.NS3Flow, most units.Duration) units.Duration {
	from := most
	for _, f := range list {
		from = min(from, f.Start-f.Start%units.Second)
	}
	return from
}

// until converts the end of the simulation.
func (c *ns3Conversion) until(at string, stop, from units.Duration) error {
	if stop <= from {
		return refuseKey(at, "SIMULATOR_STOP_TIME", stop.Seconds(),
			fmt.Sprintf("must be after %v, when the flows start", from))
	}
	c.Scenario.Measure.Until.Time = stop - from
	return nil
}

// own sets the values of a network without compat, whichever program it is compared with. Sizes remain the reference's,
// so that results can be compared.
func (c *ns3Conversion) own(header, answer, frame units.Bytes) {
	c.x.Header, c.x.Acks.Size, c.x.CNP.Size, c.x.PFC.Frame = header, answer, answer, frame
	c.x.QueuePairs.Life = fabric.PerMessage
	c.note("compat none: payload, header (%v), ACK (%v) and pause frame (%v) have the reference's sizes and "+
		"each flow has its own queue pair, so that results can be compared; "+
		"headroom is computed, ACKs and CNPs travel in class 0, lost packets time out, and times are exact", header,
		answer, frame)
}

// traces adds notes about files that the reference writes.
func (c *ns3Conversion) traces(has func(string) bool, keys ...string) {
	var there []string
	for _, k := range keys {
		if has(k) {
			there = append(there, k)
		}
	}
	if len(there) > 0 {
		c.note("%s not carried over: results go to the run directory; with --set measure.flows=true "+
			"--set measure.pauses=true, farflash export --format=ns3 writes fct.txt and pfc.txt from it",
			strings.Join(there, ", "))
	}
}
