// Package tables computes the tables of docs/validation whose cells come from runs: presets or scenario texts, with
// changes and seeds, and figures read from their results. Its tests check the quick tables and a few rows of the
// others, and with FARFLASH_LONG all of them. To write the tables, run
//
//	FARFLASH_LONG=1 go generate ./docs
//
// A table is a value: its page or, without one, the CSV file of its name in docs/validation/data, its columns, and
// cells. Each cell names the runs that it needs and formats their results. A run that several cells need is done once;
// with FARFLASH_CACHE set to a folder, its result is cached there.
//
// It leaves out the tables of farflash reproduce, which package reproduce writes, and those of tests that measure
// something themselves.
package tables
