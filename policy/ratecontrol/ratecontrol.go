// Package ratecontrol divides drives between reads and writes, so that a target reads no faster than the network
// takes what it reads, and writes with what that leaves.
//
// Its main types are Queues, the separate submission queues of one drive, from which commands are fetched by weighted
// round robin, and Controller, which decides the weights from what the network demands. All are plain state machines
// that are given the time and never ask for it, so that a simulated target and a real one use the same code.
//
// It follows section III of SRC (Jia et al., "SRC: Mitigate I/O Throughput Degradation in Network Congestion Control
// of Disaggregated Storage Systems", 2023); docs/adr/0017 says where its text leaves a choice and what was chosen.
//
// What it leaves out: training what predicts a drive's throughput, and the network and the drives themselves.
package ratecontrol
