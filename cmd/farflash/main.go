// Command farflash simulates remote flash storage. Run it without arguments for help; package cli implements its verbs.
package main

import (
	"os"

	"farflash/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
