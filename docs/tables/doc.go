// Package tables makes the tables of docs/validation that come of runs: presets, or texts of scenarios, with changes
// and seeds, and what is read from their results. Its tests hold the quick ones, or a few rows of the others, and
// with FARFLASH_LONG all of them;
//
//	FARFLASH_LONG=1 go generate ./docs
//
// writes them. A table is a value: its page and name, its columns, and cells, each of which names the runs that it
// needs and writes what was found. A run that two cells need is done once; in the folder that FARFLASH_CACHE names it
// stays for the next time.
//
// What it leaves out: tables of rows that farflash reproduce has, which package reproduce writes, and those of tests
// that measure something by themselves.
package tables
