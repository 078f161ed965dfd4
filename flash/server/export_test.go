package server

import "fmt"

// Unended describes the operations that the server counts as outstanding, "" if there are none.
func (s *Server) Unended() (text string) {
	all, _ := s.meter.Samples()
	for _, x := range all {
		if x.Outstanding != 0 {
			text += fmt.Sprintf("%d operations on %s over %s; ", x.Outstanding, x.Export, x.Protocol)
		}
	}
	return text
}
