package puttest_test

import (
	"testing"

	"farflash/model/cluster/put"
	"farflash/model/cluster/put/puttest"
	"farflash/sim"
)

// TestMemory verifies that Memory fulfils the contracts of the bus.
func TestMemory(t *testing.T) {
	puttest.Conform(t, func(t *testing.T, protocol func(*put.Bus) put.Protocol) puttest.Subject {
		plan, err := puttest.Parts(put.Chain)
		if err != nil {
			t.Fatal(err)
		}
		traits := *plan.Traits
		traits.New = protocol
		plan.Traits = &traits
		eng := sim.New()
		m, err := puttest.NewMemory(plan, eng)
		if err != nil {
			t.Fatal(err)
		}
		return puttest.Subject{Bus: m.Bus, Engine: eng, Begin: func(g int32) { m.Begin(g) }}
	})
}
