package drivemeter

import (
	"fmt"
	"strings"

	"farflash/internal/spelling"
	"farflash/model/cosim"
	"farflash/model/ssd"
)

// Moves is a progress counter: requests issued and completed, and flash operations while commands are outstanding.
func Moves(host *cosim.Host, drives []*ssd.Drive) uint64 {
	n := host.Issued() + host.Ended()
	for _, d := range drives {
		if d.InFlight() > 0 {
			n += d.Operations()
		}
	}
	return n
}

// mostNamed limits the flows that a message names.
const mostNamed = 3

// Waits describes the outstanding requests and their obstacle in the first busy drive; "" if there are none.
func Waits(host *cosim.Host, drives []*ssd.Drive) string {
	text := Left(host)
	for i, d := range drives {
		if d.InFlight() > 0 {
			text += fmt.Sprintf("; drive %d has %s: %s", i, spelling.Plural(int(d.InFlight()), "command"), d.Held())
			break
		}
	}
	return text
}

// Left describes the outstanding requests; "" if there are none.
func Left(host *cosim.Host) string {
	n := 0
	var list []string
	for i, l := range host.Left() {
		if n += l.Count; i < mostNamed {
			list = append(list, fmt.Sprintf("%d of %s, the first its request %d, a %v that came at %v", l.Count,
				l.Flow, l.Number, l.Op, l.Arrival))
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%s did not end (%s)", spelling.Plural(n, "request"), strings.Join(list, "; "))
}
