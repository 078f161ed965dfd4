// Package objects finds the cheapest object cluster that meets a need: how many nodes, with which drive and NIC,
// which protocol and which size of groups.
//
// A Need is what must hold: chunks a second, the 99th percentile of their times, what may be down; and what there is
// to choose from, with prices. A Design is one choice. Search looks among all of them: need.go prices designs and
// makes their configurations; least.go rules out, by the bounds of package cluster, what cannot do with fewer nodes;
// judge.go holds runs to the need; search.go says which design is simulated next. Who simulates is an Evaluator, so
// that the search is a function of its answers and nothing else. A Plan is what was found, with all designs that were
// simulated.
//
// A File is a need as it is read from YAML; a Sizer is the Evaluator that simulates designs as trials of package
// study and keeps each run in a study's folder; a Document is plan.json. A search that was interrupted goes on from
// the runs that are there, since the same need asks for the same runs.
//
// What it leaves out: how things look (report), and machines of different kinds
// in one cluster.
package objects
