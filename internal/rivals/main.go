// Command rivals compares protocol pull with the best form of each rival protocol, over a grid of clusters, and writes
// the results: docs/validation/data/pull-grid.csv has a row for each cell, pull-grid.md counts them, and pull-grid.svg
// plots the counts.
//
//	go run ./internal/rivals            # run the cells that have no row yet, in an order drawn once
//	go run ./internal/rivals -for 20m   # start no cell after that time
//	go run ./internal/rivals -forget    # after a change to pull: drop its figures, and run no cell
//	go run ./internal/rivals -write     # write the page and the picture from the existing rows
//
// After -forget the next run measures pull again, and not its rivals.
//
// For closed loops, open loops and bursts of each setting of the other dimensions, every rival in every form of
// cell.rivals, and pull in every form of cell.pulls, runs for a short time with a seed of its own, with four chunks
// outstanding or at 90 % load; the best form of each rival and the best two of pull then run longer, with the same
// seed. Then, in each cell, the three best rivals, the best form of pull, and pull with its defaults run with another
// seed, and the best of the three rivals and the better of the two forms of pull are compared. A row is the same on any
// machine.
//
// It leaves out how figures vary between seeds: cells are many, and each is run with one seed.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"sync"
	"time"

	"farflash/experiment/trial"
	"farflash/internal/golden"
)

func main() {
	dir := flag.String("o", "docs/validation", "the `folder` of the table, the page and the picture")
	only := flag.String("only", "", "cells whose names match a regular `expression`")
	limit := flag.Duration("for", 0, "start no cell after this `time`")
	workers := flag.Int("jobs", 0, "`number` of cells that run in parallel; 0 is one per processor")
	forget := flag.Bool("forget", false,
		"discard the figures of pull, because it has changed, and keep those of its rivals; run no cells")
	write := flag.Bool("write", false, "write the page and the picture; run no cells")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *dir, *only, *limit, *workers, *forget, *write); err != nil {
		fmt.Fprintln(os.Stderr, "rivals:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, dir, only string, limit time.Duration, workers int, forget, write bool) error {
	match, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	t, err := read(dir)
	if err != nil {
		return err
	}
	switch {
	case forget:
		t.forget()
		if err := t.write(dir); err != nil {
			return err
		}
	case write: // verdicts derive from the figures, and their rules may have changed
		if err := t.write(dir); err != nil {
			return err
		}
	default:
		if err := fill(ctx, t, dir, match, limit, workers); err != nil {
			return err
		}
	}
	return t.page(dir)
}

// fill runs the cells that have no row, or one without pull, and writes each row as soon as it is complete.
func fill(ctx context.Context, t *table, dir string, match *regexp.Regexp, limit time.Duration, workers int) error {
	var todo [][]cell
	for _, list := range settings() {
		list = slices.DeleteFunc(list, func(x cell) bool {
			r, there := t.rows[x.String()]
			return there && !r.open || !match.MatchString(x.String())
		})
		if len(list) > 0 {
			todo = append(todo, list)
		}
	}
	from := time.Now()
	var mu sync.Mutex
	errs := trial.Parallel(ctx, len(todo), workers, func(i int) error {
		if limit > 0 && time.Since(from) > limit {
			return nil
		}
		if err := todo[i][0].measure(ctx); err != nil {
			return fmt.Errorf("%v: %w", todo[i][0], err)
		}
		forms := map[cell]*tuned{}
		for _, x := range todo[i] {
			class := x.class()
			if forms[class] == nil {
				forms[class] = &tuned{}
			}
			mu.Lock()
			r, there := t.rows[x.String()]
			mu.Unlock()
			var err error
			if !there {
				r, err = x.rival(ctx, forms[class])
			}
			if err == nil {
				err = r.pull(ctx, forms[class])
			}
			if err != nil {
				return fmt.Errorf("%v: %w", x, err)
			}
			mu.Lock()
			t.rows[r.cell.String()] = r
			t.mark = golden.Mark(tableName, fmt.Sprintf("seeds %d and %d", tuneSeed, gridSeed))
			fmt.Printf("%d of %d: %v: %s; as it is %s; %v\n", len(t.rows), len(cells()), r.cell, r.verdict(r.best),
				r.verdict(r.usual), r.rival)
			err = t.write(dir)
			mu.Unlock()
			if err != nil {
				return err
			}
		}
		return nil
	})
	for _, err := range errs {
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}
