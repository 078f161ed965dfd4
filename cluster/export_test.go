package cluster

// What tests ask of protocols.

// Schemes are all protocols by which replicas are put.
func Schemes() []Scheme {
	var list []Scheme
	for k := range traitsOf {
		if s := Scheme(k); s.putsReplicas() {
			list = append(list, s)
		}
	}
	return list
}

// Build is the first build of SURGE that has a protocol, if one has.
func (s Scheme) Build() Compat { return s.traits().build }

// Placed reports whether a placement says where chunks go.
func (s Scheme) Placed() bool { return s.traits().finds == findsPlaced }

// Sequential reports whether gateways take windows one after another.
func (s Scheme) Sequential() bool { return s.traits().sequential }

// Recovers reports whether a protocol goes on when messages are lost and targets fail.
func (s Scheme) Recovers() bool { return s.traits().stuck == "" }

// NeedsQueues reports whether a protocol needs links that carry one frame at a time.
func (s Scheme) NeedsQueues() bool { return s.traits().queued }
