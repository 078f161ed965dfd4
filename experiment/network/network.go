// Package network is the experiment with a network alone.
//
// It leaves out the models behind the hosts (packages system and objects).
package network

import (
	"farflash/experiment"
	"farflash/experiment/internal/networks"
	"farflash/scenario"
)

// Kind is a network alone.
type Kind struct{}

func (Kind) Is(s *scenario.Scenario) bool {
	return s.Fabric != nil && s.ObjectCluster == nil && len(s.Targets) == 0
}

func (Kind) Build(s *scenario.Scenario, o *experiment.Options) (experiment.Experiment, error) {
	return networks.Alone(s, o)
}
