package nvmf

import "farflash/numeric/units"

// Stack is the software of a machine that somebody has measured.
type Stack uint8

const (
	// SPDKRDMA polls, in user space, over RDMA.
	SPDKRDMA Stack = iota
	// SPDKTCP polls, in user space, over the kernel's TCP.
	SPDKTCP
	// LinuxRDMA is the kernel's, over RDMA, with interrupts.
	LinuxRDMA
	// LinuxTCP is the kernel's, over the kernel's TCP.
	LinuxTCP
	// I10 is the kernel's over TCP, with commands of a queue pair sent together (Hwang et al., NSDI 2020).
	I10
	// DPUTCP is the kernel's with TCP in a network card.
	DPUTCP
)

var stackNames = units.Names[Stack]{"spdk-rdma", "spdk-tcp", "linux-rdma", "linux-tcp", "i10", "dpu-tcp"}

// Stacks returns the software that initiators and targets have by default.
func (p Protocol) Stacks() (initiators, targets Stack) {
	if p == NVMeTCP {
		return LinuxTCP, SPDKTCP
	}
	return SPDKRDMA, SPDKRDMA
}

func (k Stack) String() string { return stackNames.Name(k) }

func (k Stack) MarshalText() ([]byte, error) { return stackNames.Marshal(k) }

func (k *Stack) UnmarshalText(text []byte) error { return stackNames.Unmarshal(text, k) }

// The figures below were measured (docs/validation/reality.md has each beside the model's), except where a comment says
// how they were chosen. Core times are the inverse of a core's commands per second with 4 KiB reads. Latencies are what
// remains of a mean at depth 1 after core times and a network of 100 Gbit/s whose links take 600 ns, network cards
// included, over the two messages of a command.

const ns, us = units.Nanosecond, units.Microsecond

// on returns software that costs nothing but command, on which the stacks build.
func on(k Stack, cores int, command, latency units.Duration) Software {
	return Software{Stack: k, Command: command, Latency: latency, Cores: cores, Scaling: 1,
		Interrupt: Interrupt{Events: 1}}
}

// socket adds the kernel's TCP. A core receives 42 Gbit/s from one sender with jumbo frames, half of that time for
// copying (Cai et al., SIGCOMM 2021), and sends about twice as much; CRC32C takes 0.6 cycles a byte at 2.3 GHz
// (Crypto++, issue 160).
func (s *Software) socket() {
	s.Receive, s.Send, s.Digest = 5250*units.MBPerSecond, 10*units.GBPerSecond, 3500*units.MBPerSecond
}

// Initiator returns the initiators' software, on four cores.
func (k Stack) Initiator() Software {
	const cores = 4
	var x Software
	switch k {
	case SPDKTCP: // 27 us at depth 1 with SPDK at both ends (SPDK, issue 2326); its core time is the target's
		x = on(k, cores, 2700*ns, 8700*ns)
		x.socket()
	case LinuxRDMA:
		// 279k/s of a core through libaio as fio uses it (PhotonLibOS); 10.4 us at depth 1 to SPDK's target (issue
		// 3012), of which SPDK's initiator saves up to 4.94 us (report 24.05).
		x = on(k, cores, 3600*ns, 2700*ns)
	case LinuxTCP, I10:
		// 137k/s of a core, 1.5 M/s of 24, 31 us and a 99th percentile of 100 us at low load (evaluation of i10's
		// kernel, Linux 5.8, 3.4 GHz); 33 us to SPDK's target (issue 2326).
		x = on(k, cores, 6500*ns, 10600*ns)
		x.LatencyP99, x.Scaling = 80*us, 0.73
		x.socket()
		if k == I10 {
			x.Command = 3000 * ns // the rest is done once for each batch
		}
	case DPUTCP: // libaio's path to a local drive, 346k/s of a core (PhotonLibOS); the card is taken for SPDK's target
		x = on(k, cores, 2900*ns, 8700*ns)
	default:
		// 5.46 M/s on 4 cores (SPDK NVMe-oF RDMA performance report 24.05); 4.64 us at depth 1 (issue 3012).
		x = on(SPDKRDMA, cores, 730*ns, 0)
	}
	return x
}

// Batch returns how initiators send commands.
func (k Stack) Batch() Batch {
	if k == I10 { // 16 commands and 50 us (the paper, section 3.3)
		return Batch{Commands: 16, Delay: 50 * us, Send: 3500 * ns}
	}
	return Batch{Commands: 1}
}

// Target returns the targets' software, on eight cores.
func (k Stack) Target() Software {
	const cores = 8
	var x Software
	switch k {
	case SPDKTCP: // 1.28 M/s on 4 cores (SPDK, issue 2159); 27 us at depth 1 with SPDK at both ends (issue 2326)
		x = on(k, cores, 2700*ns, 8700*ns)
		x.socket()
	case LinuxRDMA:
		// Up to 5.09 times SPDK's core time, 3.7 us, and up to 2.26 us slower than it, 3 us (report 24.05): between the
		// two.
		x = on(k, cores, 3200*ns, 0)
	case LinuxTCP, I10: // 31 us at depth 1 from Linux (evaluation of i10's kernel); its core time is the initiator's
		x = on(k, cores, 6500*ns, 3500*ns)
		x.Scaling = 0.73
		x.socket()
	case DPUTCP: // the card's path to a drive is taken for SPDK's over RDMA, its latency for SPDK's over TCP
		x = on(k, cores, 730*ns, 8700*ns)
	default:
		// 10.94 M/s on 8 cores (SPDK NVMe-oF RDMA performance report 24.05); 4.64 us at depth 1 (issue 3012).
		x = on(SPDKRDMA, cores, 730*ns, 0)
	}
	return x
}
