// Command rivals sets protocol pull beside its rivals at their best, over a grid of clusters, and writes what it finds: docs/validation/pull-grid.csv has a row for each cell, pull-grid.md counts
// them, and pull-grid.svg shows them.
//
//	go run ./internal/rivals            # cells that have no row yet, in an order drawn once
//	go run ./internal/rivals -for 20m   # as many as that time allows
//	go run ./internal/rivals -write     # the page and the picture, of the rows that there are
//
// In each cell every rival in every form of cell.rivals, and pull in every form of cell.pulls, runs for a short time with a seed of its own; the best form of each rival and the best two
// of pull run longer, with the same seed; the two best rivals, the best form of pull, and pull with nothing said are compared with another seed, with which the better of both rivals counts. A row is the
// same on any machine.
//
// It leaves out how figures vary between seeds: cells are many, and each has one.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"sync"
	"time"

	"farflash/trial"
)

func main() {
	dir := flag.String("o", "docs/validation", "the `folder` of the table, the page and the picture")
	only := flag.String("only", "", "cells whose names match a regular `expression`")
	limit := flag.Duration("for", 0, "begin no cell after so `long`")
	workers := flag.Int("jobs", 0, "so `many` cells at once; 0 is one a processor")
	write := flag.Bool("write", false, "write the page and the picture, and run nothing")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *dir, *only, *limit, *workers, *write); err != nil {
		fmt.Fprintln(os.Stderr, "rivals:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, dir, only string, limit time.Duration, workers int, write bool) error {
	match, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	t, err := read(dir)
	if err != nil {
		return err
	}
	if !write {
		if err := fill(ctx, t, dir, match, limit, workers); err != nil {
			return err
		}
	}
	return t.page(dir)
}

// fill runs cells that have no row, and keeps each as soon as it is there.
func fill(ctx context.Context, t *table, dir string, match *regexp.Regexp, limit time.Duration, workers int) error {
	var todo []cell
	for _, x := range shuffled(cells()) {
		if _, done := t.rows[x.String()]; !done && match.MatchString(x.String()) {
			todo = append(todo, x)
		}
	}
	from := time.Now()
	var mu sync.Mutex
	errs := trial.Parallel(ctx, len(todo), workers, func(i int) error {
		if limit > 0 && time.Since(from) > limit {
			return nil
		}
		r, err := todo[i].compare(ctx)
		if err != nil {
			return fmt.Errorf("%v: %w", todo[i], err)
		}
		mu.Lock()
		defer mu.Unlock()
		t.rows[r.cell.String()] = r
		fmt.Printf("%d of %d: %v: %s; as it is %s; %v\n", len(t.rows), len(cells()), r.cell, r.verdict(r.best), r.verdict(r.usual), r.rival)
		return t.write(dir)
	})
	for _, err := range errs {
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}
