package reproduce

// FlashNet's figures are measurements of its real stack on real machines. Ours are measured here and now, on whatever
// machine that is, so no two runs agree; except for write amplification, which is counted.

const flashnetPaper = "Trivedi et al., FlashNet: Flash/Network Stack Co-Design, ACM TOS 14(4), 2018, "

// flashnetNote is part of every report of such figures.
const flashnetNote = "FlashNet ran in the Linux kernel of a machine with two processors of 8 cores and three NVMe " +
	"drives, and 16 machines asked it over 40 Gbit/s. Here clients and servers are two processes on one machine, " +
	"each with one half of its processors, over loopback. " +
	"On a small virtual machine that can show ratios of two systems that took turns on the same file, what grows " +
	"with the number of clients, what registration costs, and which kind of work takes the processor. It cannot show " +
	"rates of a server (clients need the processors as well), latencies of flash (a host's cache is no flash), 40 " +
	"Gbit/s, 256 machines, a hardware NIC, or where the kernel spends its time. " +
	"Nothing is held about these verdicts: they are of the machine and the moment. Files are made in the folder for " +
	"temporary files (TMPDIR)"

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
	return flashnet("fig1", "What is left of a drive's 4 KiB reads across a network", "figure 1")
}

func flashnetFig8() Experiment {
	return flashnet("fig8", "4 KiB random reads a second against clients", "figure 8")
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
	return flashnet("fig9", "What registration costs", "figure 9")
}

func flashnetWAF() Experiment {
	return Experiment{ID: "flashnet-waf", Title: "Write amplification and lifetime under skew",
		Paper:  flashnetPaper + "section 7.1.4",
		inputs: "the flash controller as it is shipped, a frozen greedy baseline, a Zipf load; 7 % of spare space",
		run:    runFlashnet["waf"]}
}
