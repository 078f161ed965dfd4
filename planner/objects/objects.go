// Package objects finds the cheapest object cluster that meets a need: the number of nodes, the drive and NIC, the
// protocol and the group size.
//
// A Need states the requirements: chunks per second, the 99th percentile of their times, the nodes that may be down;
// and the parts to choose from, with prices. A Design is one choice. Search covers all of them: need.go prices designs
// and builds their configurations; least.go rules out, by the bounds of package cluster, numbers of nodes that are too
// small; judge.go compares runs with the need; search.go decides which design is simulated next. An Evaluator runs the
// simulations, so the search is a pure function of its answers. A Plan is the result, with all designs that were
// simulated.
//
// A File is a need as read from YAML; a Sizer is the Evaluator that simulates designs as trials of package study and
// stores each run in a study's directory; a Document is plan.json. An interrupted search resumes from the stored runs,
// since the same need requests the same runs.
//
// It leaves out presentation (package report), and machines of different kinds in one cluster.
package objects
