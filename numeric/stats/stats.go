// Package stats measures simulation runs and quantifies how far the figures can be trusted.
//
// Its main types are [Histogram] (latencies, fio's bucket geometry, exact merging), [Series] and [LatencySeries] (time
// bins in bounded memory), [Moments] (mean, deviation, skewness, lag-1 autocorrelation of a stream), [Cut] (warm-up
// found by MSER-5), [Interval] (batch means of one run, Student's t over replicates) and the paired tests of designs on
// common random numbers: [Paired] (Student's t; CompareDesigns tests ratios), [SignedRank] (Wilcoxon), [Holm] and
// [BenjaminiHochberg] for families of tests, [ReplicatesToDetect], and [Looks] for repeated analysis.
//
// Everything counted during a simulation is kept in integers, so that the order in which parts are recorded or merged
// cannot affect the figures. Floating-point computations round every product before adding it, and so give the same
// bits on every machine.
//
// The histogram's geometry is fio's (stat.h of fio 3.33: 29 groups of 64 buckets, in nanoseconds). MSER-5 is from
// White, Cobb and Spratt, "A comparison of five steady-state truncation heuristics for simulation" (WSC 2000). Batch
// means follow Law, "Simulation Modeling and Analysis" (5th ed.), section 9.5.3; the choice of the batch size by lag-1
// autocorrelation is Fishman's (Management Science 24(5), 1978).
//
// It leaves out the choice of comparisons, which package study makes; control variates and rare-event methods; and any
// clock, input or output.
package stats
