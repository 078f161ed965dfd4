package fabric

import "fmt"

// exists refuses a number of a node, port, link, queue pair, message or part that the network does not have.
func exists(what string, i int32, n int) {
	if uint(i) >= uint(n) {
		panic(noSuch(what, i, n))
	}
}

//go:noinline
func noSuch(what string, i int32, n int) string {
	return fmt.Sprintf("fabric: there is no %s %d; there are %d", what, i, n)
}
