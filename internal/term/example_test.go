package term_test

import (
	"os"

	"farflash/internal/term"
)

func Example() {
	t := term.NewTable(term.Left(""), term.Right("count"), term.Right("mean"), term.Right("p99"))
	t.Row("read", term.Count(10000), term.Latency(88.898), term.Latency(402.06))
	t.Row("write", term.Count(250), term.Latency(21.8), term.Latency(1234))
	_ = t.Write(os.Stdout, term.Style{})
	// Output:
	//         count     mean      p99
	// read   10,000  88.9 us   402 us
	// write     250  21.8 us  1.23 ms
}
