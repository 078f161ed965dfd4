package scenario

import (
	"fmt"
	"path/filepath"
	"slices"
)

// Tenants returns the tenants' names, by first appearance, and each item's tenant; named: an item names one. Otherwise
// each item is its own.
func (s *Scenario) Tenants() (names []string, of []int, named bool) {
	for i := range s.Workload {
		named = named || s.Workload[i].Tenant != ""
	}
	for i := range s.Workload {
		name := s.Workload[i].Tenant
		if name == "" {
			name = s.LoadName(i)
		}
		k := slices.Index(names, name)
		if k < 0 || !named {
			k = len(names)
			names = append(names, name)
		}
		of = append(of, k)
	}
	return names, of, named
}

// Lone returns the scenario with only one tenant running, with the same requests.
func (s *Scenario) Lone(tenant int) *Scenario {
	x := *s
	_, of, _ := s.Tenants()
	x.lone = make([]bool, len(of))
	for i, t := range of {
		x.lone[i] = t == tenant
	}
	x.Measure.Anatomy = false
	x.Measure.Alone, x.Measure.Requests, x.Measure.Pauses, x.Measure.Timeline = false, false, false, false
	return &x
}

// Runs reports whether an item of the workload runs.
func (s *Scenario) Runs(i int) bool { return s.lone == nil || s.lone[i] }

// FlowName returns the name of a group of flows.
func (s *Scenario) FlowName(i int) string {
	f := &s.Flows[i]
	switch {
	case f.Name != "" && f.Name != fmt.Sprintf("flows[%d]", i): // the language's name for flows without one
		return f.Name
	case f.File != "":
		return filepath.Base(f.File)
	}
	return f.Kind()
}

// AsMQSim reports whether the scenario is a single drive with compat: mqsim, whose host deviates as MQSim's does.
func (s *Scenario) AsMQSim() bool {
	// Flows that start together start in reverse order of the list, the order of MQSim's unordered_map. Requests may
	// lie outside their flow's sectors and are folded by the drive. A looped trace restarts after the offset of its
	// first request.
	return s.SSD != nil && len(s.Targets) == 0 && s.SSD.Compat == CompatMQSim
}
