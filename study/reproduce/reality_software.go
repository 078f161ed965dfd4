package reproduce

import (
	"context"

	"farflash/study/reality"
)

// reality-software: published measurements of NVMe-oF's software, beside the stacks of nvmf.initiator and nvmf.target
// (package reality).
func realitySoftware() Experiment {
	return Experiment{
		ID:    "reality-software",
		Title: "NVMe-oF's software: commands a core, latency at depth 1, digests",
		Paper: "SPDK issues 2159, 2326 and 3012 and report 24.05 (NVMe-oF RDMA); evaluation of i10's kernel (Linux " +
			"5.8); PhotonLibOS; Crypto++ issue 160",
		inputs: "the stacks of nvmf.initiator and nvmf.target; one initiator, one target with drive ram, 600 ns a link",
		run:    runRealitySoftware,
	}
}

func runRealitySoftware(ctx context.Context, o Options) (*Report, error) {
	r := &Report{}
	runs, got := reality.Software(), reality.Metrics{}
	for i, x := range runs {
		m, err := measure(ctx, x.Name, x.Text, o)
		if err != nil {
			return nil, err
		}
		got[x.Name] = m
		r.Scenarios = append(r.Scenarios, Named{x.Name, x.Text})
		if o.Progress != nil {
			o.Progress(i+1, len(runs))
		}
	}
	for _, f := range reality.SoftwareFigures(got) {
		expect := "it sets " + f.Parameter
		if f.Parameter == reality.None {
			expect = "it follows from the others"
		}
		r.Rows = append(r.Rows, row(f.Machines, f.Metric, number(f.Measured), f.Ours, f.Unit, expect,
			near(f.Measured, 0.15)))
	}
	for _, f := range reality.SoftwareOthers(got) {
		r.tell(f.Machines, f.Metric, f.Ours, f.Unit, f.Parameter)
	}
	return r, nil
}
