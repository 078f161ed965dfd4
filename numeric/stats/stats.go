// Package stats measures what a run does and says how far the figures can be trusted.
//
// Its main types are [Histogram] (latencies, fio's bucket geometry, exact merging), [Series] and [LatencySeries]
// (time bins in bounded memory), [Moments] (mean, deviation, skewness, lag-1 autocorrelation of a stream), [Cut]
// (warm-up found by MSER-5), [Interval] (batch means of one run, Student's t over replicates) and the paired tests of
// designs that saw the same random numbers: [Paired] (Student's t, by CompareDesigns of ratios), [SignedRank]
// (Wilcoxon), [Holm] and [BenjaminiHochberg] for many at once, [ReplicatesToDetect], [Looks] for who looks more than
// once.
//
// Everything that is counted while a simulation runs is kept in integers, so that the order in which parts are
// recorded or merged never shows in the figures. What is computed from them in floating point rounds every product
// before adding it, and so gives the same bits on every machine.
//
// The histogram's geometry is the one of fio (stat.h of fio 3.33: 29 groups of 64 buckets, in nanoseconds). MSER-5 is
// from White, Cobb and Spratt, "A comparison of five steady-state truncation heuristics for simulation" (WSC 2000).
// Batch means follow Law, "Simulation Modeling and Analysis" (5th ed.), section 9.5.3, the choice of the batch size
// by lag-1 autocorrelation is Fishman's (Management Science 24(5), 1978).
//
// What it leaves out: what is compared with what, which package study decides; control variates and rare-event
// methods; any clock, input or output.
package stats
