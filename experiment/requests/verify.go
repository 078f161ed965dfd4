package requests

import (
	"errors"
	"fmt"
	"io"

	"farflash/scenario"
	"farflash/workload"
)

// Verify opens the files that the scenario names and reads the first request of each trace: the checks that are
// possible without running it.
func Verify(s *scenario.Scenario) error {
	for i := range s.Workload {
		t := s.Workload[i].Trace
		if t == nil {
			continue
		}
		p, err := OpenTrace(s, i, 1)
		if err == nil {
			var rec workload.Record
			if err = p.Next(&rec); errors.Is(err, io.EOF) {
				err = fmt.Errorf("%s: no requests to replay", t.File)
			}
			err = errors.Join(err, p.Close())
		}
		if err != nil {
			return s.LoadError(i, err)
		}
	}
	return nil
}
