package ssd_test

import (
	"flag"
	"os"
	"testing"
)

// TestMain asks for fewer cases than rapid's 100 of each property, since a case is a drive's whole life and five
// properties draw theirs apart from each other; -rapid.checks and RAPID_CHECKS override it, and at night there are
// all.
func TestMain(m *testing.M) {
	if os.Getenv("RAPID_CHECKS") == "" && os.Getenv("FARFLASH_LONG") == "" {
		if err := flag.Set("rapid.checks", "40"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
