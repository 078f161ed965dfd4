package cluster

// What protocols have in common, so that code that serves several asks for a property and not for names.

// Grouped reports whether negotiating groups bid for chunks.
func (s Scheme) Grouped() bool { return s == ReplicastM || s == ReplicastH || s == Pull }

// Multicasts reports whether all replicas are sent at once.
func (s Scheme) Multicasts() bool { return s == ReplicastM }
