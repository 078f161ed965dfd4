package reproduce

// FlashNet's figures are measurements of its real stack on real machines. Ours are measured here and now, on whatever
// machine that is, so no two runs agree; except for write amplification, which is counted.

const flashnetPaper = "Trivedi et al., FlashNet: Flash/Network Stack Co-Design, ACM TOS 14(4), 2018, "

// flashnetNote is part of every report of such figures.
const flashnetNote = "FlashNet ran in the Linux kernel of a machine with two 8-core processors and three NVMe " +
	"drives, with 16 client machines over 40 Gbit/s. Here clients and servers are two processes on one machine, " +
	"each with half of its processors, over loopback. On a small virtual machine this can show ratios of two " +
	"systems measured in turn on the same file, growth with the number of clients, the cost of registration, and " +
	"the kinds of work that use the processor. It cannot show server rates (clients need processors too), flash " +
	"latencies (a host's cache is not flash), 40 Gbit/s, 256 machines, a hardware NIC, or where the kernel spends " +
	"its time. These verdicts depend on the machine and its load, and none is recorded. Files are created in the " +
	"directory for temporary files (TMPDIR)"

// flashInputs are the inputs of flashnet-waf: pool, spare space, streams.
type flashInputs struct {
	segments, pages  int
	spare, hot, warm float64
	single           bool // one stream
}

// flashnet is an experiment that measures the real stack.
func flashnet(id, title, where string) Experiment {
	return Experiment{ID: "flashnet-" + id, Title: title, Paper: flashnetPaper + where, Measured: true,
		run: runFlashnet[id]}
}

func flashnetFig1() Experiment {
	return flashnet("fig1", "A drive's 4 KiB reads, local and over a network", "figure 1")
}

func flashnetFig8() Experiment {
	return flashnet("fig8", "4 KiB random reads per second against clients", "figure 8")
}

func flashnetTable2() Experiment {
	return flashnet("table2", "Where the processor's time goes", "table 2")
}

func flashnetTable3() Experiment {
	return flashnet("table3", "4 KiB latencies with and without a hardware NIC", "table 3")
}

func flashnetLatency() Experiment {
	return flashnet("latency", "Latency of a lone 4 KiB read and write", "section 7.1.2")
}

func flashnetBandwidth() Experiment {
	return flashnet("bandwidth", "Bandwidth of 1 MiB reads and writes", "section 7.1.2")
}

func flashnetFig9() Experiment {
	return flashnet("fig9", "Cost of registration", "figure 9")
}

func flashnetWAF() Experiment {
	return Experiment{ID: "flashnet-waf", Title: "Write amplification and lifetime under skew",
		Paper:  flashnetPaper + "section 7.1.4",
		inputs: "the flash controller as it is shipped, a frozen greedy baseline, a Zipf load; 7 % of spare space",
		run:    runFlashnet["waf"]}
}
