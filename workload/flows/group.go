package flows

// grouped is a source that sets the group of its flows.
type grouped struct {
	Source
	group uint16
}

// InGroup returns a source that marks src's flows as belonging to a group.
func InGroup(src Source, group uint16) Source { return &grouped{src, group} }

// Next implements Source.
func (g *grouped) Next(f *Flow) error {
	err := g.Source.Next(f)
	f.Group = g.group
	return err
}

// Kind returns the name of the kind that is set.
func (c *Config) Kind() string {
	switch {
	case len(c.List) > 0:
		return "list"
	case c.Poisson != nil:
		return "poisson"
	case c.Incast != nil:
		return "incast"
	case c.AllToAll != nil:
		return "all_to_all"
	case c.Permutation != nil:
		return "permutation"
	case c.Collective != nil:
		return "collective"
	}
	return ""
}
