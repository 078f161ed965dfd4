// Command farflash simulates remote flash storage. Run it without arguments for
// what it can do; package internal/cli holds the verbs.
package main

import (
	"os"

	"farflash/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
