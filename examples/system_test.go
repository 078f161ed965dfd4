package examples

import (
	"fmt"

	"farflash/block"
	"farflash/model/cosim"
	"farflash/model/fabric"
	"farflash/model/fabric/topo"
	"farflash/model/nvmf"
	"farflash/model/ssd"
	"farflash/numeric/units"
	"farflash/sim"
)

// Drives behind a network: an initiator and two targets with one drive each around a switch, connected by NVMe-oF,
// and a host that cannot distinguish them from a local drive.
func Example_drivesBehindANetwork() {
	eng := sim.New()
	host := cosim.NewHost(eng)
	if err := remote(eng, host); err != nil {
		fmt.Println(err)
		return
	}
	eng.Run(sim.Forever)
	reads := host.Measured(block.Read)
	fmt.Println(reads.Latency.Count(), "reads")
	fmt.Println("none takes less than the flash and four links do:",
		reads.Latency.Min() > ssd.DefaultConfig().Timing.Read[0]+4*units.Microsecond)
	// Output:
	// 2000 reads
	// none takes less than the flash and four links do: true
}

// remote builds the system on an engine and starts the host.
func remote(eng *sim.Engine, host *cosim.Host) error {
	system, err := nvmf.New(nvmf.DefaultConfig(), nvmf.NVMeoF, true, eng)
	if err != nil {
		return err
	}
	graph, err := topo.Build(topo.Config{Star: &topo.Star{Hosts: 3}}, 100*units.Gbps, 100*units.Gbps, units.Microsecond)
	if err != nil {
		return err
	}
	network, err := fabric.New(fabric.DefaultConfig(), graph, eng, system, 1, "fabric")
	if err != nil {
		return err
	}
	var hosts []int32
	for n := range int32(len(graph.Nodes)) {
		if graph.Nodes[n].Kind == topo.Host {
			hosts = append(hosts, n)
		}
	}
	system.AddInitiator(hosts[0])
	for i, at := range hosts[1:] {
		cfg := ssd.DefaultConfig()
		cfg.Mapping.Ideal = true
		drive, err := ssd.New(cfg, eng, system, 1, fmt.Sprintf("ssd[%d]", i))
		if err != nil {
			return err
		}
		if _, err := system.AddDrive(system.AddTarget(at), drive); err != nil {
			return err
		}
	}
	// Volumes are striped over the drives in units of 64 KiB; a command is at most 1 MiB.
	array, err := cosim.NewArray(eng, system,
		cosim.Route{Drive: cosim.ByStripe, Unit: 64 * units.KiB, MaxTransfer: units.MiB}, host.Complete)
	if err != nil {
		return err
	}
	if err := network.Use(nvmf.DefaultConfig().Class); err != nil {
		return err
	}
	system.Connect(network, array)
	flow := cosim.Flow{Name: "strided",
		Source: &Strided{Requests: 2000, Stride: 1 << 20, Gap: 20 * units.Microsecond},
		Queue:  block.QueueConfig{Depth: 64, Class: block.Medium, Weight: 1}}
	if err := host.Attach(array, []cosim.Flow{flow}); err != nil {
		return err
	}
	return host.Start()
}
