// Package ratecontrol divides drives between reads and writes, so that a target reads no faster than the network
// accepts the data, and uses the remaining capacity for writes.
//
// Its main types are Queues, the separate submission queues of one drive, from which commands are fetched by weighted
// round robin, and Controller, which sets the weights according to the network's demand. All are plain state machines
// that receive the time from their caller, so that a simulated target and a real one use the same code.
//
// It follows section III of SRC (Jia et al., "SRC: Mitigate I/O Throughput Degradation in Network Congestion Control of
// Disaggregated Storage Systems", 2023); docs/adr/0017 lists where its text leaves a choice and what was chosen.
//
// It leaves out the training of the predictor of a drive's throughput, and the network and the drives themselves.
package ratecontrol
