package server

import (
	"farflash/flash/extent"
	"farflash/flash/nbd"
)

// limited is a volume whose reads and writes wait for their turn.
type limited struct {
	nbd.Volume
	gate extent.Gate
}

// Start implements nbd.Volume.
func (l limited) Start(tasks []*nbd.Task) {
	for _, t := range tasks {
		if t.Kind != nbd.Read && t.Kind != nbd.Write {
			l.Volume.Start([]*nbd.Task{t})
			continue
		}
		n, done := int(t.Length), t.Done
		t.Done = func(t *nbd.Task) {
			t.Done = done
			l.gate.Leave(n)
			done(t)
		}
		l.gate.Enter(n, func() { l.Volume.Start([]*nbd.Task{t}) })
	}
}
